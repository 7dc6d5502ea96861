"""From a program on which the engines differ to a short script that shows it.

Lines are taken out, then what is in them; what a removed line would have made is missed by both
engines alike, so any rest of a program is a program.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from fuzz.machine import PRELUDE
from fuzz.programs import replay

_NAMED = (ast.FunctionDef, ast.ClassDef)


def shortened(lines: Sequence[str]) -> tuple[list[str], str]:
    """As few and as short lines as still make the engines differ, and how they do."""
    lines = list(lines)
    found = replay(lines)
    if found is None:
        return lines, "only once: the mismatch depends on what ran before"
    size = max(len(lines) // 2, 1)
    while True:
        start, removed = 0, False
        while start < len(lines):
            fewer = lines[:start] + lines[start + size :]
            why = replay(fewer) if fewer else None
            if why is not None and same_kind(why, found):
                lines, found, removed = fewer, why, True
            else:
                start += size
        if size == 1 and not removed:
            break
        size = max(size // 2, 1)
    for i, line in enumerate(lines):
        for plainer in plainer_lines(line):
            why = replay([*lines[:i], plainer, *lines[i + 1 :]])
            if why is not None and same_kind(why, found):
                lines[i], found = plainer, why
    return lines, found


def same_kind(first: str, second: str) -> bool:
    """Whether two mismatches look alike: of errors, notes, warnings or tensors."""
    return _kind(first) == _kind(second)


def _kind(mismatch: str) -> str:
    word = mismatch.split()[0]
    return word if word in ("raised", "did", "noted", "warned") else "state"


def plainer_lines(line: str) -> list[str]:
    """Simpler forms of a line, to be tried."""
    found = []
    if line.startswith("with ") and not line.startswith("with torch.autograd.graph.saved"):
        found.append(line.split(": ", 1)[1])
    texts = (", retain_graph=True", ", create_graph=True", ", requires_grad=True",
             ", dtype=torch.float32", ", allow_unused=True")  # fmt: skip
    return found + [line.replace(text, "") for text in texts if text in line]


def script(lines: Sequence[str]) -> str:
    """The lines as a program for torch that runs by itself, with what they use of the prelude."""
    tree = ast.parse(PRELUDE.read_text())
    parts = {part.name: part for part in tree.body if isinstance(part, _NAMED)}
    used: dict[str, None] = {}
    words = re.findall(r"\w+", "\n".join(lines))
    while words:
        word = words.pop()
        if word in parts and word not in used:
            used[word] = None
            words += re.findall(r"\w+", ast.unparse(parts[word]))
    before = [ast.unparse(part) for part in tree.body[1:] if not isinstance(part, _NAMED)]
    needed = [ast.unparse(part) for name, part in parts.items() if name in used]
    return "\n\n".join(["\n".join(before), *needed, "\n".join(lines)])
