"""clew, as it is."""

from adapters.named import Named


def load(threads: int) -> Named:
    import clew

    clew.set_num_threads(threads)
    return Named(clew)
