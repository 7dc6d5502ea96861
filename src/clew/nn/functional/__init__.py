"""Functions of neural networks: PyTorch's ``torch.nn.functional``.

Layer 5: imports tensors, published functions and ops; knows no modules.
"""

from clew.functions.activation import (
    celu,
    celu_,
    prelu,
    relu_,
    rrelu,
    rrelu_,
    selu,
    selu_,
    threshold_,
)
from clew.functions.bilinear import (
    bilinear,
)
from clew.functions.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from clew.functions.distance import (
    cosine_similarity,
    pairwise_distance,
    pdist,
)
from clew.functions.linalg import (
    linear,
)
from clew.functions.pad import (
    pad,
)
from clew.functions.pool import (
    adaptive_avg_pool1d,
    avg_pool1d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from clew.nn.functional.activation import (
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
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from clew.nn.functional.attention import (
    scaled_dot_product_attention,
)
from clew.nn.functional.ctc import (
    ctc_loss,
)
from clew.nn.functional.distance import (
    normalize,
)
from clew.nn.functional.dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from clew.nn.functional.embedding import (
    embedding,
    one_hot,
)
from clew.nn.functional.embedding_bag import (
    embedding_bag,
)
from clew.nn.functional.fractional_pool import (
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
)
from clew.nn.functional.grid import (
    affine_grid,
    grid_sample,
)
from clew.nn.functional.linear_cross_entropy import (
    linear_cross_entropy,
)
from clew.nn.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from clew.nn.functional.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from clew.nn.functional.multihead import (
    multi_head_attention_forward,
)
from clew.nn.functional.norm import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from clew.nn.functional.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool2d,
    avg_pool3d,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d_with_indices,
    max_pool2d_with_indices,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from clew.nn.functional.published import (
    channel_shuffle,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from clew.nn.functional.resize import (
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from clew.nn.functional.softmax import (
    gumbel_softmax,
    log_softmax,
    softmax,
    softmin,
)
from clew.nn.functional.unfold import (
    fold,
    unfold,
)
