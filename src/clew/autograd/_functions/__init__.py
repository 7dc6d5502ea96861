"""Functions that PyTorch wrote in Python before its engine was in C++, kept for old programs."""

from clew.autograd._functions.tensor import Resize

__all__ = ["Resize"]
