"""How `--summary` looks, on a made-up summary."""

import io

import pytest

from clew.cli.summary import KINDS, format_bytes, print_summary
from clew.inspect.ledger import Summary

SUMMARY = Summary(
    peak={
        "parameters": 1_200_000,
        "gradients": 1_200_000,
        "saved for backward": 54_000_000,
        "optimizer state": 2_400_000,
        "other": 100,
    },
    current={"parameters": 1_200_000, "optimizer state": 2_400_000},
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
    assert ["parameters", "1.1", "MiB", "1.1", "MiB"] in words
    assert ["saved", "for", "backward", "51.5", "MiB", "0", "B"] in words
    assert ["total", "56.1", "MiB", "3.4", "MiB"] in words
    assert "graph nodes   12,345 recorded, 12,300 freed, 45 alive" in lines
    (first,) = [line for line in lines if line.startswith("47.7 MiB   /src/gan.py:34 ")]
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


def test_kinds_stand_in_one_order_and_unknown_kinds_after_them():
    lines = printed(Summary({"scratch": 5, "other": 1}, {}, 0, 0))
    starts = [next(i for i, line in enumerate(lines) if line.startswith(k)) for k in KINDS]
    assert starts == sorted(starts)
    assert next(i for i, line in enumerate(lines) if line.startswith("scratch")) > starts[-1]
    assert ["total", "6", "B", "0", "B"] in [line.split() for line in lines]


def test_without_saved_lines_there_is_no_table_of_lines():
    assert not any("saved at the peak" in line for line in printed(Summary({}, {}, 0, 0)))


def test_paths_below_the_working_directory_are_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = printed(Summary({}, {}, 1, 0, [(str(tmp_path / "sub" / "a.py"), 3, "x", 2048)]))
    assert "2.0 KiB   sub/a.py:3   x" in lines


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1024**2, "1.0 MiB"),
        (5 * 1024**3, "5.0 GiB"),
        (3000 * 1024**4, "3,000.0 TiB"),
    ],
)
def test_format_bytes(count, text):
    assert format_bytes(count) == text
