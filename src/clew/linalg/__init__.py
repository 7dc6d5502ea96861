"""``clew.linalg``: linear algebra, PyTorch's ``torch.linalg``."""

from __future__ import annotations

from typing import Any

from clew.dispatch import apply
from clew.functions.decompose import cholesky as cholesky
from clew.functions.decompose import cholesky_ex as cholesky_ex
from clew.functions.decompose import det as det
from clew.functions.decompose import eig as eig
from clew.functions.decompose import eigh as eigh
from clew.functions.decompose import eigvals as eigvals
from clew.functions.decompose import eigvalsh as eigvalsh
from clew.functions.decompose import inv as inv
from clew.functions.decompose import inv_ex as inv_ex
from clew.functions.decompose import lstsq as lstsq
from clew.functions.decompose import lu as lu
from clew.functions.decompose import lu_factor as lu_factor
from clew.functions.decompose import lu_factor_ex as lu_factor_ex
from clew.functions.decompose import lu_solve as lu_solve
from clew.functions.decompose import qr as qr
from clew.functions.decompose import slogdet as slogdet
from clew.functions.decompose import solve as solve
from clew.functions.decompose import solve_ex as solve_ex
from clew.functions.decompose import solve_triangular as solve_triangular
from clew.functions.decompose import svd as svd
from clew.functions.decompose import svdvals as svdvals
from clew.functions.decompose import tensorinv as tensorinv
from clew.functions.decompose import tensorsolve as tensorsolve
from clew.functions.linalg import matmul as matmul
from clew.functions.matrix import multi_dot as multi_dot
from clew.functions.matrix import vecdot as vecdot
from clew.functions.norms import matrix_norm as matrix_norm
from clew.functions.norms import norm_of_any as norm
from clew.functions.norms import vector_norm as vector_norm
from clew.functions.powers import cond as cond
from clew.functions.powers import matrix_exp as matrix_exp
from clew.functions.powers import matrix_power as matrix_power
from clew.functions.powers import matrix_rank as matrix_rank
from clew.functions.powers import pinv as pinv
from clew.functions.powers import vander as vander
from clew.functions.reflect import householder_product as householder_product
from clew.op import REGISTRY
from clew.ops.matrices import LinAlgError as LinAlgError
from clew.publish import taking_other_names
from clew.tensor import Tensor


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Any:
    """The cross products of vectors of three elements along `dim`; the rest is broadcast."""
    return apply(REGISTRY["linalg_cross"], (input, other), {"dim": dim})


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonals of matrices, a view."""
    attrs = {"offset": offset, "dim1": dim1, "dim2": dim2}
    return apply(REGISTRY["diagonal"], (A,), attrs)


_TAKING_OUT = """
cholesky cholesky_ex cond cross det eig eigh eigvals eigvalsh inv inv_ex lstsq lu lu_factor
lu_factor_ex lu_solve matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet solve
solve_ex solve_triangular svd svdvals tensorinv tensorsolve vecdot vector_norm
"""
for _name in _TAKING_OUT.split():
    globals()[_name] = taking_other_names(globals()[_name], out=True)
