"""`map_location`: everything goes to the CPU, or PyTorch's error says why not."""

import io
import zipfile

import numpy as np
import pytest

import clew
from clew.device import device
from clew.serialization import load, save

ONE = np.array([1, 2], np.float32)


def saved(obj=None, **options):
    stream = io.BytesIO()
    save(clew.from_numpy(ONE.copy()) if obj is None else obj, stream, **options)
    stream.seek(0)
    return stream


def values(t):
    return t.numpy().tolist()


LOCATIONS = [
    None, "cpu", b"cpu", device("cpu"), {"cuda:0": "cpu"}, {}, lambda storage, location: storage,
    lambda storage, location: None, lambda storage, location: storage.cpu(),
]  # fmt: skip


@pytest.mark.parametrize("map_location", LOCATIONS)
@pytest.mark.parametrize("zipped", [True, False])
def test_map_location(map_location, zipped):
    stream = saved(_use_new_zipfile_serialization=zipped)
    assert values(load(stream, map_location=map_location)) == [1, 2]


def test_map_location_function_sees_each_storage_once():
    x = clew.from_numpy(np.arange(10.0))
    seen = []

    def ask(storage, location):
        seen.append((storage.nbytes(), storage.dtype, location))

    load(saved([x, x.detach(), clew.from_numpy(ONE)]), ask)
    assert seen == [(80, np.float64, "cpu"), (8, np.float32, "cpu")]


@pytest.mark.parametrize(
    "map_location",
    ["cuda", "cuda:1", "xpu", "hpu", "foo", "cpu:0", "xla", "cudax", {"cpu": "cuda"}],
)
def test_map_location_errors_of_torch(map_location):
    torch = pytest.importorskip("torch")
    stream = io.BytesIO()
    torch.save(torch.ones(2), stream)
    errors = []
    for function in (load, torch.load):
        stream.seek(0)
        with pytest.raises(RuntimeError) as caught:
            function(stream, map_location)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize(("map_location", "error", "message"), [
    ("mps", RuntimeError, "Storage device not recognized: mps"),
    ("mtia", RuntimeError, "torch.mtia.is_available"),
    (device("cuda"), RuntimeError, "Attempting to deserialize object on a CUDA device"),
    (lambda storage, location: 5, TypeError, "must return the storage it was given"),
    (lambda storage, location: storage.cuda(), RuntimeError, "deserialize object on a CUDA device"),
    (7, TypeError, "'int' object is not callable"),
])  # fmt: skip
def test_map_location_errors(map_location, error, message):
    with pytest.raises(error, match=message):
        load(saved(), map_location)


def test_location_in_the_file():
    stream = io.BytesIO()
    with zipfile.ZipFile(saved()) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            changed = content.replace(b"X\x03\x00\x00\x00cpu", b"X\x04\x00\x00\x00cuda")
            assert (changed != content) == name.endswith("data.pkl")
            new.writestr(name, changed)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
        load(stream)
    stream.seek(0)
    assert values(load(stream, "cpu")) == [1, 2]
    stream.seek(0)
    assert values(load(stream, {"cuda": "cpu"})) == [1, 2]
