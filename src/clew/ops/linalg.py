"""Products of vectors and matrices.

The gradient of a matrix is computed in the memory order of that matrix, as PyTorch does: the
gradient of ``weight.t()`` comes out column-major, so that of ``weight`` is contiguous as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from clew.dtypes import legacy_type, scalar_name
from clew.kernels.half import narrow, widen
from clew.kernels.product import affine
from clew.kernels.product import product as shared_product
from clew.op import op
from clew.ops.rules import conj

_CPP_NAMES = {
    "Bool": "bool", "Byte": "unsigned char", "Char": "signed char", "Short": "short int",
    "Int": "int", "Long": "long int", "Half": "c10::Half", "BFloat16": "c10::BFloat16",
    "Float": "float", "Double": "double", "ComplexFloat": "c10::complex<float>",
    "ComplexDouble": "c10::complex<double>", "UInt16": "uint16_t", "UInt32": "uint32_t",
    "UInt64": "uint64_t",
}  # fmt: skip


def product(x: Any, y: Any, kernel: str, multiply: Any = np.dot, *, keep_wide: bool = False) -> Any:
    """``x @ y`` in the type of both; halves are added up in single precision.

    With `keep_wide` the product of halves stays in it, for `add_scaled` to round.

    Raises:
        NotImplementedError: the operands are bools; `kernel` is named.
    """
    if x.itemsize > 2:
        return shared_product(multiply, x, y)
    kind = x.dtype.kind
    if kind == "b":
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    if kind in "fV":
        wide = np.asarray(shared_product(multiply, widen(x), widen(y)))
        return wide if keep_wide else narrow(wide, x.dtype)
    return shared_product(multiply, x, y)


def is_column_major(strides: tuple[int, ...]) -> bool:
    """Whether the columns of a matrix with these strides are what lies together."""
    return strides[0] < strides[1]


def grad_of_left(F: Any, grad: Any, right: Any, strides: tuple[int, ...]) -> Any:
    """The gradient of the left factor of a matrix product, in that factor's memory order."""
    if is_column_major(strides):
        return F.t(F.mm(conj(F, right), F.t(grad)))
    return F.mm(grad, conj(F, F.t(right)))


def grad_of_right(F: Any, grad: Any, left: Any, strides: tuple[int, ...]) -> Any:
    """The gradient of the right factor of a matrix product, in that factor's memory order."""
    if is_column_major(strides):
        return F.t(F.mm(F.t(grad), conj(F, left)))
    return F.mm(conj(F, F.t(left)), grad)


def scaled(grad: Any, factor: Any) -> Any:
    """`grad` times a number, which most often is 1."""
    return grad if factor == 1 else grad * factor


# -- two factors


@op("mm(self, mat2)", jvp="bilinear", tensors_only=True)
def mm(x: Any, y: Any) -> Any:
    """The product of the matrices ``(n, k)`` and ``(k, m)``.

    Raises:
        RuntimeError: an operand is no matrix, or their sizes or types do not agree.
    """
    if x.ndim != 2 or y.ndim != 2:
        raise RuntimeError(f"{'mat2' if x.ndim == 2 else 'self'} must be a matrix")
    if x.shape[1] != y.shape[0]:
        raise _sizes_disagree(x, y)
    if x.dtype != y.dtype:
        raise RuntimeError(
            "expected m1 and m2 to have the same dtype, but got: "
            f"{cpp_name(x.dtype)} != {cpp_name(y.dtype)}"
        )
    return product(x, y, "addmm_impl_cpu_")


@mm.grad("self")
def _(F: Any, grad: Any, mat2: Any, self_strides: Any) -> Any:
    return grad_of_left(F, grad, mat2, self_strides)


@mm.grad("mat2")
def _(F: Any, grad: Any, self: Any, mat2_strides: Any) -> Any:
    return grad_of_right(F, grad, self, mat2_strides)


def cpp_name(dtype: np.dtype) -> str:
    """The name of a type in C++, as some of PyTorch's messages print it."""
    return _CPP_NAMES[scalar_name(dtype)]


def _sizes_disagree(x: Any, y: Any) -> RuntimeError:
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({_by(x.shape)} and {_by(y.shape)})"
    )


