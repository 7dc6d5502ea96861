"""Files of a graph: Model Explorer's JSON, pictures with frames and repetitions, a tree."""

import json
import re

import pytest
from rich.console import Console

import clew
import clew.inspect
import graph_programs as programs


def recorded(name):
    with clew.inspect.record():
        tensors, module = programs.PROGRAMS[name](clew)
    return clew.graph(tensors, params=module)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_model_explorer_json(name, tmp_path):
    graph = recorded(name)
    graph.save(tmp_path / "g.json")
    (found,) = json.loads((tmp_path / "g.json").read_text())["graphs"]
    nodes = {n["id"]: n for n in found["nodes"]}
    assert len(nodes) == len(graph)
    edges = [(n["id"], e["sourceNodeId"]) for n in nodes.values() for e in n["incomingEdges"]]
    assert sorted(edges) == sorted((str(a), str(b)) for a, b in graph.edges)
    for node in nodes.values():
        assert all(isinstance(a["value"], str) and a["key"] for a in node["attrs"])
        for edge in node["incomingEdges"]:
            source = nodes[edge["sourceNodeId"]]
            assert edge["sourceNodeOutputId"] in {m["id"] for m in source["outputsMetadata"]}
        if node["namespace"]:
            assert node["namespace"] in found["groupNodeAttributes"]


@pytest.mark.parametrize("engine", ["clew", "torch"])
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_every_graph_can_be_shown_in_every_way(name, engine, tmp_path):
    with clew.inspect.record():
        tensors, module = programs.PROGRAMS[name](pytest.importorskip(engine))
    graph = clew.graph(tensors, params=module)
    for ending in ("html", "json", "dot"):
        graph.save(tmp_path / f"g.{ending}")
        assert (tmp_path / f"g.{ending}").stat().st_size > 50
    assert str(graph)
    assert printed(graph)
    assert graph._repr_html_()
    assert clew.make_dot(tensors, params=module, show_attrs=True, show_saved=True).source


def test_namespaces_are_modules():
    from clew.inspect.model_explorer import collection

    (graph,) = collection(recorded("residual_net"))["graphs"]
    spaces = {n["label"]: n["namespace"] for n in graph["nodes"]}
    assert spaces["Gelu"].startswith("net/layers.0 … layers.3 ×4/layers.")
    assert spaces["head.bias"] == "net/head"


def dot(graph, **options):
    from clew.inspect.dot import dot_of

    return dot_of(graph, **options).source


def test_dot_frames_modules_and_draws_one_block_of_many():
    graph = recorded("residual_net")
    source = dot(graph)
    assert "layers.0 … layers.3  Block  ×4" in source
    assert source.count("Gelu") == 1
    assert dot(graph, roll=False).count("Gelu") == 4
    assert "subgraph" not in dot(graph, clusters=False)
    assert dot(graph, roll=False, clusters=False).count("fillcolor=") == len(graph) + 1


def test_dot_of_a_repetition_has_no_edge_from_its_end_to_its_beginning():
    source = dot(recorded("residual_net"))
    edges = {tuple(map(int, e)) for e in re.findall(r"n(\d+) -> n(\d+)", source)}
    assert all(a > b for a, b in edges)  # numbers fall along the computation


def test_dot_of_several_tensors_has_a_root_for_each():
    source = dot(recorded("gan"))
    assert " -> root\n" in source
    assert " -> root1\n" in source


def test_dot_marks_what_is_changed_and_what_a_backward_recorded():
    assert dot(recorded("written_in_place")).count("color=red") == 2
    assert 'style="filled,dashed"' in dot(recorded("double_backward"))
    assert "(changed since)" not in dot(recorded("chain"))


def test_too_many_boxes_are_refused_with_advice(tmp_path):
    y = clew.ones(1, requires_grad=True)
    for i in range(3500):
        # shapes that never come again, so that nothing is rolled
        y = y.sum(0, keepdim=True) if i % 2 else y.expand(i + 2)
    with pytest.raises(ValueError, match=r"boxes are too many .* save the graph as \.html"):
        clew.graph(y).save(tmp_path / "g.svg")


def printed(graph):
    console = Console(width=100, no_color=True)
    with console.capture() as capture:
        console.print(graph.tree())
    return capture.get()


def test_tree_shows_groups_bytes_and_lines():
    text = printed(recorded("residual_net"))
    assert "layers.0 … layers.3 Block  ×4" in text
    assert text.count("Gelu") == 1
    assert "head.weight [2, 8]" in text
    assert "graph_programs.py:" in text


def test_tree_of_what_is_freed_changed_or_missing():
    assert "freed" in printed(recorded("freed"))
    assert "CHANGED SINCE" in printed(recorded("written_in_place"))
    assert "no graph leads to it" in printed(recorded("nothing"))
    long = clew.graph(sum((clew.ones(i + 1, requires_grad=True) * 2).sum() for i in range(200)))
    assert "... more ..." in printed(long)
