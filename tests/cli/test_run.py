"""`clew run`, in this process: what the program sees, what the user sees, the exit status."""

import io
import os
import subprocess
import sys
import textwrap
import types

import pytest

from clew.cli import main
from clew.cli.summary import Summary


@pytest.fixture
def script(tmp_path):
    """Write a script and return its path."""

    def write(text, name="train.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def test_the_program_sees_what_python_shows_it(script, tmp_path, capsys, monkeypatch):
    path = script(
        """
        import sys
        print(__name__, __file__, sys.argv, sys.path[0])
        print(__spec__, __package__, __cached__, __doc__, type(__loader__).__name__)
        print(sys.modules['__main__'].__dict__ is globals())
        print(__builtins__.__name__)
        """,
        "sub/train.py",
    )
    monkeypatch.chdir(tmp_path)
    before = sys.argv, sys.path[:], sys.modules["__main__"]
    assert main(["run", "sub/train.py", "--lr", "0.1"]) == 0
    assert (sys.argv, sys.path, sys.modules["__main__"]) == before
    ours = capsys.readouterr().out
    command = [sys.executable, "sub/train.py", "--lr", "0.1"]
    assert ours == subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert path in ours


def test_modules_beside_the_script_are_found_also_through_a_link(script, tmp_path, capsys):
    script("answer = 42", "real/neighbour_of_script.py")
    real = script("import neighbour_of_script as n; print(n.answer)", "real/train.py")
    link = tmp_path / "link.py"
    os.symlink(real, link)
    assert main(["run", str(link)]) == 0
    assert capsys.readouterr().out == "42\n"
    del sys.modules["neighbour_of_script"]


def test_torch_means_clew_during_the_run_only(script, capsys):
    before = sys.modules.get("torch")
    assert main(["run", script("import torch; print(torch.__version__)")]) == 0
    assert capsys.readouterr().out == "2.13.0+clew\n"
    assert sys.modules.get("torch") is before


def test_a_script_gets_its_gradients(script, capsys):
    path = script(
        """
        import torch

        a = torch.tensor([2.0], requires_grad=True)
        b = a * 3
        c = b**2
        c.backward()
        print(a.grad, type(c.grad_fn).__name__)
        """
    )
    assert main(["run", path]) == 0
    assert capsys.readouterr().out == "tensor([36.]) PowBackward0\n"


def test_engine_torch_leaves_torch_alone(script, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(who="the real one"))
    path = script("import torch; print(torch.who)")
    assert main(["run", "--engine", "torch", path]) == 0
    assert capsys.readouterr().out == "the real one\n"


@pytest.mark.parametrize(
    ("code", "status", "stderr"),
    [
        ("raise SystemExit", 0, ""),
        ("import sys; sys.exit(0)", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('no data')", 1, "no data\n"),
        ("raise KeyboardInterrupt", 130, None),
        ("1 / 0", 1, None),
    ],
)
def test_exit_status(script, capsys, code, status, stderr):
    assert main(["run", script(code)]) == status
    if stderr is not None:
        assert capsys.readouterr().err == stderr


def test_a_traceback_shows_the_users_lines_alone(script, capsys):
    path = script(
        """\
        def fail():
            return {}["key"]
        fail()
        """
    )
    assert main(["run", path]) == 1
    ours = capsys.readouterr().err
    pythons = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert ours == pythons.stderr


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("import torch; torch.no_such_thing", "AttributeError: module 'torch' has no attribute"),
        ("import torch.no_such_thing", "ModuleNotFoundError: No module named"),
        ("from torch import no_such_thing", "ImportError: cannot import name"),
    ],
)
def test_what_clew_lacks_is_shown_at_the_users_line(script, capsys, statement, message):
    path = script(statement)
    assert main(["run", path]) == 1
    first, second, source, *rest = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert second == f'  File "{path}", line 1, in <module>'
    assert source == f"    {statement}"
    rest = [line for line in rest if set(line) - set(" ^~")]
    assert rest[0].startswith(message)
    assert rest[1].startswith("clew stands in for torch here and does not have torch.no_such_thing")


def test_the_scripts_own_excepthook_is_called(script, capsys, monkeypatch):
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    path = script(
        """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind.__name__, trace.tb_lineno)
        1 / 0
        """
    )
    assert main(["run", path]) == 1
    assert capsys.readouterr().out == "ZeroDivisionError 4\n"


