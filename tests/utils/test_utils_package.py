"""The package itself: lazy submodules, hooks."""

import pytest

import clew


def test_submodules_are_found_when_first_used():
    assert clew.utils.data.DataLoader.__name__ == "DataLoader"
    assert clew.utils.hooks.RemovableHandle.__name__ == "RemovableHandle"


def test_what_is_missing_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'clew\.utils' has no attribute 'nothing'"):
        clew.utils.nothing  # noqa: B018
    assert not hasattr(clew.utils, "_private")


def test_the_handle_is_the_one_that_hooks_return():
    x = clew.ones(1, requires_grad=True)
    handle = x.register_hook(lambda g: g)
    assert isinstance(handle, clew.utils.hooks.RemovableHandle)
