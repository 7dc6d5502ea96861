"""The product of a sparse matrix, given by its elements, with a dense one."""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.kernels.half import narrow, widen
from clew.op import op
from clew.ops.rules import conj


@op("sparse_product(values, dense, rows, columns; size)", node="SparseAddmmBackward0", publish=())
def sparse_product(values: Any, dense: Any, rows: Any, columns: Any, *, size: int) -> Any:
    """The matrix of `size` rows whose element (rows[i], columns[i]) is values[i], times `dense`.

    Elements at the same place add up.  Each row of the result is one sum over the elements in that
    row, so the work is the number of elements times the columns of `dense`.
    """
    result = np.zeros((size, dense.shape[1]), dense.dtype)
    if not (len(values) and result.size):
        return result
    if (rows[1:] < rows[:-1]).any():
        order = rows.argsort(kind="stable")
        values, rows, columns = values[order], rows[order], columns[order]
    products = widen(values)[:, None] * widen(dense[columns])
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    result[rows[starts]] = narrow(np.add.reduceat(products, starts, axis=0), dense.dtype)
    return result


@sparse_product.grad("values")
def _(F: Any, grad: Any, dense: Any, rows: Any, columns: Any) -> Any:
    along = F.index_select(dense, 0, columns)
    return F.sum(F.index_select(grad, 0, rows) * conj(F, along), dim=1)


@sparse_product.grad("dense")
def _(F: Any, grad: Any, values: Any, dense_shape: Any, rows: Any, columns: Any) -> Any:
    return F.sparse_product(conj(F, values), grad, columns, rows, size=dense_shape[0])
