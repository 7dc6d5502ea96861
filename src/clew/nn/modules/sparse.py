"""Tables of vectors, looked up by index.

May import the core of clew, `clew.nn.functional`, `clew.nn.init`, `clew.nn.parameter`, `module`.
"""

from __future__ import annotations

from typing import Any, Self

import clew
from clew.autograd.modes import no_grad
from clew.nn import functional as F
from clew.nn import init
from clew.nn.modules.module import Module
from clew.nn.parameter import Parameter
from clew.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """What both embeddings have: a weight, and perhaps a row that stays zero."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _make_table(self, given: Any, requires_grad: bool, device: Any, dtype: Any) -> None:
        """Draw the weight, or take the one that is given."""
        shape = (self.num_embeddings, self.embedding_dim)
        if given is None:
            drawn = clew.empty(shape, device=device, dtype=dtype)
            self.weight = Parameter(drawn, requires_grad=requires_grad)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(given, requires_grad=requires_grad)

    def _row(self, padding_idx: int | None, word: str) -> int | None:
        """`padding_idx` counted from the front."""
        if padding_idx is None:
            return None
        if not -self.num_embeddings <= padding_idx < max(self.num_embeddings, 1):
            raise AssertionError(f"{word} must be within num_embeddings")
        return padding_idx + self.num_embeddings if padding_idx < 0 else padding_idx

    def reset_parameters(self) -> None:
        """Draw the weight from a standard normal distribution; the padding's row is zero."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """The rows of a weight that the input names.

    Args:
        num_embeddings: how many rows.
        embedding_dim: the size of each.
        padding_idx: a row that begins as zeros and gets no gradient.
        max_norm: rows longer than this are shortened, in place, when they are looked up.
        norm_type: the order of that norm.
        scale_grad_by_freq: divide a row's gradient by the times it occurs in the batch.
        sparse: ask for sparse gradients.
        device: the CPU.
        dtype: of the weight.

    Shapes: weight (num_embeddings, embedding_dim), input (*) of ints, output (*, embedding_dim).
    """

    __constants__ = (
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type",
        "scale_grad_by_freq", "sparse",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = self._row(padding_idx, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_table(_weight, not _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:  # fmt: skip
        """An embedding on a given matrix, by default one that is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows, columns, _weight=embeddings, _freeze=freeze, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """The sum, mean or maximum of the rows that each bag of indices names.

    Args:
        num_embeddings: how many rows.
        embedding_dim: the size of each.
        max_norm: rows longer than this are shortened, in place, when they are looked up.
        norm_type: the order of that norm.
        scale_grad_by_freq: divide a row's gradient by the times it occurs in the batch.
        mode: "sum", "mean" or "max".
        sparse: ask for sparse gradients.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: a row that does not count and gets no gradient.
        device: the CPU.
        dtype: of the weight.

    Shapes: input (B, N), or (N,) with offsets (B,); output (B, embedding_dim).
    """

    __constants__ = (
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode",
        "sparse", "include_last_offset", "padding_idx",
    )  # fmt: skip

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Tensor | None = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = self._row(padding_idx, "padding_idx")
        self._make_table(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings!r}, {self.embedding_dim!r}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm!r}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type!r}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq!r}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx!r}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, include_last_offset: bool = False, padding_idx: int | None = None,
    ) -> Self:  # fmt: skip
        """An embedding on a given matrix, by default one that is not trained."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            rows, columns, _weight=embeddings, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
            include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
