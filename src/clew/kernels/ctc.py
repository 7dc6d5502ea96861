"""Connectionist temporal classification (Graves et al., 2006). Imports NumPy only.

A target of S labels stands for every sequence of symbols that becomes it when repeated symbols are
merged and blanks left out. Between, before and behind its labels there are blanks: 2S + 1 places.
A path moves through them, from one step to the next staying, going on by one, or by two if that
leaves out a blank between different labels. The loss is the negative logarithm of the probability
of all paths together, summed by the forward and backward recursion over logarithms.

Shapes: log_probs (T, N, C), targets (N, S) padded, lengths (N,); results nll (N,) and the forward
logarithms alpha (N, T, 2S + 1).
"""

import numpy as np
from numpy.typing import NDArray


def ctc_loss(
    log_probs: NDArray, targets: NDArray, lengths: NDArray, target_lengths: NDArray, blank: int
) -> tuple[NDArray, NDArray]:
    """The losses, and the logarithms of what leads to each place at each step."""
    steps, batch, _ = log_probs.shape
    places = _places(targets, blank)
    emitted = _emitted(log_probs, places)
    leaps = _leaps(places)
    alpha = np.full((batch, steps, places.shape[1]), -np.inf, log_probs.dtype)
    if steps:
        alpha[:, 0, 0] = emitted[0, :, 0]
        if places.shape[1] > 1:
            alpha[:, 0, 1] = np.where(target_lengths > 0, emitted[0, :, 1], -np.inf)
    for t in range(1, steps):
        before = alpha[:, t - 1]
        alpha[:, t] = emitted[t] + _log_sum(
            before, _moved(before, 1), np.where(leaps, _moved(before, 2), -np.inf)
        )
    return -_ends(alpha, lengths, target_lengths), alpha


def ctc_loss_backward(
    grad: NDArray,
    log_probs: NDArray,
    targets: NDArray,
    lengths: NDArray,
    target_lengths: NDArray,
    nll: NDArray,
    alpha: NDArray,
    blank: int,
    zero_infinity: bool,
) -> NDArray:
    """Gradient of `log_probs`, as PyTorch defines it: that of the logits of a log-softmax.

    It is the probability of a symbol less the share of the paths that pass it at this step, and 0
    behind the end of a sample.
    """
    steps, batch, _ = log_probs.shape
    places = _places(targets, blank)
    emitted = _emitted(log_probs, places)
    leaps = _moved(_leaps(places), -2, False)
    out = np.exp(log_probs)
    beta = np.full(places.shape, -np.inf, log_probs.dtype)
    samples = np.arange(batch)
    for t in range(steps - 1, -1, -1):
        beta = emitted[t] + _log_sum(
            beta, _moved(beta, -1), np.where(leaps, _moved(beta, -2), -np.inf)
        )
        ending = lengths - 1 == t
        last = 2 * target_lengths[ending]
        beta[samples[ending], last] = emitted[t, ending, last]
        labelled = last > 0
        where = samples[ending][labelled], last[labelled] - 1
        beta[where] = emitted[(t, *where)]
        passing = np.exp(alpha[:, t] + beta - emitted[t] + nll[:, None])
        np.subtract.at(out[t], (samples[:, None], places), passing)
    out *= grad[:, None]
    out[np.arange(steps)[:, None] >= lengths] = 0
    if zero_infinity:
        out[:, np.isinf(nll)] = 0
    return out


def _places(targets: NDArray, blank: int) -> NDArray:
    """The labels with blanks around them, (N, 2S + 1)."""
    places = np.full((len(targets), 2 * targets.shape[1] + 1), blank, np.int64)
    places[:, 1::2] = targets
    return places


def _emitted(log_probs: NDArray, places: NDArray) -> NDArray:
    """The logarithm of the probability of each place's symbol at each step, (T, N, 2S + 1)."""
    index = np.broadcast_to(places, (len(log_probs), *places.shape))
    return np.take_along_axis(log_probs, index, axis=2)


def _leaps(places: NDArray) -> NDArray:
    """Whether a place may be reached from two places before."""
    leaps = np.zeros(places.shape, np.bool_)
    leaps[:, 2:] = places[:, 2:] != places[:, :-2]
    return leaps


def _moved(x: NDArray, by: int, fill: float = -np.inf) -> NDArray:
    """`x` with what stood `by` places before (behind, if negative) in each place."""
    out = np.full_like(x, fill)
    if by > 0:
        out[:, by:] = x[:, :-by]
    else:
        out[:, :by] = x[:, -by:]
    return out


def _log_sum(*terms: NDArray) -> NDArray:
    """The logarithm of the sum of exponentials."""
    stacked = np.stack(terms)
    highest = stacked.max(axis=0)
    highest[np.isneginf(highest)] = 0
    total = np.exp(stacked - highest).sum(axis=0)
    logs = np.full_like(total, -np.inf)
    return np.log(total, out=logs, where=total > 0) + highest


def _ends(alpha: NDArray, lengths: NDArray, target_lengths: NDArray) -> NDArray:
    """The logarithm of the probability of ending at the last label or the blank behind it."""
    out = np.zeros(len(alpha), alpha.dtype)
    samples = np.flatnonzero(lengths > 0)
    step, last = lengths[samples] - 1, 2 * target_lengths[samples]
    blank = alpha[samples, step, last]
    label = np.where(last > 0, alpha[samples, step, last - 1], -np.inf)
    out[samples] = np.logaddexp(blank, label)
    # Without a step, only the target without a label is certain.
    out[np.logical_and(lengths == 0, target_lengths > 0)] = -np.inf
    return out
