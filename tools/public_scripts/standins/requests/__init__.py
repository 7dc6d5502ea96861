"""requests.get for one address: an archive of a made-up citation graph in the format of Cora."""

import io
import random
import tarfile


class _Answer:
    def __init__(self, content):
        self.raw = io.BytesIO(content)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None


def cora_files():
    rng = random.Random(0)
    papers, words, classes = 2708, 1433, [f"Class_{letter}" for letter in "ABCDEFG"]
    labels = [rng.randrange(7) for _ in range(papers)]
    rows = []
    for paper, label in enumerate(labels):
        present = {rng.randrange(words) for _ in range(12)}
        present |= {rng.randrange(200 * label, 200 * label + 200) for _ in range(6)}
        bits = "\t".join("1" if word in present else "0" for word in range(words))
        rows.append(f"{paper}\t{bits}\t{classes[label]}\n")
    by_class = [[p for p in range(papers) if labels[p] == label] for label in range(7)]
    cites = []
    for paper, label in enumerate(labels):
        cites += [f"{paper}\t{other}\n" for other in rng.sample(by_class[label], 2)]
    return {"cora/cora.content": "".join(rows), "cora/cora.cites": "".join(cites)}


def get(url, stream=False):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in cora_files().items():
            data = text.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return _Answer(archive.getvalue())
