"""Count lines of code by layer, and refuse files and functions that have grown too long.

Docstrings, comments and blank lines are free.  Run as ``python tools/size.py``; exits with 1 when
a file is over 500 lines in all or a function over 60.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize

from layers import LAYERS, SOURCE, layer_of

LONGEST_FILE, LONGEST_FUNCTION = 500, 60


def code_lines(text: str) -> int:
    """Lines that hold code: no docstrings, comments, blank lines."""
    lines: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            lines.difference_update(range(body[0].lineno, (body[0].end_lineno or 0) + 1))
    return len(lines)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)


def long_functions(text: str) -> list[tuple[str, int, int]]:
    """(name, line, length) of functions over the limit."""
    return [
        (node.name, node.lineno, length)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    ]


def main() -> int:
    """Print the table and what is too long; 1 if anything is."""
    totals = [0] * len(LAYERS)
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(SOURCE.parent)
        parts = path.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        layer = layer_of(module)
        if layer is not None:
            totals[layer] += code_lines(text)
        if text.count("\n") > LONGEST_FILE:
            wrong.append(f"{where}: {text.count(chr(10))} lines, over {LONGEST_FILE}")
        for name, line, length in long_functions(text):
            wrong.append(f"{where}:{line}: {name} has {length} lines, over {LONGEST_FUNCTION}")
    for (name, _), total in zip(LAYERS, totals):
        print(f"{name:10} {total:6} lines of code")
    print(f"{'all':10} {sum(totals):6}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
