"""``clew.distributed``: for programs that import it; there are no process groups.

Layer 5.  Programs that train in one process ask `is_available` or `is_initialized`, or import
names that they never call.  Calling what needs a group raises, with the name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn


def is_available() -> bool:
    """False: clew runs in one process."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_nccl_available() -> bool:
    """False."""
    return False


def is_gloo_available() -> bool:
    """False."""
    return False


def is_mpi_available() -> bool:
    """False."""
    return False


def is_torchelastic_launched() -> bool:
    """False."""
    return False


def _refused(name: str) -> Callable[..., NoReturn]:
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(
            f"torch.distributed.{name}: clew has no process groups; run the program in one process"
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "Raises RuntimeError: there are no process groups."
    function.is_lacking = True  # type: ignore[attr-defined]  # for tools/compatibility.py
    return function


init_process_group = _refused("init_process_group")
destroy_process_group = _refused("destroy_process_group")
get_rank = _refused("get_rank")
get_world_size = _refused("get_world_size")
barrier = _refused("barrier")
broadcast = _refused("broadcast")
all_reduce = _refused("all_reduce")
all_gather = _refused("all_gather")
reduce = _refused("reduce")
gather = _refused("gather")
scatter = _refused("scatter")
send = _refused("send")
recv = _refused("recv")
