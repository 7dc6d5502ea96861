"""`clew graph`: run a script and draw the graph of one of its backward passes.

Imports the standard library; what watches and draws is imported when the script runs.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.cli.arguments import engine_parser
from clew.cli.program import CannotStart, Program

if TYPE_CHECKING:
    from clew.inspect.capture import Capture

_DESCRIPTION = """\
Run a script, or with -m a module, up to the end of its first backward pass (or of another, see
--nth), and write the graph of that pass.

clew's options stand before the script; all words after it are its own:
  clew graph train.py --lr 0.1
  clew graph --engine torch -o step.svg train.py
"""


def main(arguments: list[str]) -> int:
    """Run the program, write the graph, and return the exit status.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    options, program = _parse(arguments)
    try:
        with _engine(options.engine):
            from clew.inspect.capture import Capture
            from clew.inspect.recorder import record

            capture = Capture(options.nth, timed=options.time, stop=not options.keep_going)
            with record(), capture:
                status, _ = program.run()
    except CannotStart as error:
        print(f"clew graph: {error}", file=sys.stderr)
        return error.status
    return _show(capture, options, program) or status


def _show(capture: Capture, options: Any, program: Program) -> int:
    """Write the graph and say so; 1 if there is none or it cannot be written."""
    sys.stdout.flush()
    graph = capture.graph
    if graph is None:
        why = "the program ran no backward pass, so there is no graph to draw"
        if capture.passes:
            why = f"--nth {options.nth}: the program ran {capture.passes} backward passes in all"
        print(f"clew graph: {why}", file=sys.stderr)
        return 1
    if options.tree:
        from clew.inspect.tree import print_tree

        print_tree(graph)
        return 0
    path = options.output or f"{Path(program.name).stem}.graph.html"
    try:
        graph.save(path)
    except (OSError, RuntimeError, ValueError) as error:
        print(f"clew graph: {error}", file=sys.stderr)
        return 1
    from clew.inspect.text import bytes_text, site_text

    where = f" of the backward at {site_text(capture.line)}" if capture.line else ""
    kept = bytes_text(graph.saved_bytes)
    print(f"{path}: the graph{where}, {len(graph)} nodes that keep {kept}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def _engine(name: str) -> Any:
    """What `torch` means to the program."""
    if name == "torch":
        try:
            importlib.import_module("torch")  # watched from its first operation on
        except ImportError:
            raise CannotStart("--engine torch needs PyTorch: pip install torch", 1) from None
        yield
        return
    from clew.cli.children import torch_means_clew_in_children
    from clew.torch_alias import enable_torch

    with enable_torch(replace=True), torch_means_clew_in_children():
        yield


def _parse(arguments: list[str]) -> tuple[argparse.Namespace, Program]:
    parser = engine_parser(
        "graph", "[-o FILE] [--nth N] [--time] [--tree] [--keep-going]", _DESCRIPTION
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE",
        help="where to write; .html (default), .svg, .pdf, .png, .dot or .json",
    )  # fmt: skip
    parser.add_argument(
        "--nth", type=int, default=1, metavar="N",
        help="draw the graph of the Nth backward pass (the first by default)",
    )  # fmt: skip
    parser.add_argument("--time", action="store_true", help="measure each node's backward")
    parser.add_argument("--tree", action="store_true", help="print a tree instead of a file")
    parser.add_argument(
        "--keep-going", action="store_true", help="let the script run on to its end"
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if options.nth < 1:
        parser.error("--nth counts from 1")
    if options.module is not None:
        return options, Program(options.module, words, is_module=True)
    if not words:
        parser.error("which script?")
    return options, Program(words[0], words[1:])
