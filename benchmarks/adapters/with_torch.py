"""PyTorch, as it is."""

from adapters.named import Named


def load(threads: int) -> Named:
    import torch

    torch.set_num_threads(threads)
    return Named(torch)
