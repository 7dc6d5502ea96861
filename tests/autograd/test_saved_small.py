"""Nodes that keep a packed form of large tensors: as PyTorch in all but the bytes."""

import gc

import numpy as np
import pytest

import clew
from clew import errors
from clew.autograd import saved_small
from clew.autograd.saved_small import SavedSmall
from engines import ENGINES, seed, torch
from teaching import error_of

SMALLEST = 16384
"""Set for these tests, so that their tensors need not be large."""

SHAPE = (150, 120)
COUNT = 150 * 120
assert COUNT >= SMALLEST


@pytest.fixture(autouse=True)
def smallest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved_small, "SMALLEST", SMALLEST)


def functional(t):
    return t.nn.functional


# name: (the call, bytes that its node keeps when the tensor is gone)
BITS = COUNT // 8
WINDOWS = 149 * 119
CALLS = {
    "relu": (lambda t, x: t.relu(x), BITS),
    "relu_": (lambda t, x: x.relu_(), BITS),
    "threshold": (lambda t, x: functional(t).threshold(x, 0.3, -2.0), BITS),
    "leaky_relu": (lambda t, x: functional(t).leaky_relu(x, 0.2), BITS),
    "leaky_relu_steep": (lambda t, x: functional(t).leaky_relu(x, 2.5), BITS),
    "leaky_relu_": (lambda t, x: functional(t).leaky_relu_(x, 0.2), BITS),
    "relu6": (lambda t, x: functional(t).relu6(x), BITS),
    "hardtanh_": (lambda t, x: functional(t).hardtanh_(x), BITS),
    "clamp": (lambda t, x: x.clamp(-0.5, 1), BITS),
    "clamp_to_nothing": (lambda t, x: x.clamp(1, -0.5), BITS),
    "clamp_": (lambda t, x: x.clamp_(-0.5, 1), BITS),
    "clamp_min": (lambda t, x: x.clamp_min(-0.5), BITS),
    "clamp_max": (lambda t, x: x.clamp(max=0.5), BITS),
    "hardshrink": (lambda t, x: functional(t).hardshrink(x), BITS),
    "softshrink": (lambda t, x: functional(t).softshrink(x), BITS),
    "dropout": (lambda t, x: functional(t).dropout(x, 0.3), BITS),
    "dropout_": (lambda t, x: functional(t).dropout(x, 0.3, inplace=True), BITS),
    "sort": (lambda t, x: x.sort(0)[0], COUNT),
    "topk": (lambda t, x: x.topk(140, 0)[0], 140 * 120),
    "kthvalue": (lambda t, x: x.expand(200, *SHAPE).kthvalue(40, 1)[0], 200 * 120),
    "median": (lambda t, x: x.expand(200, *SHAPE).median(1)[0], 200 * 120),
    "max": (lambda t, x: x.expand(200, *SHAPE).max(1)[0], 200 * 120),
    "min": (lambda t, x: x.expand(200, *SHAPE).min(2)[0], 200 * 150),
    "cummax": (lambda t, x: x.cummax(0)[0], COUNT + 4),
    "max_pool2d": (lambda t, x: functional(t).max_pool2d(x[None], 2, 1), WINDOWS + 4),
    "max_pool2d_with_indices": (
        lambda t, x: functional(t).max_pool2d(x[None], 2, 1, return_indices=True)[0],
        2 * WINDOWS + 4,
    ),
    "adaptive_max_pool2d": (
        lambda t, x: functional(t).adaptive_max_pool2d(x[None], 140),
        2 * 140 * 140 + 4,
    ),
    "avg_pool2d": (lambda t, x: functional(t).avg_pool2d(x[None], 2), 4),
    "adaptive_avg_pool2d": (lambda t, x: functional(t).adaptive_avg_pool2d(x[None], 7), 4),
}
LAYOUTS = {
    "contiguous": lambda t, x: x,
    "transposed": lambda t, x: x.t().contiguous().t(),
    "slice": lambda t, x: t.cat([x, x], 1)[:, ::2],
}


def node_of(y):
    return y.grad_fn.next_functions[0][0] if "CopySlices" in y.grad_fn.name() else y.grad_fn


