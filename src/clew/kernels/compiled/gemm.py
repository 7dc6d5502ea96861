"""Matrix products inside of twins.  Layer 1; imports numba.

Note [Products in twins]
    A twin that needs a product is given the address of ``dnnl_sgemm``, the function of oneDNN for
    float32, as a number.  With the name of a function that Python found its machine code could
    not be kept, since a library lies elsewhere in each program.  Whoever calls the twin sees to
    it that the library lives on, and that OpenMP has one thread (Note [oneDNN]).
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
