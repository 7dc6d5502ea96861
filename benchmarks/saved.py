"""Count what clew and PyTorch keep for backward: the workloads, and blocks of larger models.

    python benchmarks/saved.py [--write]

Each memory counts once, parameters do not.  ``--write`` puts the table into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from adapters import with_clew, with_torch
from tables import put_into_readme
from workloads import WORKLOADS, make
from workloads.step import Step


def _block(t: Any, model: Any, *size: int) -> Step:
    x = t.randn(*size)
    return Step(run=lambda: 0.0, given=[x], forward=lambda: model(x).sum(), model=model)


def encoder(activation: str) -> Callable[[Any], Step]:
    """PyTorch's transformer block, normalized before each part, with dropout of 0.1."""

    def build(t: Any) -> Step:
        layer = t.nn.TransformerEncoderLayer(
            128, 4, 512, 0.1, activation, batch_first=True, norm_first=True
        )
        return _block(t, layer, 16, 64, 128)

    return build


def residual(t: Any) -> Step:
    """Two convolutions with batch norm and a path around them, as in ResNet-18, then pooling."""
    nn = t.nn

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = (nn.Conv2d(64, 64, 3, padding=1, bias=False) for _ in range(2))
            self.norm_one, self.norm_two = nn.BatchNorm2d(64), nn.BatchNorm2d(64)

        def forward(self, x: Any) -> Any:
            h = self.norm_one(self.one(x)).relu()
            return (x + self.norm_two(self.two(h))).relu()

    return _block(t, nn.Sequential(nn.Conv2d(3, 64, 3), Block(), nn.MaxPool2d(2)), 8, 3, 34, 34)


BLOCKS: dict[str, Callable[[Any], Step]] = {
    "transformer block with dropout, ReLU": encoder("relu"),
    "transformer block with dropout, GELU": encoder("gelu"),
    "residual block": residual,
}


def table() -> str:
    """What both keep for each workload that has a model, and for each block."""
    engines = [with_torch.load(1), with_clew.load(1)]
    lines = ["| model | PyTorch keeps | clew keeps | |", "|---|---|---|---|"]
    for name in (*WORKLOADS, *BLOCKS):
        counts = []
        for adapter in engines:
            adapter.engine.manual_seed(0)
            step = BLOCKS[name](adapter.engine) if name in BLOCKS else make(name, adapter.engine)
            counts.append(adapter.saved_bytes(step))
        theirs, ours = counts
        if theirs and ours is not None:
            lines.append(f"| {name} | {theirs:,} B | {ours:,} B | {100 * ours / theirs:.0f} % |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    options = parser.parse_args()
    text = table()
    print(text)
    if options.write:
        put_into_readme(text, "saved")


if __name__ == "__main__":
    main()
