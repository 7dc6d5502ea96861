"""Code without NumPy's floating-point warnings."""

import warnings

import numpy as np
import pytest

from clew import quiet


@pytest.mark.parametrize("variable", ["found", "unknown"])
def test_a_call_is_quiet_and_what_follows_is_not(variable, monkeypatch):
    if variable == "unknown":  # a NumPy that keeps its state elsewhere
        monkeypatch.setattr(quiet, "_found", None)
    else:
        assert quiet._found is not None
    zero, calls = np.zeros(1), []

    def divide(inside=None):
        calls.append(zero / zero)
        if inside is not None:
            quiet.without_warnings(inside)
        calls.append(zero / zero)

    def fail():
        raise ValueError("what ends the call")

    with np.errstate(all="raise"):
        quiet.without_warnings(divide, divide)
        assert len(calls) == 4 and np.isnan(calls).all()
        with pytest.raises(FloatingPointError):
            zero / zero
        with pytest.raises(ValueError, match="ends the call"):
            quiet.without_warnings(fail)
        with pytest.raises(FloatingPointError):
            zero / zero
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zero / zero
    assert len(caught) == 1
