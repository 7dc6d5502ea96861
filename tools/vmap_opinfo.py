"""Compare `vmap` of each operation with a loop, on the samples that PyTorch's wheel carries.

For each entry of PyTorch's ``op_db`` that clew has: a few samples, each made into a batch by
scaling, mapped over all tensors, over the first alone and over all but the first.  What clew's
`vmap` gives must be what a loop gives, values and gradients, and what PyTorch's gives.

    python tools/vmap_opinfo.py [--filter RE] [--samples N] [--verbose]

Needs torch.  Prints what disagrees and how many entries agree; exits with 1 if any does not.
"""

from __future__ import annotations

import argparse
import collections
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import clew
import clew.nn

SIZE = 3


class Timeout(Exception):
    """A sample took too long."""


def look_up(module: Any, path: str) -> Any:
    """What a dotted path names, or None."""
    found = module
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            return None
    return found


def callable_of(module: Any, name: str) -> Callable[..., Any] | None:
    """The function or method of an entry."""
    found = look_up(module, name)
    return found if callable(found) else look_up(module.Tensor, name)


def to_clew(x: Any, torch: Any) -> Any:
    """Tensors, types and the like of torch, in any containers, as clew's."""
    if isinstance(x, torch.Tensor):
        array = np.array(x.detach().numpy())
        return clew.tensor(array) if array.ndim else clew.tensor(array.item(), dtype=_kind(x))
    if isinstance(x, torch.dtype):
        return getattr(clew, str(x).removeprefix("torch."))
    if isinstance(x, torch.memory_format):
        return getattr(clew, str(x).removeprefix("torch."))
    if isinstance(x, torch.device):
        return clew.device(str(x))
    if isinstance(x, (list, tuple)):
        made = [to_clew(v, torch) for v in x]
        return type(x)(made) if type(x) in (list, tuple) else tuple(made)
    if isinstance(x, dict):
        return {k: to_clew(v, torch) for k, v in x.items()}
    return x


def _kind(x: Any) -> Any:
    return getattr(clew, str(x.dtype).removeprefix("torch."))


class Sample:
    """A call with its tensors taken out, so that others can be put in."""

    def __init__(self, function: Any, args: Any, kwargs: Any, module: Any) -> None:
        self.function, self.args, self.kwargs, self.module = function, args, kwargs, module
        self.tensors: list[Any] = []
        self._collect((args, kwargs))

    def _collect(self, x: Any) -> None:
        if isinstance(x, self.module.Tensor):
            self.tensors.append(x)
        elif isinstance(x, (list, tuple)):
            for v in x:
                self._collect(v)
        elif isinstance(x, dict):
            for v in x.values():
                self._collect(v)

    def _fill(self, x: Any, given: Iterator[Any]) -> Any:
        if isinstance(x, self.module.Tensor):
            return next(given)
        if isinstance(x, (list, tuple)):
            return type(x)([self._fill(v, given) for v in x])
        if isinstance(x, dict):
            return {k: self._fill(v, given) for k, v in x.items()}
        return x

    def __call__(self, *tensors: Any) -> tuple[Any, ...]:
        args, kwargs = self._fill((self.args, self.kwargs), iter(tensors))
        result = self.function(*args, **kwargs)
        parts = result if isinstance(result, (tuple, list)) else (result,)
        return tuple(p for p in parts if isinstance(p, self.module.Tensor))


def batch_of(x: Any, module: Any) -> Any:
    """Examples of a tensor: itself, and scaled a little where it is floating."""
    if not x.is_floating_point():
        return module.stack([x] * SIZE)
    return module.stack([x * (1 - 0.125 * k) for k in range(SIZE)])


def patterns(count: int) -> list[tuple[bool, ...]]:
    """Which tensors are batched."""
    found = [(True,) * count]
    if count > 1:
        found += [(True,) + (False,) * (count - 1), (False,) + (True,) * (count - 1)]
    return found


def arrays(parts: Any) -> list[np.ndarray]:
    """The values of tensors."""
    return [np.asarray(p.detach().numpy()) for p in parts]


