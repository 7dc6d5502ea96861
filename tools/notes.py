"""Check that each cited Note exists, once.

A Note is a headed paragraph in a module's docstring, ``Note [Name]``; elsewhere it is cited by the
same words.  Run as ``python tools/notes.py``; prints what is wrong and exits with 1.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "clew"
NOTE = re.compile(r"Note \[([^\]]+)\]")


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    owners: dict[str, list[str]] = {}
    cited: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text)) or ""
        for match in NOTE.finditer(text):
            line = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())]
            headed = line.strip() == match.group(0) and match.group(0) in docstring
            table = owners if headed else cited
            table.setdefault(match.group(1), []).append(str(path.relative_to(SOURCE.parent)))
    wrong = [f"Note [{n}] is cited in {', '.join(w)} and stands nowhere"
             for n, w in cited.items() if n not in owners]  # fmt: skip
    wrong += [f"Note [{n}] stands in {', '.join(w)}" for n, w in owners.items() if len(w) > 1]
    print("\n".join(wrong) if wrong else f"{len(owners)} notes, all citations resolve")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
