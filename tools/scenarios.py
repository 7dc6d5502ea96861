"""Write docs/scenarios.md: each scenario's code, figures and pictures, made by running it on clew.

    python tools/scenarios.py            # all (some minutes)
    python tools/scenarios.py gan ppo    # only these; the others keep what stands in the page

Each example runs in a process of its own through ``clew run``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "scenarios.md"
IMAGES = ROOT / "docs" / "images"

SCENARIOS: list[tuple[str, str, str]] = [
    ("01_graph", "1. Leaves, nodes and the graph",
     "A leaf that requires grad, two operations, and backward: the graph, what it keeps, the "
     "gradient."),
    ("02_recording", "2. Recording only when something requires grad",
     "Operations on plain tensors, and everything under `no_grad`, record nothing."),
    ("03_accumulate", "3. `backward()` accumulates",
     "Two passes add up; `zero_grad()` clears, both ways."),
    ("04_memory", "4. The graph holds memory",
     "What a model's graph keeps, for which rule, shared storage counted once; all of it is "
     "released by backward."),
    ("05_retain", "5. Default release and `retain_graph`",
     "What a backward pass lets go of, and the error of a second pass."),
    ("gan", "6. A GAN with two losses",
     "It learns to draw digits; then what `detach`, `retain_graph` and the order of steps cost."),
    ("07_growing_loop", "7. A loop whose memory grows until it dies",
     "The loop that keeps graphs across iterations, its growth, the holder, the cure."),
    ("08_detach", "8. `detach()`",
     "It shares storage and version, and cuts the graph."),
    ("ppo", "9. Reinforcement learning: PPO",
     "CartPole is solved; the old policy's data carry no graph."),
    ("10_finetune", "10. A frozen feature extractor and a classifier",
     "Gradients reach only the classifier: time and bytes against training everything."),
    ("11_comparison", "11. The comparison table",
     "`retain_graph`, `detach()`, `no_grad()`, `inference_mode()` on one model."),
    ("12_accumulation", "12. Gradient accumulation, and the forgotten `zero_grad()`",
     "Micro-batches equal the large batch; the mistake, found."),
    ("13_inplace", "13. In-place operations that break the graph",
     "On a leaf, on a saved tensor, and those that do no harm; each error names both lines."),
    ("14_unreleased_graphs", "14. Loops that build graphs and do not release them",
     "Growth for each iteration, and the holder."),
    ("16_picture", "16. The picture",
     "`make_dot` shows leaves, shapes, saved tensors and bytes, as SVG, PDF and PNG."),
    ("17_unused_branch", "17. Branches that need no gradient",
     "Recorded, used by no backward, and what they cost."),
    ("char_transformer", "A tiny transformer",
     "A character model learns to write like a book."),
    ("cnn_digits", "A small convolutional network",
     "Trained on digits, saved and loaded."),
]  # fmt: skip

HEAD = """# The scenarios

Each is an ordinary PyTorch script in `examples/`, run here on clew: `clew run examples/NAME.py`.
The same script runs on PyTorch with `python examples/NAME.py`; for the same seed the losses of the
first 100 steps agree to four digits (the tests compare them). Figures and pictures below are what
the scripts printed and drew. Scenario 15, data parallelism, is not there yet.

This page is written by `python tools/scenarios.py`.
"""


def run(name: str, folder: Path) -> str:
    """What an example prints on clew; its pictures go to `folder`."""
    command = [sys.executable, "-m", "clew", "run", f"examples/{name}.py"]
    script = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    if "args.out" in script:
        command += ["--out", str(folder)]
    # Hugely wide lines help nobody on a page; argparse and rich look at COLUMNS.
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "COLUMNS": "110"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout.replace(str(folder), "out").replace(f"{ROOT}/", "").strip()


def pictures(name: str, folder: Path) -> list[str]:
    """Copy the pictures that an example drew into the docs; their names."""
    IMAGES.mkdir(exist_ok=True)
    names = []
    for picture in sorted(folder.glob("*.png")) + sorted(folder.glob("*.svg")):
        if picture.suffix == ".png" and picture.with_suffix(".svg").exists():
            continue
        target = IMAGES / f"{name}_{picture.name.removeprefix(name + '_')}"
        shutil.copyfile(picture, target)
        names.append(target.name)
    return names


def section(name: str, title: str, what: str) -> str:
    """One scenario: what it is, what it printed, its pictures, its code."""
    with tempfile.TemporaryDirectory() as folder:
        output = run(name, Path(folder))
        drawn = pictures(name, Path(folder))
    code = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").strip()
    parts = [f"## {title}", what, f"```text\n{output}\n```"]
    parts += [f"![{image}](images/{image})" for image in drawn]
    parts.append(
        f"<details><summary><code>examples/{name}.py</code></summary>\n\n"
        f"```python no-run\n{code}\n```\n\n</details>"
    )
    return "\n\n".join(parts)


def known_sections() -> dict[str, str]:
    """The sections that stand in the page, by title."""
    if not PAGE.exists():
        return {}
    found = re.split(r"^(?=## )", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {part.splitlines()[0].removeprefix("## "): part.strip() for part in found}


def main() -> None:
    """Run the examples that are asked for and write the page."""
    wanted = set(sys.argv[1:])
    known = known_sections()
    sections = []
    for name, title, what in SCENARIOS:
        if wanted and name not in wanted and title in known:
            sections.append(known[title])
            continue
        print(f"running {name} ...", flush=True)
        sections.append(section(name, title, what))
    PAGE.write_text("\n\n".join([HEAD.strip(), *sections]) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
