"""Go on in a thread with an empty stack when Python's is nearly used up.

Layer 3.  For backward passes inside backward passes; Note [Re-entrant backward] says why.
"""

from __future__ import annotations

import contextvars
import copy
import sys
import threading
from collections.abc import Callable

from clew.autograd.modes import state
from clew.autograd.transforms import stack


def is_near_its_end() -> bool:
    """Whether this thread may hand over, and has used half of the calls that Python allows."""
    if not state.now.multithreading:
        return False
    frame, left = sys._getframe(), sys.getrecursionlimit() // 2
    while frame is not None and left:
        frame, left = frame.f_back, left - 1  # type: ignore[assignment]
    return frame is not None


def call(function: Callable[[], None]) -> None:
    """Call a function in a new thread with this thread's modes, and wait; its error is raised."""
    errors: list[BaseException] = []
    modes = copy.copy(state.now)
    modes.saved_hooks = list(modes.saved_hooks)
    levels = stack.levels

    def work() -> None:
        modes.quiet = state.now.quiet  # each thread has its own
        state.now = modes
        stack.levels = levels
        try:
            function()
        except BaseException as error:
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(work), name="clew-backward", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
