"""Functions of neural networks: PyTorch's ``torch.nn.functional``.

Layer 5: imports tensors, published functions and ops; knows no modules.
"""

# ruff: noqa: F401

from clew.nn.functional.activation import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from clew.nn.functional.softmax import (
    log_softmax,
    softmax,
    softmin,
)
