"""Check derivatives against finite differences.  Layer 4.

The numerical Jacobian comes from central differences, one element of an input at a time; the
analytical one from backward passes, one element of an output at a time.  Fast mode compares the
products ``v^T J u`` with random vectors, which takes two calls and one backward.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from clew.autograd import grad
from clew.autograd import gradcheck_report as report
from clew.autograd.function import Function
from clew.autograd.numbers import as_real
from clew.dispatch import TENSORS
from clew.ops.rules import is_complex
from clew.tensor import Tensor


class GradcheckError(RuntimeError):
    """Numerical and analytical derivatives differ, or the function cannot be checked."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the gradients of a function agree with finite differences.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: tensors (those that require grad are checked; use float64) and other arguments.
        eps: the step of the differences.
        atol, rtol: how far they may be apart.
        raise_exception: raise instead of returning False.
        nondet_tol: how far two backward passes may be apart.
        check_undefined_grad: check that backward can take outputs without a gradient.
        check_grad_dtypes, check_batched_grad: check types, and batches of output gradients.
        check_forward_ad: check forward mode.
        check_batched_forward_grad: check batches of tangents.
        check_backward_ad: check reverse mode.
        fast_mode: compare random combinations of the Jacobian's elements only.
        masked: for sparse tensors, which clew lacks.

    Raises:
        GradcheckError: they differ.
        ValueError: there is nothing to check.
        AssertionError: neither mode is to be checked, or a batched check without its mode.
    """
    _require_modes(
        {"check_forward_ad": check_forward_ad, "check_backward_ad": check_backward_ad},
        check_batched_grad=check_batched_grad and "check_backward_ad",
        check_batched_forward_grad=check_batched_forward_grad and "check_forward_ad",
    )
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = _Check(func, arguments, eps, atol, rtol, nondet_tol, fast_mode)
    try:
        check.everything(
            forward=check_forward_ad, backward=check_backward_ad, undefined=check_undefined_grad,
            dtypes=check_grad_dtypes, batched=check_batched_grad,
            batched_tangents=check_batched_forward_grad,
        )  # fmt: skip
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _require_modes(modes: dict[str, bool], **needs: Any) -> None:
    """Raise if no mode is on, or the one that an option needs is not; an option that is on names
    it."""
    if not any(modes.values()):
        raise AssertionError(f"Expected at least one of {' or '.join(modes)} to be True")
    for option, mode in needs.items():
        if mode and not modes[mode]:
            raise AssertionError(f"Setting {option}=True requires {mode} to be True")


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """`gradcheck` of the gradient: whether second derivatives agree with finite differences.

    Args:
        grad_outputs: the gradients of the outputs; random by default.
        gen_non_contig_grad_outputs: make the random ones non-contiguous.
        check_fwd_over_rev, check_rev_over_rev: differentiate the gradient in forward and in
            reverse mode.

    The other arguments are those of `gradcheck`.
    """
    _require_modes(
        {"check_fwd_over_rev": check_fwd_over_rev, "check_rev_over_rev": check_rev_over_rev},
        check_undefined_grad=check_undefined_grad and "check_rev_over_rev",
        check_batched_grad=check_batched_grad and "check_rev_over_rev",
    )
    arguments = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    outputs = _differentiable(func(*arguments))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        gradients = tuple(_random_like(o, rng, spread=gen_non_contig_grad_outputs) for o in outputs)
    else:
        gradients = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    count = len(gradients)
    # Forward mode passes values that do not require grad.
    needed = [isinstance(v, Tensor) and v.requires_grad for v in (*arguments, *gradients)]

    def gradient(*values: Any) -> Any:
        values = tuple(v.requires_grad_() if n else v for v, n in zip(values, needed))
        given, weights = values[:-count], values[-count:]
        results = _differentiable(func(*given))
        wanted = tuple(v for v in given if isinstance(v, Tensor) and v.requires_grad)
        found = grad(results, wanted, weights, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradient, (*arguments, *gradients), eps=eps, atol=atol, rtol=rtol,
        raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _differentiable(output: Any) -> tuple[Tensor, ...]:
    outputs = output if isinstance(output, (tuple, list)) else (output,)
    return tuple(o for o in outputs if isinstance(o, Tensor) and o.requires_grad)


def _random_like(tensor: Tensor, rng: np.random.Generator, *, spread: bool) -> Tensor:
    array = tensor._array
    values = rng.standard_normal(array.shape)
    if array.dtype.kind == "c":
        values = values + 1j * rng.standard_normal(array.shape)
    made = values.astype(array.dtype)
    if spread and made.ndim:
        made = np.repeat(made[..., None], 2, axis=-1)[..., 0]
    return Tensor._from_array(made, requires_grad=True)


class _Check:
    """One run of `gradcheck`."""

    def __init__(
        self, func: Callable[..., Any], arguments: tuple[Any, ...], eps: float, atol: float,
        rtol: float, nondet_tol: float, fast: bool,
    ) -> None:  # fmt: skip
        self.func = func
        self.arguments = arguments
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.fast = fast
        self.rng = np.random.default_rng(0)
        self.checked = [a for a in arguments if isinstance(a, Tensor) and a.requires_grad]

    def everything(
        self, *, forward: bool, backward: bool, undefined: bool, dtypes: bool, batched: bool,
        batched_tangents: bool,
    ) -> None:  # fmt: skip
        """All checks that are asked for, in PyTorch's order."""
        self.inputs_valid()
        outputs = self.outputs()
        if backward:
            self.reverse_mode(outputs, dtypes)
        if forward:
            self.forward_mode(undefined=undefined)
        if batched_tangents:
            self.batched_tangents()
        if backward and outputs:
            self.not_multiplied(outputs)
            if undefined:
                self.undefined_grads(outputs)
            if batched:
                self.batched(outputs)

    def inputs_valid(self) -> None:
        """Refuse inputs that cannot be checked; warn of those that hardly can."""
        if not self.checked:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them "
                "have requires_grad=True."
            )
        for index, argument in enumerate(self.arguments):
            if not isinstance(argument, Tensor) or not argument.requires_grad:
                continue
            array = argument._array
            if array.dtype not in (np.float64, np.complex128):
                warnings.warn(
                    f"Input #{index} requires gradient and is not a double precision floating "
                    "point or complex. This check will likely fail if all the inputs are not of "
                    "double precision floating point or complex. ",
                    stacklevel=3,
                )
            if any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides)):
                raise RuntimeError(
                    f"The {index}th input has a dimension with stride 0. gradcheck only supports "
                    "inputs that are non-overlapping to be able to compute the numerical gradients "
                    "correctly. You should call .contiguous on the input before passing it to "
                    "gradcheck."
                )
            argument.retain_grad()

    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs that have gradients."""
        return _differentiable(self.func(*self.arguments))

    def reverse_mode(self, outputs: tuple[Tensor, ...], dtypes: bool) -> None:
        """Compare both derivatives of each output; there must be none if there is no output."""
        if not outputs:
            self.no_differentiable_outputs()
            return
        for index, output in enumerate(outputs):
            self.compare(index, output, dtypes)

    def no_differentiable_outputs(self) -> None:
        """Without outputs that require grad, the numerical gradient must be zero."""
        for position, out in enumerate(self._all_outputs()):
            if out._array.dtype.kind not in "fc":
                continue
            if any(np.any(np.abs(n) > self.atol) for n in self._numerical(position)):
                raise GradcheckError("Numerical gradient for function expected to be zero")

    # -- Jacobians: a row for each real number of the input, a column for each of the output

    def _all_outputs(self) -> list[Tensor]:
        output = self.func(*self.arguments)
        outputs = output if isinstance(output, (tuple, list)) else (output,)
        return [o for o in outputs if isinstance(o, Tensor)]

    def _numerical(self, position: int) -> list[np.ndarray]:
        """Jacobians of the output at this position among all, by central differences."""
        jacobians = []
        for tensor in self.checked:
            array = tensor._array
            directions = (self.eps, 1j * self.eps) if array.dtype.kind == "c" else (self.eps,)
            rows = [
                self._difference(array, place, step, position)
                for place in np.ndindex(array.shape)
                for step in directions
            ]
            jacobians.append(np.array(rows) if rows else np.zeros((0, 0)))
        return jacobians

    def _difference(self, array: np.ndarray, place: Any, step: complex, position: int) -> Any:
        direction = np.zeros_like(array)
        direction[place] = step / self.eps
        return self._difference_along(array, direction, position, f"on index {place} ")

    def _difference_along(
        self, array: np.ndarray, direction: np.ndarray, position: int, where: str = ""
    ) -> Any:
        """How the output at this position changes as the input goes into a direction."""
        original = array.copy()
        found = []
        for step in (self.eps, -self.eps):
            array[...] = original + step * direction
            found.append(self._all_outputs()[position]._array.copy())
        array[...] = original
        report.require_alike(found[1], found[0], f"{where}by {self.eps}")
        return as_real((found[0] - found[1]) / (2 * self.eps))

    def _analytical(self, output: Tensor) -> list[np.ndarray]:
        """Jacobians of an output, one backward pass for each of its elements."""
        shape, dtype = output._array.shape, output._array.dtype
        columns: list[list[np.ndarray]] = [[] for _ in self.checked]
        for place in np.ndindex(shape):
            for seed in (1, 1j) if dtype.kind == "c" else (1,):
                weight = np.zeros(shape, dtype)
                weight[place] = seed
                found = grad(
                    output, self.checked, Tensor._from_array(weight), retain_graph=True,
                    allow_unused=True,
                )  # fmt: skip
                for column, g, tensor in zip(columns, found, self.checked):
                    array = np.zeros_like(tensor._array) if g is None else g._array
                    column.append(as_real(array))
        return [np.stack(c, axis=1) if c else np.zeros((0, 0)) for c in columns]

    # -- the checks

    def compare(self, index: int, output: Tensor, check_dtypes: bool) -> None:
        """Numerical against analytical, and one backward against another."""
        differentiable = [i for i, o in enumerate(self._all_outputs()) if o.requires_grad]
        if self.fast:
            self._compare_products(index, output, differentiable[index])
        else:
            self._compare_jacobians(index, output, differentiable[index])
        if check_dtypes:
            self._dtypes(output)

    def _compare_jacobians(self, index: int, output: Tensor, place: int) -> None:
        analytical, again = self._analytical(output), self._analytical(output)
        self._same_twice(analytical, again)
        for position, (n, a) in enumerate(zip(self._numerical(place), analytical)):
            wrong = report.mismatch(
                n, a, index, position, complex_output=is_complex(output),
                complex_input=is_complex(self.checked[position]), rtol=self.rtol, atol=self.atol,
            )  # fmt: skip
            if wrong is not None:
                raise GradcheckError(wrong)

    def _compare_products(self, index: int, output: Tensor, place: int) -> None:
        """Fast mode: ``v^T J u`` for random u and v, once by differences and once by backward."""
        v = _random_like(output, self.rng, spread=False).detach()
        found, again = (self._gradients((output,), [v]) for _ in range(2))
        arrays = [
            [np.zeros_like(x._array) if g is None else g._array for g, x in zip(each, self.checked)]
            for each in (found, again)
        ]
        self._same_twice(*arrays)
        for position, (tensor, g) in enumerate(zip(self.checked, arrays[0])):
            u = _random_like(tensor, self.rng, spread=False)._array
            n = as_real(v._array) @ self._difference_along(tensor._array, u, place)
            a = as_real(g) @ as_real(u)
            size = np.abs(as_real(u)).sum() * np.abs(as_real(v._array)).sum()
            if not np.allclose(a, n, self.rtol, self.atol * max(size, 1), equal_nan=True):
                jacobians = self._numerical(place)[position], self._analytical(output)[position]
                raise GradcheckError(
                    report.text(n, a, index, position)
                    + report.of_elements(*jacobians, self.rtol, self.atol)
                )

    def _same_twice(self, one: list[np.ndarray], other: list[np.ndarray]) -> None:
        for a, b in zip(one, other):
            if a.size and np.max(np.abs(a - b)) > self.nondet_tol:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and "
                    "grad_output multiple times gives different values, although analytical "
                    "gradient matches numerical gradient.The tolerance for nondeterminism was "
                    f"{self.nondet_tol}."
                )

    def forward_mode(self, *, undefined: bool) -> None:
        """Compare the derivatives that tangents give with finite differences."""
        from clew.autograd import gradcheck_forward as forward

        everything = self._all_outputs()
        chosen = [i for i, o in enumerate(everything) if o._array.dtype.kind in "fc"]
        if self.fast:
            directions = [_random_like(t, self.rng, spread=False)._array for t in self.checked]
            found = forward.tangents_along(self.func, self.arguments, chosen, directions)
        else:
            directions = []
            found = forward.forward_jacobians(self.func, self.arguments, chosen)
        for index, (nr, jacobians) in enumerate(zip(chosen, found)):
            for position, (n, a) in enumerate(zip(self._numerical(nr), jacobians)):
                if self.fast:
                    n = as_real(directions[position]) @ n if n.size else a
                    same = np.allclose(a, n, self.rtol, self.atol, equal_nan=True)
                    wrong = None if same else report.text(n, a, index, position, forward=True)
                else:
                    wrong = report.mismatch(
                        n, a, index, position, complex_output=is_complex(everything[nr]),
                        complex_input=is_complex(self.checked[position]), rtol=self.rtol,
                        atol=self.atol, forward=True,
                    )  # fmt: skip
                if wrong is not None:
                    raise GradcheckError(wrong)
        if undefined:
            along = [_random_like(t, self.rng, spread=False)._array for t in self.checked]
            wrong = forward.missing_tangents(self.func, self.arguments, along)
            if wrong is not None:
                raise GradcheckError(wrong)

    def batched_tangents(self) -> None:
        """Tangents of a batch of directions equal those of its entries."""
        from clew._vmap_internals import _vmap
        from clew.autograd.gradcheck_forward import batch_function

        for position, argument in enumerate(self.arguments):
            if not isinstance(argument, Tensor) or not argument.requires_grad:
                continue
            jvp = batch_function(self.func, self.arguments, position)
            entries = [_random_like(argument, self.rng, spread=False).detach() for _ in range(2)]
            expected = [TENSORS.stack(parts) for parts in zip(*[jvp(t) for t in entries])]
            for whole, parts in zip(_vmap(jvp)(TENSORS.stack(entries)), expected):
                if not np.allclose(whole._array, parts._array):
                    raise GradcheckError(
                        f"For input {position}, vmap of the function's tangents gives\n{whole}\n"
                        f"and a loop gives\n{parts}"
                    )

    def _dtypes(self, output: Tensor) -> None:
        for g, tensor in zip(self._gradients((output,), [None]), self.checked):
            if g is not None and g._array.dtype != tensor._array.dtype:
                raise GradcheckError("Gradient has dtype mismatch")

    def _gradients(self, outputs: Any, weights: Any) -> Any:
        given = [
            _random_like(o, self.rng, spread=False).detach() if w is None else w
            for o, w in zip(outputs, weights)
        ]
        return grad(outputs, self.checked, given, retain_graph=True, allow_unused=True)

    def not_multiplied(self, outputs: tuple[Tensor, ...]) -> None:
        """A gradient of zeros must give zeros."""
        zeros = [Tensor._from_array(np.zeros_like(o._array)) for o in outputs]
        for g, tensor in zip(self._gradients(outputs, zeros), self.checked):
            if g is None:
                continue
            if np.any(g._array != 0):
                raise GradcheckError("backward not multiplied by grad_output")
            if g._array.shape != tensor._array.shape:
                raise GradcheckError("grad is incorrect size")

    def undefined_grads(self, outputs: tuple[Tensor, ...]) -> None:
        """Backward must take outputs without a gradient, and give none or zeros for them."""
        everything = set(range(len(outputs)))
        patterns = [everything]
        if len(outputs) > 1:
            patterns += [{i} for i in everything]
        for missing in patterns:
            weighted = [
                _NoGradient.apply(o) if i in missing else o for i, o in enumerate(self.outputs())
            ]
            zeros = [Tensor._from_array(np.zeros_like(o._array)) for o in weighted]
            try:
                found = grad(weighted, self.checked, zeros, allow_unused=True)
            except RuntimeError as error:
                report.warn_of_undefined_check()
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. Please look at "
                    '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
                ) from error
            if any(g is not None and np.any(g._array != 0) for g in found):
                report.warn_of_undefined_check()
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    'undefined or zero. Please look at "Notes about undefined output gradients" '
                    'in "tools/autograd/derivatives.yaml"'
                )

    def batched(self, outputs: tuple[Tensor, ...]) -> None:
        """Gradients of a batch of output gradients equal those of its entries."""
        for output in outputs:
            weights = [_random_like(output, self.rng, spread=False).detach() for _ in range(2)]
            stacked = Tensor._from_array(np.stack([w._array for w in weights]))
            together = grad(
                output, self.checked, stacked, retain_graph=True, allow_unused=True,
                is_grads_batched=True,
            )  # fmt: skip
            for i, weight in enumerate(weights):
                for whole, one in zip(together, self._gradients((output,), [weight])):
                    if whole is not None and not np.allclose(whole._array[i], one._array):
                        raise GradcheckError("batched gradients differ from single ones")


class _NoGradient(Function):
    """Passes a tensor on; no gradient comes back."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Any:
        return TENSORS.clone(tensor)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return None
