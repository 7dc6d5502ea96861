"""The workloads: each takes an engine's module (torch, or clew) and returns a step to time.

A step returns its loss as a float, so that the engines can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], float]


def three_ops(t: Any) -> Step:
    """Three operations on three floats, and backward."""
    x = t.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def step() -> float:
        x.grad = None
        loss = ((x * 3) ** 2).sum()
        loss.backward()
        return float(loss.item())

    return step


def chain(t: Any) -> Step:
    """200 operations in a row on 64 floats, and backward."""
    x = t.ones(64, requires_grad=True)

    def step() -> float:
        x.grad = None
        y = x
        for _ in range(100):
            y = y * 0.99 + 0.01
        loss = y.sum()
        loss.backward()
        return float(loss.item())

    return step


def deep(t: Any) -> Step:
    """A chain of 100,000 nodes on one float, and backward."""
    x = t.ones(1, requires_grad=True)

    def step() -> float:
        x.grad = None
        y = x
        for _ in range(100_000):
            y = y + 1
        loss = y.sum()
        loss.backward()
        return float(loss.item())

    return step


def _training(t: Any, model: Any, inputs: Any, targets: Any, optimizer: Any) -> Step:
    loss_function = t.nn.CrossEntropyLoss()

    def step() -> float:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), targets)
        loss.backward()
        optimizer.step()
        return float(loss.item())

    step.model, step.forward = model, lambda: loss_function(model(inputs), targets)  # type: ignore[attr-defined]
    return step


def mlp(t: Any) -> Step:
    """A training step of an MLP 64-128-10, batch 64, Adam."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    inputs, targets = t.randn(64, 64), t.randint(10, (64,))
    return _training(t, model, inputs, targets, t.optim.Adam(model.parameters()))


def cnn(t: Any) -> Step:
    """A training step of a small CNN on 1x28x28 images, batch 32, SGD with momentum."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 10),
    )  # fmt: skip
    inputs, targets = t.randn(32, 1, 28, 28), t.randint(10, (32,))
    optimizer = t.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return _training(t, model, inputs, targets, optimizer)


def gan(t: Any) -> Step:
    """A training step of a GAN on 64 values: generator 16-128-64, discriminator 64-128-1, Adam."""
    t.manual_seed(0)
    nn, f = t.nn, t.nn.functional
    g = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh())
    d = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    optimizer_g, optimizer_d = t.optim.Adam(g.parameters()), t.optim.Adam(d.parameters())
    real, ones, zeros = t.randn(64, 64).tanh(), t.ones(64, 1), t.zeros(64, 1)
    noise = t.randn(64, 16)
    score = f.binary_cross_entropy_with_logits

    def step() -> float:
        fake = g(noise)
        d_loss = score(d(real), ones) + score(d(fake.detach()), zeros)
        optimizer_d.zero_grad()
        d_loss.backward()
        optimizer_d.step()
        g_loss = score(d(fake), ones)
        optimizer_g.zero_grad()
        g_loss.backward()
        optimizer_g.step()
        return float(d_loss.item() + g_loss.item())

    def forward() -> Any:
        fake = g(noise)
        return score(d(real), ones) + score(d(fake.detach()), zeros) + score(d(fake), ones)

    step.model, step.forward = nn.ModuleList([g, d]), forward  # type: ignore[attr-defined]
    return step


WORKLOADS: dict[str, tuple[Callable[[Any], Step], int]] = {
    "three ops and backward": (three_ops, 200),
    "chain of 200 ops": (chain, 10),
    "chain of 100,000 nodes": (deep, 1),
    "MLP step": (mlp, 30),
    "GAN step": (gan, 15),
    "CNN step": (cnn, 4),
}
"""Name to (maker, steps in one timed round)."""
