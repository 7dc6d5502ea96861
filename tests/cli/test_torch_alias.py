"""`import torch` that means another package: on a small made-up package, then on clew itself."""

import importlib
import importlib.util
import pickle
import sys
import types
from unittest import mock

import pytest

from clew.torch_alias import TorchAlias, TorchModule, disable_torch, enable_torch

FILES = {
    "__init__.py": """
        '''A stand-in's doc.'''
        from toyclew._impl import Tensor, relu, flag
        float32 = object()
        _late = 0
        def __getattr__(name):
            import importlib
            if name in ('nn', 'optim', 'broken'):
                return importlib.import_module('toyclew.' + name)
            raise AttributeError(f'toyclew: {name}')
        def __dir__():
            return [*globals(), 'nn', 'optim']
        """,
    "_impl.py": """
        class Tensor: pass
        def relu(x): return max(x, 0)
        flag = False
        """,
    "nn/__init__.py": """
        from toyclew.nn import functional
        from toyclew._impl import relu
        import math
        __all__ = ['Module', 'functional']
        class Module: pass
        """,
    "nn/functional.py": "from toyclew._impl import relu\ndef softplus(x): return x\n",
    "optim/__init__.py": "class SGD: pass\n",
    "optim/lr_scheduler.py": "class StepLR: pass\n",
    "optim/check.py": "def check(): return 'module'\n",
    "optim/needy.py": "import a_library_that_is_not_there\n",
    "broken.py": "import math\nmath.no_such_constant\n",
}


@pytest.fixture
def no_torch():
    """No torch in `sys.modules` during the test, and afterwards what was there before."""

    def take():
        names = [name for name in sys.modules if name.partition(".")[0] == "torch"]
        return {name: sys.modules.pop(name) for name in names}

    before = take()
    yield
    disable_torch()
    take()
    sys.modules.update(before)


@pytest.fixture
def toyclew(tmp_path, monkeypatch, no_torch):
    """A made-up package whose modules `torch` means during the test."""
    import textwrap

    for name, text in FILES.items():
        path = tmp_path / "toyclew" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(tmp_path)
    alias = TorchAlias("toyclew")
    alias.install()
    yield importlib.import_module("toyclew")
    alias.remove()
    for name in [name for name in sys.modules if name.partition(".")[0] == "toyclew"]:
        del sys.modules[name]


def test_every_form_of_import_reaches_the_packages_own_objects(toyclew):
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    from torch import Tensor, optim
    from torch.optim.lr_scheduler import StepLR

    assert torch.Tensor is Tensor is toyclew.Tensor
    assert torch.nn is nn
    assert nn.Module is toyclew.nn.Module
    assert nn.functional is F
    assert F.softplus is toyclew.nn.functional.softplus
    assert optim.SGD is toyclew.optim.SGD
    assert StepLR is toyclew.optim.lr_scheduler.StepLR
    assert optim.lr_scheduler.StepLR is StepLR


def test_a_submodule_is_reached_by_attribute_before_it_is_imported(toyclew):
    import torch

    by_attribute = torch.nn.functional
    assert "torch.nn.functional" not in sys.modules
    assert importlib.import_module("torch.nn.functional") is by_attribute


def test_windows_are_modules_named_as_in_torch(toyclew):
    import torch.nn.functional

    assert isinstance(torch, types.ModuleType)
    assert isinstance(torch, TorchModule)
    assert torch.__name__ == "torch"
    assert torch.__version__ == "2.13.0+clew"
    assert torch.__doc__ == "A stand-in's doc."
    assert torch.__file__ == toyclew.__file__
    assert torch.nn.functional.__name__ == "torch.nn.functional"
    assert "toyclew" in repr(torch)
    assert {"relu", "nn", "__name__"} <= set(dir(torch))


def test_modules_of_others_are_seen_as_they_are(toyclew):
    import math

    import torch

    assert torch.nn.math is math


