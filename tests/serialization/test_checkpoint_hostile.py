"""Files made to attack: `load` runs nothing that they ask for."""

import collections
import copyreg
import io
import pickle
import random
import struct

import numpy as np
import pytest

import clew
from clew import serialization
from clew.nn.parameter import Parameter
from clew.serialization.archive import ArchiveWriter

fired: list[object] = []


def fire(*args):
    """What an attacker wants to be called."""
    fired.append(args)
    return clew.from_numpy(np.ones(1))


class Target:
    """A class of this program that an attacker knows; every door into it fires."""

    def __new__(cls, *args):
        fire("new", *args)
        return super().__new__(cls)

    def __init__(self, *args):
        fire("init", *args)

    def __setstate__(self, state):
        fire("setstate", state)

    def __reduce_ex__(self, protocol):
        return (fire, ("reduce",))

    def append(self, item):
        fire("append", item)

    extend = __setitem__ = append


@pytest.fixture(autouse=True)
def nothing_fires(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fired.clear()
    yield
    assert fired == []
    assert list(tmp_path.iterdir()) == []


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


HERE = __name__
TOUCH = text("touch fired")
STORAGE = b"(" + text("storage") + name("torch", "FloatStorage") + text("0") + text("cpu")
FLOATS = STORAGE + b"K\x04tQ"  # a reference to the four floats that each file here has
TENSOR = name("torch._utils", "_rebuild_tensor_v2")


def tensor_of(
    storage=FLOATS, offset=b"K\x00", size=b"K\x04\x85", stride=b"K\x01\x85", rest=b"\x89}"
):
    return TENSOR + b"(" + storage + offset + size + stride + rest + b"tR"


def archive_with(program, protocol=2):
    stream = io.BytesIO()
    writer = ArchiveWriter(stream)
    writer.write("data.pkl", b"\x80" + bytes([protocol]) + program + b".")
    writer.write("byteorder", b"little")
    writer.write("data/0", np.arange(4, dtype=np.float32).tobytes())
    writer.write("version", b"3\n")
    writer.close()
    return stream.getvalue()


def load(program, protocol=2, **options):
    return serialization.load(io.BytesIO(archive_with(program, protocol)), **options)


def test_the_harmless_version_of_these_files_loads():
    np.testing.assert_array_equal(load(tensor_of()).numpy(), [0, 1, 2, 3])
    old = name("torch._utils", "_rebuild_tensor") + b"(" + FLOATS + b"K\x01K\x02\x85K\x01\x85tR"
    np.testing.assert_array_equal(load(old).numpy(), [1, 2])


NAMES = {
    "os.system": name("os", "system") + TOUCH + b"\x85R",
    "posix.system": name("posix", "system") + TOUCH + b"\x85R",
    "subprocess.Popen": name("subprocess", "Popen") + TOUCH + b"\x85R",
    "eval": name("__builtin__", "eval") + text("open('fired', 'w')") + b"\x85R",
    "exec": name("builtins", "exec") + text("open('fired', 'w')") + b"\x85R",
    "open": name("io", "open") + text("fired") + text("w") + b"\x86R",
    "getattr": name("__builtin__", "getattr") + text("x") + text("upper") + b"\x86R",
    "__import__": name("__builtin__", "__import__") + text("antigravity") + b"\x85R",
    "a function of the program": name(HERE, "fire") + b")R",
    "a class of the program": name(HERE, "Target") + b")R",
    "object creation": name(HERE, "Target") + b")\x81",
    "only named": name(HERE, "fire"),
    "within a list": b"](K\x01" + name("os", "system") + TOUCH + b"\x85Re",
    "as a key": b"}" + name("os", "system") + TOUCH + b"\x85RK\x01s",
    "as an argument of a tensor": tensor_of(rest=b"\x89" + name("os", "system") + TOUCH + b"\x85R"),
    "numpy's pickle of an array": name("numpy._core.multiarray", "_reconstruct") + b")R",
    "an internal of clew": name("clew.serialization.rebuild", "Rebuilder") + b")R",
    "clew's command line": name("clew.cli", "main") + b")R",
    "an unlisted thing of torch": name("torch", "load") + text("fired") + b"\x85R",
    "stack_global": text("os") + text("system") + b"\x93" + TOUCH + b"\x85R",
    "dotted into a module": text("torch") + text("serialization.os.system") + b"\x93" + TOUCH
    + b"\x85R",
    "dotted into a function": text("collections") + text("OrderedDict.__init__") + b"\x93",
    "dotted into globals": text("torch._utils") + text("_rebuild_tensor_v2.__globals__") + b"\x93",
}  # fmt: skip


@pytest.mark.parametrize("program", NAMES.values(), ids=NAMES)
def test_names_are_refused(program):
    protocol = 4 if b"\x93" in program else 2
    with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global|is blocked"):
        load(program, protocol)


INSTRUCTIONS = {
    "inst": b"(" + TOUCH + b"ios\nsystem\n",
    "obj": b"(" + name("collections", "OrderedDict") + b"o",
    "text persistent id": b"Pstorage\n",
    "newobj_ex": name("collections", "OrderedDict") + b")}\x92",
    "out-of-band buffer": b"\x97",
    "ext1": b"\x82\xf0",
    "ext2": b"\x83\xf0\x00",
    "ext4": b"\x84\xf0\x00\x00\x00",
    "python 2 string": b"S'x'\n",
}


@pytest.mark.parametrize("program", INSTRUCTIONS.values(), ids=INSTRUCTIONS)
def test_instructions_are_refused(program):
    copyreg.add_extension(HERE, "fire", 0xF0)
    try:
        with pytest.raises(pickle.UnpicklingError, match="Unsupported operand"):
            load(program, 5)
    finally:
        copyreg.remove_extension(HERE, "fire", 0xF0)


CALLS = {
    "a string": text("x") + b")R",
    "a number": b"K\x01)R",
    "a dtype": name("torch", "float32") + b")R",
    "the Tensor class": name("torch", "Tensor") + b"K\x05\x85R",
    "the Parameter class": name("torch.nn.parameter", "Parameter") + tensor_of() + b"\x85R",
    "a storage class": name("torch", "FloatStorage") + b")R",
    "a tensor": tensor_of() + b")R",
    "with a list": name("collections", "OrderedDict") + b"]R",
    "new of a container": name("collections", "OrderedDict") + b")\x81",
    "new of a tensor": name("torch", "Tensor") + b")\x81",
    "new of a function": TENSOR + b")\x81",
    "type of a tensor with state": name("torch._tensor", "_rebuild_from_type_v2") + b"("
    + name("__builtin__", "set") + name("torch", "Tensor") + b"]\x85}tR",
    "class of a tensor": name("torch._tensor", "_rebuild_from_type_v2") + b"(" + TENSOR
    + name("collections", "OrderedDict") + tensor_of()[len(TENSOR):-1] + b"}tR",
    "data of a parameter": name("torch._utils", "_rebuild_parameter") + text("x") + b"\x88}\x87R",
}  # fmt: skip


@pytest.mark.parametrize("program", CALLS.values(), ids=CALLS)
def test_calls_are_refused(program):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(program)


ITEM = text("x")
CHANGES = {
    "attributes of a function": TENSOR + b"}" + text("__defaults__") + b")sb",
    "slots of a function": TENSOR + b"N}" + text("__kwdefaults__") + b"}s\x86b",
    "attributes of a class": name("torch", "Tensor") + b"}" + text("backward") + b"Nsb",
    "attributes of a dtype": name("torch", "float32") + b"N}" + text("name") + ITEM + b"s\x86b",
    "attributes of a tensor": tensor_of() + b"}" + text("_array") + b"Nsb",
    "slots of an OrderedDict": name("collections", "OrderedDict")
    + b")RN}"
    + ITEM
    + ITEM
    + b"s\x86b",
    "attributes of a set": name("__builtin__", "set") + b")R}" + ITEM + ITEM + b"sb",
    "append to a bytearray": name("__builtin__", "bytearray") + b")RK\x01a",
    "append to a tensor": tensor_of() + b"K\x01a",
    "extend an OrderedDict": name("collections", "OrderedDict") + b")R(K\x01K\x02e",
    "item of a list": b"]K\x00K\x01s",
    "items of a list": b"](K\x00K\x01u",
    "item of a tensor": tensor_of() + b"K\x00K\x01s",
    "items of a class": name("torch", "Tensor") + b"(K\x00K\x01u",
    "add to a list": b"](K\x01\x90",
}


@pytest.mark.parametrize("program", CHANGES.values(), ids=CHANGES)
def test_changes_are_refused(program):
    before = (clew.Tensor.__dict__.get("backward"), collections.OrderedDict.__init__)
    with pytest.raises(pickle.UnpicklingError, match="Can only"):
        load(program)
    assert before == (clew.Tensor.__dict__.get("backward"), collections.OrderedDict.__init__)


OUTSIDE = {
    "offset": {"offset": b"K\x01"},
    "far offset": {"offset": b"\x8a\x08" + struct.pack("<q", 2**60)},
    "negative offset": {"offset": b"J\xff\xff\xff\xff"},
    "size": {"size": b"K\x05\x85"},
    "negative size": {"size": b"J\xff\xff\xff\xff\x85"},
    "stride": {"stride": b"K\x02\x85"},
    "negative stride": {"stride": b"J\xff\xff\xff\xff\x85", "offset": b"K\x03"},
    "huge stride": {"stride": b"\x8a\x08" + struct.pack("<q", 2**62) + b"\x85"},
}


@pytest.mark.parametrize("change", OUTSIDE.values(), ids=OUTSIDE)
def test_a_tensor_stays_within_its_storage(change):
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
        load(tensor_of(**change))


TENSORS = {
    "storage is a string": {"storage": ITEM},
    "size is a string": {"size": ITEM},
    "size and stride differ": {"stride": b")"},
    "a bool as offset": {"offset": b"\x88"},
    "a float as size": {"size": b"G" + struct.pack(">d", 4.0) + b"\x85"},
    "no size": {"size": b"N"},
    "no dtype": {
        "storage": STORAGE.replace(b"torch\nFloat", b"torch.storage\nUntyped") + b"K\x10tQ"
    },
    "hooks": {"rest": b"\x89}K\x01" + TENSOR + b"s"},
}


@pytest.mark.parametrize("change", TENSORS.values(), ids=TENSORS)
def test_impossible_tensors(change):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(tensor_of(**change))


def test_what_is_no_dtype_and_no_layout():
    untyped = STORAGE.replace(b"torch\nFloat", b"torch.storage\nUntyped") + b"K\x10tQ"
    third = TENSOR.replace(b"v2", b"v3") + b"(" + untyped + b"K\x00))\x89}" + ITEM + b"tR"
    with pytest.raises(pickle.UnpicklingError, match="the dtype of a tensor is str"):
        load(third)
    with pytest.raises(pickle.UnpicklingError, match=r"the layout torch\.sparse_coo"):
        load(name("torch.serialization", "_get_layout") + text("torch.sparse_coo") + b"\x85R")


def test_integers_cannot_require_grad():
    storage = b"(" + text("storage") + name("torch", "IntStorage") + text("0") + text("cpu")
    with pytest.raises(RuntimeError, match="floating point"):
        load(tensor_of(storage + b"K\x04tQ", rest=b"\x88}"))


STORAGES = {
    "another word": b"(" + text("file") + name("torch", "FloatStorage") + text("0") + text("cpu"),
    "a type that is none": b"("
    + text("storage")
    + name("torch", "float32")
    + text("0")
    + text("cpu"),
    "a number as key": b"("
    + text("storage")
    + name("torch", "FloatStorage")
    + b"K\x00"
    + text("cpu"),
}


@pytest.mark.parametrize("storage", STORAGES.values(), ids=STORAGES)
def test_persistent_ids_are_storages(storage):
    with pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage"):
        load(storage + b"K\x04tQ")
    with pytest.raises(pickle.UnpicklingError, match="Only persistent_load of storage"):
        load(text("storage") + b"Q")


@pytest.mark.parametrize(
    "count", [b"J\xff\xff\xff\xff", b"K\x03", b"\x8a\x08" + struct.pack("<q", 2**60)]
)
def test_lengths_of_storages(count):
    with pytest.raises(
        (pickle.UnpicklingError, RuntimeError), match=r"record size|Only persistent"
    ):
        load(STORAGE + count + b"tQ")


DAMAGED = {
    "empty": b"",
    "stack underflow": b"0000",
    "unknown memo": b"h\x07",
    "mark missing": b"K\x01e",
    "bad text": b"X\x01\x00\x00\x00\xff",
    "unhashable key": b"}]K\x00s",
    "future protocol": b"\x80\x63",
    "truncated number": b"J\x01",
}


@pytest.mark.parametrize("program", DAMAGED.values(), ids=DAMAGED)
def test_damaged_pickles(program):
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        load(program)


def test_allowed_function_is_called():
    program = name(HERE, "fire") + b"K\x05\x85R"
    with serialization.safe_globals([fire]):
        load(program)
        assert fired == [(5,)]
    fired.clear()
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(program)


def test_allowed_class_is_made_and_given_state():
    with serialization.safe_globals([Target]):
        made = load(name(HERE, "Target") + b")\x81}" + ITEM + ITEM + b"sb")
        assert type(made) is Target
        assert fired == [("new",), ("setstate", {"x": "x"})]
        fired.clear()
        # To allow a class is not to allow its containers' methods, nor changes of the class.
        for program in (name(HERE, "Target") + b")\x81K\x01a", name(HERE, "Target") + b"}b"):
            with pytest.raises(pickle.UnpicklingError, match="Can only"):
                load(program)
    assert fired == [("new",)]
    fired.clear()


class Plain:
    """A class without `__setstate__`, with attributes and slots."""

    __slots__ = ("__dict__", "slot")


def test_allowed_plain_class_round_trip():
    plain = Plain()
    plain.attribute, plain.slot = 1, 2
    stream = io.BytesIO()
    serialization.save(plain, stream)
    stream.seek(0)
    with serialization.safe_globals([Plain]):
        back = serialization.load(stream)
    assert (back.attribute, back.slot) == (1, 2)


def test_blocked_modules_cannot_be_allowed():
    import os

    with (
        serialization.safe_globals([(os.system, "os.system"), (os.system, "posix.system")]),
        pytest.raises(pickle.UnpicklingError, match="whose module os is blocked"),
    ):
        load(NAMES["os.system"])


def test_names_of_torch_cannot_be_taken_over():
    with serialization.safe_globals([(fire, "torch._utils._rebuild_tensor_v2")]):
        load(tensor_of())


def test_weights_only_false_does_what_the_file_says():
    load(NAMES["a function of the program"], weights_only=False)
    assert fired == [()]
    fired.clear()


def test_the_same_in_the_old_format():
    def old_file(program):
        stream = io.BytesIO()
        serialization.save(1, stream, _use_new_zipfile_serialization=False)
        assert stream.getvalue().count(b"\x80\x02K\x01.") == 1
        return io.BytesIO(stream.getvalue().replace(b"K\x01.", program + b"."))

    for program in NAMES.values():
        if b"\x93" not in program and FLOATS not in program:
            with pytest.raises(pickle.UnpicklingError, match=r"Unsupported global|is blocked"):
                serialization.load(old_file(program))
    for program in (NAMES["os.system"], CHANGES["attributes of a function"]):
        for position in range(3):
            # The first pickles of the file are read as carefully as the one with the object.
            good = old_file(b"K\x01").getvalue()
            starts = [0, 15, 21]
            assert all(good[start : start + 2] == b"\x80\x02" for start in starts)
            bad = good[: starts[position]] + b"\x80\x02" + program + b"."
            with pytest.raises(pickle.UnpicklingError):
                serialization.load(io.BytesIO(bad))


def honest_program():
    stream = io.BytesIO()
    shared = clew.from_numpy(np.arange(4, dtype=np.float32))
    state = collections.OrderedDict(a=shared, b=Parameter(shared), c=[1, "x", (2.5, None)])
    state._metadata = {"": {"version": 1}}
    serialization.save({"state": state, "set": {1}, "bytes": b"x"}, stream)
    import zipfile

    return zipfile.ZipFile(stream).read("archive/data.pkl")


HONEST_ERRORS = (pickle.UnpicklingError, EOFError, RuntimeError)


@pytest.mark.parametrize("seed", range(4))
def test_random_changes_of_a_pickle(seed):
    """A changed file loads or raises a clear error; it does nothing else."""
    generator = random.Random(seed)
    honest = honest_program()[2:-1]
    load(honest)
    failures = 0
    for _ in range(400):
        program = bytearray(honest)
        for _ in range(generator.choice((1, 1, 2, 5))):
            place = generator.randrange(len(program))
            kind = generator.randrange(3)
            if kind == 0:
                program[place] = generator.randrange(256)
            elif kind == 1:
                del program[place : place + generator.randrange(8)]
            else:
                other = generator.randrange(len(honest))
                program[place:place] = honest[other : other + generator.randrange(30)]
        try:
            load(bytes(program))
        except HONEST_ERRORS:
            failures += 1
    assert failures > 200
