"""clew after ``clew compile``."""

from adapters import with_clew
from adapters.named import Named


def load(threads: int) -> Named:
    """The engine.

    Raises:
        ImportError: there are no compiled modules.
    """
    engine = with_clew.load(threads, compiled="1")
    if not engine.engine.ahead.is_used():
        raise ImportError("no compiled modules: run `clew compile`")
    return engine
