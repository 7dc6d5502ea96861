"""The decorator that declares a compiled twin.  Layer 1; imports numba.

Note [Loading twins]
    A twin that the cache holds is loaded without numba's registries of types and functions, which
    only its compiler reads and which take longer to set up (a quarter of a second) than all else;
    numba sets them up if it compiles after that.  What is called is the function that numba's
    dispatcher would choose.  That function takes any array whose dimensions and size of items
    are right for a C-contiguous one of its type, so with ``CLEW_NUMBA=check``, as in tests, the
    dispatcher stands in front and refuses others.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from clew.kernels.compiled import cache

EXACT = frozenset({"contract", "arcp", "nsz"})
"""LLVM's liberties that keep NaN, infinities and denormals: fused multiply-add, division as
multiplication by the reciprocal, zeros without a sign."""

REORDERED = EXACT | {"reassoc"}
"""Sums in any order as well, without which reductions are not vectorised."""

inline = numba.njit(forceinline=True, fastmath=set(EXACT), error_model="numpy", nogil=True)
"""Decorates a scalar function that twins call; its code is put in place of the call, whatever its
size: a loop with a call in it has no vector instructions."""

inline_reordered = numba.njit(
    inline="never", fastmath=set(REORDERED), error_model="numpy", nogil=True
)
"""The same for a function with sums of its own: liberties belong to the text, not to who calls."""

_CHECKED = os.environ.get("CLEW_NUMBA") == "check"


class Kernel:
    """A twin before it is compiled: a Python function and the types of its arguments."""

    def __init__(
        self, function: Callable[..., None], writes: str, reads: str, liberties: frozenset[str]
    ) -> None:
        self.function = function
        self.writes = writes
        self.reads = reads
        self.liberties = liberties
        self._loaded: list[Any] = []  # what machine code points to must stay

    @property
    def name(self) -> str:
        """``module.function``."""
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}"

    def signature(self, dtype: np.dtype) -> Any:
        """The types of the arguments, with `dtype` for each ``f``."""
        names = vars(types) | {"f": getattr(types, dtype.name)}
        written = _types(self.writes, names)
        read = [t.copy(readonly=True) if isinstance(t, types.Array) else t
                for t in _types(self.reads, names)]  # fmt: skip
        return types.void(*written, *read)

    def compile(self, dtype: np.dtype) -> Callable[..., None]:
        """The machine code for `dtype`, from the cache if it is there; Note [Loading twins]."""
        result = _load(self._file(dtype))
        if result is None:
            cache.announce(
                "compiling kernels as they are first used, about a second each and once on this "
                "machine; `clew warmup` compiles all ahead of time"
            )
            result, data = self._compile(dtype)
            try:
                cache.store(self._file(dtype), data)
            except OSError as error:
                cache.announce(
                    f"compiled kernels cannot be kept in {cache.folder()} "
                    f"({error.strerror or error}); CLEW_CACHE_DIR names another folder"
                )
        self._loaded.append(result)
        function: Callable[..., None] = self._checking(result) if _CHECKED else result.entry_point
        return function

    def build(self, dtype: np.dtype) -> None:
        """Put the machine code for `dtype` into the cache.

        Raises:
            OSError: it cannot be kept there.
        """
        cache.store(self._file(dtype), self._compile(dtype)[1])

    def _compile(self, dtype: np.dtype) -> tuple[Any, bytes]:
        """numba's record of the compiled function, and what to keep of it."""
        signature = self.signature(dtype)
        dispatcher = self._dispatcher()
        dispatcher.compile(signature)
        result = dispatcher.overloads[signature.args]
        return result, dumps(result._reduce())

    def _checking(self, result: Any) -> Any:
        """A function that looks at the types of its arguments."""
        dispatcher = self._dispatcher()
        dispatcher.add_overload(result)
        dispatcher.disable_compile()
        return dispatcher

    def _dispatcher(self) -> Any:
        return numba.njit(
            nogil=True, error_model="numpy", fastmath=set(self.liberties), boundscheck=False
        )(self.function)

    def is_kept(self, dtype: np.dtype) -> bool:
        """Whether the cache holds the machine code for `dtype`, whole."""
        return cache.load(self._file(dtype)) is not None

    def _file(self, dtype: np.dtype) -> str:
        """The name of its file in the cache."""
        return f"{self.name}-{dtype.name}-{_machine()}"


def _machine() -> str:
    """Stands for all besides its source that a twin's machine code depends on."""
    target = cpu_target.target_context.codegen().magic_tuple()
    versions = (numba.__version__, np.__version__, sys.version)
    return hashlib.sha256(repr((target, versions)).encode()).hexdigest()[:12]


def _load(file: str) -> Any:
    """numba's record of a compiled function from the cache, or None."""
    data = cache.load(file)
    if data is None:
        return None
    with contextlib.suppress(Exception):  # numba may raise anything
        rtsys.initialize(cpu_target.target_context)
        return CompileResult._rebuild(cpu_target.target_context, *pickle.loads(data))
    return None


def _types(text: str, names: dict[str, Any]) -> list[Any]:
    """numba's types from its own notation, ``f[:, ::1], int64``."""
    if not text:
        return []
    found = eval(text, {}, names)  # the text of a declaration in this package
    return list(found) if isinstance(found, tuple) else [found]


def kernel(
    writes: str, reads: str = "", liberties: frozenset[str] = EXACT
) -> Callable[[Callable[..., None]], Kernel]:
    """Declare a twin, which returns nothing; see Note [Twins].

    Args:
        writes: the types of the arrays that it writes to, in numba's notation, ``f`` being the
            floating type: ``"f[:, ::1], f[::1]"``.
        reads: the types of the other arguments; arrays among them may be read-only.
        liberties: what the compiler may do that changes last digits, `EXACT` or `REORDERED`.
    """

    def declare(function: Callable[..., None]) -> Kernel:
        return Kernel(function, writes, reads, liberties)

    return declare
