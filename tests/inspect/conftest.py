"""Tests of what is in memory do not see what other tests have left there."""

import gc

import pytest

from clew.inspect import recording


@pytest.fixture(autouse=True, scope="module")
def without_leftovers(request):
    """`gc.get_objects`, by which the ledger finds what is there already, leaves frozen ones out."""
    if "memory" not in request.module.__name__:
        yield
        return
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def without_earlier_recordings():
    """Only a test's own recordings are known: torch numbers the nodes of each thread from zero."""
    recording._recordings.clear()