def test_star_import_takes_public_names(toyclew):
    scope = {}
    exec("from torch.nn import *\nfrom torch.nn.functional import *", scope)
    assert scope["Module"] is toyclew.nn.Module
    assert scope["functional"] is sys.modules["torch.nn"].functional
    assert scope["relu"] is toyclew.relu
    assert "math" not in scope


def test_a_missing_attribute_names_itself_and_clew(toyclew):
    import torch

    with pytest.raises(AttributeError) as caught:
        _ = torch.nn.Transformer
    first, second = str(caught.value).split("\n")
    assert first == "module 'torch.nn' has no attribute 'Transformer'"
    assert second.startswith("clew stands in for torch here and does not have torch.nn.Transformer")
    assert "docs/compatibility" in second
    assert caught.value.name == "Transformer"
    assert caught.value.obj is torch.nn
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_hasattr_and_getattr_see_an_ordinary_missing_name(toyclew):
    import torch

    assert not hasattr(torch, "compile")
    assert not hasattr(torch, "_dynamo")
    assert not hasattr(torch, "__cuda_array_interface__")
    assert getattr(torch, "compile", 7) == 7
    assert hasattr(torch, "relu")


@pytest.mark.parametrize("statement", ["import torch.jit", "import torch.jit.annotations as a"])
def test_a_missing_module_raises_module_not_found(toyclew, statement):
    with pytest.raises(ModuleNotFoundError) as caught:
        exec(statement)
    assert str(caught.value).startswith("No module named 'torch.jit'\nclew stands in for torch")
    assert caught.value.name == "torch.jit"


def test_from_a_missing_module_raises_module_not_found(toyclew):
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'torch\.foo'\nclew") as caught:
        exec("from torch.foo import bar")
    assert caught.value.name == "torch.foo"


@pytest.mark.parametrize("parent", ["torch", "torch.nn", "torch.nn.functional"])
def test_from_import_of_a_missing_name_raises_import_error(toyclew, parent):
    with pytest.raises(ImportError) as caught:
        exec(f"from {parent} import bar")
    assert type(caught.value) is ImportError
    lead = f"cannot import name 'bar' from '{parent}'\n"
    assert str(caught.value).startswith(lead)
    assert f"does not have {parent}.bar (yet)" in str(caught.value)
    assert caught.value.name == parent


def test_a_class_is_not_a_module(toyclew):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch\.Tensor'"):
        importlib.import_module("torch.Tensor")


def test_other_packages_cannot_be_reached_as_submodules_of_torch(toyclew):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'torch\.nn\.math'"):
        importlib.import_module("torch.nn.math")


def test_names_that_only_begin_with_torch_are_left_alone(toyclew):
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("torchfoo")
    assert str(caught.value) == "No module named 'torchfoo'"


def test_find_spec_answers_without_raising(toyclew):
    assert importlib.util.find_spec("torch") is not None
    assert importlib.util.find_spec("torch.nn.functional") is not None
    assert importlib.util.find_spec("torch.jit") is None


def test_failures_inside_the_package_are_not_taken_for_missing_names(toyclew):
    import torch

    with pytest.raises(AttributeError, match="no_such_constant"):
        _ = torch.broken
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("torch.optim.needy")
    assert caught.value.name == "a_library_that_is_not_there"


def test_plain_values_are_read_afresh(toyclew):
    import torch

    assert torch.flag is False
    toyclew.flag = True
    assert torch.flag is True


def test_setting_a_name_that_clew_has_reaches_clew(toyclew):
    import torch

    def patched(x):
        return x

    assert torch.nn.relu is toyclew.nn.relu
    torch.nn.relu = patched
    torch.flag = True
    assert torch.nn.relu is toyclew.nn.relu is patched
    assert toyclew.flag is True


def test_setting_another_name_stays_in_torch(toyclew):
    import torch

    torch.my_own = 3
    assert torch.my_own == 3
    assert not hasattr(toyclew, "my_own")
    del torch.my_own
    assert not hasattr(torch, "my_own")
    with pytest.raises(AttributeError, match="has no attribute 'my_own'"):
        del torch.my_own