def with_vmap(sample: Sample, tensors: list[Any], dims: tuple[Any, ...], vmap: Any) -> Any:
    """The mapped call."""
    return vmap(sample, in_dims=dims)(*tensors)


def in_a_loop(sample: Sample, tensors: list[Any], dims: tuple[Any, ...]) -> list[Any]:
    """The same, example by example."""
    rows = [
        sample(*(x if d is None else x.select(d, n) for x, d in zip(tensors, dims)))
        for n in range(SIZE)
    ]
    return [sample.module.stack(list(column)) for column in zip(*rows)]


def gradients(outs: Any, leaves: list[Any], module: Any) -> list[np.ndarray]:
    """The gradients of a sum of the outputs with unequal weights."""
    roots = [o for o in outs if o.requires_grad]
    if not roots or not leaves:
        return []
    weights = [
        module.cos(module.arange(o.numel(), dtype=module.float64)).reshape(o.shape).to(o.dtype)
        for o in roots
    ]
    found = module.autograd.grad(roots, leaves, weights, allow_unused=True)
    return [np.zeros(()) if g is None else np.asarray(g.numpy()) for g in found]


def differ(first: list[np.ndarray], second: list[np.ndarray]) -> str:
    """How two lists of arrays differ; empty if they agree."""
    if len(first) != len(second):
        return f"{len(first)} results instead of {len(second)}"
    for x, y in zip(first, second):
        if x.shape != y.shape:
            return f"shape {x.shape} instead of {y.shape}"
        if x.dtype != y.dtype:
            return f"type {x.dtype} instead of {y.dtype}"
        if not np.allclose(x, y, 1e-6, 1e-6, equal_nan=True):
            return f"values differ by {np.nanmax(np.abs(x - y)):.2g}"
    return ""


def run(sample: Sample, pattern: tuple[bool, ...], how: Any, module: Any) -> Any:
    """Values and gradients of one way to do it; in the first tensor only, if not in all."""
    try:
        return values_and_gradients(sample, pattern, how, module, False)
    except RuntimeError as error:
        if "not differentiable" not in str(error):
            raise
        return values_and_gradients(sample, pattern, how, module, True)


def values_and_gradients(
    sample: Sample, pattern: tuple[bool, ...], how: Any, module: Any, only_first: bool
) -> Any:
    """Values, and gradients in the floating tensors."""
    tensors: list[Any] = []
    leaves: list[Any] = []
    for x, batched in zip(sample.tensors, pattern):
        made = batch_of(x, module) if batched else x.detach()
        if made.is_floating_point() and not (only_first and leaves):
            made.requires_grad_()
            leaves.append(made)
        tensors.append(made)
    dims = tuple(0 if batched else None for batched in pattern)
    outs = how(sample, tensors, dims)
    return arrays(outs), gradients(outs, leaves, module)


def rows_of_jacobian(sample: Sample, at_once: bool) -> list[np.ndarray]:
    """The gradients for several weights of the outputs, by `vmap` over the weights or in a loop."""
    leaves = [
        x.detach().requires_grad_() if x.is_floating_point() else x for x in sample.tensors
    ]  # fmt: skip
    clew.manual_seed(0)
    roots = [o for o in sample(*leaves) if o.requires_grad]
    wanted = [x for x in leaves if x.is_floating_point()]
    if not roots or not wanted:
        return []
    weights = []
    for o in roots:
        ramp = clew.arange(SIZE * o.numel(), dtype=clew.float64).reshape(SIZE, *o.shape)
        weights.append(clew.cos(ramp).to(o.dtype))

    def row(given: Any, batched: bool) -> Any:
        return clew.autograd.grad(
            roots, wanted, given, True, allow_unused=True, is_grads_batched=batched
        )

    if at_once:
        found = row(weights, True)
    else:
        parts = [row([w[n] for w in weights], False) for n in range(SIZE)]
        found = [None if c[0] is None else clew.stack(list(c)) for c in zip(*parts)]
    return [np.zeros(()) if g is None else np.asarray(g.numpy()) for g in found]