def _by(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


@op("mv(self, vec)", jvp="bilinear", tensors_only=True)
def mv(x: Any, y: Any) -> Any:
    """The product of the matrix ``(n, k)`` and the vector ``(k,)``.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    if x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.shape[0]:
        raise _vector_mismatch(x.shape[0], x, y)
    if x.dtype != y.dtype:
        last = scalar_name(y.dtype)
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{last}, {scalar_name(x.dtype)}, and {last}"
        )
    return product(x, y, "addmv_impl_cpu")


@mv.grad("self")
def _(F: Any, grad: Any, vec: Any) -> Any:
    return F.mul(F.reshape(grad, (*grad.shape, 1)), conj(F, vec))


@mv.grad("vec")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.mv(conj(F, F.t(self)), grad)


def _vector_mismatch(rows: int, mat: Any, vec: Any) -> RuntimeError:
    return RuntimeError(
        f"size mismatch, got input ({rows}), mat ({_by(mat.shape)}), vec ({vec.shape[0]})"
    )


def _check_vectors(x: Any, y: Any, name: str) -> None:
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"{name} : expected both vectors to have same dtype, but found "
            f"{scalar_name(x.dtype)} and {scalar_name(y.dtype)}"
        )
    if x.shape != y.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{x.shape[0]}] and src [{y.shape[0]}] to "
            f"have the same number of elements, but got {x.shape[0]} and {y.shape[0]} elements "
            "respectively"
        )


@op("dot(self, tensor)", jvp="bilinear", tensors_only=True)
def dot(x: Any, y: Any) -> Any:
    """The sum of the products of two vectors' elements.

    Raises:
        RuntimeError: an operand is no vector, or their sizes or types do not agree.
    """
    _check_vectors(x, y, "dot")
    return product(x, y, "dot")


@dot.grad("self")
def _(F: Any, grad: Any, tensor: Any) -> Any:
    return grad * conj(F, tensor)


@dot.grad("tensor")
def _(F: Any, grad: Any, self: Any) -> Any:
    return grad * conj(F, self)


@op("vdot(self, other)", jvp="bilinear", tensors_only=True)
def vdot(x: Any, y: Any) -> Any:
    """`dot` with the first vector conjugated.

    Raises:
        RuntimeError: an operand is no vector, or their sizes or types do not agree.
    """
    _check_vectors(x, y, "vdot" if x.dtype.kind == "c" else "dot")
    return product(np.conjugate(x) if x.dtype.kind == "c" else x, y, "dot")


@vdot.grad("self")
def _(F: Any, grad: Any, other: Any) -> Any:
    return conj(F, grad) * other


@vdot.grad("other")
def _(F: Any, grad: Any, self: Any) -> Any:
    return grad * self


@op("bmm(self, mat2)", jvp="bilinear", tensors_only=True)
def bmm(x: Any, y: Any) -> Any:
    """The products of ``b`` pairs of matrices, ``(b, n, k)`` and ``(b, k, m)``.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    check_batches(x, y)
    return product(x, y, "bmm", np.matmul)


@bmm.grad("self")
def _(F: Any, grad: Any, mat2: Any) -> Any:
    return F.bmm(grad, conj(F, F.transpose(mat2, 1, 2)))


@bmm.grad("mat2")
def _(F: Any, grad: Any, self: Any) -> Any:
    return F.bmm(conj(F, F.transpose(self, 1, 2)), grad)


def check_batches(x: Any, y: Any) -> None:
    """Refuse what is no pair of batches of matrices that can be multiplied.

    Raises:
        RuntimeError: naming what does not agree.
    """
    for array, name in ((x, "batch1"), (y, "batch2")):
        if array.ndim != 3:
            raise RuntimeError(f"{name} must be a 3D tensor")
    want = [x.shape[0], x.shape[2]]
    if list(y.shape[:2]) != want:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {want} but got: "
            f"{list(y.shape[:2])}."
        )
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"expected scalar type {scalar_name(x.dtype)} but found {scalar_name(y.dtype)}"
        )


@op("unsafe_squeeze(self; dim)", node="SqueezeBackward4", publish=(), jvp="linear")
def unsafe_squeeze(x: Any, *, dim: int) -> Any:
    """`squeeze` of a tensor that nobody else has: not tracked as a view."""
    return np.squeeze(x, dim)


@unsafe_squeeze.grad("self")
def _(F: Any, grad: Any, self_shape: Any) -> Any:
    return F.reshape(grad, self_shape)


# -- a product added to something


@op("addmm(self, mat1, mat2; *, beta=1, alpha=1)", inplace=True, tensors_only=True,
    jvp="bilinear plus self")  # fmt: skip
