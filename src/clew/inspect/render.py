"""From DOT text to SVG, PDF or PNG: by the system's ``dot``, else by pygraphviz's own copy."""

from __future__ import annotations

import shutil
import subprocess

FORMATS = ("svg", "pdf", "png")


class NoGraphviz(RuntimeError):
    """Neither the ``dot`` program nor pygraphviz is installed."""

    def __init__(self) -> None:
        super().__init__(
            "a picture needs Graphviz: install its program (apt-get install graphviz, brew install "
            "graphviz), or, with pip alone, pip install 'clew[see]'; saving as .html needs neither"
        )


def render_bytes(source: str, format: str) -> bytes:
    """The picture of a DOT text.

    Raises:
        ValueError: a format other than svg, pdf, png.
        NoGraphviz: nothing is installed that can draw it.
        RuntimeError: Graphviz refuses the text.
    """
    if format not in FORMATS:
        raise ValueError(f"a picture is one of {', '.join(FORMATS)}, not {format!r}")
    program = shutil.which("dot")
    if program is not None:
        done = subprocess.run(
            [program, f"-T{format}"], input=source.encode(), capture_output=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"dot failed: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout
    return _with_pygraphviz(source, format)


def _with_pygraphviz(source: str, format: str) -> bytes:
    try:
        import pygraphviz
    except ImportError:
        raise NoGraphviz from None
    graph = pygraphviz.AGraph(string=source)
    drawn = graph.draw(format=format, prog="dot")
    return bytes(drawn) if not isinstance(drawn, bytes) else drawn
