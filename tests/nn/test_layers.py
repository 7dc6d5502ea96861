"""Layers: text, forward, gradients and buffers agree with PyTorch's for the same seed."""

import pytest

from twins import assert_same

# (constructor, shape of the input)
LAYERS = [
    ("Identity()", (2, 3)),
    ("Linear(3, 4)", (2, 3)),
    ("Linear(3, 4, bias=False)", (2, 5, 3)),
    ("Flatten()", (2, 3, 4)),
    ("Flatten(0, 1)", (2, 3, 4)),
    ("Unflatten(1, (2, 2))", (3, 4)),
    ("ReLU()", (3, 4)),
    ("ReLU6()", (3, 4)),
    ("LeakyReLU(0.2)", (3, 4)),
    ("ELU(0.5)", (3, 4)),
    ("CELU(0.5)", (3, 4)),
    ("SELU()", (3, 4)),
    ("SiLU()", (3, 4)),
    ("Mish()", (3, 4)),
    ("GELU()", (3, 4)),
    ("GELU('tanh')", (3, 4)),
    ("GLU(1)", (3, 4)),
    ("Hardshrink()", (3, 4)),
    ("Hardsigmoid()", (3, 4)),
    ("Hardswish()", (3, 4)),
    ("Hardtanh(-0.5, 0.5)", (3, 4)),
    ("LogSigmoid()", (3, 4)),
    ("PReLU(4)", (3, 4)),
    ("Sigmoid()", (3, 4)),
    ("Softplus(2, 1)", (3, 4)),
    ("Softshrink(0.3)", (3, 4)),
    ("Softsign()", (3, 4)),
    ("Tanh()", (3, 4)),
    ("Tanhshrink()", (3, 4)),
    ("Threshold(0.1, 20)", (3, 4)),
    ("Softmax(1)", (3, 4)),
    ("Softmax()", (3, 4)),
    ("Softmin(0)", (3, 4)),
    ("LogSoftmax(-1)", (3, 4)),
    ("Softmax2d()", (2, 3, 2, 2)),
    ("Conv1d(4, 6, 3, 2, 1, groups=2)", (2, 4, 7)),
    ("Conv2d(2, 3, (3, 2), padding='same', dilation=2)", (2, 2, 6, 5)),
    ("Conv3d(2, 3, 2, bias=False)", (1, 2, 3, 4, 3)),
    ("ConvTranspose1d(2, 3, 3, 2, output_padding=1)", (2, 2, 4)),
    ("ConvTranspose2d(4, 2, 3, 2, 1, groups=2)", (2, 4, 3, 4)),
    ("BatchNorm1d(4)", (5, 4)),
    ("BatchNorm1d(4, momentum=None, affine=False)", (3, 4, 2)),
    ("BatchNorm2d(3, track_running_stats=False)", (2, 3, 2, 2)),
    ("BatchNorm3d(2, bias=False)", (2, 2, 2, 1, 2)),
    ("SyncBatchNorm(3)", (2, 3, 2)),
    ("LayerNorm((3, 4))", (2, 3, 4)),
    ("LayerNorm(4, bias=False)", (2, 4)),
    ("GroupNorm(2, 4)", (2, 4, 3)),
    ("InstanceNorm1d(3, affine=True, track_running_stats=True)", (2, 3, 5)),
    ("InstanceNorm2d(3)", (3, 4, 5)),
    ("RMSNorm(4)", (2, 4)),
    ("MaxPool1d(2)", (2, 3, 6)),
    ("MaxPool2d(3, 2, 1)", (2, 3, 6, 5)),
    ("AvgPool2d(2, ceil_mode=True, count_include_pad=False)", (1, 2, 5, 5)),
    ("AdaptiveAvgPool2d((2, None))", (1, 2, 5, 4)),
    ("AdaptiveMaxPool1d(3)", (1, 2, 7)),
    ("ConstantPad1d((1, 2), 3.5)", (2, 3)),
    ("ZeroPad2d(1)", (1, 2, 3, 3)),
    ("ReflectionPad2d((1, 0, 1, 1))", (1, 2, 3, 3)),
    ("ReplicationPad1d(2)", (1, 2, 3)),
    ("CircularPad2d(1)", (1, 2, 3, 3)),
    ("PixelShuffle(2)", (1, 8, 2, 2)),
    ("PixelUnshuffle(2)", (1, 2, 4, 4)),
    ("ChannelShuffle(2)", (1, 4, 2, 2)),
    ("Upsample(scale_factor=2)", (1, 2, 3, 3)),
    ("Upsample(size=(5, 4), mode='bilinear', align_corners=True)", (1, 2, 3, 3)),
    ("UpsamplingNearest2d(scale_factor=(2, 3))", (1, 2, 3, 3)),
    ("Unfold(2)", (1, 2, 3, 4)),
    ("Fold((3, 4), 2)", (1, 8, 6)),
    ("Dropout(0.5)", (4, 5)),
    ("Dropout2d(0.5)", (2, 4, 3, 3)),
    ("AlphaDropout(0.3)", (4, 5)),
]