@pytest.mark.parametrize("source", [b"x = (\n", b"x = '\xe9'\n", b"x = 1\0\n"])
def test_a_script_that_python_cannot_read(tmp_path, capsys, source):
    path = tmp_path / "bad.py"
    path.write_bytes(source)
    assert main(["run", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.splitlines()[-1].startswith("SyntaxError: ")
    assert "Traceback" not in error
    assert "program.py" not in error


def test_another_encoding_is_read_where_it_is_declared(tmp_path, capsys):
    path = tmp_path / "latin.py"
    path.write_bytes("# coding: latin-1\nprint(ascii('é'))\n".encode("latin-1"))
    assert main(["run", str(path)]) == 0
    assert capsys.readouterr().out == "'\\xe9'\n"


def test_a_missing_file_and_a_folder_exit_with_2(tmp_path, capsys):
    assert main(["run", str(tmp_path / "none.py")]) == 2
    assert main(["run", str(tmp_path)]) == 2
    missing, folder = capsys.readouterr().err.splitlines()
    path = str(tmp_path / "none.py")
    assert missing == f"clew run: can't open file {path!r}: [Errno 2] No such file or directory"
    assert folder.startswith(f"clew run: {str(tmp_path)!r} is a folder")


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_the_program_starts_afresh_see_clew_too(script, capfd, method):
    path = script(
        f"""
        import multiprocessing
        import torch.autograd as autograd

        def work():
            import torch
            print(torch.__version__, torch.autograd is autograd, autograd.__name__)

        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            child = context.Process(target=work)
            child.start()
            child.join()
            raise SystemExit(child.exitcode)
        """
    )
    path_before = sys.path[:]
    assert main(["run", path]) == 0
    assert sys.path == path_before
    assert capfd.readouterr().out == "2.13.0+clew True torch.autograd\n"


@pytest.fixture
def package(script, tmp_path, monkeypatch):
    """A package in the working directory."""
    show = "import sys; print(__name__, __package__, __spec__.name, sys.argv, sys.path[0])"
    script("", "runpkg/__init__.py")
    script(show, "runpkg/tool.py")
    script(show, "runpkg/whole/__main__.py")
    script("", "runpkg/whole/__init__.py")
    script("import a_library_that_is_not_there", "runpkg/needy/__init__.py")
    script("int('x')", "runpkg/broken/__init__.py")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "runpkg"]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["runpkg.tool", "runpkg.whole"])
def test_a_module_runs_as_with_python_m(package, capsys, name):
    assert main(["run", "-m", name, "a", "-b"]) == 0
    ours = capsys.readouterr().out
    command = [sys.executable, "-m", name, "a", "-b"]
    assert ours == subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere_at_all", "No module named nowhere_at_all"),
        ("runpkg.nowhere", "No module named runpkg.nowhere"),
        ("runpkg", "No module named runpkg.__main__; 'runpkg' is a package"),
        (".tool", "Relative module names not supported"),
        ("math", "math has no Python code to run"),
    ],
)
def test_a_module_that_cannot_run_exits_with_1(package, capsys, name, message):
    assert main(["run", "-m", name]) == 1
    assert capsys.readouterr().err.startswith(f"clew run: {message}")


def test_a_failing_import_in_a_modules_package_is_the_programs_error(package, capsys):
    assert main(["run", "-m", "runpkg.needy.tool"]) == 1
    error = capsys.readouterr().err
    assert (
        error.splitlines()[-1]
        == "ModuleNotFoundError: No module named 'a_library_that_is_not_there'"
    )
    assert "program.py" not in error


def test_another_failure_in_a_modules_package_is_the_programs_error(package, capsys):
    assert main(["run", "-m", "runpkg.broken.tool"]) == 1
    first, second, *_, last = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert second.startswith(f'  File "{package / "runpkg" / "broken" / "__init__.py"}", line 1')
    assert last.startswith("ValueError: invalid literal")


@pytest.fixture
def ledger(monkeypatch):
    """A made-up summary."""
    summary = Summary({"parameter": 2048}, {"parameter": 1024}, 7, 3)
    monkeypatch.setattr("clew.cli.summary.summarize", lambda ledger: summary)


@pytest.mark.parametrize("code", ["pass", "1 / 0", "import sys; sys.exit(3)"])
def test_the_summary_follows_the_program_however_it_ends(script, capsys, ledger, code):
    path = script(f"print('from the script')\n{code}")
    status = {"pass": 0, "1 / 0": 1}.get(code, 3)
    assert main(["run", path, "--summary"]) == status
    out, error = capsys.readouterr()
    assert out == "from the script\n"
    assert "7 recorded, 3 freed, 4 alive" in error
    assert error.find("Traceback") < error.find("bytes held")


def test_no_summary_without_the_option(script, capsys):
    assert main(["run", script("pass")]) == 0
    assert capsys.readouterr() == ("", "")


def test_no_summary_of_a_program_that_is_not_there(capsys, ledger, tmp_path):
    assert main(["run", "--summary", str(tmp_path / "none.py")]) == 2
    assert "bytes held" not in capsys.readouterr().err


def test_the_summary_survives_a_closed_output(script, ledger, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert main(["run", "--summary", script("import sys; sys.stdout.close()")]) == 0
    assert "7 recorded" in capsys.readouterr().err


STUB = """
import sys
from clew.cli import main, summary
summary.summarize = lambda ledger: summary.Summary({}, {}, 7, 3)
sys.exit(main(["run", "--summary", *sys.argv[1:]]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_runs_on_prints_no_summary(script):
    path = script("import os; child = os.fork(); child and os.waitpid(child, 0)")
    command = [sys.executable, "-c", STUB, path]
    error = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert error.count("7 recorded") == 1
