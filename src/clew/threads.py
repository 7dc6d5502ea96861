"""How many threads matrix products use.  Layer 1: imports nothing of clew.

NumPy's BLAS has threads of its own, which threadpoolctl (imported when first needed) finds and
limits; clew's other kernels run in the caller's thread.
"""

from __future__ import annotations

from typing import Any

_interop = 1
_limit: Any = None


def set_num_threads(number: int) -> None:
    """Let matrix products use so many threads.

    Raises:
        RuntimeError: the number is not positive.
        TypeError: it is no int.
    """
    global _limit
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(number).__name__}")
    if number <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    import threadpoolctl

    _limit = threadpoolctl.threadpool_limits(limits=number, user_api="blas")


def get_num_threads() -> int:
    """How many threads matrix products use; one where that cannot be told."""
    import threadpoolctl

    pools = threadpoolctl.threadpool_info()
    return max((p["num_threads"] for p in pools if p["user_api"] == "blas"), default=1)


def set_num_interop_threads(number: int) -> None:
    """Accepted as PyTorch does; clew runs one operation at a time.

    Raises:
        RuntimeError: the number is not positive.
    """
    global _interop
    if number <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _interop = number


def get_num_interop_threads() -> int:
    """What `set_num_interop_threads` was given."""
    return _interop
