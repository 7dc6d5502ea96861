"""Divergences of distributions: `kl_divergence`, and a table of who computes which."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from clew.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

Formula = Callable[[Any, Any], Any]

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}
_found: dict[tuple[type, type], Formula | None] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Decorate the function that computes ``KL(p || q)`` for distributions of these types.

    The most derived types decide; where two functions are equally near, `kl_divergence` warns.

    Raises:
        TypeError: a type is no distribution.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(given, type) and issubclass(given, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def declare(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _found.clear()  # another function may be nearer now
        return formula

    return declare


def kl_divergence(p: Any, q: Any) -> Any:
    """The Kullback-Leibler divergence ``KL(p || q)``, the mean of ``log p(x) - log q(x)`` over p.

    Raises:
        NotImplementedError: no function was registered for these types.
    """
    types = type(p), type(q)
    if types not in _found:
        _found[types] = _find(*types)
    formula = _found[types]
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return formula(p, q)


def _find(type_p: type, type_q: type) -> Formula | None:
    """The function for the types nearest to the given ones, those of p first."""
    matches = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return None

    def distance(cls: type, base: type) -> int:
        return cls.__mro__.index(base)

    by_p = min(matches, key=lambda m: (distance(type_p, m[0]), distance(type_q, m[1])))
    by_q = min(matches, key=lambda m: (distance(type_q, m[1]), distance(type_p, m[0])))
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({by_p[0].__name__}, {by_q[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[by_p]
