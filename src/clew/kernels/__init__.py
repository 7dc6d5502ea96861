"""Layer 1: the arithmetic behind the operations, ndarray in and ndarray out.

A module here imports NumPy and other kernel modules, nothing else. Kernels know no tensors, no
graph and no options with defaults that the layers above decide: sizes come as one int per
dimension. Half precision (float16, bfloat16) is computed in float32 and rounded once at the end.
"""
