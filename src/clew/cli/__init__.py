"""The `clew` command.  Layer 5.

Imports the standard library and clew's version; a command's module, and rich, are imported when
the command runs, so that `clew --help` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from clew import __version__

COMMANDS = {
    "run": "run an unmodified PyTorch script on clew",
    "graph": "run a script and draw the graph of a backward pass",
    "doctor": "run a PyTorch script and say which autograd mistakes it makes",
    "memory": "show what a script's tensors held, by kind, line and module",
    "compile": "compile what every operation passes, for shorter small operations",
    "warmup": "compile all kernels ahead of time, where numba is installed",
    "info": "show versions, BLAS threads and which extras are installed",
}
"""The commands and what each does; `clew.cli.<name>` holds `main(arguments)`."""

_EXAMPLES = """\
examples:
  clew run train.py --lr 0.1          the script runs with `torch` meaning clew
  clew run train.py --summary         and then shows what its tensors and graph held
  clew run --engine torch train.py    the same script on real PyTorch
  clew graph train.py                 writes train.graph.html, the graph of its first backward
  clew doctor train.py                what is wrong with its graphs and gradients
  clew memory train.py --html m.html  what was held when, by which line; a page to look at
  clew run -h                         all that a command takes
"""


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<8}{what}" for name, what in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="clew",
        usage="clew [-h] [--version] COMMAND ...",
        description="PyTorch's autograd in readable Python, with a graph you can look at.\n\n"
        f"commands:\n{commands}",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"clew {__version__}",
        help="show clew's version and exit",
    )
    parser.add_argument(
        "command", metavar="COMMAND", nargs="?", choices=COMMANDS, help=argparse.SUPPRESS
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return the exit status.

    Args:
        argv: the words after `clew`; those of this process by default.

    Raises:
        SystemExit: help or the version was asked for, or the command line is wrong (status 2).
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    command = parser.parse_args(arguments[:1]).command
    if command is None:
        parser.print_help()
        return 0
    return importlib.import_module(f"{__name__}.{command}").main(arguments[1:])