def small_values(y):
    return [value for _, value in y.grad_fn.kept() if isinstance(value, SavedSmall)]


def data(t, dtype="float32"):
    """Numbers of both signs, each kink, and what is no number."""
    seed(t, 7)
    x = t.randn(*SHAPE) * 2
    for row, value in enumerate((0.0, -0.0, 0.3, 0.5, -0.5, 1.0, -1.0, 6.0, float("nan"),
                                 float("inf"), -float("inf"))):  # fmt: skip
        x[row, 5:9] = value
    return x.to(getattr(t, dtype)).requires_grad_()


def derivative(t, name, layout, *, dtype="float32", keep=False):
    call, nbytes = CALLS[name]
    x = data(t, dtype)
    if nbytes > COUNT // 2:  # by the order of the elements, which are all different here
        seed(t, 7)
        x = t.randperm(COUNT).view(SHAPE).float().requires_grad_()
    if name in ("relu6", "hardtanh_", "hardshrink", "softshrink"):
        # PyTorch's gradient at nan is 0 or 1, depending on the position.
        with t.no_grad():
            x.masked_fill_(x.isnan(), 0)
    seed(t, 3)
    y = call(t, LAYOUTS[layout](t, x * 1))
    seed(t, 4)
    weights = t.randn(*y.shape).to(y.dtype)
    loss = (y * weights).sum()
    kept = (y,) if keep else None
    del y
    loss.backward()
    del kept
    return x.grad


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_pytorchs(name, layout):
    found, known = (derivative(t, name, layout) for t in ENGINES.values())
    assert found.stride() == known.stride()
    found, known = found.numpy(), known.numpy()
    if name in ("kthvalue", "median", "max", "min", "adaptive_avg_pool2d"):  # sums in another order
        assert np.allclose(found, known, rtol=1e-4, atol=1e-4)
    else:
        assert np.array_equal(found, known, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize("name", ["relu", "relu6", "threshold", "clamp", "leaky_relu", "dropout"])
def test_gradients_of_other_types(name, dtype):
    found, known = (derivative(t, name, "contiguous", dtype=dtype) for t in ENGINES.values())
    assert np.array_equal(found.double().numpy(), known.double().numpy(), equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_it_is_the_same_whether_the_tensor_is_gone_or_not(name):
    gone, alive = (derivative(clew, name, "contiguous", keep=keep) for keep in (False, True))
    assert gone.numpy().tobytes() == alive.numpy().tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_bytes(name):
    call, nbytes = CALLS[name]
    y = call(clew, data(clew) * 1)
    node = clew.graph(y).nodes[0]
    assert node.saved_bytes == nbytes
    assert sum(s.nbytes for s in node.saved) == nbytes
    packed = [s for s in node.saved if (name, s.name) != ("max_pool2d", "result1")]
    assert all("one bit" in s.reason or "type" in s.reason or "shape" in s.reason
               for s in packed)  # fmt: skip


@pytest.mark.parametrize("name", ["relu", "relu6", "threshold", "clamp", "leaky_relu", "dropout"])
def test_second_derivatives(name):
    def second(t):
        x = data(t)
        with t.no_grad():
            x.nan_to_num_(0.0, 0.0, 0.0)
        seed(t, 3)
        loss = (CALLS[name][0](t, x * x) * x.exp()).sum()
        (grad,) = t.autograd.grad(loss, x, create_graph=True)
        names = [fn.name() for fn, _ in grad.grad_fn.next_functions if fn is not None]
        grad.tanh().sum().backward()
        return x.grad.numpy(), names

    (found, names), (known, theirs) = map(second, ENGINES.values())
    assert names == theirs
    assert np.allclose(found, known, rtol=1e-3, atol=1e-3)


def test_a_graph_that_is_kept_is_walked_again():
    x = data(clew)
    loss = (x * 1).relu().sum()
    loss.backward(retain_graph=True)
    first = x.grad.clone()
    loss.backward()
    assert np.array_equal(x.grad.numpy(), 2 * first.numpy(), equal_nan=True)
    with pytest.raises(errors.GraphFreedError):
        loss.backward()


# -- writes in place are the same errors


def write_to_the_result(t):
    y = (data(t) * 1).relu()
    loss = y.sum()
    y.add_(1)
    loss.backward()


def write_through_a_view_of_a_result_that_is_gone(t):
    y = (data(t) * 1).relu()
    loss, v = y.sum(), y.view(-1)
    del y
    v[3:].mul_(2)
    loss.backward()


def write_through_a_detached_result_that_is_gone(t):
    y = (data(t) * 1).relu()
    loss, v = y.sum(), y.detach()
    del y
    v.zero_()
    loss.backward()


def write_to_an_input(t):
    x = data(t) * 1
    loss = functional(t).relu6(x).sum()
    x.add_(1)
    loss.backward()


def write_to_an_input_that_is_gone(t):
    x = data(t) * 1
    v = x.detach()
    loss = functional(t).relu6(x).sum()
    del x
    v.add_(1)
    loss.backward()


def detached_in_place(t):
    x = data(t) * 1
    loss = functional(t).relu6(x).sum()
    x.detach_()
    loss.backward()


def write_to_the_input_of_a_frozen_weight(t):
    model, x = frozen(t)
    h = model[0](x)
    out = model[1](h)
    h.add_(1)
    out.sum().backward()


def convolutions(t):
    seed(t, 0)
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 2, 3)
    )
    seed(t, 1)
    return model, t.randn(8, 3, 34, 34)


