"""`Variable` under the name of the module that PyTorch has it in.  Layer 4."""

from clew.autograd import Variable

__all__ = ["Variable"]