def addmm(x: Any, left: Any, right: Any, *, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * (mat1 @ mat2)``; with `beta` 0, `self` is not looked at.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    if not (x.dtype is left.dtype is right.dtype and left.ndim == right.ndim == 2):
        _check_addmm(x, left, right)
    if alpha == 1 == beta and (found := affine(left, right, x)) is not None:
        return found
    try:
        out = product(left, right, "addmm_impl_cpu_", keep_wide=True)
    except ValueError:
        raise _sizes_disagree(left, right) from None
    return add_scaled(out, x, beta, alpha)


def _check_addmm(x: Any, left: Any, right: Any) -> None:
    for name, array in (("self", x), ("mat1", left)):
        if array.dtype != right.dtype:
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {scalar_name(array.dtype)} "
                f"and {scalar_name(right.dtype)}"
            )
    if left.ndim != 2 or right.ndim != 2:
        name, wrong = ("mat1", left) if left.ndim != 2 else ("mat2", right)
        raise RuntimeError(f"{name} must be a matrix, got {wrong.ndim}-D tensor")


@addmm.grad("self")
def _(F: Any, grad: Any, *, beta: Any) -> Any:
    return scaled(grad, beta)


@addmm.grad("mat1")
def _(F: Any, grad: Any, mat2: Any, mat1_strides: Any, *, alpha: Any) -> Any:
    return scaled(grad_of_left(F, grad, mat2, mat1_strides), alpha)


@addmm.grad("mat2")
def _(F: Any, grad: Any, mat1: Any, mat2_strides: Any, *, alpha: Any) -> Any:
    return scaled(grad_of_right(F, grad, mat1, mat2_strides), alpha)


def add_scaled(out: Any, x: Any, beta: Any, alpha: Any) -> Any:
    """``beta * x + alpha * out``, written into `out`, a product that nobody else has.

    Raises:
        RuntimeError: `x` does not broadcast to `out`.
    """
    if out.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        np.multiply(out, alpha, out=out)
    try:
        if beta == 0:  # `x` is not looked at, nan or not, but it must fit
            np.broadcast_to(x, out.shape)
        else:
            np.add(out, x if beta == 1 else np.multiply(x, beta), out=out)
    except ValueError:
        raise _cannot_expand(x, out.shape) from None
    return narrow(out, x.dtype)


def _cannot_expand(x: Any, shape: tuple[int, ...]) -> RuntimeError:
    extra = len(shape) - x.ndim
    if extra < 0:
        return RuntimeError(
            f"expand(torch.{legacy_type(x.dtype)}{{{list(x.shape)}}}, size={list(shape)}): the "
            f"number of sizes provided ({len(shape)}) must be greater or equal to the number of "
            f"dimensions in the tensor ({x.ndim})"
        )
    dim = max(i for i, n in enumerate(x.shape, extra) if n not in (1, shape[i]))
    return RuntimeError(
        f"The expanded size of the tensor ({shape[dim]}) must match the existing size "
        f"({x.shape[dim - extra]}) at non-singleton dimension {dim}.  Target sizes: "
        f"{list(shape)}.  Tensor sizes: {list(x.shape)}"
    )


@op("addmv(self, mat, vec; *, beta=1, alpha=1)", inplace=True, tensors_only=True,
    jvp="bilinear plus self")  # fmt: skip
def addmv(x: Any, mat: Any, vec: Any, *, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * (mat @ vec)``.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    if mat.ndim != 2 or vec.ndim != 1 or x.ndim > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {x.ndim}, {mat.ndim}, {vec.ndim}"
        )
    if mat.shape[1] != vec.shape[0] or x.shape not in ((), (1,), (mat.shape[0],)):
        raise _vector_mismatch(x.shape[0] if x.ndim else 1, mat, vec)
    if not x.dtype == mat.dtype == vec.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{scalar_name(x.dtype)}, {scalar_name(mat.dtype)}, and {scalar_name(vec.dtype)}"
        )
    return add_scaled(product(mat, vec, "addmv_impl_cpu", keep_wide=True), x, beta, alpha)


@addmv.grad("self")
def _(F: Any, grad: Any, *, beta: Any) -> Any:
    return scaled(grad, beta)


@addmv.grad("mat")
def _(F: Any, grad: Any, vec: Any, *, alpha: Any) -> Any:
    return scaled(F.mul(F.unsqueeze(grad, 1), conj(F, vec)), alpha)