def write_to_what_pooling_keeps_the_version_of(t):
    model, x = convolutions(t)
    h = model[1](model[0](x))
    out = model[3](h)
    h.add_(1)
    out.sum().backward()


@pytest.mark.parametrize("program", [
    write_to_the_result, write_through_a_view_of_a_result_that_is_gone,
    write_through_a_detached_result_that_is_gone, write_to_an_input,
    write_to_an_input_that_is_gone, detached_in_place,
    write_to_the_input_of_a_frozen_weight, write_to_what_pooling_keeps_the_version_of,
])  # fmt: skip
def test_errors_of_writes_are_pytorchs(program):
    found, known = error_of(program, clew), error_of(program, torch)
    assert str(found) == str(known)
    assert isinstance(found, type(known))


# -- what nodes show


def test_it_shows_the_tensor_as_long_as_that_is_alive():
    x = data(clew) * 1
    y = x.relu()
    assert y.grad_fn._saved_result.data_ptr() == y.data_ptr()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    z = functional(clew).relu6(x)
    assert z.grad_fn._saved_self is x


def test_it_says_that_a_tensor_is_gone():
    node = (data(clew) * 1).relu().grad_fn
    gc.collect()
    with pytest.raises(errors.PackedValueError, match="is gone: of it, only what backward needs"):
        node._saved_result  # noqa: B018
    with pytest.raises(errors.PackedValueError):
        node._raw_saved_result.register_hooks(lambda x: x, lambda x: x)
    mask = clew.dropout(data(clew), 0.3, True).grad_fn._saved_mask
    assert mask.dtype == clew.bool and 0.6 < mask.double().mean() < 0.8


def test_hooks_of_one_value():
    y = (data(clew) * 1).relu()
    seen = []
    y.grad_fn._raw_saved_result.register_hooks(lambda x: seen.append(x) or x, lambda x: x)
    y.sum().backward()
    assert seen[0].shape == y.shape and seen[0].data_ptr() == y.data_ptr()


