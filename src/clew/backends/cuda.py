"""CUDA's libraries: not there.  The flags can be set and read, and change nothing."""

from __future__ import annotations


class _Matmul:
    """Flags of matrix products on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """False."""
    return False
