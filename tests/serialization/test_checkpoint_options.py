"""The arguments of `save` and `load`, their errors, and the list of allowed names."""

import io
import os
import pathlib
import pickle
import re
import types
import warnings

import numpy as np
import pytest

import clew
from clew import serialization
from clew.nn.parameter import Buffer, Parameter
from clew.serialization import load, save

ONE = np.array([1, 2], np.float32)


def saved(obj=None, **options):
    stream = io.BytesIO()
    save(clew.from_numpy(ONE.copy()) if obj is None else obj, stream, **options)
    stream.seek(0)
    return stream


def values(t):
    return t.numpy().tolist()


def test_names_at_the_top():
    assert clew.save is save
    assert clew.load is load


@pytest.mark.parametrize("kind", [str, pathlib.Path])
@pytest.mark.parametrize("zipped", [True, False])
def test_paths(tmp_path, kind, zipped):
    path = kind(tmp_path / "x.pt")
    save(clew.from_numpy(ONE), path, _use_new_zipfile_serialization=zipped)
    assert values(load(path)) == [1, 2]
    assert os.listdir(tmp_path) == ["x.pt"]


@pytest.mark.parametrize("zipped", [True, False])
def test_open_files(tmp_path, zipped):
    path = tmp_path / "x.pt"
    with open(path, "wb") as stream:
        save(clew.from_numpy(ONE), stream, _use_new_zipfile_serialization=zipped)
        # Nothing of it is left in Python's buffer.
        assert path.stat().st_size == stream.tell()
    for buffering in (-1, 0):
        with open(path, "rb", buffering=buffering) as stream:
            assert values(load(stream)) == [1, 2]


def test_stream_that_only_writes():
    class Out:
        def __init__(self):
            self.parts = []
            self.write = self.parts.append

        def flush(self):
            self.parts.append(b"")

    out = Out()
    save(clew.from_numpy(ONE), out)
    assert values(load(io.BytesIO(b"".join(map(bytes, out.parts))))) == [1, 2]


def test_archive_behind_other_data():
    stream = io.BytesIO(b"in front" + saved().getvalue())
    stream.seek(8)
    assert values(load(stream)) == [1, 2]


