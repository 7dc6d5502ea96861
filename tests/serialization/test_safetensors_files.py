"""safetensors files: those of the library, read and written."""

import collections
import os

import ml_dtypes
import numpy as np
import pytest
from safetensors import SafetensorError

import clew
from clew import serialization
from clew.serialization import safetensors

NAMES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64",
]  # fmt: skip


def arrays():
    dtypes = {name: np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name) for name in NAMES}
    result = {name: (np.arange(6) % 2).reshape(2, 3).astype(d) for name, d in dtypes.items()}
    return {**result, "scalar": np.array(1.5), "empty": np.zeros((0, 3))}


def tensors():
    return {name: clew.from_numpy(array) for name, array in arrays().items()}


def check(found):
    assert set(found) == set(arrays())
    for name, array in arrays().items():
        np.testing.assert_array_equal(found[name]._array, array)
        assert found[name]._array.dtype == array.dtype


def test_round_trip(tmp_path):
    path = tmp_path / "x.safetensors"
    safetensors.save_file(tensors(), path)
    found = safetensors.load_file(path)
    check(found)
    found["float32"].numpy()[:] = 0  # a tensor of its own, not a window on the file
    check(safetensors.load_file(str(path)))
    check(safetensors.load(safetensors.save(tensors())))
    check(serialization.load(path))
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_with_the_library_for_torch(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file

    path = tmp_path / "x.safetensors"
    safetensors.save_file(tensors(), path, metadata={"made": "here"})
    theirs = load_file(path)
    assert str(theirs["bfloat16"].dtype) == "torch.bfloat16"
    again = tmp_path / "y.safetensors"
    save_file(theirs, again, metadata={"made": "here"})
    check(safetensors.load_file(again))
    assert path.read_bytes() == again.read_bytes()
    assert torch.equal(theirs["scalar"], torch.tensor(1.5, dtype=torch.float64))


def test_complex(tmp_path):
    pair = np.array([1 + 2j, 3], np.complex64)
    safetensors.save_file({"a": clew.from_numpy(pair)}, tmp_path / "x")
    np.testing.assert_array_equal(safetensors.load_file(tmp_path / "x")["a"].numpy(), pair)
    np.testing.assert_array_equal(
        safetensors.load((tmp_path / "x").read_bytes())["a"].numpy(), pair
    )


def test_failure_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.safetensors"
    path.write_bytes(b"old")
    monkeypatch.setattr("safetensors.numpy.serialize_file", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        safetensors.save_file(tensors(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.safetensors"]


def both(function_name, make, *args):
    """The errors of this module and of safetensors.torch for the same mistake."""
    torch = pytest.importorskip("torch")
    import safetensors.torch

    errors = []
    for module, convert in ((clew.serialization.safetensors, clew.from_numpy),
                            (safetensors.torch, torch.from_numpy)):  # fmt: skip
        with pytest.raises((ValueError, RuntimeError)) as caught:
            getattr(module, function_name)(make(convert), *args)
        errors.append(caught.value)
    return errors


MISTAKES = {
    "not a dict": lambda convert: [convert(np.ones(2))],
    "not a tensor": lambda convert: {"a": 1},
    "not contiguous": lambda convert: {"a": convert(np.ones((2, 3)).T)},
}


@pytest.mark.parametrize("make", MISTAKES.values(), ids=MISTAKES)
def test_refused_as_by_the_library(make, tmp_path):
    ours, theirs = both("save_file", make, tmp_path / "x")
    assert type(ours) is type(theirs)
    assert str(ours)[:40] == str(theirs)[:40]
    assert os.listdir(tmp_path) == []


def shared(convert):
    base = convert(np.ones(4))
    return {"all": base, "part": base.narrow(0, 1, 2), "other": convert(np.ones(4))}


def test_shared_memory_is_refused(tmp_path):
    ours, theirs = both("save_file", shared, tmp_path / "x")
    assert type(ours) is type(theirs) is RuntimeError
    assert str(ours)[:50] == str(theirs).strip()[:50]
    assert "['all', 'part']" in str(ours)
    assert "save_model" in str(ours)


def test_parts_that_do_not_overlap_are_allowed(tmp_path):
    base = np.arange(4.0)
    parts = {"a": clew.from_numpy(base[:2]), "b": clew.from_numpy(base[2:])}
    safetensors.save_file(parts, tmp_path / "x")
    found = safetensors.load_file(tmp_path / "x")
    assert found["b"].numpy().tolist() == [2, 3]


def test_dtype_that_clew_does_not_have(tmp_path):
    from safetensors.numpy import save, save_file

    array = {"a": np.ones(2, ml_dtypes.float8_e4m3fn)}
    save_file(array, tmp_path / "x")
    with pytest.raises(TypeError, match="`a` is of the dtype F8_E4M3, which clew does not have"):
        safetensors.load_file(tmp_path / "x")
    with pytest.raises(TypeError, match="`a` is of the dtype F8_E4M3"):
        safetensors.load(save(array))


@pytest.mark.parametrize("content", [b"", b"hello", bytes(100)])
def test_damaged_file(tmp_path, content):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(SafetensorError):
        safetensors.load_file(path)
    with pytest.raises(SafetensorError):
        safetensors.load(content)


def test_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        safetensors.load_file(tmp_path / "x.safetensors")


@pytest.mark.parametrize("map_location", [None, "cpu", clew.device("cpu")])
def test_load_with_map_location(tmp_path, map_location):
    safetensors.save_file(tensors(), tmp_path / "x.safetensors")
    check(serialization.load(tmp_path / "x.safetensors", map_location))


@pytest.mark.parametrize(("map_location", "error", "message"), [
    ({}, RuntimeError, "with dict map_location is not supported"),
    (lambda storage, location: storage, RuntimeError, "callable map_location is not supported"),
    ("cuda", AssertionError, "not compiled with CUDA"),
])  # fmt: skip
def test_load_with_other_map_locations(tmp_path, map_location, error, message):
    safetensors.save_file(tensors(), tmp_path / "x.safetensors")
    with pytest.raises(error, match=message):
        serialization.load(tmp_path / "x.safetensors", map_location)


class Model:
    """What the functions for models need of one: its `state_dict`."""

    def __init__(self, state):
        self.state = state
        self.loaded = None

    def state_dict(self):
        return collections.OrderedDict(self.state)

    def load_state_dict(self, state, strict):
        self.loaded = state
        missing = [name for name in self.state if name not in state]
        return missing, [name for name in state if name not in self.state]


def tied():
    weight = np.arange(6.0).reshape(2, 3)
    names = ("decoder", "encoder")
    return Model({**{name: clew.from_numpy(weight) for name in names},
                  "bias": clew.from_numpy(np.ones((2, 3)).T)})  # fmt: skip


def test_model_with_a_tied_weight(tmp_path):
    safetensors.save_model(tied(), tmp_path / "x", metadata={"made": "here"})
    assert set(safetensors.load_file(tmp_path / "x")) == {"decoder", "bias"}
    from safetensors import safe_open

    with safe_open(tmp_path / "x", "numpy") as file:
        assert file.metadata() == {"made": "here", "encoder": "decoder"}
    model = tied()
    assert safetensors.load_model(model, tmp_path / "x") == (set(), [])
    np.testing.assert_array_equal(model.loaded["bias"].numpy(), np.ones((3, 2)))


def test_model_file_with_the_other_name_of_a_tied_weight(tmp_path):
    safetensors.save_file({"encoder": clew.from_numpy(np.ones((2, 3))),
                           "bias": clew.from_numpy(np.ones((3, 2)))}, tmp_path / "x")  # fmt: skip
    assert safetensors.load_model(tied(), tmp_path / "x") == (set(), [])


def test_model_file_with_both_names_of_a_tied_weight(tmp_path):
    names = {"decoder": (2, 3), "encoder": (2, 3), "bias": (3, 2)}
    safetensors.save_file(
        {n: clew.from_numpy(np.ones(s)) for n, s in names.items()}, tmp_path / "x"
    )
    with pytest.raises(RuntimeError, match=r'Unexpected key.* "encoder"'):
        safetensors.load_model(tied(), tmp_path / "x")


def test_model_and_file_that_differ(tmp_path):
    safetensors.save_file({"decoder": clew.from_numpy(np.ones(2)),
                           "new": clew.from_numpy(np.ones(2))}, tmp_path / "x")  # fmt: skip
    with pytest.raises(RuntimeError) as caught:
        safetensors.load_model(tied(), tmp_path / "x")
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Model:\n"
        '    Missing key(s) in state_dict: "bias"\n'
        '    Unexpected key(s) in state_dict: "new"'
    )
    assert safetensors.load_model(tied(), tmp_path / "x", strict=False) == ({"bias"}, ["new"])


def test_model_whose_parts_cover_nothing(tmp_path):
    base = np.ones(4)
    parts = {"a": clew.from_numpy(base[:3]), "b": clew.from_numpy(base[1:])}
    with pytest.raises(RuntimeError, match=r"no suitable name to keep .* \['a', 'b'\]"):
        safetensors.save_model(Model(parts), tmp_path / "x")


def test_model_that_must_be_contiguous(tmp_path):
    with pytest.raises(ValueError, match="non contiguous tensor: `bias`"):
        safetensors.save_model(tied(), tmp_path / "x", force_contiguous=False)
