"""A fixture for tests of what is in memory: they do not see what other tests have left there."""

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def without_leftovers() -> Iterator[None]:
    """`gc.get_objects`, by which the ledger finds what is there already, leaves frozen ones out."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
