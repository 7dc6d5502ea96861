"""PyTorch with the functions that compute losses compiled; optimizers are as they are."""

from adapters.named import Named


def load(threads: int) -> Named:
    import torch

    torch.set_num_threads(threads)
    return Named(
        torch,
        torch.compile,
        cannot={
            "chain of 100,000 nodes": "it would compile 100,000 operations",
            "Hessian-vector product": "what it compiles has no second derivatives",
        },
    )
