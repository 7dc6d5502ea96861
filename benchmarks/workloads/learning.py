"""Ways of learning: two networks against each other, policies, parts frozen, sums of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workloads.models import training

Step = Callable[[], float]


def _adversarial(t: Any, g: Any, d: Any, real: Any, noise: Any) -> Step:
    """One step of the discriminator, then one of the generator."""
    f = t.nn.functional
    optimizer_g, optimizer_d = t.optim.Adam(g.parameters()), t.optim.Adam(d.parameters())
    score = f.binary_cross_entropy_with_logits
    ones, zeros = t.ones(len(real), 1), t.zeros(len(real), 1)

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

    step.model, step.forward = t.nn.ModuleList([g, d]), forward  # type: ignore[attr-defined]
    return step


def gan(t: Any) -> Step:
    """A GAN on 64 values: generator 16-128-64, discriminator 64-128-1, batch 64, Adam."""
    t.manual_seed(0)
    nn = t.nn
    g = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh())
    d = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    return _adversarial(t, g, d, t.randn(64, 64).tanh(), t.randn(64, 16))


def dcgan(t: Any) -> Step:
    """A convolutional GAN on 1x28x28 images, batch 64, Adam."""
    t.manual_seed(0)
    nn = t.nn
    g = nn.Sequential(
        nn.Linear(64, 64 * 7 * 7), nn.Unflatten(1, (64, 7, 7)), nn.BatchNorm2d(64), nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    d = nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 1),
    )  # fmt: skip
    return _adversarial(t, g, d, t.randn(64, 1, 28, 28).tanh(), t.randn(64, 64))


def ppo(t: Any) -> Step:
    """A PPO update: two 64-64 tanh networks, 4 epochs of 4 minibatches of 64, Adam."""
    t.manual_seed(0)
    nn = t.nn

    def network(outputs: int) -> Any:
        return nn.Sequential(
            nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs)
        )

    actor, critic = network(2), network(1)
    model = nn.ModuleList([actor, critic])
    optimizer = t.optim.Adam(model.parameters(), lr=3e-4)
    states, actions = t.randn(256, 4), t.randint(2, (256,))
    advantages, returns = t.randn(256), t.randn(256)
    with t.no_grad():
        old = actor(states).log_softmax(1).gather(1, actions.unsqueeze(1)).squeeze(1)

    def loss_of(part: Any) -> Any:
        logits = actor(states[part]).log_softmax(1)
        chosen = logits.gather(1, actions[part].unsqueeze(1)).squeeze(1)
        ratio, advantage = (chosen - old[part]).exp(), advantages[part]
        gain = t.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        entropy = -(logits.exp() * logits).sum(1).mean()
        error = (critic(states[part]).squeeze(1) - returns[part]).pow(2).mean()
        return -gain + 0.5 * error - 0.01 * entropy

    def step() -> float:
        for _ in range(4):
            for start in range(0, 256, 64):
                loss = loss_of(slice(start, start + 64))
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        return float(loss.item())

    step.model, step.forward = model, lambda: loss_of(slice(0, 64))  # type: ignore[attr-defined]
    return step


def finetune(t: Any) -> Step:
    """A classifier on a frozen backbone of three layers 512 wide, batch 128, Adam."""
    t.manual_seed(0)
    nn = t.nn
    backbone = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)
    )
    backbone.requires_grad_(False)
    head = nn.Sequential(nn.ReLU(), nn.Linear(512, 10))
    inputs, targets = t.randn(128, 256), t.randint(10, (128,))
    optimizer = t.optim.Adam(head.parameters())
    return training(t, nn.Sequential(backbone, head), inputs, targets, optimizer)


def accumulate(t: Any) -> Step:
    """Gradients of an MLP 256-512-10 added up over 8 micro-batches of 32, then SGD."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    inputs, targets = t.randn(8, 32, 256), t.randint(10, (8, 32))
    optimizer = t.optim.SGD(model.parameters(), lr=0.01)
    loss_function = nn.CrossEntropyLoss()

    def step() -> float:
        total = 0.0
        optimizer.zero_grad()
        for x, y in zip(inputs, targets):
            loss = loss_function(model(x), y) / 8
            loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    step.model = model  # type: ignore[attr-defined]
    step.forward = lambda: loss_function(model(inputs[0]), targets[0])  # type: ignore[attr-defined]
    return step


def hessian_vector(t: Any) -> Step:
    """A product of the Hessian with a vector, through a tanh MLP 64-64-1, batch 64."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    parameters = list(model.parameters())
    inputs, targets = t.randn(64, 64), t.randn(64, 1)
    vector = [t.randn_like(p) for p in parameters]

    def step() -> float:
        loss = (model(inputs) - targets).pow(2).mean()
        gradients = t.autograd.grad(loss, parameters, create_graph=True)
        along = sum((g * v).sum() for g, v in zip(gradients, vector))
        product = t.autograd.grad(along, parameters)
        return float(product[0].sum().item())

    return step
