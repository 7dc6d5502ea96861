"""`clew memory`: what a script's tensors held, by kind, line and module.

Imports the standard library and `clew.torch_alias`; the ledger and rich when the command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack, suppress
from typing import Any

from clew.cli.arguments import ENGINES, Words, engine_parser, program_of, split
from clew.cli.children import torch_means_clew_in_children
from clew.cli.program import CannotStart, Program
from clew.torch_alias import enable_torch

_OWN = Words(set(), {"--engine": ENGINES, "--html": None, "--json": None, "--lines": None})

_DESCRIPTION = """\
Run a PyTorch script, or with -m a module, and show what its tensors held in memory: the peak by
kind, line and module, what graphs kept for backward and why, and whether iterations grew.

clew's options stand before the script or, as the very last words, after it:
  clew memory train.py --lr 0.1
  clew memory train.py --lr 0.1 --html memory.html     a page with the whole timeline
  clew memory --engine torch train.py                  the same for real PyTorch on the CPU
"""


def main(arguments: list[str]) -> int:
    """Run the program, show the ledger on stderr, and return the program's exit status.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    own, rest = split(arguments, _OWN)
    parser = _parser()
    options = parser.parse_args(own)
    program = program_of(rest, parser)
    for path in filter(None, (options.html, options.json)):
        if not os.path.isdir(os.path.dirname(path) or "."):
            parser.error(f"there is no folder for {path}")
    try:
        if options.engine == "torch":
            return _run(program, options)
        with enable_torch(replace=True), torch_means_clew_in_children():
            return _run(program, options)
    except (CannotStart, ImportError) as error:
        print(f"clew memory: {error}", file=sys.stderr)
        return getattr(error, "status", 1)


def _run(program: Program, options: argparse.Namespace) -> int:
    if options.engine == "torch":
        __import__("torch")  # before tracking, which looks at the torch that is loaded
    from clew.inspect.memory import track

    process = os.getpid()
    with ExitStack() as stack:
        ledger = stack.enter_context(track(options.engine))
        # `main` keeps alive what the program still holds at its end.
        status, main = program.run()
        if os.getpid() != process:  # a child that the program forked and let run on
            return status
        stack.pop_all().close()
    del main
    _show(ledger, program, options)
    return status


def _show(ledger: Any, program: Program, options: argparse.Namespace) -> None:
    from rich.console import Console

    from clew.inspect.memory.text import renderable

    with suppress(OSError, ValueError):  # the program may have closed its output
        sys.stdout.flush()
    console = Console(file=sys.stderr, highlight=False, emoji=False)
    console.print()
    console.print(renderable(ledger, options.lines))
    for path in filter(None, (options.html, options.json)):
        ledger.save(path, title=program.name)
        console.print(f"\n written: {path}", style="dim", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = engine_parser("memory", "[--html FILE] [--json FILE] [--lines N]", _DESCRIPTION)
    parser.add_argument("--html", metavar="FILE", type=_ending(".html"), help="write a page")
    parser.add_argument("--json", metavar="FILE", type=_ending(".json"), help="write all figures")
    parser.add_argument(
        "--lines", metavar="N", type=int, default=10, help="rows in each table (10 by default)"
    )
    return parser


def _ending(ending: str) -> Any:
    def path(word: str) -> str:
        if not word.endswith(ending):
            raise argparse.ArgumentTypeError(f"{word!r} does not end with {ending}")
        return word

    return path
