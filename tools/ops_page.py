"""docs/ops.md: every op, its derivative, what it keeps, and how it compares with PyTorch.

``python tools/ops_page.py`` writes the page from the declarations; ``--check`` says whether it is
up to date.  Needs the tests on the path for what is known to differ from PyTorch.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import clew  # noqa: E402, F401  # fills the registry
from clew.op import REGISTRY, REQUIRED, Op, Rule  # noqa: E402

PAGE = ROOT / "docs" / "ops.md"
LONGEST = 110
"""Characters of a formula that is shown."""

HEAD = """# The ops

Each row is a declaration in `src/clew/ops` ([how to read and add one](add-an-op.md)); this page is
made from them by `tools/ops_page.py`. Most of PyTorch's functions are an op each; the others are
composed of these.

- **op**: `name(inputs; attributes)`. A name that PyTorch does not have is one of several ops
  behind a public name (`max_dim` behind `max`), or a backward that is differentiable itself
  (`convolution_backward`).
- **derivative**: what the rule of each input returns, where `grad` is the gradient of the result.
  The engine undoes broadcasting and conversions afterwards. Joint rules give several gradients at
  once. A long rule stands in the file that the section names.
- **keeps**: what the graph keeps if that input requires grad. Shapes and types cost nothing.
- **forward**: the rule of forward mode: *linear* (the op of the tangent), *bilinear* (of each
  tangent with the other operand), *elementwise* (the tangent times the derivative), *twice* (the
  derivative of the derivative's rule), *own* (a function), *none*.
- **PyTorch**: *same* where values, gradients, nodes, edges and kept bytes are compared with
  PyTorch's on the op's samples and agree; otherwise what differs. A dash: PyTorch shows no such
  op.
"""


class _Inline(ast.NodeTransformer):
    """Puts expressions in the place of names, and takes `F.` away."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.values.get(node.id, node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "F":
            return ast.Name(node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [a for a in node.args if not (isinstance(a, ast.Name) and a.id == "F")]
        return self.generic_visit(node)


def formula(rule: Rule) -> str:
    """The expression that a rule returns, if it is short."""
    expression = _expression(rule)
    text = "" if expression is None else " ".join(ast.unparse(expression).split())
    return f"`{text}`" if 0 < len(text) <= LONGEST else "(long)"


def _expression(rule: Rule) -> ast.expr | None:
    """The returned expression, with the names that were assigned before put in."""
    function = _definition(rule.function)
    if isinstance(function, ast.Lambda):
        return _Inline({}).visit(function.body)
    if function is None:
        return None
    values: dict[str, ast.expr] = {}
    for statement in function.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Return) and statement.value is not None:
            return _Inline(values).visit(statement.value)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        (target,) = statement.targets
        if not isinstance(target, ast.Name):
            return None
        values = {**values, target.id: _Inline(values).visit(statement.value)}
    return None


def _definition(function: Any) -> ast.Lambda | ast.FunctionDef | None:
    """The syntax of a function; the lambda is found by its arguments."""
    source = textwrap.dedent(inspect.getsource(function))
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    for text in (source, f"f({source.strip().rstrip(',')})", source.strip().rstrip(",)") + ")"):
        try:
            tree = ast.parse(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda | ast.FunctionDef):
                arguments = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
                if tuple(arguments) == wanted:
                    return node
    return None


def signature(op: Op) -> str:
    """The op as its declaration writes it."""

    def parameter(name: str, default: Any) -> str:
        star = "*" if name in (op.variadic_attr, op.variadic_input and op.inputs[-1]) else ""
        return star + name if default is REQUIRED or star else f"{name}={default!r}"

    inputs = ", ".join(parameter(n, d) for n, d in op.input_defaults.items())
    attrs = ", ".join(parameter(n, op.default_attrs.get(n, REQUIRED)) for n in op.attrs)
    outputs = "" if len(op.outputs) == 1 else " -> " + ", ".join(op.outputs)
    return f"{op.name}({inputs}{'; ' if attrs else ''}{attrs}){outputs}"


def derivatives(op: Op) -> str:
    """Each rule once, with the inputs that it serves."""
    rules: dict[int, tuple[Rule, list[str]]] = {}
    for name, rule in op.rules.items():
        rules.setdefault(id(rule), (rule, []))[1].append(name)
    return "<br>".join(f"{', '.join(names)}: {formula(rule)}" for rule, names in rules.values())


def keeps(op: Op) -> str:
    """What the rule of each input has the graph keep."""
    kept: dict[str, list[str]] = {}
    for name, rule in op.rules.items():
        tensors = [n for n in rule.names if not n.endswith(("_shape", "_dtype", "_strides"))]
        kept.setdefault(", ".join(tensors), []).append(name)
    if list(kept) == [""]:
        return "nothing" if op.rules else ""
    if len(kept) == 1:
        return next(iter(kept))
    return "<br>".join(f"{', '.join(names)}: {what or 'nothing'}" for what, names in kept.items())


def forward_mode(op: Op) -> str:
    """The kind of the forward-mode rule."""
    if not op.rules:
        return ""
    return op.jvp if isinstance(op.jvp, str) else "none" if op.jvp is None else "own"


def status(op: Op) -> str:
    """How the op compares with PyTorch's, as the tests know it."""
    from ops.test_like_torch import KNOWN_GRAPHS, KNOWN_RESULTS
    from ops.torch_calls import torch_call

    if torch_call(op) is None:
        return "-"
    known = {**KNOWN_RESULTS, **KNOWN_GRAPHS}
    reasons = dict.fromkeys(r for p, r in known.items() if _concerns(p, op.name))
    return "same, but: " + "; ".join(reasons) if reasons else "same"


def _concerns(pattern: str, name: str) -> bool:
    head, dash, _ = pattern.rpartition("-")
    while dash:
        if fnmatch(name, head):
            return True
        head, dash, _ = head.rpartition("-")
    return False


def rows(ops: list[Op]) -> Iterator[str]:
    """The rows of a table."""
    for op in ops:
        cells = (f"`{signature(op)}`", derivatives(op), keeps(op), forward_mode(op), status(op))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def modules() -> dict[str, list[Op]]:
    """The ops by the module that declares them."""
    found: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        found.setdefault(op.module, []).append(op)
    return found


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for module, ops in sorted(modules().items()):
        title = (sys.modules[module].__doc__ or module).strip().split("\n")[0].rstrip(".")
        parts.append(f"## {title.partition('.  ')[0]}\n\n`src/{module.replace('.', '/')}.py`\n")
        parts.append("| op | derivative | keeps | forward | PyTorch |\n|---|---|---|---|---|")
        parts[-1] += "\n" + "\n".join(rows(ops)) + "\n"
    return "\n".join(parts)


def main() -> int:
    """Write the page, or check it."""
    text = page()
    if "--check" in sys.argv:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print("docs/ops.md is out of date: run python tools/ops_page.py")
        return int(current != text)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{len(REGISTRY)} ops in {PAGE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
