"""Check that modules import only from their own layer or below.

Layers are listed from the bottom; a package stands for all its modules.  Imports inside functions
count too, except where `LATE` allows one: a few conveniences of the core reach up when called.
Run as ``python tools/layers.py``; prints what is wrong and exits with 1.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "clew"

LAYERS: list[tuple[str, tuple[str, ...]]] = [
    (
        "words",
        (
            "ahead",
            "errors",
            "dtypes",
            "config",
            "device",
            "fields",
            "site",
            "observers",
            "limits",
            "size",
        ),
    ),
    (
        "arrays",
        (
            "allocator",
            "quiet",
            "storage",
            "sharing",
            "packing",
            "promotion",
            "kernels",
            "rng",
            "threads",
        ),
    ),
    ("ops", ("signature", "op", "namespace", "plan", "ops")),
    (
        "graph",
        tuple(
            f"autograd.{m}"
            for m in (
                "node",
                "saved",
                "saved_small",
                "modes",
                "handles",
                "hooks",
                "assigned",
                "deep_stack",
                "engine",
                "views",
                "anomaly",
                "transforms",
            )
        ),
    ),
    (
        "tensor",
        (
            "tensor",
            "dispatch",
            "recording",
            "writes",
            "publish",
            "outputs",
            "autograd",
            "functions",
            "methods",
            "printing",
            "sparse",
        ),
    ),
    (
        "clients",
        (
            "nn",
            "optim",
            "utils",
            "distributions",
            "inspect",
            "memory",
            "serialization",
            "testing",
            "random",
            "linalg",
            "special",
            "fft",
            "signal",
            "amp",
            "cuda",
            "accelerator",
            "distributed",
            "multiprocessing",
            "onnx",
            "backends",
            "compiler",
            "func",
            "jit",
            "version",
            "_C",
            "_vmap_internals",
        ),
    ),
    ("command", ("cli", "torch_alias", "__main__", "__init__")),
]

# (importer, imported): conveniences that import upwards when they are called.
LATE = {
    ("tensor", "methods"),
    ("autograd.node", "autograd.algebra"),
    ("autograd.node", "autograd.shown"),
    ("autograd", "func"),
    ("autograd", "_vmap_internals"),
}


def layer_of(module: str) -> int | None:
    """The index of a module's layer; the longest name that matches decides."""
    best: tuple[int, int] | None = None
    for index, (_, names) in enumerate(LAYERS):
        for name in names:
            if module == name or module.startswith(name + "."):
                length = len(name)
                if best is None or length > best[0]:
                    best = (length, index)
    return None if best is None else best[1]


def imports_of(path: Path, module: str) -> list[tuple[int, str]]:
    """(line, module) of what a file imports of clew, names of modules without ``clew.``."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "clew":
                found += [(node.lineno, alias.name) for alias in node.names]
            elif node.module.startswith("clew."):
                base = node.module.removeprefix("clew.")
                for alias in node.names:
                    inner = f"{base}.{alias.name}"
                    found.append((node.lineno, inner if _is_module(inner) else base))
        elif isinstance(node, ast.Import):
            found += [
                (node.lineno, alias.name.removeprefix("clew."))
                for alias in node.names
                if alias.name.startswith("clew.")
            ]
    return [(line, name) for line, name in found if name != module]


def _is_module(name: str) -> bool:
    path = SOURCE / name.replace(".", "/")
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def problems() -> list[str]:
    """One line for each import that goes up, and each module without a layer."""
    lines = []
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        own = layer_of(module)
        where = path.relative_to(SOURCE.parent.parent)
        if own is None:
            lines.append(f"{where}: {module} has no layer in tools/layers.py")
            continue
        for line, imported in imports_of(path, module):
            above = layer_of(imported)
            if above is None or above <= own:
                continue
            tops = (module.partition(".")[0], imported.partition(".")[0])
            if tops in LATE or (module, imported) in LATE:
                continue
            lines.append(
                f"{where}:{line}: {module} ({LAYERS[own][0]}) imports {imported} "
                f"({LAYERS[above][0]})"
            )
    return lines


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    found = problems()
    print("\n".join(found) if found else "imports go down only")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
