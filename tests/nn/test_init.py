"""nn.init: PyTorch's values to the bit, and the first parameters of layers."""

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same

torch = pytest.importorskip("torch")

LAYERS = [
    "Linear(5, 7)",
    "Linear(300, 40, bias=False)",
    "Linear(3, 4, dtype=m.float64)",
    "Bilinear(4, 5, 6)",
    "Conv1d(4, 6, 3, groups=2)",
    "Conv2d(3, 16, 3)",
    "Conv3d(2, 4, (1, 2, 3), dtype=m.float64)",
    "ConvTranspose1d(4, 6, 3, groups=2)",
    "ConvTranspose2d(8, 4, 4, 2, 1, bias=False)",
    "ConvTranspose3d(2, 3, 2)",
    "Embedding(10, 5, padding_idx=-2)",
    "EmbeddingBag(33, 7)",
    "PReLU(3)",
    "LayerNorm((3, 4))",
    "GroupNorm(2, 4, bias=False)",
    "RMSNorm(4)",
    "BatchNorm2d(5)",
    "InstanceNorm1d(5, affine=True, track_running_stats=True)",
    "RNN(3, 4, 2, bidirectional=True)",
    "LSTM(3, 5, 2, proj_size=2, bias=False)",
    "GRUCell(3, 4)",
    "MultiheadAttention(8, 2, add_bias_kv=True)",
    "MultiheadAttention(8, 2, kdim=3, vdim=5)",
    "TransformerEncoderLayer(8, 2, 16)",
    "Transformer(8, 2, 1, 2, 16, batch_first=True)",
]
FILLS = [
    "uniform_(t, -2, 3)",
    "normal_(t, 1, 2)",
    "trunc_normal_(t)",
    "trunc_normal_(t, std=0.02)",
    "trunc_normal_(t, 0.0, 1.0, 1.0, 3.0)",
    "trunc_normal_(t, 0.0, 1.0, 1.5, 1.6)",
    "constant_(t, 3.5)",
    "ones_(t)",
    "zeros_(t)",
    "eye_(t)",
    "xavier_uniform_(t, 2.0)",
    "xavier_normal_(t)",
    "kaiming_uniform_(t)",
    "kaiming_normal_(t, mode='fan_out', nonlinearity='relu')",
    "sparse_(t, 0.3)",
]


def equal(ours, theirs):
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("layer", LAYERS)
def test_first_parameters_of_layers(layer):
    made = []
    for m in (clew, torch):
        m.manual_seed(7)
        made.append(eval("m.nn." + layer, {"m": m}))
        made.append(m.rand(1))
    ours, our_next, theirs, their_next = made
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for name, parameter in theirs.state_dict().items():
        equal(ours.state_dict()[name], parameter)
    equal(our_next, their_next)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("fill", FILLS)
def test_fills(fill, dtype):
    made = []
    for m in (clew, torch):
        m.manual_seed(3)
        t = m.zeros(30, 20, dtype=getattr(m, dtype), requires_grad=True)
        assert eval("init." + fill, {"init": m.nn.init, "t": t}) is t
        assert t.is_leaf and t.requires_grad
        made.append((t, m.rand(1)))
    for ours, theirs in zip(*made):
        equal(ours, theirs)


@pytest.mark.parametrize("fill", ["uniform_(t)", "normal_(t)", "kaiming_uniform_(t)"])
def test_a_generator_of_ones_own(fill):
    made = []
    for m in (clew, torch):
        generator = m.Generator().manual_seed(5)
        t = m.zeros(4, 5)
        eval(f"init.{fill[:-1]}, generator=g)", {"init": m.nn.init, "t": t, "g": generator})
        made.append(t)
    equal(*made)


@pytest.mark.parametrize("shape", [(4, 3, 3), (6, 2, 4, 3), (4, 5, 2, 3, 4)])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac(shape, groups):
    equal(*[m.nn.init.dirac_(m.ones(shape), groups) for m in (clew, torch)])


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (4, 2, 3)])
def test_orthogonal(shape):
    made = []
    for m in (clew, torch):
        m.manual_seed(1)
        made.append(m.nn.init.orthogonal_(m.empty(shape, dtype=m.float64), gain=2).flatten(1))
    assert torch.allclose(torch.tensor(made[0].tolist(), dtype=torch.float64), made[1])
    ours = made[0]
    gram = ours @ ours.t() if ours.shape[0] <= ours.shape[1] else ours.t() @ ours
    assert clew.isclose(gram, 4 * clew.eye(len(gram), dtype=clew.float64), atol=1e-12).all()


@pytest.mark.parametrize(
    "expression",
    [
        "eye_(m.ones(3))",
        "dirac_(m.ones(3))",
        "dirac_(m.ones(3, 3, 3), groups=2)",
        "sparse_(m.ones(3), 0.5)",
        "orthogonal_(m.ones(3))",
        "xavier_uniform_(m.ones(3))",
        "kaiming_uniform_(m.ones(3, 3), mode='other')",
        "kaiming_uniform_(m.ones(3, 3), nonlinearity='other')",
        "kaiming_uniform_(m.ones(0, 3))",
        "orthogonal_(m.ones(0, 3))",
        "calculate_gain('leaky_relu')",
        "calculate_gain('leaky_relu', 0.2)",
        "calculate_gain('leaky_relu', True)",
        "calculate_gain('leaky_relu', 'a')",
        "calculate_gain('tanh'), calculate_gain('relu'), calculate_gain('selu')",
        "calculate_gain('conv_transpose2d'), calculate_gain('sigmoid')",
        "calculate_gain('other')",
        "_calculate_fan_in_and_fan_out(m.ones(4, 3, 2, 2))",
    ],
)
def test_values_and_errors(expression):
    assert_same(lambda m: eval("init." + expression, {"init": m.nn.init, "m": m}))


def test_warnings():
    with pytest.warns(UserWarning, match="zero-element tensors is a no-op"):
        clew_nn.init.kaiming_normal_(clew.empty(0, 2))
    with pytest.warns(UserWarning, match="mean is more than 2 std"):
        clew_nn.init.trunc_normal_(clew.empty(2), mean=9.0)
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.xavier_uniform_`"):
        clew_nn.init.xavier_uniform(clew.empty(2, 2))