def jacobian_mismatch(sample: Sample) -> str:
    """How rows of a Jacobian differ when they are computed at once."""
    try:
        want = rows_of_jacobian(sample, False)
    except Timeout:
        raise
    except Exception:
        return ""
    try:
        return differ(rows_of_jacobian(sample, True), want)
    except Timeout:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"


def mismatch(found: Any, want: Any) -> str:
    """How values and gradients differ from what they should be."""
    for what, got, wanted in zip(("values", "gradients"), found, want):
        if what == "gradients":  # PyTorch and clew may not have those of all inputs
            count = min(len(got), len(wanted))
            got, wanted = got[:count], wanted[:count]
        difference = differ(got, wanted)
        if difference:
            return f"{what}: {difference}"
    return ""


def compare(clews: Sample, theirs: Sample, torch: Any) -> str:
    """What disagrees for one sample; "=" if PyTorch's `vmap` took part, "" if it refused too."""
    from clew.func import vmap

    agreed = ""
    for pattern in patterns(len(clews.tensors)):
        refused = None
        try:
            want = run(theirs, pattern, lambda s, t, d: with_vmap(s, t, d, torch.vmap), torch)
        except Exception as error:
            want, refused = None, error
        try:
            found = run(clews, pattern, lambda s, t, d: with_vmap(s, t, d, vmap), clew)
        except Timeout:
            raise
        except Exception as error:
            if refused is not None:
                continue
            return f"{pattern}: {type(error).__name__}: {str(error)[:150]}"
        if refused is None and not mismatch(found, want):
            agreed = "="
            continue
        # Signs of eigenvectors and the like are free; what a loop gives is what counts.
        try:
            want = run(clews, pattern, in_a_loop, clew)
        except Exception:
            continue
        agreed = agreed or "~"
        if mismatch(found, want):
            return f"{pattern} {mismatch(found, want)}"
    return agreed


UNINITIALISED = re.compile(r"empty|^(bernoulli|rand|normal|uniform|multinomial|exponential)")


def entries(torch: Any, pattern: str) -> Iterator[Any]:
    """The entries of `op_db` whose name matches."""
    from torch.testing._internal.common_methods_invocations import op_db

    for entry in op_db:
        name = entry.name + ("." + entry.variant_test_name if entry.variant_test_name else "")
        if re.search(pattern, name) and not UNINITIALISED.search(name):
            yield name, entry


def _alarm(*_: Any) -> None:
    raise Timeout


def main() -> int:
    """Print what disagrees; 1 if anything does."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _alarm)
    counts: collections.Counter[str] = collections.Counter()
    for name, entry in entries(torch, options.filter):
        verdict = check_entry(entry, options.samples, torch)
        kind = "disagrees" if ":" in verdict else verdict
        counts[kind] += 1
        if kind == "disagrees" or options.verbose:
            print(f"{name:45} {verdict}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    return 1 if counts["disagrees"] else 0


def check_entry(entry: Any, count: int, torch: Any) -> str:
    """The verdict on one entry."""
    ours, theirs = callable_of(clew, entry.name), callable_of(torch, entry.name)
    if ours is None or theirs is None:
        return "not in clew"
    kind = torch.float64 if torch.float64 in entry.dtypes else torch.int64
    if kind not in entry.dtypes:
        return "other types"
    agreed = "refused by both"
    samples = list(entry.sample_inputs("cpu", kind))
    for s in samples[:: max(1, len(samples) // count)][:count]:
        signal.alarm(20)
        try:
            args, kwargs = (s.input, *s.args), dict(s.kwargs)
            try:
                clews = Sample(ours, to_clew(tuple(args), torch), to_clew(kwargs, torch), clew)
            except Exception:
                continue
            found = compare(clews, Sample(theirs, tuple(args), kwargs, torch), torch)
            rows = jacobian_mismatch(clews) if found in ("", "=", "~") else ""
            found = f"rows: {rows}" if rows else found
        except Timeout:
            found = "time: too long"
        finally:
            signal.alarm(0)
        if found not in ("", "=", "~"):
            return found.replace("\n", " ")
        if found:
            agreed = "agree" if found == "=" else "agree with the loop"
    return agreed


if __name__ == "__main__":
    sys.exit(main())
