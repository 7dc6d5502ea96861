"""Which words of `clew run ...` (and the like) are clew's, which the script's.  Standard library.

clew's options stand before the script or, as the very last words, after it.  Everything else
after the script is the script's own, whatever it looks like.  A `--` ends clew's options for
good: one before the script is dropped, one after it is passed on to the script.
"""

from __future__ import annotations

import argparse

from clew.cli.program import Program

ENGINES = ("clew", "torch")


class Words:
    """The options of a command.

    Args:
        flags: those without a value.
        valued: those with one, and the values that they may have; None for any.
    """

    def __init__(self, flags: set[str], valued: dict[str, tuple[str, ...] | None]) -> None:
        self.flags = flags
        self.valued = valued

    def allows(self, name: str, value: str) -> bool:
        """Whether an option may have a value."""
        values = self.valued.get(name, ())
        return values is None or value in values

    def at_end(self, words: list[str]) -> list[str] | None:
        """The option that ends a command line, or None."""
        if words and words[-1] in self.flags:
            return words[-1:]
        name, equals, value = words[-1].partition("=") if words else ("", "", "")
        if equals and self.allows(name, value):
            return words[-1:]
        if len(words) > 1 and self.allows(words[-2], words[-1]):
            return words[-2:]
        return None


RUN = Words({"--summary"}, {"--engine": ENGINES})

_DESCRIPTION = """\
Run an unmodified PyTorch script, or with -m a module, with `torch` meaning clew.

clew's options stand before the script or, as the very last words, after it; all other words
after the script are its own.  After a `--`, before or behind the script, clew reads nothing:
  clew run --summary train.py --lr 0.1
  clew run train.py --lr 0.1 --summary
  clew run -- train.py --summary          here --summary is the script's
"""


def parse(arguments: list[str]) -> tuple[argparse.Namespace, Program]:
    """The options of `clew run` and the program to run.

    Raises:
        SystemExit: help was asked for, or the command line is wrong (status 2).
    """
    own, rest = split(arguments)
    parser = _parser()
    options = parser.parse_args(own)
    program = program_of(rest, parser)
    if options.summary and options.engine == "torch":
        parser.error("--summary shows what clew recorded; it cannot go with --engine torch")
    return options, program


def program_of(words: list[str], parser: argparse.ArgumentParser) -> Program:
    """The program that the script's words name.

    Raises:
        SystemExit: they name none (status 2).
    """
    is_module = words[:1] == ["-m"]
    if is_module:
        words = words[1:]
    if not words:
        parser.error("which module? -m needs a name" if is_module else "which script?")
    return Program(words[0], words[1:], is_module)


def split(arguments: list[str], options: Words = RUN) -> tuple[list[str], list[str]]:
    """clew's own words; and the script, or -m and the module, with its arguments."""
    start = 0
    while start < len(arguments) and _is_option(arguments[start]):
        start += 2 if arguments[start] in options.valued else 1
    own, rest = arguments[:start], arguments[start:]
    if rest[:1] == ["--"]:
        return own, rest[1:]
    if "--" in rest:
        return own, rest
    shortest = 2 if rest[:1] == ["-m"] else 1
    while option := options.at_end(rest[shortest:]):
        own += option
        rest = rest[: -len(option)]
    return own, rest


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-m", "--")


def engine_parser(command: str, options: str, description: str) -> argparse.ArgumentParser:
    """The parser of a command that runs a program on one of the engines, with `--engine` in it.

    Args:
        command: its name.
        options: its other options, as the usage shows them.
        description: what its help begins with, laid out as it is to be shown.
    """
    parser = argparse.ArgumentParser(
        prog=f"clew {command}",
        usage=f"clew {command} [-h] [--engine {{{','.join(ENGINES)}}}] {options} "
        "(SCRIPT | -m MODULE) [WORD ...]",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="clew",
        help="what `torch` means to the script: clew (the default) or real PyTorch",
    )
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = engine_parser("run", "[--summary]", _DESCRIPTION)
    parser.add_argument(
        "--summary",
        action="store_true",
        help="afterwards show, on stderr, what tensors and graph held, and which lines held most",
    )
    return parser
