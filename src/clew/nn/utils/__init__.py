"""Helpers for networks: PyTorch's ``torch.nn.utils``."""

from clew.nn.utils import rnn as rnn
from clew.nn.utils.clip_grad import (
    _clip_grads_with_norm_ as clip_grads_with_norm_,
)
from clew.nn.utils.clip_grad import (
    _get_total_norm as get_total_norm,
)
from clew.nn.utils.clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_
from clew.nn.utils.convert_parameters import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "vector_to_parameters",
]
