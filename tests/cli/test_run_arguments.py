"""Which words of `clew run ...` are clew's and which are the script's."""

import pytest

from clew.cli.arguments import parse, split


@pytest.mark.parametrize(
    ("line", "own", "script"),
    [
        ("t.py", "", "t.py"),
        ("--summary t.py --lr 0.1", "--summary", "t.py --lr 0.1"),
        ("t.py --lr 0.1 --summary", "--summary", "t.py --lr 0.1"),
        ("t.py --summary --lr 0.1", "", "t.py --summary --lr 0.1"),
        ("--engine torch t.py a", "--engine torch", "t.py a"),
        ("--engine=torch t.py a", "--engine=torch", "t.py a"),
        ("t.py a --engine torch", "--engine torch", "t.py a"),
        ("t.py a --engine=clew --summary", "--summary --engine=clew", "t.py a"),
        ("t.py --engine diesel", "", "t.py --engine diesel"),
        ("t.py --engine", "", "t.py --engine"),
        ("-- t.py --summary", "", "t.py --summary"),
        ("--summary -- t.py a --summary", "--summary", "t.py a --summary"),
        ("t.py -- --summary", "", "t.py -- --summary"),
        ("t.py -- x --summary", "", "t.py -- x --summary"),
        ("t.py -h", "", "t.py -h"),
        ("-m pkg.mod --lr 1 --summary", "--summary", "-m pkg.mod --lr 1"),
        ("--summary -m pkg -m x", "--summary", "-m pkg -m x"),
        ("-m --summary", "", "-m --summary"),
        ("--summary", "--summary", ""),
        ("", "", ""),
    ],
)
def test_split(line, own, script):
    assert split(line.split()) == (own.split(), script.split())


def test_empty_words_and_words_with_spaces_are_the_scripts():
    assert split(["t.py", "", "a b", "--summary"]) == (["--summary"], ["t.py", "", "a b"])


def test_parse_a_script():
    options, program = parse(["--summary", "t.py", "--lr", "0.1"])
    assert (options.summary, options.engine) == (True, "clew")
    assert (program.name, program.arguments, program.is_module) == ("t.py", ["--lr", "0.1"], False)


def test_parse_a_module():
    options, program = parse(["-m", "pkg.mod", "a", "--engine", "torch"])
    assert (options.summary, options.engine) == (False, "torch")
    assert (program.name, program.arguments, program.is_module) == ("pkg.mod", ["a"], True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "which script"),
        ("--summary", "which script"),
        ("--", "which script"),
        ("-m", "which module"),
        ("--sum t.py", "unrecognized arguments: --sum"),
        ("--engine", "expected one argument"),
        ("--engine diesel t.py", "invalid choice: 'diesel'"),
        ("--engine torch t.py --summary", "cannot go with --engine torch"),
    ],
)
def test_wrong_command_lines_exit_with_2(line, message, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(line.split())
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_help_states_the_rule(capsys):
    with pytest.raises(SystemExit) as caught:
        parse(["-h"])
    assert caught.value.code == 0
    assert "as the very last words, after it" in capsys.readouterr().out
