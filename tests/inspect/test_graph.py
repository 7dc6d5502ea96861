"""`clew.graph`, `make_dot` and the ledger on small programs."""

import shutil

import pytest

import clew
from clew.inspect import NoGraphviz
from clew.inspect.render import render_bytes


def small_graph():
    x = clew.ones(4, 3, requires_grad=True)
    w = clew.ones(3, requires_grad=True)
    h = (x * w).exp()
    return x, w, h, (h * h).sum()


def test_nodes_edges_and_names():
    x, w, _, y = small_graph()
    g = clew.graph(y, params={"x": x, "w": w})
    assert [n.name for n in g] == [
        "SumBackward0", "MulBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad",
        "AccumulateGrad",
    ]  # fmt: skip
    assert g.edges == [(0, 1), (1, 2), (1, 2), (2, 3), (3, 4), (3, 5)]
    assert [n.label for n in g.leaves] == ["x", "w"]
    assert [n.outputs for n in g][:2] == [[((), "float32")], [((4, 3), "float32")]]


def test_shared_storage_is_counted_once_and_parameters_apart():
    _, _, h, y = small_graph()
    g = clew.graph(y)
    # exp keeps its result, the product keeps it twice: one memory of 48 bytes.
    assert g.saved_bytes == h.numel() * 4
    assert g.parameter_bytes == (4 * 3 + 3) * 4
    assert {s.name for n in g for s in n.saved} == {"self", "other", "result"}


def test_the_total_is_what_backward_releases():
    _, _, _, y = small_graph()
    before = clew.graph(y).saved_bytes
    y.backward()
    after = clew.graph(y)
    assert before > 0
    assert after.saved_bytes == 0
    assert [n.freed for n in after] == [False, True, True, True, False, False]


def test_sites_are_the_users_lines():
    _, _, _, y = small_graph()
    lines = {n.site.text for n in clew.graph(y) if n.site is not None}
    assert "h = (x * w).exp()" in lines
    assert all(n.site.file == __file__ for n in clew.graph(y) if n.site is not None)


def test_by_line_names_the_line_that_kept_it_first():
    _, _, h, y = small_graph()
    ((site, nbytes),) = clew.graph(y).by_line()
    assert site.text == "h = (x * w).exp()"
    assert nbytes == h.numel() * 4


def test_a_change_after_saving_is_shown():
    h = clew.ones(3, requires_grad=True).exp()
    y = h.sum()
    h.data.add_(1)  # has a version of its own: unseen
    assert not clew.graph(y).nodes[1].saved[0].changed
    h.detach().add_(1)
    assert clew.graph(y).nodes[1].saved[0].changed
    assert "CHANGED SINCE" in str(clew.graph(y))


def test_text_lists_nodes_bytes_and_lines():
    text = str(clew.graph(small_graph()[3]))
    assert "ExpBackward0" in text
    assert "result [4, 3] 48 B" in text
    assert "48 B kept for backward and 60 B of parameters" in text


@pytest.mark.parametrize("make", [lambda: clew.ones(2), lambda: clew.ones(2, requires_grad=True)])
def test_a_tensor_without_a_graph_is_no_error(make):
    g = clew.graph(make())
    assert len(g) in (0, 1)
    assert str(g)
    assert clew.make_dot(make()).source.startswith("digraph")


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match="a tensor is needed"):
        clew.graph(3)


def test_a_deep_graph_is_walked_without_recursion():
    y = clew.ones(1, requires_grad=True)
    for _ in range(20_000):
        y = y + 1
    g = clew.graph(y)
    assert len(g) == 20_001
    assert "more ..." in str(g)


def test_make_dot_shows_leaves_bytes_lines_and_saved_tensors():
    x, _, _, y = small_graph()
    source = clew.make_dot(y, params={"x": x}, show_attrs=True, show_saved=True).source
    assert '"x\\nAccumulateGrad [4, 3]"' in source
    assert "keeps 48 B" in source
    assert "test_graph.py:" in source
    assert source.count("fillcolor=orange") == 1


def test_the_same_program_gives_the_same_text():
    first, second = small_graph(), small_graph()
    sources = [clew.make_dot(g[3], show_saved=True).source for g in (first, second)]
    assert sources[0] == sources[1]


def test_labels_are_quoted():
    x = clew.ones(1, requires_grad=True)
    source = clew.make_dot((x * 2).sum(), params={'a "b" \\ c': x}).source
    assert 'a \\"b\\" \\\\ c' in source


@pytest.mark.parametrize("format", ["svg", "pdf", "png"])
def test_pictures(format, tmp_path):
    if shutil.which("dot") is None:
        pytest.importorskip("pygraphviz")
    dot = clew.make_dot(small_graph()[3])
    path = dot.render(tmp_path / "g", format=format)
    head = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[format]
    with open(path, "rb") as file:
        assert file.read().startswith(head)
    assert (tmp_path / "g").read_text().startswith("digraph")
    clew.graph(small_graph()[3]).save(tmp_path / f"whole.{format}")
    assert (tmp_path / f"whole.{format}").stat().st_size > 1000


def test_a_picture_is_opened_when_asked_for(tmp_path, monkeypatch):
    if shutil.which("dot") is None:
        pytest.importorskip("pygraphviz")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    path = clew.make_dot(small_graph()[3]).render(tmp_path / "g", format="svg", view=True)
    assert opened == [f"file://{path}"]


def test_without_graphviz_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setitem(__import__("sys").modules, "pygraphviz", None)
    with pytest.raises(NoGraphviz, match=r"clew\[see\]"):
        render_bytes("digraph {}", "svg")


def test_an_unknown_ending_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"use \.html, \.svg, \.pdf, \.png"):
        clew.graph(small_graph()[3]).save(tmp_path / "g.gif")
