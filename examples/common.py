"""What the examples share: arguments, data, pictures, and measuring what a graph holds.

Only public names of PyTorch are used, so every figure is taken in the same way whichever library
`import torch` means.
"""

import argparse
import linecache
import sys
import weakref
from collections import Counter
from pathlib import Path

import torch
from PIL import Image
from sklearn.datasets import load_digits

# ---- arguments and results ----


def arguments(doc, **defaults):
    """Parse the command line; each keyword becomes an option with that default."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=f"[{default}]")
    parser.add_argument("--seed", type=int, default=0, help="of the random generator [0]")
    parser.add_argument("--losses", type=Path, help="write the losses of the first 100 steps here")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for pictures [out]")
    torch.set_num_threads(1)  # models as small as these lose more to threads than they gain
    return parser.parse_args()


def save_losses(args, losses):
    """Write numbers or one-element tensors, one per line, to the file that `--losses` names."""
    if args.losses:
        numbers = [x.item() if isinstance(x, torch.Tensor) else x for x in losses]
        args.losses.write_text("".join(f"{number!r}\n" for number in numbers))


def error_of(function):
    """Run `function`, which is expected to raise; return the error's text."""
    try:
        function()
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


# ---- data and pictures ----


def digits():
    """scikit-learn's handwritten digits: images (1797, 1, 8, 8) from 0 to 1, labels (1797,)."""
    data = load_digits()
    images = torch.tensor(data.images / 16, dtype=torch.float32).unsqueeze(1)
    return images, torch.tensor(data.target, dtype=torch.int64)


def split(images, labels, held_out=297):
    """Shuffle, and return the training pair and the held-out pair."""
    order = torch.randperm(len(labels))
    train, test = order[:-held_out], order[-held_out:]
    return (images[train], labels[train]), (images[test], labels[test])


def accuracy(model, images, labels):
    """The fraction of images that the model, in eval mode, classifies rightly."""
    model.eval()
    with torch.no_grad():
        right = (model(images).argmax(1) == labels).float().mean().item()
    model.train()
    return right


def save_grid(path, images, columns, scale=6):
    """Save images (N, 8, 8) from 0 to 1 as one PNG, `columns` in a row, one pixel apart."""
    rows = -(-len(images) // columns)
    grid = torch.ones(rows * 9 - 1, columns * 9 - 1)
    for i, image in enumerate(images):
        top, left = i // columns * 9, i % columns * 9
        grid[top : top + 8, left : left + 8] = image
    grey = (grid.clamp(0, 1) * 255).round().int()
    picture = Image.frombytes("L", (grid.shape[1], grid.shape[0]), bytes(grey.flatten().tolist()))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.resize((picture.width * scale, picture.height * scale), Image.NEAREST).save(path)


# ---- the graph ----


def nodes(*tensors):
    """Every node of the graph behind the tensors, each once, the newest first."""
    found = dict.fromkeys(tensor.grad_fn for tensor in tensors if tensor.grad_fn is not None)
    stack = list(found)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is not None and node not in found:
                found[node] = None
                stack.append(node)
    return list(found)


def saved_tensors(node):
    """The tensors that a node keeps for its backward, by name ("self", "result", ...)."""
    saved = {}
    for name in sorted(name for name in dir(node) if name.startswith("_saved_")):
        value = getattr(node, name)
        for tensor in value if isinstance(value, tuple) else (value,):
            if isinstance(tensor, torch.Tensor):
                saved[name.removeprefix("_saved_")] = tensor
    return saved


class _Saved:
    """Stands in the graph for one saved tensor, and dies when the graph lets go of it."""

    def __init__(self, meter, tensor):
        # Detached: a saved output that kept its own node alive would never be freed.
        self.tensor = tensor.detach()
        self.version = tensor._version
        self.line = _line_of_example()
        self.meter = meter

    def __del__(self):
        self.meter._let_go(self)


class SavedBytes:
    """Counts the bytes held for backward by what is recorded inside a `with` block.

    Storages are counted once however many nodes share them; those of `leave_out` (usually
    `model.parameters()`, which live anyway) are not counted. The count stays live after the
    block: it falls as backward, or the end of the last reference, releases saved tensors.
    """

    def __init__(self, leave_out=()):
        self.held = 0
        self.peak = 0
        self._left_out = {tensor.untyped_storage().data_ptr() for tensor in leave_out}
        self._owners = Counter()
        self._saved = weakref.WeakSet()
        self._hooks = torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def __enter__(self):
        self._hooks.__enter__()
        return self

    def __exit__(self, *error):
        self._hooks.__exit__(*error)

    def lines(self):
        """The bytes now held by line of the example, the largest first."""
        held, seen = Counter(), set(self._left_out)
        for saved in sorted(self._saved, key=lambda saved: saved.line):
            storage = saved.tensor.untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                held[saved.line] += storage.nbytes()
        return held.most_common()

    def _pack(self, tensor):
        saved = _Saved(self, tensor)
        storage = saved.tensor.untyped_storage()
        if storage.data_ptr() not in self._left_out:
            self._saved.add(saved)
            if not self._owners[storage.data_ptr()]:
                self.held += storage.nbytes()
                self.peak = max(self.peak, self.held)
            self._owners[storage.data_ptr()] += 1
        return saved

    def _unpack(self, saved):
        # With hooks installed, PyTorch no longer checks this itself.
        if saved.tensor._version != saved.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: it is at version {saved.tensor._version}; expected version "
                f"{saved.version} instead"
            )
        return saved.tensor

    def _let_go(self, saved):
        storage = saved.tensor.untyped_storage()
        if storage.data_ptr() not in self._left_out:
            self._owners[storage.data_ptr()] -= 1
            if not self._owners[storage.data_ptr()]:
                del self._owners[storage.data_ptr()]
                self.held -= storage.nbytes()


def _line_of_example():
    """The innermost line of the script that is running, as "file:number  text"."""
    frame = sys._getframe(1)
    while frame.f_globals["__name__"] != "__main__":
        frame = frame.f_back
    path, number = frame.f_code.co_filename, frame.f_lineno
    return f"{Path(path).name}:{number}  {linecache.getline(path, number).strip()}"


def kib(size):
    """A number of bytes as text in KiB."""
    return f"{size / 1024:,.1f} KiB"
