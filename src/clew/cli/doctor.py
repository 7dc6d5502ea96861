"""`clew doctor`: run an unmodified PyTorch script, and say which autograd mistakes it makes.

Imports the standard library; the doctor, and rich, when a script is run.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
from contextlib import suppress
from typing import Any

from clew import __version__
from clew.cli.arguments import ENGINES, Words, engine_parser, program_of, split
from clew.cli.children import torch_means_clew_in_children
from clew.cli.program import CannotStart, Program
from clew.torch_alias import enable_torch

WORDS = Words({"--json", "--checksums"}, {"--engine": ENGINES, "--sarif": None, "--bptt": None})

_DESCRIPTION = """\
Run an unmodified PyTorch script, or with -m a module, and say which mistakes it makes with graphs
and gradients: what happens, since when, what it costs, on which lines, and what to change.  Each
finding has a rule, R01 to R18: see docs/doctor.

clew's options stand before the script or, as the very last words, after it; all other words
after the script are its own.

exit status: 0 without findings (or with infos only), 1 with an error or a warning.
"""


def main(arguments: list[str]) -> int:
    """Run a program under the doctor and return the exit status.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    own, rest = split(arguments, WORDS)
    parser = _parser()
    options = parser.parse_args(own)
    program = program_of(rest, parser)
    try:
        if options.engine == "torch":
            return _examine(program, options)
        with enable_torch(replace=True), torch_means_clew_in_children():
            return _examine(program, options)
    except CannotStart as error:
        print(f"clew doctor: {error}", file=sys.stderr)
        return error.status


def _examine(program: Program, options: argparse.Namespace) -> int:
    from clew.inspect.doctor import Doctor, Options

    process = os.getpid()
    doctor = Doctor(options.engine, Options(bptt=options.bptt, checksums=options.checksums))
    # With --json, standard output is the JSON object alone.
    output: Any = sys.stderr if options.json else sys.stdout
    with contextlib.redirect_stdout(output):
        doctor.start(sys._getframe())
        try:
            status, main = program.run(at_end=doctor.stop)
        finally:
            doctor.stop()
    del main
    if os.getpid() != process:  # a child that the program forked and let run on
        return status
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    _tell(doctor, program, status, options)
    return doctor.status or status


def _tell(doctor: Any, program: Program, status: int, options: argparse.Namespace) -> None:
    """Print, and write, what was found."""
    for trouble in doctor.troubles:
        print(f"clew doctor: a failure of the doctor itself\n{trouble}", file=sys.stderr)
    if options.sarif:
        from clew.inspect.doctor.sarif import as_sarif

        with open(options.sarif, "w", encoding="utf-8") as file:
            json.dump(as_sarif(doctor.findings, __version__), file, indent=2)
    if options.json:
        result = {
            "script": program.name,
            "engine": options.engine,
            "status": status,
            "findings": [finding.as_dict() for finding in doctor.findings],
        }
        text = io.StringIO()
        json.dump(result, text, indent=2, default=str)
        print(text.getvalue())
        return
    from clew.inspect.doctor.report import print_findings

    print_findings(doctor.findings, file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = engine_parser(
        "doctor", "[--json] [--sarif FILE] [--bptt N] [--checksums]", _DESCRIPTION
    )
    parser.add_argument(
        "--json", action="store_true",
        help="print one JSON object; the script's own output goes to stderr",
    )  # fmt: skip
    parser.add_argument("--sarif", metavar="FILE", help="write a SARIF 2.1.0 file too")
    parser.add_argument(
        "--bptt", metavar="N", type=int, default=0,
        help="states are carried over N iterations on purpose",
    )  # fmt: skip
    parser.add_argument(
        "--checksums", action="store_true",
        help="compare checksums of all that is saved for backward, to find hidden changes (slow)",
    )  # fmt: skip
    return parser
