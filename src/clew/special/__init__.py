"""``clew.special``: special functions, PyTorch's ``torch.special``."""

from __future__ import annotations

from clew.functions.special import entr as entr
from clew.functions.special import erfcx as erfcx
from clew.functions.special import log_ndtr as log_ndtr
from clew.functions.special import ndtr as ndtr
from clew.functions.special import xlog1py as xlog1py
from clew.publish import FUNCTIONS

_SAME = (
    "digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "log1p", "log_softmax", "logit",
    "logsumexp", "polygamma", "round", "sinc", "softmax", "xlogy",
)  # fmt: skip
"""Functions that stand in ``clew`` too, under the same names."""

globals().update({name: FUNCTIONS[name] for name in _SAME})

gammaln = FUNCTIONS["lgamma"]
psi = FUNCTIONS["digamma"]
multigammaln = FUNCTIONS["mvlgamma"]
gammainc = FUNCTIONS["igamma"]
gammaincc = FUNCTIONS["igammac"]