def test_hooks_see_what_pytorchs_see():
    def packed(t):
        sizes = []

        def pack(tensor):
            sizes.append((tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")))
            return tensor

        x = data(t)
        with t.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
            y = functional(t).relu6((x * 1).relu()).max(1)[0].sum()
        y.backward()
        return sizes

    assert packed(clew) == packed(torch)


# -- who else keeps the tensor


def test_what_another_node_keeps_as_well_is_kept_whole():
    weight = clew.ones(120, 3, requires_grad=True)
    y = (data(clew) * 1).relu()
    (small,) = small_values(y)
    assert small.kept is not None
    z = y @ weight
    assert small.kept is None
    assert clew.graph(z).saved_bytes == COUNT * 4


def test_what_another_node_keeps_a_view_of():
    weight = clew.ones(60, 3, requires_grad=True)
    y = (data(clew) * 1).relu()
    (small,) = small_values(y)
    y.view(300, 60) @ weight
    assert small.kept is None


def test_what_was_written_to_since_is_not_taken_for_the_value():
    weight = clew.ones(120, 3, requires_grad=True)
    y = (data(clew) * 1).relu()
    node = y.grad_fn
    (small,) = small_values(y)
    y.mul_(2)
    z = y @ weight
    assert small.kept is not None
    with pytest.raises(errors.SavedTensorModifiedError):
        z.sum().backward()
    assert node.kept()


def test_small_tensors_and_leaves_are_kept_as_they_are():
    assert not small_values(clew.randn(SMALLEST - 1, requires_grad=True).mul(1).relu())
    assert small_values(clew.randn(SMALLEST, requires_grad=True).mul(1).relu())
    assert not small_values(functional(clew).relu6(data(clew)))


def test_pooling_lets_the_result_of_a_relu_go():
    model, x = convolutions(clew)
    kept = [s for node in clew.graph(model(x)).nodes for s in node.saved if s.role != "parameter"]
    large = 8 * 8 * 32 * 32 * 4
    assert [s.name for s in kept if s.storage_nbytes >= large] == ["input"]  # of batch norm
    rest = {s.storage: s.storage_nbytes for s in kept}
    pooled, indices, bits = large // 4, large // 16, large // 32
    assert abs(sum(rest.values()) - (large + pooled + indices + bits + x.nbytes)) < 1000


# -- frozen weights


def frozen(t):
    seed(t, 1)
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.ConvTranspose2d(8, 4, 3), nn.Flatten(),
        nn.Linear(4 * 62 * 62, 5),
    ).requires_grad_(False)  # fmt: skip
    seed(t, 2)
    x = t.randn(2, 3, 64, 64, requires_grad=True)
    return model, x


def test_inputs_of_frozen_weights_are_not_kept():
    model, x = frozen(clew)
    out = model(x)
    kept = [s for node in clew.graph(out).nodes for s in node.saved]
    assert not [s for s in kept if s.name == "input" and s.role == "input" and s.storage_nbytes > 4]
    model.requires_grad_(True)
    kept = [s for node in clew.graph(model(x)).nodes for s in node.saved]
    assert sum(s.name == "input" and s.storage_nbytes > 4 for s in kept) == 3


def test_gradients_through_frozen_weights():
    def gradients(t):
        model, x = frozen(t)
        (grad,) = t.autograd.grad(model(x).square().sum(), x, create_graph=True)
        (second,) = t.autograd.grad(grad.square().sum(), x)
        return grad.detach().numpy(), second.numpy()

    for found, known in zip(gradients(clew), gradients(torch)):
        assert np.allclose(found, known, rtol=1e-3, atol=1e-4)


# -- what is computed again


def attention(t, *, dropout=0.2):
    seed(t, 0)
    parts = [t.randn(2, 4, 64, 16, requires_grad=True) for _ in range(3)]
    seed(t, 1)
    attend = functional(t).scaled_dot_product_attention
    return parts, attend(*(part * 1 for part in parts), dropout_p=dropout, is_causal=True)


def test_weights_after_dropout_are_computed_again():
    _, out = attention(clew)
    bmm = out.grad_fn.next_functions[0][0]
    assert dict(bmm.kept())["self"].summary() == (
        "float32 [8, 64, 64] 4 B, computed again from what is kept"
    )
    shown = bmm._saved_self
    assert shown.shape == (8, 64, 64) and 0.1 < (shown == 0).float().mean() < 0.9


def test_gradients_of_attention_with_dropout():
    def gradients(t):
        parts, out = attention(t)
        grads = t.autograd.grad(out.square().sum(), parts, create_graph=True)
        second = t.autograd.grad(sum(g.square().sum() for g in grads), parts)
        return [x.detach().numpy() for x in (out, *grads, *second)]

    for found, known in zip(gradients(clew), gradients(torch)):
        assert np.allclose(found, known, rtol=1e-4, atol=1e-5)


def test_attention_that_is_walked_twice_and_partly():
    (_, _, value), out = attention(clew)
    loss = out.sum()
    (first,) = clew.autograd.grad(loss, value, retain_graph=True)
    (second,) = clew.autograd.grad(loss, value)
    assert np.array_equal(first.numpy(), second.numpy())


def feed_forward(activation="gelu", dropout=0.1):
    """A transformer block, its input, and its result."""
    clew.manual_seed(0)
    layer = clew.nn.TransformerEncoderLayer(32, 2, 128, dropout, activation, batch_first=True)
    x = clew.randn(4, 64, 32, requires_grad=True)
    return layer, x, layer(x * 1)


@pytest.mark.parametrize("dropout", [0, 0.1])
@pytest.mark.parametrize("activation", ["gelu", clew.nn.functional.silu, clew.tanh, "relu"])
def test_gradients_of_what_is_computed_again_are_equal_to_the_bit(activation, dropout):
    def gradients():
        layer, x, out = feed_forward(activation, dropout)
        return clew.autograd.grad(out.square().sum(), [x, *layer.parameters()])

    found = gradients()
    with clew.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):  # all is kept
        known = gradients()
    assert all(np.array_equal(f.numpy(), k.numpy()) for f, k in zip(found, known))


