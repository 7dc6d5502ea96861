"""The decorator that declares a compiled twin.  Layer 1; imports numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from clew.kernels.compiled.cache import Cache

EXACT = frozenset({"contract", "arcp", "nsz"})
"""LLVM's liberties that keep NaN, infinities and denormals: fused multiply-add, division as
multiplication by the reciprocal, zeros without a sign."""

REORDERED = EXACT | {"reassoc"}
"""Sums in any order as well, without which reductions are not vectorised."""

inline = numba.njit(inline="never", fastmath=set(EXACT), error_model="numpy", nogil=True)
"""Decorates a scalar function that twins call; LLVM puts its code in place of the call."""


class Kernel:
    """A twin before it is compiled: a Python function and the types of its arguments."""

    def __init__(
        self, function: Callable[..., None], writes: str, reads: str, liberties: frozenset[str]
    ) -> None:
        self.function = function
        self.writes = writes
        self.reads = reads
        self.liberties = liberties

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
        """The machine code for `dtype`, from the cache if it is there."""
        dispatcher = numba.njit(
            nogil=True, error_model="numpy", fastmath=set(self.liberties), boundscheck=False
        )(self.function)
        dispatcher._cache = Cache(self.function, f"{self.name} ({dtype.name})")
        dispatcher.compile(self.signature(dtype))
        dispatcher.disable_compile()
        compiled: Callable[..., None] = dispatcher
        return compiled


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
