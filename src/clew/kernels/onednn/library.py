"""oneDNN's C interface through ctypes: descriptions of memory, and primitives.  Layer 1.

The functions and numbers are those of its header ``dnnl.h``, version 3
(https://uxlfoundation.github.io/oneDNN/). Imports NumPy.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_int, c_int64, c_size_t, c_void_p
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

UNIMPLEMENTED = 3  # a status
_CPU, _IN_ORDER = 1, 1
_AVX512 = 0x20  # of a processor's instructions; the environment's ONEDNN_MAX_CPU_ISA can deny them
_FLOAT32, _ANY_FORMAT = 3, 1
_ARGUMENT_DESCRIPTION = 255  # a query
_USER_SCRATCHPAD = 1
_ALIGNMENT = 64

SOURCE, RESULT, WEIGHTS, BIAS, SCRATCHPAD = 1, 17, 33, 41, 80
SOURCE_GRADIENT, RESULT_GRADIENT, WEIGHTS_GRADIENT = 129, 145, 161


class Unsupported(Exception):
    """oneDNN cannot do this."""


class _Argument(ctypes.Structure):
    _fields_ = (("number", c_int), ("memory", c_void_p))


class Handle:
    """An object of oneDNN, destroyed with this one."""

    def __init__(self, destroy: Any) -> None:
        self.pointer = c_void_p()
        self._destroy = destroy

    def __del__(self) -> None:
        if self.pointer:
            self._destroy(self.pointer)


class Library:
    """The loaded library.

    Raises:
        OSError: the file cannot be loaded.
        AttributeError: it is no oneDNN of version 3.
    """

    def __init__(self, path: Path) -> None:
        self._c = ctypes.CDLL(str(path))
        self._c.dnnl_primitive_desc_query_md.restype = c_void_p
        self._c.dnnl_memory_desc_get_size.restype = c_size_t
        self._c.dnnl_memory_desc_equal.argtypes = (c_void_p, c_void_p)
        self._c.dnnl_memory_set_data_handle.argtypes = (c_void_p, c_void_p)
        held = ctypes.PyDLL(str(path))  # whose functions, of some instructions, keep the GIL
        self._threads = held.omp_get_max_threads, held.omp_set_num_threads  # OpenMP's
        self._multiply = self._c.dnnl_sgemm
        self.has_avx512 = bool(self._c.dnnl_get_effective_cpu_isa() & _AVX512)
        self.address_of_multiply = ctypes.cast(self._multiply, c_void_p).value or 0
        self._c.dnnl_primitive_execute.argtypes = (c_void_p, c_void_p, c_int, POINTER(_Argument))
        self.engine = self._make("engine_create", "engine_destroy", _CPU, c_size_t(0))
        self._attributes = self._make("primitive_attr_create", "primitive_attr_destroy")
        self._check(
            self._c.dnnl_primitive_attr_set_scratchpad_mode(
                self._attributes.pointer, _USER_SCRATCHPAD
            )
        )

    def _check(self, status: int) -> None:
        if status == UNIMPLEMENTED:
            raise Unsupported
        if status:
            raise RuntimeError(f"oneDNN failed with status {status}")

    def _make(self, create: str, destroy: str, *arguments: Any) -> Handle:
        handle = Handle(getattr(self._c, f"dnnl_{destroy}"))
        self._check(getattr(self._c, f"dnnl_{create}")(byref(handle.pointer), *arguments))
        return handle

    def stream(self) -> Handle:
        """A queue of work, for one thread."""
        return self._make("stream_create", "stream_destroy", self.engine.pointer, _IN_ORDER)

    def plain(self, shape: Sequence[int]) -> Handle:
        """Describes a contiguous float32 array."""
        steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
        return self._make(
            "memory_desc_create_with_strides", "memory_desc_destroy",
            len(shape), numbers(shape), _FLOAT32, numbers(steps),
        )  # fmt: skip

    def free(self, shape: Sequence[int]) -> Handle:
        """Describes a float32 array whose layout oneDNN chooses."""
        return self._make(
            "memory_desc_create_with_tag", "memory_desc_destroy",
            len(shape), numbers(shape), _FLOAT32, _ANY_FORMAT,
        )  # fmt: skip

    def describe(self, kind: str, *arguments: Any) -> Handle:
        """What a primitive of a kind is to do; see ``dnnl_<kind>_primitive_desc_create``.

        Raises:
            Unsupported: oneDNN has no code for it.
        """
        pointers = [a.pointer if isinstance(a, Handle) else a for a in arguments]
        return self._make(
            f"{kind}_primitive_desc_create", "primitive_desc_destroy",
            self.engine.pointer, *pointers, self._attributes.pointer,
        )  # fmt: skip

    def primitive(self, description: Handle) -> Handle:
        """The machine code for a description."""
        return self._make("primitive_create", "primitive_destroy", description.pointer)

    def reorder(self, source: c_void_p, result: c_void_p) -> Handle:
        """A primitive that copies from one layout to another."""
        engine = self.engine.pointer
        description = self._make(
            "reorder_primitive_desc_create", "primitive_desc_destroy",
            source, engine, result, engine, c_void_p(),
        )  # fmt: skip
        return self.primitive(description)

    def memory(self, description: c_void_p) -> Handle:
        """Memory of a description, which `place` will say the address of."""
        return self._make(
            "memory_create", "memory_destroy", description, self.engine.pointer, c_void_p()
        )

    def place(self, memory: Handle, address: int) -> None:
        """Say where a memory is."""
        self._c.dnnl_memory_set_data_handle(memory.pointer, address)

    def wanted(self, description: Handle, argument: int) -> tuple[c_void_p, int]:
        """The layout wanted for an argument, which belongs to `description`, and its bytes."""
        pointer = c_void_p(
            self._c.dnnl_primitive_desc_query_md(
                description.pointer, _ARGUMENT_DESCRIPTION, argument
            )
        )
        return pointer, self._c.dnnl_memory_desc_get_size(pointer)

    def same(self, one: c_void_p, other: c_void_p) -> bool:
        """Whether two descriptions are equal."""
        return bool(self._c.dnnl_memory_desc_equal(one, other))

    def run(self, primitive: Handle, stream: Handle, arguments: Any) -> None:
        """Execute a primitive with what `arguments` made."""
        status = self._c.dnnl_primitive_execute(
            primitive.pointer, stream.pointer, len(arguments), arguments
        )
        self._check(status)

    def multiply(self, arguments: tuple[Any, ...]) -> None:
        """Call ``dnnl_sgemm`` on one thread of OpenMP."""
        threads, set_threads = self._threads
        before = threads()
        if before == 1:
            status = self._multiply(*arguments)
        else:
            set_threads(1)
            try:
                status = self._multiply(*arguments)
            finally:
                set_threads(before)
        if status:
            self._check(status)

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """In the calling thread, OpenMP has one thread, as primitives have that are made then."""
        threads, set_threads = self._threads
        before = threads()
        set_threads(1)
        try:
            yield
        finally:
            set_threads(before)


def numbers(values: Sequence[int]) -> Any:
    """A ``dnnl_dims_t``."""
    return (c_int64 * 12)(*map(int, values))


def arguments(memories: dict[int, Handle]) -> Any:
    """An array of ``dnnl_exec_arg_t``."""
    return (_Argument * len(memories))(
        *(_Argument(number, memory.pointer) for number, memory in memories.items())
    )


class Primitive:
    """A primitive that takes contiguous arrays and rearranges them if it wants another layout.

    Args:
        library: oneDNN.
        description: what it does; also holds the layouts that it wants.
        reads: shapes of the arrays it reads, by the argument's number.
        writes: the number and the shape of the array it writes to.
    """

    def __init__(
        self,
        library: Library,
        description: Handle,
        reads: Mapping[int, Sequence[int]],
        writes: tuple[int, Sequence[int]],
    ) -> None:
        self._library = library
        self._description = description
        self._primitive = library.primitive(description)
        memories: dict[int, Handle] = {}
        self._reads = [self._argument(n, shape, True, memories) for n, shape in reads.items()]
        self._writes = self._argument(*writes, False, memories)
        scratchpad, self._scratch_bytes = library.wanted(description, SCRATCHPAD)
        self._scratchpad = memories[SCRATCHPAD] = library.memory(scratchpad)
        self._memories, self._arguments = memories, arguments(memories)

    def _argument(
        self, number: int, shape: Sequence[int], read: bool, memories: dict[int, Handle]
    ) -> tuple[Handle, Handle | None, int, Handle | None, Any]:
        """The array's memory, its rearranged copy and the bytes of that, and what makes it."""
        library = self._library
        plain = library.plain(shape)
        wanted, size = library.wanted(self._description, number)
        memory = memories[number] = library.memory(plain.pointer)
        if library.same(plain.pointer, wanted):
            return memory, None, 0, None, None
        copy = memories[number] = library.memory(wanted)
        if read:
            reorder = library.reorder(plain.pointer, wanted)
            return memory, copy, size, reorder, arguments({SOURCE: memory, RESULT: copy})
        reorder = library.reorder(wanted, plain.pointer)
        return memory, copy, size, reorder, arguments({SOURCE: copy, RESULT: memory})

    def __call__(self, stream: Handle, reads: Sequence[NDArray], writes: NDArray) -> None:
        """Run it on contiguous float32 arrays."""
        library = self._library
        buffers = [_buffer(self._scratch_bytes)]
        library.place(self._scratchpad, _address(buffers[0]))
        for (memory, copy, size, reorder, pair), array in zip(self._reads, reads):
            library.place(memory, address(array))
            if copy is not None and reorder is not None:
                buffers.append(_buffer(size))
                library.place(copy, _address(buffers[-1]))
                library.run(reorder, stream, pair)
        memory, copy, size, reorder, pair = self._writes
        library.place(memory, address(writes))
        if copy is not None:
            buffers.append(_buffer(size))
            library.place(copy, _address(buffers[-1]))
        library.run(self._primitive, stream, self._arguments)
        if reorder is not None:
            library.run(reorder, stream, pair)


def _buffer(size: int) -> NDArray:
    return np.empty(size + _ALIGNMENT, np.uint8)


def _address(buffer: NDArray) -> int:
    return -(-address(buffer) // _ALIGNMENT) * _ALIGNMENT


# Where the address of an array's elements stands in the array: first behind what every object has.
# Programs compiled with NumPy's headers read it there.
_FIELD = object.__basicsize__


def address(array: NDArray) -> int:
    """Where the elements of an array begin. Five times as fast as ``array.ctypes.data``."""
    return c_void_p.from_address(id(array) + _FIELD).value or 0


if address(_probe := np.empty(1)) != _probe.ctypes.data:

    def address(array: NDArray) -> int:  # of an interpreter with other objects
        """Where the elements of an array begin."""
        return array.ctypes.data