@addmv.grad("vec")
def _(F: Any, grad: Any, mat: Any, *, alpha: Any) -> Any:
    return scaled(F.mv(conj(F, F.t(mat)), grad), alpha)


@op(
    "addr(self, vec1, vec2; *, beta=1, alpha=1)",
    jvp="bilinear plus self",
    inplace=True,
    tensors_only=True,
    promote="arithmetic",
)
def addr(x: Any, first: Any, second: Any, *, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * outer(vec1, vec2)``.

    Raises:
        RuntimeError: the operands' dimensions or sizes do not agree.
    """
    for vec, name in ((first, "vec1"), (second, "vec2")):
        if vec.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vec.ndim}-D")
    return add_scaled(np.multiply.outer(first, second), x, beta, alpha)


@addr.grad("self")
def _(F: Any, grad: Any, *, beta: Any) -> Any:
    return scaled(grad, beta)


@addr.grad("vec1")
def _(F: Any, grad: Any, vec2: Any, *, alpha: Any) -> Any:
    return scaled(F.mv(grad, conj(F, vec2)), alpha)


@addr.grad("vec2")
def _(F: Any, grad: Any, vec1: Any, *, alpha: Any) -> Any:
    return scaled(F.mv(F.t(grad), conj(F, vec1)), alpha)


@op("baddbmm(self, batch1, batch2; *, beta=1, alpha=1)", inplace=True, tensors_only=True,
    jvp="bilinear plus self")  # fmt: skip
def baddbmm(x: Any, first: Any, second: Any, *, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * bmm(batch1, batch2)``.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    check_batches(first, second)
    _same_type(x, first)
    out = product(first, second, "baddbmm", np.matmul, keep_wide=True)
    return add_scaled(out, x, beta, alpha)


@baddbmm.grad("self")
def _(F: Any, grad: Any, *, beta: Any) -> Any:
    return scaled(grad, beta)


@baddbmm.grad("batch1")
def _(F: Any, grad: Any, batch2: Any, *, alpha: Any) -> Any:
    return scaled(F.bmm(grad, conj(F, F.transpose(batch2, 1, 2))), alpha)


@baddbmm.grad("batch2")
def _(F: Any, grad: Any, batch1: Any, *, alpha: Any) -> Any:
    return scaled(F.bmm(conj(F, F.transpose(batch1, 1, 2)), grad), alpha)


@op("addbmm(self, batch1, batch2; *, beta=1, alpha=1)", inplace=True, tensors_only=True,
    jvp="bilinear plus self")  # fmt: skip
def addbmm(x: Any, first: Any, second: Any, *, beta: Any, alpha: Any) -> Any:
    """``beta * self + alpha * bmm(batch1, batch2).sum(0)``.

    Raises:
        RuntimeError: the operands' dimensions, sizes or types do not agree.
    """
    if first.ndim == second.ndim == 3 and first.shape[2] != second.shape[1]:
        sizes = f"{_by(first.shape[1:])} and {_by(second.shape[1:])}"
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({sizes})")
    check_batches(first, second)
    _same_type(x, first)
    left = first.transpose(1, 0, 2).reshape(first.shape[1], -1)
    right = second.reshape(left.shape[1], second.shape[2])
    total = product(left, right, "addmm_impl_cpu_", keep_wide=True)
    return add_scaled(total, x, beta, alpha)


def _same_type(x: Any, batch: Any) -> None:
    if x.dtype != batch.dtype:
        raise RuntimeError(
            "Input dtypes must be the same, got: input "
            f"{cpp_name(x.dtype)}, batch1: {cpp_name(batch.dtype)}, batch2: "
            f"{cpp_name(batch.dtype)}"
        )


@addbmm.grad("self")
def _(F: Any, grad: Any, *, beta: Any) -> Any:
    return scaled(grad, beta)


@addbmm.grad("batch1")
def _(F: Any, grad: Any, batch2: Any, batch1_shape: Any, *, alpha: Any) -> Any:
    each = F.expand(grad, (batch1_shape[0], *grad.shape))
    return scaled(F.bmm(each, conj(F, F.transpose(batch2, 1, 2))), alpha)


@addbmm.grad("batch2")
def _(F: Any, grad: Any, batch1: Any, *, alpha: Any) -> Any:
    each = F.expand(grad, (batch1.shape[0], *grad.shape))
    return scaled(F.bmm(conj(F, F.transpose(batch1, 1, 2)), each), alpha)
