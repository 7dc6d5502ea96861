"""Matrix products inside of twins.  Layer 1; imports numba.

Note [Products in twins]
    A twin that needs products is given the address of a function as a number: for `multiply` that
    of ``dnnl_sgemm``, oneDNN's for float32; for `product` that of ``cblas_sgemm`` or
    ``cblas_dgemm``, which OpenBLAS has for sizes of 64 bits and is faster with for small matrices.
    With the name of a function that Python found its machine code could not be kept, since a
    library lies elsewhere in each program.  Whoever calls the twin sees to it that the library
    lives on, and has one thread (Note [oneDNN], `clew.threads.one_blas_thread`).
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from clew.kernels.compiled.kernel import inline


@intrinsic
def _call(typing_context: Any, address: Any, rows: Any, columns: Any, inner: Any, x: Any, y: Any,
          beta: Any, out: Any) -> Any:  # fmt: skip
    """``dnnl_sgemm`` at `address`, on contiguous matrices at `x`, `y` and `out`."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        size, place, number = ir.IntType(64), ir.IntType(8).as_pointer(), ir.FloatType()
        letter = ir.IntType(32)  # as which C passes a char
        matrix = (place, size)
        form = ir.FunctionType(
            letter, (letter, letter, size, size, size, number, *matrix, *matrix, number, *matrix)
        )
        address, rows, columns, inner, x, y, beta, out = values
        plain, one = ir.Constant(letter, ord("N")), ir.Constant(number, 1.0)
        x, y, out = (builder.inttoptr(value, place) for value in (x, y, out))
        builder.call(
            builder.inttoptr(address, form.as_pointer()),
            (plain, plain, rows, columns, inner, one, x, inner, y, columns, beta, out, columns),
        )
        return context.get_dummy_value()

    numbers = (types.int64,) * 6
    return types.void(*numbers, types.float32, types.int64), generate


@inline
def multiply(gemm, x, y, out, beta):
    """Write ``x y + beta * out`` into `out`: contiguous matrices, of float32."""
    _call(
        gemm, x.shape[0], y.shape[1], x.shape[1], x.ctypes.data, y.ctypes.data, beta,
        out.ctypes.data,
    )  # fmt: skip


@intrinsic
def _call_blas(typing_context: Any, address: Any, rows: Any, columns: Any, inner: Any, x: Any,
               y: Any, out: Any, beta: Any) -> Any:  # fmt: skip
    """``cblas_sgemm`` or, if `beta` is of float64, ``cblas_dgemm`` at `address`.

    A matrix is a tuple: where it begins, the elements from a row to the next, 1 if it is turned.
    """

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        size, place, word = ir.IntType(64), ir.IntType(8).as_pointer(), ir.IntType(32)
        number = ir.FloatType() if beta is types.float32 else ir.DoubleType()
        form = ir.FunctionType(
            ir.VoidType(),
            (word, word, word, size, size, size, number, place, size, place, size, number, place,
             size),
        )  # fmt: skip
        function, rows, columns, inner, x, y, out, factor = values
        (x, x_step, x_turned), (y, y_step, y_turned), (out, step, _) = (
            [builder.extract_value(matrix, i) for i in range(3)] for matrix in (x, y, out)
        )
        forms = [
            builder.add(builder.trunc(turned, word), ir.Constant(word, _AS_IT_LIES))
            for turned in (x_turned, y_turned)
        ]
        x, y, out = (builder.inttoptr(value, place) for value in (x, y, out))
        builder.call(
            builder.inttoptr(function, form.as_pointer()),
            (ir.Constant(word, _BY_ROWS), *forms, rows, columns, inner, ir.Constant(number, 1.0),
             x, x_step, y, y_step, factor, out, step),
        )  # fmt: skip
        return context.get_dummy_value()

    sizes, matrix = (types.int64,) * 4, types.UniTuple(types.int64, 3)
    return types.void(*sizes, matrix, matrix, matrix, beta), generate


_BY_ROWS, _AS_IT_LIES = 101, 111  # CblasRowMajor, CblasNoTrans; CblasTrans is the next number


@inline
def _matrix(x, turned):
    return x.ctypes.data, x.strides[0] // x.itemsize, turned


@inline
def product(gemm, x, x_turned, y, y_turned, out, beta):
    """Write ``x y + beta * out`` into `out`, with 1 for each factor that is to be transposed.

    The elements of a row are adjacent in each, and rows at least their length apart; none is empty.
    """
    inner = x.shape[0] if x_turned else x.shape[1]
    _call_blas(
        gemm, out.shape[0], out.shape[1], inner, _matrix(x, x_turned), _matrix(y, y_turned),
        _matrix(out, 0), out.dtype.type(beta),
    )  # fmt: skip
