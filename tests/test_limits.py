"""`finfo` and `iinfo`: numbers, text and errors of PyTorch's."""

import pytest

from engines import same

FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("name", FLOATS)
def test_finfo(name):
    def facts(e):
        info = e.finfo(getattr(e, name))
        numbers = [info.bits, info.min, info.max, info.eps, info.tiny, info.smallest_normal]
        return numbers, info.resolution, info.dtype, repr(info)

    same(facts)


@pytest.mark.parametrize("name", INTEGERS)
def test_iinfo(name):
    def facts(e):
        info = e.iinfo(getattr(e, name))
        return info.bits, info.min, info.max, info.dtype, repr(info)

    same(facts)


CALLS = {
    "default": lambda e: repr(e.finfo()),
    "keyword": lambda e: repr(e.finfo(type=e.float64)),
    "integer": lambda e: e.finfo(e.int32),
    "floating": lambda e: e.iinfo(e.float32),
    "bool": lambda e: e.iinfo(e.bool),
    "number": lambda e: e.finfo(3),
    "text": lambda e: e.iinfo("x"),
    "equal": lambda e: (
        e.finfo(e.float32) == e.finfo(e.complex64),
        e.finfo(e.float32) == e.finfo(e.float64),
        e.iinfo(e.int8) == e.iinfo(e.int8),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(name):
    same(CALLS[name])
