"""Run the programs of a page and compare what they print with what the page shows.

``python tests/docs/runner.py docs/errors.md`` checks pages, with ``--update`` it writes what the
programs print into them.  The convention, also in CONTRIBUTING.md:

- The ``python`` blocks of a page are one program, run from top to bottom in one namespace, with
  ``torch`` meaning clew.
- A ``text`` block that follows such a block directly is what the block prints: its output, its
  warnings, and the error that ends it.  ``...`` stands for any text, and white space counts as
  one space, so long lines may be wrapped.  Lines of the block are shown as those of
  ``example.py``.
- ``python no-run`` blocks are not run.
- ``python src/clew/op.py`` blocks quote that file: their lines stand in it, in this order and
  without a gap, and are at most 40.

Every page runs in a process of its own, in an empty folder.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
import sys
import tempfile
import textwrap
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clew

ROOT = Path(__file__).parent.parent.parent
SHOWN_NAME = "example.py"
LONGEST_QUOTE = 40
WIDTH = 100


@dataclass
class Block:
    """A fenced block: the words after the fence, its lines, and the line number of the first."""

    info: list[str]
    lines: list[str]
    number: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def end(self) -> int:
        """The line number of the closing fence."""
        return self.number + len(self.lines)


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    found: list[Block] = []
    inside: Block | None = None
    fence = ""
    for number, line in enumerate(page.splitlines(), start=1):
        if inside is not None:
            if line.rstrip() == fence:
                inside = None
            else:
                inside.lines.append(line)
        elif line.startswith("```"):
            words = line.lstrip("`")
            fence = line[: len(line) - len(words)]
            inside = Block(words.split(), [], number + 1)
            found.append(inside)
    return found


def programs_of(page: str) -> list[tuple[Block, Block | None]]:
    """The blocks to run, each with the block that shows its output if there is one."""
    lines, blocks = page.splitlines(), blocks_of(page)
    found = []
    for block, following in zip(blocks, [*blocks[1:], None]):
        if block.info != ["python"]:
            continue
        shown = None
        if following is not None and following.info == ["text"]:
            between = lines[block.end : following.number - 2]
            shown = following if not any(line.strip() for line in between) else None
        found.append((block, shown))
    return found


def quotes_of(page: str) -> list[tuple[Block, str]]:
    """The blocks that quote a file, each with the file's path."""
    return [
        (block, block.info[1])
        for block in blocks_of(page)
        if block.info[:1] == ["python"] and len(block.info) == 2 and "/" in block.info[1]
    ]


def matches(shown: str, printed: str) -> bool:
    """Whether a shown output, with its wildcards, is the printed one."""
    parts = re.split(r"(\.\.\.|\s+)", shown.strip())
    pattern = "".join(
        ".*?" if part == "..." else r"\s+" if part.isspace() else re.escape(part) for part in parts
    )
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


# -- running


def run_block(block: Block, name: str, namespace: dict[str, Any]) -> str:
    """What a block prints; `name`, as ``page.md[3]``, is the file that its lines are known by."""
    source = block.text + "\n"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    output = io.StringIO()

    def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
        output.write(_wrapped(f"{category.__name__}: {message}"))

    with contextlib.redirect_stdout(output), warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        try:
            exec(compile(source, name, "exec"), namespace)
        except Exception as error:
            output.write(_wrapped("".join(traceback.format_exception_only(error))))
    page = re.escape(name.rpartition("[")[0])
    return re.sub(rf"{page}\[\d+\]", SHOWN_NAME, output.getvalue())


def _wrapped(text: str) -> str:
    """A message with its long lines folded; clew's facts are folded below their text."""
    folded = []
    for line in text.splitlines():
        indent = " " * 13 if re.match(r"  [\w ]+: ", line) else ""
        folded += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [
            ""
        ]
    return "\n".join(folded) + "\n"


def check_quote(block: Block, path: str) -> str | None:
    """What is wrong with a quotation, or None."""
    if len(block.lines) > LONGEST_QUOTE:
        return f"quotes {len(block.lines)} lines of {path}, over {LONGEST_QUOTE}"
    source = (ROOT / path).read_text(encoding="utf-8")
    if f"\n{block.text}\n" not in f"\n{source}":
        return f"quotes what does not stand in {path}:\n{textwrap.indent(block.text, '    ')}"
    return None


def quote_anew(block: Block, path: str) -> str | None:
    """What stands in the file from the first to the last line of a quotation, if they do."""
    source = (ROOT / path).read_text(encoding="utf-8").splitlines()
    for start, line in enumerate(source):
        within = source[start : start + LONGEST_QUOTE]
        if line == block.lines[0] and block.lines[-1] in within:
            return "\n".join(within[: within.index(block.lines[-1]) + 1])
    return None


def update_quotes(path: Path) -> None:
    """Make the page's quotations right where their first and last lines still stand."""
    page = path.read_text(encoding="utf-8")
    anew = [
        (block, text)
        for block, file in quotes_of(page)
        if check_quote(block, file) and (text := quote_anew(block, file))
    ]
    if anew:
        path.write_text(_corrected(page, anew), encoding="utf-8")


def check(path: Path, *, update: bool = False) -> list[str]:
    """What is wrong with a page; with `update` what it shows and quotes is made right first."""
    if update:
        update_quotes(path)
    page = path.read_text(encoding="utf-8")
    wrong = [
        f"{path}:{block.number}: {problem}"
        for block, file in quotes_of(page)
        if (problem := check_quote(block, file))
    ]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    corrections: list[tuple[Block, str]] = []
    for index, (block, shown) in enumerate(programs_of(page)):
        printed = run_block(block, f"{path.name}[{index}]", namespace)
        if not matches(shown.text if shown else "", printed):
            if update and shown is not None:
                corrections.append((shown, printed))
            else:
                wrong.append(_difference(path, block, shown, printed))
    if corrections:
        path.write_text(_corrected(page, corrections), encoding="utf-8")
    return wrong


def _difference(path: Path, block: Block, shown: Block | None, printed: str) -> str:
    expected = textwrap.indent(shown.text, "    ") if shown else "    (nothing)"
    return (
        f"{path}:{block.number}: the page shows\n{expected}\n  and the program prints\n"
        f"{textwrap.indent(printed, '    ')}"
    )


def _corrected(page: str, corrections: list[tuple[Block, str]]) -> str:
    lines = page.splitlines()
    for shown, printed in reversed(corrections):
        new = [line.rstrip() for line in printed.strip("\n").splitlines()]
        lines[shown.number - 1 : shown.end - 1] = new
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Check the pages that are named; 1 if anything is wrong."""
    update = "--update" in arguments
    wrong: list[str] = []
    for name in arguments:
        if name == "--update":
            continue
        path = Path(name).absolute()
        with tempfile.TemporaryDirectory() as folder, clew.enable_torch():
            os.chdir(folder)
            wrong += check(path, update=update)
            os.chdir(ROOT)
    print("\n\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
