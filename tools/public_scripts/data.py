"""Made-up data in the formats that scripts read, where theirs has to be downloaded."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image


def _sentences(count: int, words: int, seed: int) -> str:
    """Sentences over a vocabulary of made-up words in which each word suggests the next."""
    rng = random.Random(seed)
    lines = []
    for _ in range(count):
        word, sentence = rng.randrange(words), []
        for _ in range(rng.randrange(5, 25)):
            sentence.append(f"w{word}")
            word = (word * 7 + rng.randrange(3)) % words
        lines.append(" ".join(sentence))
    return "\n".join(lines) + "\n"


def wikitext(folder: Path) -> None:
    """The three parts of a corpus."""
    target = folder / "data/wikitext-2"
    target.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 1200), ("valid", 100), ("test", 100)):
        (target / f"{part}.txt").write_text(_sentences(count, 300, len(part)))


def penn(folder: Path) -> None:
    """One training text."""
    (folder / "data").mkdir(exist_ok=True)
    (folder / "data/train.txt").write_text(_sentences(1500, 300, 5))


def letters(folder: Path) -> None:
    """A play of made-up words, as one text and as nanoGPT's arrays of character numbers."""
    text = _sentences(3000, 200, 6).replace("w", "the ")
    (folder / "input.txt").write_text(text)
    target = folder / "data/shakespeare_char"
    target.mkdir(parents=True, exist_ok=True)
    characters = sorted(set(text))
    numbers = {character: number for number, character in enumerate(characters)}
    array = np.array([numbers[character] for character in text], dtype=np.uint16)
    split = int(0.9 * len(array))
    array[:split].tofile(target / "train.bin")
    array[split:].tofile(target / "val.bin")
    meta = {
        "vocab_size": len(characters),
        "itos": dict(enumerate(characters)),
        "stoi": numbers,
    }
    (target / "meta.pkl").write_bytes(pickle.dumps(meta))


def photographs(folder: Path) -> None:
    """Smooth coloured pictures in the folders of BSDS300."""
    rng = np.random.RandomState(0)
    for part, count in (("train", 8), ("test", 4)):
        target = folder / "dataset/BSDS300/images" / part
        target.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            small = Image.fromarray(rng.randint(0, 256, (12, 18, 3)).astype(np.uint8))
            small.resize((481, 321), Image.Resampling.BICUBIC).save(target / f"{number}.jpg")


def cora(folder: Path) -> None:
    """A citation graph in the files of Cora."""
    from standins.requests import cora_files

    target = folder.parent / "data/cora"
    target.mkdir(parents=True, exist_ok=True)
    for name, text in cora_files().items():
        (target / name.rpartition("/")[2]).write_text(text)


def waves(folder: Path) -> None:
    """Sine waves, as the script beside it makes them."""
    import torch

    phase = np.random.RandomState(2).randint(-80, 80, 100).reshape(100, 1)
    data = np.sin((np.arange(200) + phase) / 20.0).astype("float64")
    with (folder / "traindata.pt").open("wb") as file:
        torch.save(data, file)


PREPARE: dict[str, Callable[[Path], None]] = {
    function.__name__: function for function in (wikitext, penn, letters, photographs, cora, waves)
}
