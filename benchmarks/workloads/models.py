"""Training steps of models: MLPs, CNNs, a transformer, an LSTM."""

from __future__ import annotations

from typing import Any

from workloads.step import Step, eager


def training(t: Any, compiled: Any, model: Any, inputs: Any, targets: Any, optimizer: Any) -> Step:
    """Zero the gradients, classify, backward, step."""
    loss_function = t.nn.CrossEntropyLoss()
    loss_of = compiled(lambda inputs, targets: loss_function(model(inputs), targets))

    def run() -> float:
        optimizer.zero_grad()
        loss = loss_of(inputs, targets)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    given = [*model.parameters(), inputs, targets]
    return Step(run, given, lambda: loss_of(inputs, targets), model)


def mlp(t: Any, compiled: Any = eager) -> Step:
    """An MLP 64-128-10, batch 64, Adam."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    inputs, targets = t.randn(64, 64), t.randint(10, (64,))
    return training(t, compiled, model, inputs, targets, t.optim.Adam(model.parameters()))


def large_mlp(t: Any, compiled: Any = eager) -> Step:
    """An MLP 784-1024-1024-10, batch 256, Adam."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(
        nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )
    inputs, targets = t.randn(256, 784), t.randint(10, (256,))
    return training(t, compiled, model, inputs, targets, t.optim.Adam(model.parameters()))


def small_cnn(t: Any, compiled: Any = eager) -> Step:
    """Two blocks of convolution, batch norm, ReLU and pooling on 1x28x28, batch 32, SGD."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    inputs, targets = t.randn(32, 1, 28, 28), t.randint(10, (32,))
    optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(t, compiled, model, inputs, targets, optimizer)


def cnn(t: Any, compiled: Any = eager) -> Step:
    """Three blocks of 32, 64 and 128 channels on 3x32x32, batch 64, SGD with momentum."""
    t.manual_seed(0)
    nn = t.nn
    layers, channels = [], 3
    for width in (32, 64, 128):
        convolution = nn.Conv2d(channels, width, 3, padding=1)
        layers += [convolution, nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 4 * 4, 10))
    inputs, targets = t.randn(64, 3, 32, 32), t.randint(10, (64,))
    optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return training(t, compiled, model, inputs, targets, optimizer)


def transformer(t: Any, compiled: Any = eager) -> Step:
    """A character transformer: 4 layers, 128 wide, 4 heads, context 64, batch 16, AdamW."""
    t.manual_seed(0)
    nn, f = t.nn, t.nn.functional
    width, heads, context, letters = 128, 4, 64, 65

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(
                nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
            )

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            parts = self.qkv(self.norm1(x)).split(width, dim=2)
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2) for part in parts
            )
            y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters)

        def forward(self, x: Any) -> Any:
            x = self.letters(x) + self.places(t.arange(context))
            return self.head(self.norm(self.blocks(x))).flatten(0, 1)

    model = Model()
    text = t.randint(letters, (16, context + 1))
    inputs, targets = text[:, :-1], text[:, 1:].reshape(-1)
    return training(t, compiled, model, inputs, targets, t.optim.AdamW(model.parameters()))


def lstm(t: Any, compiled: Any = eager) -> Step:
    """An LSTM of 128 units over 64 steps, batch 32, Adam."""
    t.manual_seed(0)
    nn = t.nn

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(32, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.lstm(x)[0][:, -1])

    model = Model()
    inputs, targets = t.randn(32, 64, 32), t.randint(10, (32,))
    return training(t, compiled, model, inputs, targets, t.optim.Adam(model.parameters()))
