"""``clew.version``: which version this is, and of which libraries it was built with: none."""

from __future__ import annotations

from importlib.metadata import version as _version_of

__version__ = _version_of("clew")
debug = False
cuda: str | None = None
hip: str | None = None
git_version: str | None = None
