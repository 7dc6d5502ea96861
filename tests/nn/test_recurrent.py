"""Recurrent networks, cells, and sequences padded and packed.  Oracle: PyTorch."""

import pytest

from clew import nn as clew_nn
from clew.nn.utils.rnn import PackedSequence
from twins import assert_same

OPTIONS = [
    "3, 4",
    "3, 4, 2",
    "3, 4, 2, bias=False, batch_first=True",
    "3, 4, 2, bidirectional=True",
]


def flat(state):
    return list(state) if isinstance(state, tuple) else [state]


@pytest.mark.parametrize("options", [*OPTIONS, "3, 4, 2, proj_size=2, bidirectional=True"])
@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("given_state", [False, True])
def test_networks(kind, options, given_state):
    def run(m):
        m.manual_seed(0)
        net = eval(f"m.nn.{kind}({options})", {"m": m})
        x = m.randn(5, 2, 3, requires_grad=True)
        y, state = net(x)
        if given_state:
            y, state = net(x, state)
        total = (y * m.randn(y.shape)).sum() + sum((s * s).sum() for s in flat(state))
        total.backward()
        return (
            repr(net), y, flat(state), x.grad, [p.grad for p in net.parameters()],
            [k for k, _ in net.named_parameters()],
        )  # fmt: skip

    assert_same(run, rtol=1e-4)


def test_a_hidden_state_of_one_number():
    def run(m):
        m.manual_seed(0)
        x = m.randn(3, 40, 2, requires_grad=True)
        y, _ = m.nn.LSTM(2, 1)(x)
        y.sum().backward()
        return y, x.grad

    assert_same(run)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_a_single_sequence(kind):
    def run(m):
        m.manual_seed(0)
        net = getattr(m.nn, kind)(3, 4)
        y, state = net(m.randn(5, 3))
        y2, _ = net(m.randn(5, 3), state)
        return y, flat(state), y2

    assert_same(run)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(kind, bidirectional):
    def run(m):
        rnn = m.nn.utils.rnn
        m.manual_seed(0)
        net = getattr(m.nn, kind)(3, 4, 2, bidirectional=bidirectional)
        sequences = [m.randn(n, 3, requires_grad=True) for n in (2, 5, 1, 4)]
        packed = rnn.pack_sequence(sequences, enforce_sorted=False)
        y, state = net(packed)
        y2, _ = net(packed, state)
        padded, lengths = rnn.pad_packed_sequence(y, True, padding_value=-1.0, total_length=7)
        (padded.pow(2).sum() + y2.data.sum()).backward()
        return (
            list(packed), y.data, y2.data, flat(state), padded, lengths,
            [s.grad for s in sequences], [p.grad for p in net.parameters()],
            rnn.unpack_sequence(y),
        )  # fmt: skip

    assert_same(run, rtol=1e-4)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
def test_cells(kind, shape):
    def run(m):
        m.manual_seed(0)
        cell = getattr(m.nn, kind)(3, 4)
        x = m.randn(shape, requires_grad=True)
        state = cell(x)
        state = flat(cell(x, state))
        sum((s * s).sum() for s in state).backward()
        return repr(cell), state, x.grad, [p.grad for p in cell.parameters()]

    assert_same(run)


def test_the_second_derivative_of_a_network():
    def run(m):
        m.manual_seed(0)
        net = m.nn.LSTM(2, 3).double()
        x = m.randn(3, 2, 2, dtype=m.float64, requires_grad=True)
        (g,) = m.autograd.grad(net(x)[0].pow(2).sum(), x, create_graph=True)
        return m.autograd.grad(g.pow(2).sum(), [x, *net.parameters()])

    assert_same(run)


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_transforms(kind):
    import clew

    net = getattr(clew.nn, kind)(2, 3).double()
    x = clew.randn(4, 5, 1, 2, dtype=clew.float64)

    def loss(x):
        return net(x)[0].pow(2).sum()

    slopes = []
    for each in x.clone().requires_grad_():
        slopes += clew.autograd.grad(loss(each), each)
    assert clew.allclose(clew.func.vmap(clew.func.grad(loss))(x), clew.stack(slopes))
    direction = clew.randn(5, 1, 2, dtype=clew.float64)
    _, tangent = clew.func.jvp(loss, (x[0],), (direction,))
    assert clew.allclose(tangent, (slopes[0] * direction).sum())


def test_dropout_between_layers_draws_pytorchs_numbers():
    def run(m):
        m.manual_seed(0)
        net = m.nn.GRU(3, 4, 3, dropout=0.5)
        x = m.randn(4, 2, 3)
        return net(x)[0], net.eval()(x)[0]

    assert_same(run)


