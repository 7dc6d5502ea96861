"""PyTorch's ``torch.utils.hooks``: the handle that removes a hook."""

from clew.autograd.handles import RemovableHandle

__all__ = ["RemovableHandle"]
