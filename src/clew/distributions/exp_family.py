"""Exponential families: densities ``exp(x . theta - F(theta) + k(x))``."""

from __future__ import annotations

from typing import Any

from clew.autograd import grad
from clew.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution given by natural parameters and a log normaliser.

    Entropy and divergences follow from the normaliser's gradient, which is the mean of the
    sufficient statistics (Nielsen and Nock, "Entropies and cross-entropies of exponential
    families", 2010).
    """

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        """The natural parameters theta."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        """The log normaliser F."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        """The mean of k."""
        raise NotImplementedError

    def entropy(self) -> Any:
        result: Any = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        normalizer = self._log_normalizer(*params)
        gradients = grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for p, g in zip(params, gradients):
            result = result - (p * g).reshape((*self._batch_shape, -1)).sum(-1)
        return result