@pytest.mark.parametrize("constructor, shape", LAYERS)
@pytest.mark.parametrize("training", [True, False])
def test_layer(constructor, shape, training):
    def run(m):
        m.manual_seed(3)
        layer = eval("m.nn." + constructor, {"m": m})
        layer.train(training)
        x = m.randn(shape, requires_grad=True)
        y = layer(x)
        y.backward(m.randn(y.shape)) if y.grad_fn is not None else None
        return (
            repr(layer), y, x.grad, [p.grad for p in layer.parameters()],
            dict(layer.state_dict()),
        )  # fmt: skip

    assert_same(run, rtol=2e-4, atol=2e-5)


LOSSES = [
    ("L1Loss()", "a", "b"),
    ("L1Loss(reduction='sum')", "a", "b"),
    ("L1Loss(reduce=False)", "a", "b"),
    ("MSELoss(size_average=False)", "a", "b"),
    ("SmoothL1Loss(beta=0.5)", "a", "b"),
    ("HuberLoss(delta=0.5)", "a", "b"),
    ("HuberLoss(delta='a')", "a", "b"),
    ("CrossEntropyLoss()", "a", "classes"),
    ("CrossEntropyLoss(m.arange(1.0, 4.0), label_smoothing=0.1, ignore_index=1)", "a", "classes"),
    ("CrossEntropyLoss()", "a", "b.softmax(1)"),
    ("NLLLoss(reduction='none')", "a", "classes"),
    ("BCELoss()", "a.sigmoid()", "b.sigmoid()"),
    ("BCEWithLogitsLoss(pos_weight=m.arange(1.0, 4.0))", "a", "b.sigmoid()"),
    ("KLDivLoss(reduction='batchmean')", "a.log_softmax(1)", "b.softmax(1)"),
    ("PoissonNLLLoss()", "a", "b.abs()"),
    ("GaussianNLLLoss()", "a", "b", "b.abs()"),
    ("HingeEmbeddingLoss()", "a", "signs"),
    ("SoftMarginLoss()", "a", "signs"),
    ("MarginRankingLoss(0.1)", "a", "b", "signs"),
    ("CosineEmbeddingLoss(0.1)", "a", "b", "signs[:, 0]"),
    ("MultiLabelSoftMarginLoss()", "a", "b.gt(0).float()"),
    ("MultiMarginLoss(p=2)", "a", "classes"),
    ("MultiMarginLoss(p=3)", "a", "classes"),
    ("MultiLabelMarginLoss()", "a", "m.tensor([[0, 2, -1], [1, -1, 0], [2, 1, 0], [0, -1, 1]])"),
    ("TripletMarginLoss(margin=0.5)", "a", "b", "b.flip(0)"),
    ("TripletMarginLoss(margin=0)", "a", "b", "b.flip(0)"),
    ("TripletMarginWithDistanceLoss(swap=True)", "a", "b", "b.flip(0)"),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss[0])
def test_loss(loss):
    constructor, *arguments = loss

    def run(m):
        m.manual_seed(3)
        names = {"m": m, "classes": m.tensor([0, 2, 1, 2])}
        names["a"] = m.randn(4, 3, requires_grad=True)
        names["b"] = m.randn(4, 3)
        names["signs"] = names["b"].sign()
        made = eval("m.nn." + constructor, names)
        value = made(*[eval(argument, names) for argument in arguments])
        value.sum().backward()
        return repr(made), list(made.state_dict()), value, names["a"].grad

    assert_same(run, rtol=1e-4)


