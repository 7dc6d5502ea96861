"""PyTorch with ``fused=True`` in every optimizer."""

import functools

from adapters.named import Named


def load(threads: int) -> Named:
    import torch

    torch.set_num_threads(threads)
    for name in ("Adam", "AdamW", "SGD"):
        optimizer = functools.partial(getattr(torch.optim, name), fused=True)
        setattr(torch.optim, name, optimizer)
    return Named(torch)
