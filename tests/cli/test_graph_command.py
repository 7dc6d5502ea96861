"""`clew graph` on small scripts, with both engines."""

import json

import pytest

from clew.cli import main

TRAIN = """
import sys
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(torch.ones(5, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, *sys.argv[1:])
"""


@pytest.fixture
def graph(tmp_path, monkeypatch, capsys):
    """Run `clew graph` here; the status, and what it printed on stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        try:
            status = main(["graph", *map(str, words)])
        except SystemExit as error:
            status = error.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


@pytest.mark.parametrize("engine", ["clew", "torch"])
def test_writes_the_graph_of_the_nth_backward_and_stops(engine, graph, script, tmp_path):
    if engine == "torch":
        pytest.importorskip("torch")
    words = ("--engine", engine, "--nth", 2, "-o", "g.json", script, "x")
    status, out, err = graph(*words)
    assert (status, out) == (0, "step 0 x\n"), err
    assert "g.json: the graph of the backward at train.py:10, 11 nodes that keep 280 B" in err
    (found,) = json.loads((tmp_path / "g.json").read_text())["graphs"]
    assert {n["namespace"].partition("/")[0] for n in found["nodes"]} == {"net", ""}


def test_the_page_is_the_default_and_time_is_measured_on_demand(graph, script, tmp_path):
    status, out, err = graph("--time", "--keep-going", script)
    assert status == 0, err
    assert out.count("step") == 3
    assert '"timed":true' in (tmp_path / "train.graph.html").read_text()


def test_a_tree_instead_of_a_file(graph, script, tmp_path):
    _, out, _ = graph("--tree", script)
    assert "net Sequential" in out
    assert "Relu [5, 8]" in out
    assert list(tmp_path.iterdir()) == [script]


def test_clear_sentences_where_there_is_nothing_to_draw(graph, script):
    status, _, err = graph("--nth", 9, script)
    assert status == 1
    assert "--nth 9: the program ran 3 backward passes in all" in err
    script.write_text("print('no graph')")
    status, out, err = graph(script)
    assert (status, out) == (1, "no graph\n")
    assert "ran no backward pass" in err


@pytest.mark.parametrize("words", [("missing.py",), ("--nth", "0", "x.py"), (), ("-m",)])
def test_a_wrong_command_line_has_status_2(graph, words):
    status, _, err = graph(*words)
    assert status == 2
    assert "clew graph: " in err


def test_a_module_is_run_by_name(graph, script):
    status, out, err = graph("--tree", "-m", "train", "y")
    assert (status, err) == (0, "")
    assert "Relu" in out


def test_an_unknown_ending_is_a_sentence(graph, script):
    status, _, err = graph("-o", "g.gif", script)
    assert status == 1
    assert "use .html" in err
    assert "Traceback" not in err


def test_a_backward_that_fails_is_still_drawn(graph, tmp_path):
    script = tmp_path / "broken.py"
    script.write_text(
        "import torch\n"
        "h = (torch.ones(3, requires_grad=True) * 2).exp()\n"
        "y = h.sum()\n"
        "h.detach().add_(1)\n"
        "y.backward()\n"
    )
    status, _, err = graph(script)
    assert status == 1
    assert "modified by an inplace operation" in err
    assert "changed" in (tmp_path / "broken.graph.html").read_text()
