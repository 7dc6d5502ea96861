"""`clew memory`: a script's memory from the shell."""

import json
import subprocess
import sys
import textwrap

import pytest

from clew.cli import main

TRAIN = """
import sys
import torch

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
history = []
for _ in range(5):
    loss = (model(torch.ones(3, 4)) ** 2).sum()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    history.append(loss)
print("arguments", sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path):
    def write(text=TRAIN):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write


def test_the_report_follows_the_programs_output(script, tmp_path, capsys):
    page, figures = tmp_path / "m.html", tmp_path / "m.json"
    words = [script(), "--lr", "0.1", "--html", str(page), "--json", str(figures)]
    assert main(["memory", *words]) == 0
    out, error = capsys.readouterr()
    assert out == "arguments ['--lr', '0.1']\n"
    for part in (
        "peak",
        "the peak by line",
        "the peak by module",
        "kept for backward",
        "diff(1, 4)",
    ):
        assert part in error
    assert "5 iterations" in error
    found = json.loads(figures.read_text())
    assert found["engines"] == ["clew"]
    assert [i["grew"] for i in found["iterations"]][1:] == [found["iterations"][1]["grew"]] * 4
    assert "train.py" in page.read_text()


def test_the_programs_failure_is_its_exit_status(script, capsys):
    assert main(["memory", script("import torch\nx = torch.ones(3)\n1 / 0")]) == 1
    error = capsys.readouterr().err
    assert error.find("ZeroDivisionError") < error.find("bytes held")
    assert main(["memory", script("import sys; sys.exit(3)")]) == 3


def test_wrong_command_lines(script, tmp_path, capsys):
    for words, part in [
        (["--html", "m.txt", "t.py"], "does not end with .html"),
        (["--json", str(tmp_path / "no" / "m.json"), "t.py"], "there is no folder"),
        (["--engine", "jax", "t.py"], "invalid choice"),
        ([], "which script?"),
    ]:
        with pytest.raises(SystemExit) as exit:
            main(["memory", *words])
        assert exit.value.code == 2
        assert part in capsys.readouterr().err
    assert main(["memory", str(tmp_path / "none.py")]) == 2
    assert "can't open file" in capsys.readouterr().err


def test_real_torch(script, tmp_path):
    pytest.importorskip("torch")
    figures = tmp_path / "m.json"
    command = [sys.executable, "-m", "clew", "memory", "--engine", "torch", "--json", str(figures)]
    done = subprocess.run([*command, script()], capture_output=True, text=True, check=True)
    assert done.stdout == "arguments []\n"
    assert "5 iterations" in done.stderr
    found = json.loads(figures.read_text())
    assert found["engines"] == ["torch"]
    entries = found["peak"]["entries"]
    assert any(e["line"] and e["line"]["text"].startswith("loss = (model(") for e in entries)
