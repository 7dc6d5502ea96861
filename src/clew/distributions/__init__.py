"""PyTorch's ``torch.distributions``: probability distributions on tensors.  Layer 5.

Samples come from the same random streams as PyTorch's.  Imports the core, and nothing of the
other clients.
"""

from clew.distributions import constraints as constraints
from clew.distributions import kl_cross as _kl_cross  # fills the table of divergences
from clew.distributions import kl_low_rank as _kl_low_rank
from clew.distributions import kl_same as _kl_same
from clew.distributions import transforms as transforms
from clew.distributions.bernoulli import Bernoulli
from clew.distributions.beta import Beta
from clew.distributions.binomial import Binomial
from clew.distributions.categorical import Categorical
from clew.distributions.cauchy import Cauchy
from clew.distributions.chi2 import Chi2
from clew.distributions.constraint_registry import biject_to, transform_to
from clew.distributions.continuous_bernoulli import ContinuousBernoulli
from clew.distributions.dirichlet import Dirichlet
from clew.distributions.distribution import Distribution
from clew.distributions.exp_family import ExponentialFamily
from clew.distributions.exponential import Exponential
from clew.distributions.fishersnedecor import FisherSnedecor
from clew.distributions.gamma import Gamma
from clew.distributions.generalized_pareto import GeneralizedPareto
from clew.distributions.geometric import Geometric
from clew.distributions.gumbel import Gumbel
from clew.distributions.half_cauchy import HalfCauchy
from clew.distributions.half_normal import HalfNormal
from clew.distributions.independent import Independent
from clew.distributions.inverse_gamma import InverseGamma
from clew.distributions.kl import kl_divergence, register_kl
from clew.distributions.kumaraswamy import Kumaraswamy
from clew.distributions.laplace import Laplace
from clew.distributions.lkj_cholesky import LKJCholesky
from clew.distributions.log_normal import LogNormal
from clew.distributions.logistic_normal import LogisticNormal
from clew.distributions.low_rank_multivariate_normal import LowRankMultivariateNormal
from clew.distributions.mixture_same_family import MixtureSameFamily
from clew.distributions.multinomial import Multinomial
from clew.distributions.multivariate_normal import MultivariateNormal
from clew.distributions.negative_binomial import NegativeBinomial
from clew.distributions.normal import Normal
from clew.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from clew.distributions.pareto import Pareto
from clew.distributions.poisson import Poisson
from clew.distributions.relaxed_bernoulli import RelaxedBernoulli
from clew.distributions.relaxed_categorical import RelaxedOneHotCategorical
from clew.distributions.studentT import StudentT
from clew.distributions.transformed_distribution import TransformedDistribution
from clew.distributions.transforms import *  # noqa: F403
from clew.distributions.uniform import Uniform
from clew.distributions.von_mises import VonMises
from clew.distributions.weibull import Weibull
from clew.distributions.wishart import Wishart
