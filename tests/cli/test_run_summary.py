"""How `--summary` looks, on a made-up summary."""

import io

import pytest

import clew
from clew.cli.summary import Summary, print_summary, summarize
from clew.memory import KINDS, track
from leftovers import without_leftovers  # noqa: F401  # for all tests of this module

SUMMARY = Summary(
    peak={
        "parameter": 1_200_000,
        "gradient": 1_200_000,
        "saved for backward": 54_000_000,
        "optimizer state": 2_400_000,
        "temporary": 100,
    },
    current={"parameter": 1_200_000, "optimizer state": 2_400_000},
    nodes_recorded=12_345,
    nodes_freed=12_300,
    top_lines=[
        ("/src/gan.py", 34, "    h = self.net(x)[0]  # " + "a long comment " * 10, 50_000_000),
        ("/a/deep/folder/site-packages/somewhere/blocks/transformer.py", 1034, "y = x[bold]", 12),
    ],
)


def printed(summary, width=80):
    file = io.StringIO()
    print_summary(summary, file, width)
    return [line.strip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_figures_and_lines(width):
    lines = printed(SUMMARY, width)
    words = [line.split() for line in lines]
    assert ["parameter", "1.2", "MB", "1.2", "MB"] in words
    assert ["saved", "for", "backward", "54.0", "MB", "0", "B"] in words
    assert ["total", "58.8", "MB", "3.6", "MB"] in words
    assert "graph nodes   12,345 recorded, 12,300 freed, 45 alive" in lines
    (first,) = [line for line in lines if line.startswith("50.0 MB   /src/gan.py:34 ")]
    assert "h = self.net(x)[0]  #" in first
    assert first.endswith("…")
    (second,) = [line for line in lines if line.startswith("12 B ")]
    assert second.endswith("…/blocks/transformer.py:1034   y = x[bold]")


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_and_carries_no_colours(width):
    file = io.StringIO()
    print_summary(SUMMARY, file, width)
    assert all(len(line) <= width for line in file.getvalue().splitlines())
    assert "\x1b" not in file.getvalue()


def test_kinds_stand_in_one_order_and_buffers_only_where_there_are_some():
    lines = printed(Summary({"temporary": 5}, {}, 0, 0))
    kinds = [kind for kind in KINDS if kind != "buffer"]
    starts = [next(i for i, line in enumerate(lines) if line.startswith(k)) for k in kinds]
    assert starts == sorted(starts)
    assert not any(line.startswith("buffer") for line in lines)
    assert ["total", "5", "B", "0", "B"] in [line.split() for line in lines]
    assert any(line.startswith("buffer") for line in printed(Summary({"buffer": 1}, {}, 0, 0)))


def test_a_summary_is_made_from_a_ledger():
    with track("clew") as ledger:
        x = clew.ones(1000, requires_grad=True)
        y = x.exp().sin().sum()  # both keep 4000 bytes: exp its result, which sin keeps too
        y.backward()
        del y
        summary = summarize(ledger)
    assert summary.peak["saved for backward"] == 4000
    assert summary.current["saved for backward"] == 0
    for kind in ("gradient", "parameter"):
        assert summary.current[kind] == 4000
    ((file, _, text, nbytes),) = summary.top_lines
    assert (file, nbytes) == (__file__, 4000)
    assert text.startswith("y = x.exp().sin().sum()")
    assert summary.nodes_recorded == summary.nodes_freed == 3


def test_without_saved_lines_there_is_no_table_of_lines():
    assert not any("saved at the peak" in line for line in printed(Summary({}, {}, 0, 0)))


def test_paths_below_the_working_directory_are_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = printed(Summary({}, {}, 1, 0, [(str(tmp_path / "sub" / "a.py"), 3, "x", 2048)]))
    assert "2.0 kB   sub/a.py:3   x" in lines
