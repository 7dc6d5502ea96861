"""A softmax over many classes that computes the rare ones only where they occur.

May import the core of clew, `clew.nn.functional` and other modules.

Source: Grave et al. 2017.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import clew
from clew.nn import functional as F
from clew.nn.modules.container import ModuleList, Sequential
from clew.nn.modules.linear import Linear
from clew.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of the targets, and their mean with the sign changed.

    The classes are sorted by falling frequency.  The head knows the first ones and one entry for
    each cluster of the others; a cluster has its own, smaller, layers.

    Args:
        in_features: of the input.
        n_classes: how many classes.
        cutoffs: where clusters begin.
        div_value: by how much each cluster's layers are smaller than those of the one before.
        head_bias: whether the head has a bias.
        device: the CPU.
        dtype: of the parameters.

    Raises:
        ValueError: the cutoffs are not increasing, or out of range.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
        head_bias: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increasing = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not increasing or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        options = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(pairwise(self.cutoffs)):
            inner = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, **options),
                    Linear(inner, high - low, bias=False, **options),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        """Log-probabilities of the targets and the loss.

        Args:
            input_: (N, in_features), or (in_features,).
            target_: (N,), or ().

        Raises:
            RuntimeError: shapes do not fit, or a target is no class.
        """
        _check_shapes(input_, target_)
        batched = target_.dim() > 0
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        output = input.new_zeros(target.shape[0])
        in_head = clew.empty_like(target)
        used = 0
        for i, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            inside = (target >= low) & (target < high)
            rows = inside.nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            if i == 0:
                in_head.index_copy_(0, rows, target[inside])
            else:
                logits = self.tail[i - 1](input.index_select(0, rows))
                in_head.index_fill_(0, rows, self.shortlist_size + i - 1)
                picked = (target[inside] - low).unsqueeze(1)
                log_prob = F.log_softmax(logits, dim=1).gather(1, picked)
                output.index_copy_(0, rows, log_prob.squeeze(1))
            used += rows.numel()
        if used != target.shape[0]:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output += head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        """The log-probabilities of all classes (N, n_classes)."""
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            of_cluster = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + of_cluster)
        return clew.cat(parts, dim=1)

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes (N, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most probable class of each row; the clusters are computed only where needed."""
        head = self.head(input)
        output = clew.argmax(head, dim=1)
        rare = output >= self.shortlist_size
        if not rare.any():
            return output
        if rare.all():
            return clew.argmax(self._get_full_log_prob(input, head), dim=1)
        output[rare] = clew.argmax(self._get_full_log_prob(input[rare], head[rare]), dim=1)
        return output


def _check_shapes(input: Any, target: Any) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found "
            f"inputs with size {input.size()}"
        )
