"""PyTorch's ``torch.distributions``: probability distributions on tensors.  Layer 5.

Samples come from the same random streams as PyTorch's.  Imports the core, and nothing of the
other clients.
"""

from clew.distributions import constraints as constraints
from clew.distributions import transforms as transforms
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.categorical import Categorical
from clew.distributions.cauchy import Cauchy
from clew.distributions.constraint_registry import biject_to, transform_to
from clew.distributions.distribution import Distribution
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.exponential import Exponential
from clew.distributions.geometric import Geometric
from clew.distributions.gumbel import Gumbel
from clew.distributions.half_cauchy import HalfCauchy
from clew.distributions.half_normal import HalfNormal
from clew.distributions.independent import Independent
from clew.distributions.kumaraswamy import Kumaraswamy
from clew.distributions.laplace import Laplace
from clew.distributions.log_normal import LogNormal
from clew.distributions.logistic_normal import LogisticNormal
from clew.distributions.normal import Normal
from clew.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import *  # noqa: F403
from clew.distributions.uniform import Uniform
from clew.distributions.weibull import Weibull
