"""``clew.special``: special functions, PyTorch's ``torch.special``."""

from __future__ import annotations

from clew.functions.special import ndtr as ndtr
from clew.functions.special import xlog1py as xlog1py
from clew.functions.special import zeta as zeta
from clew.publish import FUNCTIONS, published_in

_SAME = (
    "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "i0", "log1p", "log_softmax",
    "logit", "logsumexp", "polygamma", "round", "sinc", "softmax", "xlogy",
)  # fmt: skip
"""Functions that stand in ``clew`` too, under the same names."""

globals().update(published_in("special"))
globals().update({name: FUNCTIONS[name] for name in _SAME})

gammaln = FUNCTIONS["lgamma"]
psi = FUNCTIONS["digamma"]
multigammaln = FUNCTIONS["mvlgamma"]
gammainc = FUNCTIONS["igamma"]
gammaincc = FUNCTIONS["igammac"]
