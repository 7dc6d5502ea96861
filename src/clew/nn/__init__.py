"""Neural networks: PyTorch's ``torch.nn``.  Layer 5: imported when first used."""

from clew.nn import functional as functional