@pytest.mark.parametrize(
    "expression",
    [
        "Dropout(1.5)",
        "Conv2d(3, 4, 2, groups=2)",
        "Conv2d(4, 3, 2, groups=2)",
        "Conv2d(4, 4, 2, groups=0)",
        "Conv2d(4, 4, 2, padding='same', stride=2)",
        "ConvTranspose2d(4, 4, 2, padding_mode='circular')",
        "ConvTranspose2d(2, 2, 3, 2)(x, output_size=(7, 8)).shape",
        "ConvTranspose2d(2, 2, 3, 2)(x, output_size=(2, 2, 7, 8)).shape",
        "ConvTranspose2d(2, 2, 3, 2)(x, output_size=(9, 9)).shape",
        "ConvTranspose2d(2, 2, 3, 2)(x, output_size=(9,)).shape",
        "BatchNorm1d(2)(x)",
        "BatchNorm2d(2)(x[0])",
        "BatchNorm3d(2)(x)",
        "InstanceNorm2d(5, affine=True)(x)",
        "InstanceNorm1d(5)(x)",
        "GroupNorm(3, 4)",
        "Embedding(3, 2, padding_idx=5)",
        "Embedding(3, 2, padding_idx=-5)",
        "Embedding(3, 2, _weight=m.ones(2, 2))",
        "Embedding.from_pretrained(m.ones(2))",
        "Embedding.from_pretrained(m.ones(2, 3)).weight.requires_grad",
        "EmbeddingBag.from_pretrained(m.ones(2, 3), freeze=False).weight.requires_grad",
        "Embedding(3, 2, padding_idx=1, max_norm=2, norm_type=1, scale_grad_by_freq=True)",
        "EmbeddingBag(3, 2, padding_idx=1, max_norm=2, norm_type=1, mode='sum')",
        "Hardtanh(1, -1)",
        "Softmax2d()(x[0, 0])",
        "CircularPad1d(1)(x)",
        "Unflatten(1, 3)",
        "Unflatten(1, (2, 'a'))",
        "Bilinear(0, 2, 3)",
        "FractionalMaxPool2d(2)",
        "FractionalMaxPool2d(2, output_size=2, output_ratio=0.5)",
        "FractionalMaxPool2d(2, output_ratio=1.5)",
        "FractionalMaxPool3d(0, output_size=2)",
        "Conv2d(2, 3, 2, padding_mode='reflect', padding=1, dilation=2, groups=1, bias=False)",
        "ConvTranspose2d(2, 3, 2, 2, 1, 1)",
        "LPPool2d(2, 3), MaxUnpool2d(2), AvgPool1d(2), AdaptiveMaxPool2d((2, None))",
        "LocalResponseNorm(3), CosineSimilarity(), PairwiseDistance()",
    ],
)
def test_texts_and_errors(expression):
    def run(m):
        names = {**vars(m.nn), "m": m, "x": m.ones(2, 2, 3, 3)}
        value = eval(expression, names)
        return repr(value) if isinstance(value, (m.nn.Module, tuple)) else value

    assert_same(run)


def test_other_padding_strings_are_refused():
    from clew import nn

    with pytest.raises(ValueError, match="Invalid padding string 'odd'"):
        nn.Conv1d(1, 1, 1, padding="odd")
    with pytest.raises(ValueError, match="padding_mode must be one of"):
        nn.Conv1d(1, 1, 1, padding_mode="odd")


def test_embeddings():
    def run(m):
        m.manual_seed(0)
        table = m.nn.Embedding(5, 3, padding_idx=1)
        y = table(m.tensor([[0, 1], [4, 4]]))
        y.backward(m.randn(y.shape))
        return table.weight, y, table.weight.grad

    assert_same(run)


def test_running_averages_over_several_batches():
    def run(m):
        m.manual_seed(0)
        layers = [m.nn.BatchNorm1d(3, momentum=f) for f in (0.1, None)]
        for layer in layers:
            for _ in range(3):
                layer(m.randn(4, 3))
        states = [dict(layer.state_dict()) for layer in layers]
        layers[0].reset_running_stats()
        return states, dict(layers[0].state_dict())

    assert_same(run)


def test_shared_layers_add_their_gradients():
    def run(m):
        m.manual_seed(0)
        layer = m.nn.Linear(3, 3)
        m.nn.Sequential(layer, m.nn.Tanh(), layer)(m.randn(2, 3)).sum().backward()
        return layer.weight.grad, layer.bias.grad

    assert_same(run)


def test_sync_batch_norm():
    def run(m):
        net = m.nn.Sequential(m.nn.BatchNorm1d(2), m.nn.Sequential(m.nn.BatchNorm2d(3)))
        made = m.nn.SyncBatchNorm.convert_sync_batchnorm(net)
        return repr(made), made[1][0](m.arange(12.0).view(2, 3, 2))

    assert_same(run)
    for x in ("m.ones(2)", "m.ones(2, 0)"):
        assert_same(lambda m, x=x: m.nn.SyncBatchNorm(2)(eval(x, {"m": m})))


def test_deprecated_names():
    from clew import nn

    with pytest.warns(FutureWarning, match="`NLLLoss2d` has been deprecated"):
        nn.NLLLoss2d()
