"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices.

May import the core of clew, `clew.nn.functional`, `clew.nn.modules` and `parametrize`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

import clew
from clew.autograd.modes import no_grad
from clew.nn import functional as F
from clew.nn.modules.module import Module
from clew.nn.utils import parametrize
from clew.nn.utils.spectral_norm import output_dim
from clew.nn.utils.weight_norm import norm_except_dim, normalised
from clew.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _require(module: Any, name: str) -> Any:
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


# -- weight norm


class _WeightNorm(Module):
    """Length and direction to a weight, and back."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return normalised(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize a weight by its lengths along `dim` and its directions.

    Args:
        module: the module, which is changed in place and returned.
        name: of the weight.
        dim: each slice along it has a length; None: the weight has one length.

    Source: Salimans and Kingma 2016.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict: Any, prefix: str, *rest: Any) -> None:
        """Take the state of a module with the hook of `clew.nn.utils.weight_norm`."""
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


# -- spectral norm


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, found by power iteration."""

    _u: Any
    _v: Any

    def __init__(
        self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            rows, columns = matrix.shape
            u = matrix.new_empty(rows).normal_(0, 1)
            v = matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            # Enough steps for a first value that is worth something.
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            others = (d for d in range(weight.dim()) if d != self.dim)
            weight = weight.permute(self.dim, *others)
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, matrix: Any, steps: int) -> None:
        """Improve the vectors, in place, so that replicas of the module share them."""
        for _ in range(steps):
            self._u.copy_(F.normalize(clew.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(clew.mv(matrix.adjoint(), self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, which the next forward will not change under the graph's hands.
        u, v = self._u.clone(), self._v.clone()
        return weight / clew.vdot(u, clew.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    """Parametrize a weight so that its largest singular value is one.

    Args:
        module: the module, which is changed in place and returned.
        name: of the weight.
        n_power_iterations: steps for each computation in training mode.
        eps: the smallest norm.
        dim: of the weight's outputs; by default 0, or 1 for transposed convolutions.

    Source: Miyato et al. 2018.
    """
    weight = _require(module, name)
    dim = output_dim(module) if dim is None else dim
    made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    parametrize.register_parametrization(module, name, made)
    return module


# -- orthogonal


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(q: Any) -> bool:
    rows, columns = q.shape[-2:]
    identity = clew.eye(columns, dtype=q.dtype)
    return bool(clew.allclose(q.mT @ q, identity, atol=10.0 * rows * clew.finfo(q.dtype).eps))


def _make_orthogonal(a: Any) -> Any:
    """The orthogonal factor of a matrix, with the signs that make the other one's diagonal
    positive."""
    x, tau = clew.geqrf(a)
    q = clew.linalg.householder_product(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix with orthogonal columns (or rows, if they are fewer).

    Sources: Lezcano-Casado and Martínez-Rubio 2019 (matrix exponential), Helfrich et al. 2018
    (Cayley), Lezcano-Casado 2019 (the base point).
    """

    base: Any

    def __init__(
        self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True
    ) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x: Any) -> Any:
        rows, columns = x.shape[-2:]
        if rows < columns:
            return self._tall(x.mT).mT
        return self._tall(x)

    def _tall(self, x: Any) -> Any:
        """The orthogonal matrix, for at least as many rows as columns."""
        rows, columns = x.shape[-2:]
        if self.orthogonal_map is _OrthMaps.householder:
            a = x.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
            q = clew.linalg.householder_product(a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            q = self._from_skew(self._skew(x.tril(), rows, columns))[..., :columns]
        return self.base @ q if hasattr(self, "base") else q

    def _skew(self, x: Any, rows: int, columns: int) -> Any:
        """The skew-symmetric matrix with that lower triangle."""
        if rows != columns:
            missing = x.new_zeros(rows, rows - columns).expand(*x.shape[:-2], -1, -1)
            x = clew.cat([x, missing], dim=-1)
        return x - x.adjoint()

    def _from_skew(self, a: Any) -> Any:
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            return clew.matrix_exp(a)
        identity = clew.eye(a.shape[-1], dtype=a.dtype)
        return clew.linalg.solve(identity - 0.5 * a, identity + 0.5 * a)

    @no_grad()
    def right_inverse(self, q: Any) -> Any:
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of "
                f"shape {q.shape}."
            )
        given = q
        wide = q.shape[-2] < q.shape[-1]
        q = q.mT if wide else q
        if not hasattr(self, "base"):
            return self._by_householder(q, wide)
        rows, columns = q.shape[-2:]
        if rows != columns:
            drawn = clew.randn((*q.shape[:-2], rows, rows - columns), dtype=q.dtype)
            self.base = _make_orthogonal(clew.cat([q, drawn], dim=-1))
        else:
            self.base = q.clone() if _is_orthogonal(q) else _make_orthogonal(q)
        # The lower triangle of minus the identity: maps to the identity in all three ways.
        origin = clew.zeros_like(given)
        origin.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return origin

    def _by_householder(self, q: Any, wide: bool) -> Any:
        if self.orthogonal_map is not _OrthMaps.householder:
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        a, tau = clew.geqrf(q)
        signs = a.diagonal(dim1=-2, dim2=-1)
        signs.sign_()
        signs[tau == 0.0] *= -1
        return a.mT if wide else a


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> Any:  # fmt: skip
    """Parametrize a weight so that it is orthogonal.

    Args:
        module: the module, which is changed in place and returned.
        name: of the weight, a matrix or a batch of them.
        orthogonal_map: "matrix_exp", "cayley" or "householder".
        use_trivialization: move the origin of the map to a weight that is assigned.

    Raises:
        ValueError: the weight is no matrix, or the map another.
    """
    weight = _require(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1] or weight.is_complex()
        orthogonal_map = "matrix_exp" if square else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, made, unsafe=True)
    return module