@pytest.mark.parametrize("read_before", [False, True])
def test_mock_patches_and_restores(toyclew, read_before):
    import torch

    original = toyclew.nn.functional.relu
    if read_before:
        assert torch.nn.functional.relu is original
    with mock.patch("torch.nn.functional.relu") as patched:
        assert toyclew.nn.functional.relu is torch.nn.functional.relu is patched
    assert toyclew.nn.functional.relu is torch.nn.functional.relu is original


def test_a_function_stays_visible_when_the_module_of_its_name_is_imported(toyclew):
    import torch

    toyclew.optim.check = lambda: "function"
    sys.modules["toyclew.optim.check"] = types.ModuleType("toyclew.optim.check")
    assert isinstance(importlib.import_module("torch.optim.check"), TorchModule)
    assert torch.optim.check() == "function"


def test_pickles_carry_the_packages_names(toyclew):
    import torch

    data = pickle.dumps(torch.Tensor())
    assert b"toyclew" in data
    assert b"torch" not in data
    assert isinstance(pickle.loads(data), toyclew.Tensor)


def test_a_window_works_after_the_alias_is_gone(toyclew):
    import torch

    alias = sys.meta_path[0]
    alias.remove()
    assert "torch" not in sys.modules
    assert torch.nn.functional.softplus is toyclew.nn.functional.softplus


def test_clews_own_objects_under_torchs_name(no_torch):
    import clew

    with enable_torch():
        import torch

        assert torch.__clew_module__ is clew
        assert torch.Tensor is clew.Tensor
        assert torch.no_grad is clew.no_grad
        assert torch.float32 is clew.float32
        assert importlib.import_module("torch.autograd").backward is clew.autograd.backward
    assert "torch" not in sys.modules
    assert not any(isinstance(finder, TorchAlias) for finder in sys.meta_path)


def test_enabling_twice_changes_nothing_and_the_outer_one_decides(no_torch):
    with enable_torch():
        finders = list(sys.meta_path)
        with enable_torch():
            assert sys.meta_path == finders
            import torch
        assert sys.meta_path == finders
        assert sys.modules["torch"] is torch
    assert "torch" not in sys.modules


def test_a_handle_does_not_turn_off_a_later_alias(no_torch):
    with enable_torch():
        disable_torch()
        enable_torch()
    import torch

    assert isinstance(torch, TorchModule)


def test_disabling_when_off_is_harmless(no_torch):
    finders = list(sys.meta_path)
    disable_torch()
    assert sys.meta_path == finders


def test_the_alias_goes_when_the_block_raises(no_torch):
    with pytest.raises(KeyError), enable_torch():
        raise KeyError
    assert not any(isinstance(finder, TorchAlias) for finder in sys.meta_path)


def test_real_torch_imported_earlier_is_an_error_unless_replaced(no_torch, monkeypatch):
    real, real_nn = types.ModuleType("torch"), types.ModuleType("torch.nn")
    monkeypatch.setitem(sys.modules, "torch", real)
    monkeypatch.setitem(sys.modules, "torch.nn", real_nn)
    with pytest.raises(RuntimeError, match=r"torch is already imported.*\n.*replace=True"):
        enable_torch()
    assert sys.modules["torch"] is real
    with enable_torch(replace=True):
        import torch

        assert isinstance(torch, TorchModule)
        assert "torch.nn" not in sys.modules
    assert sys.modules["torch"] is real
    assert sys.modules["torch.nn"] is real_nn


def test_companions_of_torch_are_played_by_clew_too():
    import sys

    import clew

    with clew.enable_torch(replace=True):
        from safetensors.torch import save_file
        from torchviz import make_dot

        assert make_dot is clew.make_dot
        assert save_file is clew.serialization.safetensors.save_file
    assert "torchviz" not in sys.modules
    assert "safetensors.torch" not in sys.modules
