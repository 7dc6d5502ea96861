"""Code without NumPy's floating-point warnings."""

import warnings

import numpy as np
import pytest

from clew import quiet


@pytest.mark.parametrize("block", [quiet.block, quiet._Block])
def test_a_block_is_quiet_and_what_follows_is_not(block):
    zero = np.zeros(1)
    with np.errstate(all="raise"):
        with block():
            assert np.isnan(zero / zero).all()
            with block():
                assert np.isnan(zero / zero).all()
            assert np.isnan(zero / zero).all()
        with pytest.raises(FloatingPointError):
            zero / zero
        with pytest.raises(ValueError, match="ends the block"), block():
            raise ValueError("what ends the block")
        with pytest.raises(FloatingPointError):
            zero / zero
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zero / zero
    assert len(caught) == 1
