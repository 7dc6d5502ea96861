"""Pages: one HTML file with everything in it, for a browser without a network.

A page is `base.css` and `base.js` (the look, the header, light and dark, how bytes are written)
with what is its own: a body, styles, scripts, and data as JSON.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any


def build(
    *,
    title: str,
    kind: str,
    data: Any,
    body: str,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    folder: Any = None,
) -> str:
    """An HTML page that needs no other file.

    Args:
        title: what is shown, in a few words; stands in the header and in the browser's tab.
        kind: which of clew's pages it is: "graph", "memory", ...
        data: what JSON can hold; scripts find it as ``clew.data``.
        body: name of a file with the HTML below the header.
        styles: names of CSS files, after ``base.css``.
        scripts: names of script files, after ``base.js``, in their order.
        folder: where `body`, `styles` and `scripts` are; this package's folder by default.
    """
    return (
        _text("shell.html")
        .replace("{{title}}", html.escape(title))
        .replace("{{kind}}", html.escape(kind))
        .replace("{{styles}}", "\n".join([_text("base.css"), *(_text(s, folder) for s in styles)]))
        .replace("{{body}}", _text(body, folder))
        .replace("{{data}}", _json(data))
        .replace(
            "{{scripts}}", "\n;\n".join([_text("base.js"), *(_text(s, folder) for s in scripts)])
        )
    )


def _json(data: Any) -> str:
    """JSON that cannot end the script element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _text(name: str, folder: Any = None) -> str:
    place = resources.files(__name__) if folder is None else Path(folder)
    return (place / name).read_text(encoding="utf-8")