@pytest.mark.parametrize(
    "expression",
    [
        "nn.RNN(3, 4, nonlinearity='relu')(x)[0]",
        "nn.RNN(3, 4, 1, 'relu').nonlinearity",
        "nn.RNN(3, 4, nonlinearity='odd')",
        "nn.LSTM(3, 4)(m.randn(0, 2, 3))",
        "nn.GRU(3, 4, batch_first=True)(m.randn(2, 0, 3))",
        "nn.LSTM(3, 4)(m.randn(2, 0, 3))[0].shape",
        "nn.RNN(3, 4, proj_size=2)",
        "nn.GRU(3, 4, proj_size=2)",
        "nn.LSTM(3, 4, proj_size=4)",
        "nn.LSTM(3, 4, proj_size=-1)",
        "nn.RNNBase('ODD', 3, 4)",
        "nn.GRU(3.0, 4)",
        "nn.GRU(3, 4.0)",
        "nn.GRU(0, 4)",
        "nn.GRU(3, 0)",
        "nn.GRU(3, 4, 0)",
        "nn.GRU(3, 4, dropout=2)",
        "nn.GRU(3, 4, dropout=True)",
        "nn.GRU(3, 4, bias=1)",
        "nn.GRU(3, 4, batch_first=1)",
        "nn.GRU(5, 4)(x)",
        "nn.GRU(3, 4)(x[0, 0])",
        "nn.RNN(3, 4)(x[0, 0])",
        "nn.LSTM(3, 4)(x[0, 0])",
        "nn.GRU(3, 4)(x.double())",
        "nn.GRU(3, 4)(x, m.zeros(1, 2, 5))",
        "nn.GRU(3, 4)(x, m.zeros(2, 4))",
        "nn.GRU(3, 4)(x[0], m.zeros(1, 2, 4))",
        "nn.LSTM(3, 4)(x, (m.zeros(1, 2, 4), m.zeros(1, 2, 5)))",
        "nn.LSTM(3, 4)(x, (m.zeros(2, 4), m.zeros(1, 2, 4)))",
        "nn.LSTM(3, 4)(x[0], (m.zeros(1, 4), m.zeros(1, 2, 4)))",
        "nn.RNNCell(3, 4, nonlinearity='odd')(x[0])",
        "nn.RNNCell(3, 4, nonlinearity='relu', bias=False)(x[0])",
        "nn.RNNCell(3, 4)(x)",
        "nn.GRUCell(3, 4)(x[0], x)",
        "nn.LSTMCell(3, 4)(x[0], (m.zeros(2, 4), x))",
        "nn.GRUCell(3, 4)(x[0], m.zeros(2, 5))",
        "nn.GRUCell(3, 4)(x[0], m.zeros(3, 4))",
        "nn.GRUCell(5, 4)(x[0])",
        "len(nn.GRU(3, 4, 2).all_weights), nn.GRU(3, 4).flatten_parameters()",
        "r.pad_sequence([m.ones(2), m.ones(3)])",
        "r.pad_sequence([m.ones(2, 2), m.ones(3, 2)], True, 7.0, 'left')",
        "r.pad_sequence(3)",
        "r.pad_sequence([m.ones(2)], padding_side='up')",
        "r.pack_sequence([m.ones(2), m.ones(3)])",
        "r.pack_padded_sequence(x, [4, 0])",
        "r.pack_padded_sequence(x, [4])",
        "list(r.pack_padded_sequence(x, [4, 2]))",
        "list(r.pack_padded_sequence(x.transpose(0, 1), m.tensor([2, 4]), True, False))",
        "r.pad_packed_sequence(r.pack_padded_sequence(x, [4, 2]), total_length=3)",
        "r.pack_sequence([m.ones(2)]).double().data.dtype is m.float64",
        "r.invert_permutation(m.tensor([2, 0, 1])), r.invert_permutation(None)",
        "r.unpad_sequence(r.pad_sequence([m.ones(2), m.ones(3)]), m.tensor([2, 3]))",
    ],
)
def test_values_and_errors(expression):
    def run(m):
        m.manual_seed(0)
        names = {"m": m, "nn": m.nn, "r": m.nn.utils.rnn, "x": m.randn(4, 2, 3)}
        value = eval(expression, names)
        return list(value) if isinstance(value, tuple) else value

    assert_same(run)


def test_dropout_of_one_layer_warns():
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        clew_nn.GRU(3, 4, dropout=0.5)


def test_a_packed_sequence_in_another_type():
    import clew

    packed = PackedSequence(clew.ones(3), clew.tensor([2, 1]))
    assert packed.to(clew.float32) is packed
    assert packed.long().data.dtype is clew.int64
    assert packed.cpu() is packed and not packed.is_cuda and not packed.is_pinned()
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        packed.cuda()


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_large_enough_for_twins(kind, bidirectional):
    def run(m):
        rnn = m.nn.utils.rnn
        m.manual_seed(0)
        net = getattr(m.nn, kind)(8, 24, bidirectional=bidirectional)
        x = m.randn(12, 40, 8, requires_grad=True)
        packed = rnn.pack_padded_sequence(x, [12 - i // 4 for i in range(40)])
        y, state = net(packed)
        loss = y.data.pow(2).sum() + sum(part.sin().sum() for part in flat(state))
        loss.backward()
        return y.data, flat(state), x.grad, [p.grad for p in net.parameters()]

    assert_same(run, rtol=1e-4, atol=1e-5)
