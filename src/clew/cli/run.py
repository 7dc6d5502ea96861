"""`clew run`: an unmodified PyTorch script with `torch` meaning clew.

Imports the standard library and `clew.torch_alias`; the ledger behind `--summary` and rich only
when a summary is asked for.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from clew.cli.arguments import parse
from clew.cli.children import torch_means_clew_in_children
from clew.cli.program import CannotStart, Program
from clew.torch_alias import enable_torch


def main(arguments: list[str]) -> int:
    """Run the program and return the exit status it would have under `python`.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    options, program = parse(arguments)
    try:
        if options.engine == "torch":
            return program.run()[0]
        with enable_torch(replace=True), torch_means_clew_in_children():
            return _run_with_summary(program) if options.summary else program.run()[0]
    except CannotStart as error:
        print(f"clew run: {error}", file=sys.stderr)
        return error.status


def _run_with_summary(program: Program) -> int:
    from clew.cli.summary import print_summary, summarize
    from clew.inspect.memory import track

    process = os.getpid()
    with track("clew") as ledger:
        # `main` keeps alive what the program still holds at its end.
        status, main = program.run()
        is_same = os.getpid() == process  # else a child that the program forked and let run on
        summary = summarize(ledger) if is_same else None
    del main
    if summary is not None:
        with suppress(OSError, ValueError):  # the program may have closed its output
            sys.stdout.flush()
        print_summary(summary)
    return status
