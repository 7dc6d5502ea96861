"""What tests need to treat clew and torch alike."""

from collections.abc import Mapping

import numpy as np
import pytest

import clew
from clew import rng

torch = pytest.importorskip("torch")

ENGINES = {"clew": clew, "torch": torch}


def seed(engine, value):
    (rng if engine is clew else engine).manual_seed(value)


def generator(engine, value):
    return (rng if engine is clew else engine).Generator().manual_seed(value)


def state(engine):
    """The default generator's state, as bytes."""
    if engine is clew:
        return rng.default_generator.state_array().tobytes()
    return engine.get_rng_state().numpy().tobytes()


def plain(value):
    """Tensors (in lists, tuples, dicts) as (dtype, nested lists), to compare across engines."""
    if isinstance(value, (clew.Tensor, torch.Tensor)):
        return str(value.dtype), value.tolist()
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.tolist()
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return (
            type(value)(map(plain, value))
            if type(value) in (list, tuple)
            else (
                type(value).__name__,
                [plain(v) for v in value],
            )
        )
    return value


def outcome(function, engine):
    """What a call gives: its result, or the type and text of its error."""
    try:
        return plain(function(engine))
    except Exception as error:
        return type(error).__name__, str(error)


def same(function):
    """Assert that a function of the engine gives the same with both."""
    ours, theirs = (outcome(function, engine) for engine in ENGINES.values())
    assert ours == theirs, f"{ours} instead of {theirs}"
