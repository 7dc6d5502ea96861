"""The runner of the pages' programs."""

import textwrap

import pytest
import runner


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(textwrap.dedent(text).replace("'''", "```"))
    return path


def test_a_page_is_one_program_of_clew(tmp_path):
    path = page(
        tmp_path,
        """
        '''python
        import clew as torch
        x = torch.ones(2, requires_grad=True)
        '''
        Words.
        '''python
        print((x * 2).grad_fn)
        '''

        '''text
        <MulBackward0 keeps nothing; at example.py:1, in <module>: print((x * 2).grad_fn)>
        '''
        """,
    )
    assert runner.check(path) == []


def test_wrong_output_is_told_and_corrected(tmp_path):
    path = page(
        tmp_path,
        """
        '''python
        print(1 + 1)
        print("two")
        '''
        '''text
        3
        '''
        End.
        """,
    )
    (problem,) = runner.check(path)
    assert problem.startswith(f"{path}:3: the page shows\n    3\n")
    assert "    2\n    two\n" in problem
    assert runner.check(path, update=True) == []
    assert "```text\n2\ntwo\n```\nEnd.\n" in path.read_text()
    assert runner.check(path) == []


@pytest.mark.parametrize(
    "program",
    ["print('hidden')", "1 / 0", "import warnings\nwarnings.warn('hidden')"],
)
def test_output_that_is_not_shown_is_wrong(tmp_path, program):
    path = tmp_path / "page.md"
    path.write_text(f"```python\n{program}\n```\n")
    assert len(runner.check(path)) == 1


def test_a_text_block_after_words_shows_nothing(tmp_path):
    path = page(
        tmp_path,
        """
        '''python
        x = 1
        '''
        Words between.
        '''text
        1
        '''
        """,
    )
    assert runner.check(path) == []


def test_errors_and_warnings_are_output(tmp_path):
    path = page(
        tmp_path,
        """
        '''python
        import warnings
        warnings.warn("careful")
        raise ValueError("no")
        '''
        '''text
        UserWarning: careful
        ValueError: no
        '''
        """,
    )
    assert runner.check(path) == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a b", "a\n   b\n", True),
        ("a b", "ab", False),
        ("a ... c", "a b\nb c", True),
        ("a...", "a", True),
        ("x", "a x", False),
        ("[1.0]", "[1.0]", True),
        ("[1.0]", "[1x0]", False),
        ("", "", True),
    ],
)
def test_matches(shown, printed, same):
    assert runner.matches(shown, printed) is same


def test_no_run(tmp_path):
    path = page(tmp_path, "'''python no-run\nprint(1)\n'''\n'''sh\nls\n'''\n")
    assert runner.check(path) == []


def test_blocks_within_a_longer_fence_are_shown_only(tmp_path):
    path = tmp_path / "page.md"
    shown = "````markdown\n```python\n1 / 0\n```\n````\n"
    path.write_text(shown + "```python\nprint(1)\n```\n")
    (problem,) = runner.check(path)
    assert "the program prints\n    1" in problem


def test_quotes_must_stand_in_their_file(tmp_path):
    quote = "REGISTRY: dict[str, Op] = {}"
    path = page(tmp_path, f"'''python src/clew/op.py\n{quote}\n'''\n")
    assert runner.check(path) == []
    path = page(tmp_path, f"'''python src/clew/op.py\n{quote[:-1]}\n'''\n")
    (problem,) = runner.check(path)
    assert "does not stand in src/clew/op.py" in problem
    path = page(tmp_path, "'''python src/clew/op.py\n" + "x\n" * 41 + "'''\n")
    assert "over 40" in runner.check(path)[0]


def test_quotes_are_made_right_between_their_first_and_last_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("def f():\n    x = 2\n    return x\n")
    path = page(tmp_path, "'''python src/a.py\ndef f():\n    x = 1\n    return x\n'''\n")
    assert len(runner.check(path)) == 1
    assert runner.check(path, update=True) == []
    assert "    x = 2\n" in path.read_text()
