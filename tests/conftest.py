"""Compiled kernels in tests: what they are given is checked, which takes programs too long."""

import os

os.environ.setdefault("CLEW_NUMBA", "check")

from clew.kernels.compiled import is_enabled

collect_ignore_glob = [] if is_enabled() else ["kernels/test_*_twins.py"]
"""Tests of compiled kernels alone."""
