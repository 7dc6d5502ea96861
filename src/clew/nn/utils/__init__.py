"""Helpers for networks: PyTorch's ``torch.nn.utils``."""

from clew.nn.utils import parametrizations as parametrizations
from clew.nn.utils import parametrize as parametrize
from clew.nn.utils import rnn as rnn
from clew.nn.utils import stateless as stateless
from clew.nn.utils.clip_grad import (
    _clip_grads_with_norm_ as clip_grads_with_norm_,
)
from clew.nn.utils.clip_grad import (
    _get_total_norm as get_total_norm,
)
from clew.nn.utils.clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_
from clew.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters
from clew.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from clew.nn.utils.init import skip_init
from clew.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from clew.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]