def test_old_file_stays_when_saving_fails(tmp_path):
    path = tmp_path / "x.pt"
    save(1, path)
    before = path.read_bytes()
    with pytest.raises(Exception, match="pickle"):
        save([clew.from_numpy(ONE), lambda: 0], path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.pt"]


def test_save_to_nothing():
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
        save(1, None)


def test_save_to_a_missing_directory(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .*nodir does not exist\."):
        save(1, tmp_path / "nodir" / "x.pt")


def test_load_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        load(tmp_path / "x.pt")


@pytest.mark.parametrize("f", [None, 3, b"x.pt"])
def test_load_from_nothing(f):
    message = "object has no attribute 'seek'. You can only torch.load from a file that is seekable"
    with pytest.raises(AttributeError, match=re.escape(message)):
        load(f)


def test_load_from_a_pipe():
    class Pipe(io.RawIOBase):
        pass

    with pytest.raises(io.UnsupportedOperation, match=r"You can only torch\.load from a file"):
        load(Pipe())


@pytest.mark.parametrize("content", [b"", b"PK", b"hello world", b"\x80\x02", bytes(100)])
@pytest.mark.parametrize("weights_only", [True, False])
def test_load_something_else(content, weights_only):
    with pytest.raises((pickle.UnpicklingError, EOFError)):
        load(io.BytesIO(content), weights_only=weights_only)


@pytest.mark.parametrize("zipped", [True, False])
def test_load_a_cut_off_file(zipped):
    content = saved(_use_new_zipfile_serialization=zipped).getvalue()
    for length in range(len(content)):
        with pytest.raises((RuntimeError, pickle.UnpicklingError, EOFError)):
            load(io.BytesIO(content[:length]))


@pytest.mark.parametrize(("old", "new", "error"), [
    (b"\x8a\x0al\xfc", b"\x8a\x0al\xfd", "Invalid magic number; corrupt file"),
    (b"M\xe9\x03.", b"M\xe8\x03.", "Invalid protocol version: 1000"),
    (b"X\x01\x00\x00\x000q\x01a.", b"X\x01\x00\x00\x001q\x01a.", "list of storages is not that of"),
    (b"]q\x00X\x01\x00\x00\x000q\x01a.", b"]q\x00K\x05a.", "list of storages is not that of"),
    (b"]q\x00X\x01\x00\x00\x000q\x01a.", b"K\x05.", "list of storages is not that of"),
    (b"\x02" + bytes(7), b"\x01" + bytes(7), "holds 1 elements for the storage 0"),
])  # fmt: skip
def test_damaged_old_file(old, new, error):
    content = saved(_use_new_zipfile_serialization=False).getvalue()
    assert content.count(old) == 1
    with pytest.raises(RuntimeError, match=error):
        load(io.BytesIO(content.replace(old, new)))


def test_old_file_with_a_storage_longer_than_itself():
    content = saved(_use_new_zipfile_serialization=False).getvalue()
    huge = content.replace(b"K\x02Nt", b"\x8a\x06\xff\xff\xff\xff\xff\x0fNt")
    assert huge != content
    with pytest.raises(RuntimeError, match="unexpected EOF: a storage of"):
        load(io.BytesIO(huge))


def test_old_file_with_a_view_of_a_storage():
    content = saved(_use_new_zipfile_serialization=False).getvalue()
    view = content.replace(b"K\x02Nt", b"K\x02X\x01\x00\x00\x001K\x00K\x01\x87t")
    assert view != content
    with pytest.raises(pickle.UnpicklingError, match=r"PyTorch before 0\.4"):
        load(io.BytesIO(view))


def test_old_file_of_python_2():
    content = saved(_use_new_zipfile_serialization=False).getvalue()
    python2 = re.sub(rb"X(.)\x00\x00\x00(storage|0|cpu)", rb"U\1\2", content, flags=re.DOTALL)
    assert python2.count(b"U") == 4
    assert values(load(io.BytesIO(python2))) == [1, 2]
    assert values(load(io.BytesIO(python2), weights_only=False, encoding="bytes")) == [1, 2]


def test_tar_file():
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    stream.seek(0)
    with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
        load(stream)


def with_records(**records):
    import zipfile

    result = io.BytesIO()
    with zipfile.ZipFile(saved()) as old, zipfile.ZipFile(result, "w") as new:
        contents = {name: old.read(name) for name in old.namelist()}
        for name, content in (contents | {f"archive/{k}": v for k, v in records.items()}).items():
            new.writestr(name, content)
    result.seek(0)
    return result


def test_torchscript_archive():
    with pytest.raises(RuntimeError, match="TorchScript archives passed to"):
        load(with_records(**{"constants.pkl": b"x"}))


@pytest.mark.parametrize("version", ["99", "x", ""])
def test_other_version_of_the_archive(version):
    message = f"Attempted to read a PyTorch file with version {version}, but the maximum supported"
    with pytest.raises(RuntimeError, match=message):
        load(with_records(version=version.encode() + b"\n"))


def test_mmap_needs_a_path_and_a_zip_file(tmp_path):
    with pytest.raises(ValueError, match="f must be a file path in order to use the mmap argument"):
        load(saved(), mmap=True)
    path = str(tmp_path / "x.pt")
    save(1, path, _use_new_zipfile_serialization=False)
    message = f"mmap can only be used with files saved with `torch.save({path}, _use_new_zipfile"
    with pytest.raises(RuntimeError, match=re.escape(message)):
        load(path, mmap=True)


class Unlisted:
    """A class that no list allows."""

    def __init__(self, value):
        self.value = value


def test_error_for_a_name_says_what_to_do():
    with pytest.raises(pickle.UnpicklingError) as caught:
        load(saved(Unlisted(1)))
    text = str(caught.value)
    path = f"{__name__}.Unlisted"
    assert text.startswith("Weights only load failed.")
    assert f"Unsupported global: GLOBAL {path} was not an allowed global by default." in text
    assert "weights_only=True" in text
    assert "weights_only=False" in text
    assert f"`clew.serialization.add_safe_globals([{path}])`" in text


def test_numpy_scalars_need_permission_as_in_torch():
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL numpy\._core\.multiarray\.scalar"):
        load(saved(np.float64(1.5)))
    allowed = [
        (np._core.multiarray.scalar, "numpy._core.multiarray.scalar"),
        np.dtype,
        type(np.dtype(float)),
    ]
    with serialization.safe_globals(allowed):
        assert load(saved(np.float64(1.5))) == 1.5


def test_list_of_safe_globals():
    serialization.add_safe_globals([Unlisted, (dict, "builtins.mapping")])
    try:
        assert set(serialization.get_safe_globals()) == {Unlisted, (dict, "builtins.mapping")}
        assert load(saved(Unlisted(1))).value == 1
    finally:
        serialization.clear_safe_globals()
    assert serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(saved(Unlisted(1)))


def test_safe_globals_ends_with_an_error_too():
    with pytest.raises(KeyError), serialization.safe_globals([Unlisted]):
        assert serialization.get_safe_globals() == [Unlisted]
        raise KeyError
    assert serialization.get_safe_globals() == []


@pytest.mark.parametrize(("item", "error", "message"), [
    ((Unlisted, "a", "b"), ValueError, "Expected tuple of length 2"),
    ((Unlisted, 1), TypeError, "Expected second item in tuple to be str"),
])  # fmt: skip
def test_wrong_safe_globals(item, error, message):
    with serialization.safe_globals([item]), pytest.raises(error, match=message):
        load(saved())


def test_weights_only_false_makes_the_object():
    assert load(saved(Unlisted(1)), weights_only=False).value == 1


def test_names_of_torch_mean_clew_in_a_trusted_file():
    program = b"\x80\x02](ctorch.nn.parameter\nBuffer\nctorch.serialization.inner\nsave\ne."
    stream = with_records(**{"data.pkl": program})
    assert load(stream, weights_only=False) == [Buffer, save]


def test_classes_and_functions_of_clew_have_the_names_of_torch():
    import zipfile

    stream = saved([Buffer, save, Parameter, clew.Tensor, clew.Size, Unlisted])
    with zipfile.ZipFile(stream) as file:
        program = file.read("archive/data.pkl")
    names = re.findall(rb"c(\S+)\n(\S+)\n", program)
    assert [b".".join(pair).decode() for pair in names] == [
        "torch.nn.parameter.Buffer",
        "torch.serialization.save",
        "torch.nn.parameter.Parameter",
        "torch.Tensor",
        "torch.Size",
        f"{__name__}.Unlisted",
    ]
    stream.seek(0)
    back = load(stream, weights_only=False)
    assert back == [Buffer, save, Parameter, clew.Tensor, clew.Size, Unlisted]
    stream.seek(0)
    with serialization.safe_globals([Buffer, save, Unlisted]):
        assert load(stream) == back


def test_name_of_torch_that_clew_lacks_in_a_trusted_file():
    stream = with_records(**{"data.pkl": b"\x80\x02ctorch.nowhere\nNothing\n."})
    with pytest.raises(
        pickle.UnpicklingError, match=r"torch\.nowhere\.Nothing, which clew does not"
    ):
        load(stream, weights_only=False)


def test_whole_module_of_the_old_format():
    # A module's class came with its source code: ("module", class, file, source).
    content = saved(1, _use_new_zipfile_serialization=False).getvalue()
    name = f"c{__name__}\nUnlisted\n".encode()
    program = b"(X\x06\x00\x00\x00module" + name + b"X\x00\x00\x00\x00X\x00\x00\x00\x00tQ."
    stream = io.BytesIO(content.replace(b"K\x01.", program))
    assert load(stream, weights_only=False) is Unlisted


def test_pickle_module():
    assert values(load(saved(), pickle_module=pickle)) == [1, 2]
    with pytest.raises(
        RuntimeError, match="Can not safely load weights when explicit pickle_module"
    ):
        load(saved(), pickle_module=pickle, weights_only=True)


def module_like_dill(name="other"):
    """A module with a Pickler and an Unpickler of its own, as dill is."""

    class Pickler(pickle._Pickler):
        dispatch = pickle._Pickler.dispatch.copy()

        def save_unlisted(self, obj):
            self.save_reduce(Unlisted, (obj.value + 1,), obj=obj)

        dispatch[Unlisted] = save_unlisted

    class Unpickler(pickle._Unpickler):
        pass

    module = types.ModuleType(name)
    module.Pickler, module.Unpickler = Pickler, Unpickler
    return module


@pytest.mark.parametrize("zipped", [True, False])
def test_pickle_module_that_pickles_more(zipped):
    other = module_like_dill()
    obj = [Unlisted(1), clew.from_numpy(ONE)]
    stream = saved(obj, pickle_module=other, _use_new_zipfile_serialization=zipped)
    back = load(stream, pickle_module=other)
    assert back[0].value == 2
    assert values(back[1]) == [1, 2]


def test_pickle_module_in_c():
    class Pickler(pickle.Pickler):
        pass

    module = types.ModuleType("inc")
    module.Pickler = Pickler
    with pytest.raises(TypeError, match="cannot save with pickle_module=inc"):
        saved(pickle_module=module)


def test_pickle_load_args():
    python2 = b"\x80\x02U\x02\xc3\xbcq\x00."
    assert load(with_records(**{"data.pkl": python2})) == "ü"
    assert load(with_records(**{"data.pkl": python2}), weights_only=False) == "ü"
    stream = with_records(**{"data.pkl": python2})
    assert load(stream, weights_only=False, encoding="bytes") == b"\xc3\xbc"
    stream.seek(0)
    with pytest.warns(UserWarning, match="pickle_load_args only works if `weights_only=False`"):
        assert load(stream, encoding="bytes") == b"\xc3\xbc"


def test_environment_forces_weights_only(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(saved(Unlisted(1)), weights_only=False)


def test_environment_forces_the_opposite_where_nothing_is_said(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "yes")
    with pytest.warns(UserWarning, match="TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected") as caught:
        assert load(saved(Unlisted(1))).value == 1
    assert caught[0].filename == __file__
    with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
        load(saved(Unlisted(1)), weights_only=True)


def test_environment_forces_both(monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD`"):
        load(saved())


def test_unknown_dtype_cannot_be_saved():
    adapter = serialization.adapter.tensor_adapter()
    record = serialization.adapter.TensorRecord.from_array(np.zeros(2, "M8[s]"))
    pickler = serialization.CheckpointPickler(io.BytesIO(), 2, adapter)
    with pytest.raises(TypeError, match=r"no tensor of the NumPy dtype datetime64\[s\]"):
        pickler.dump(record)


def test_loaded_tensors_are_writable_and_read_once():
    x = np.arange(1_000_000, dtype=np.float32)
    stream = saved(clew.from_numpy(x))
    import tracemalloc

    load(stream)
    stream.seek(0)
    tracemalloc.start()
    back = load(stream)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    back.numpy()[0] = 5
    assert peak < 1.1 * x.nbytes


def test_saving_copies_nothing():
    import tracemalloc

    x = clew.from_numpy(np.arange(1_000_000, dtype=np.float32))
    with open(os.devnull, "wb") as stream:
        save(x, stream)
        tracemalloc.start()
        save(x, stream)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 200_000


def test_hooks_are_left_out_with_a_warning():
    x = clew.from_numpy(ONE.copy())
    x.requires_grad_(True)
    x.register_hook(lambda grad: None)
    with pytest.warns(
        UserWarning, match=r"backward hook <function .* on tensor will not be serialized"
    ):
        stream = saved(x)
    assert load(stream).requires_grad


def test_hooks_that_say_so_are_left_out_silently():
    def hook(grad):
        return None

    hook.__torch_unserializable__ = True
    x = clew.from_numpy(ONE.copy())
    x.requires_grad_(True)
    x.register_hook(hook)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved(x)