@pytest.mark.parametrize("dropout", [0, 0.1])
def test_the_result_of_gelu_is_computed_again(dropout):
    _, _, out = feed_forward(dropout=dropout)
    nodes = [out.grad_fn]
    for node in nodes:
        nodes += [n for n, _ in node.next_functions if n is not None and n not in nodes]
    kept = [dict(n.kept())["mat1"].summary() for n in nodes if n.name() == "AddmmBackward0"]
    again = [text for text in kept if "computed again" in text]
    assert again == ["float32 [256, 128] 4 B, computed again from what is kept"]


def test_what_a_hook_has_kept_may_be_written_to():
    clew.manual_seed(0)
    layer = clew.nn.TransformerEncoderLayer(32, 2, 128, 0, "gelu", batch_first=True)
    seen = []
    layer.linear1.register_forward_hook(lambda module, args, result: seen.append(result))
    x, weight = clew.randn(4, 64, 32), layer.linear2.weight
    (known,) = clew.autograd.grad(layer(x).square().sum(), weight)
    loss = layer(x).square().sum()
    seen[-1].data.zero_()
    (found,) = clew.autograd.grad(loss, weight)
    assert np.array_equal(found.numpy(), known.numpy())


def test_a_block_that_is_walked_twice():
    layer, _, out = feed_forward()
    loss, weight = out.square().sum(), layer.linear2.weight
    (first,) = clew.autograd.grad(loss, weight, retain_graph=True)
    (second,) = clew.autograd.grad(loss, weight)
    assert np.array_equal(first.numpy(), second.numpy())


# -- who watches


def saved_by(ledger, op):
    """What is kept of what `op` has made since tracking began (other tests may have left more)."""
    return [row for row in ledger.now.saved() if row.what == op]


def test_the_ledger_counts_the_bits():
    x = data(clew)
    with clew.memory.track() as ledger:
        loss = (x * 1).relu().sum()
        (row,) = saved_by(ledger, "relu")
        assert (row.bytes, row.kinds) == (BITS, {"saved for backward": BITS})
        assert (row.what, row.node) == ("relu", "ReluBackward0")
        assert "relu().sum()" in row.line.text
        loss.backward()
        del loss
        assert not saved_by(ledger, "relu")


def test_the_doctor_sees_a_write_to_what_is_packed():
    with clew.doctor("clew", show=False) as doctor:
        y = (data(clew) * 1).relu()
        loss = y.sum()
        y.add_(1)
        with pytest.raises(RuntimeError):
            loss.backward()
    assert [f.rule for f in doctor.findings] == ["R10"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forward_mode_and_transforms_over_large_arrays():
    def directional(t):
        x = data(t).detach().nan_to_num(0.0, 0.0, 0.0)
        value, tangent = t.func.jvp(lambda x: functional(t).relu6(x.sin().relu()), (x,), (x,))
        grad = t.func.grad(lambda x: functional(t).relu6(x.sin().relu()).sum())(x)
        return value, tangent, grad

    for found, known in zip(*map(directional, ENGINES.values())):
        assert np.allclose(found.numpy(), known.numpy(), atol=1e-4)
