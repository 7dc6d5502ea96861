"""Go on in a thread with an empty stack when Python's is nearly used up.

Layer 3.  For backward passes inside backward passes; Note [Re-entrant backward] says why.
"""

from __future__ import annotations

import contextvars
import copy
import ctypes
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
    """Call a function in a new thread with this thread's modes, and wait; its error is raised.

    Ctrl-C ends the function too.
    """
    errors: list[BaseException] = []
    begun: list[int] = []  # the thread's number
    broken_off = threading.Event()
    ended = threading.Event()  # a join() that is broken off cannot be gone on with
    modes = copy.copy(state.now)
    modes.saved_hooks = list(modes.saved_hooks)
    levels = stack.levels

    def work() -> None:
        modes.quiet = state.now.quiet  # each thread has its own
        state.now = modes
        stack.levels = levels
        begun.append(threading.get_ident())
        try:
            if not broken_off.is_set():
                function()
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    context = contextvars.copy_context()
    thread = threading.Thread(target=lambda: context.run(work), name="clew-backward", daemon=True)
    try:
        thread.start()
        ended.wait()
    except KeyboardInterrupt as error:
        broken_off.set()
        if begun:  # otherwise it has nothing to do
            _raise_in(begun[0], type(error))
            ended.wait()
        raise
    if errors:
        raise errors[0]


def _raise_in(thread: int, kind: type[BaseException]) -> None:
    """Raise an exception in another thread, as a signal does in the main thread."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind))
