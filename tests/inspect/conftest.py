"""Tests of recordings begin without those of other tests."""

import pytest

from clew.inspect import recording


@pytest.fixture(autouse=True)
def without_earlier_recordings():
    """Only a test's own recordings are known: torch numbers the nodes of each thread from zero."""
    recording._recordings.clear()
