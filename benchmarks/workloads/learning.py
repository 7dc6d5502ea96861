"""Ways of learning: two networks against each other, policies, parts frozen, sums of gradients."""

from __future__ import annotations

from typing import Any

from workloads.models import training
from workloads.step import Step, eager


def _adversarial(t: Any, compiled: Any, g: Any, d: Any, real: Any, noise: Any) -> Step:
    """One step of the discriminator, then one of the generator."""
    score = t.nn.functional.binary_cross_entropy_with_logits
    optimizer_g, optimizer_d = t.optim.Adam(g.parameters()), t.optim.Adam(d.parameters())
    ones, zeros = t.ones(len(real), 1), t.zeros(len(real), 1)
    generate = compiled(g)
    d_loss_of = compiled(lambda real, fake: score(d(real), ones) + score(d(fake), zeros))
    g_loss_of = compiled(lambda fake: score(d(fake), ones))

    def run() -> float:
        fake = generate(noise)
        d_loss = d_loss_of(real, fake.detach())
        optimizer_d.zero_grad()
        d_loss.backward()
        optimizer_d.step()
        g_loss = g_loss_of(fake)
        optimizer_g.zero_grad()
        g_loss.backward()
        optimizer_g.step()
        return float(d_loss.item() + g_loss.item())

    def forward() -> Any:
        fake = generate(noise)
        return d_loss_of(real, fake.detach()) + g_loss_of(fake)

    model = t.nn.ModuleList([g, d])
    return Step(run, [*model.parameters(), real, noise], forward, model)


def gan(t: Any, compiled: Any = eager) -> Step:
    """A GAN on 64 values: generator 16-128-64, discriminator 64-128-1, batch 64, Adam."""
    t.manual_seed(0)
    nn = t.nn
    g = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 64), nn.Tanh())
    d = nn.Sequential(nn.Linear(64, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1))
    return _adversarial(t, compiled, g, d, t.randn(64, 64).tanh(), t.randn(64, 16))


def dcgan(t: Any, compiled: Any = eager) -> Step:
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
    return _adversarial(t, compiled, g, d, t.randn(64, 1, 28, 28).tanh(), t.randn(64, 64))


def ppo(t: Any, compiled: Any = eager) -> Step:
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

    def loss_of(states: Any, actions: Any, advantages: Any, returns: Any, old: Any) -> Any:
        logits = actor(states).log_softmax(1)
        chosen = logits.gather(1, actions.unsqueeze(1)).squeeze(1)
        ratio = (chosen - old).exp()
        gain = t.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        entropy = -(logits.exp() * logits).sum(1).mean()
        error = (critic(states).squeeze(1) - returns).pow(2).mean()
        return -gain + 0.5 * error - 0.01 * entropy

    data = [states, actions, advantages, returns, old]
    compute = compiled(loss_of)

    def run() -> float:
        for _ in range(4):
            for start in range(0, 256, 64):
                loss = compute(*[values[start : start + 64] for values in data])
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                optimizer.step()
        return float(loss.item())

    given = [*model.parameters(), *data]
    return Step(run, given, lambda: compute(*[values[:64] for values in data]), model)


def finetune(t: Any, compiled: Any = eager) -> Step:
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
    return training(t, compiled, nn.Sequential(backbone, head), inputs, targets, optimizer)


def accumulate(t: Any, compiled: Any = eager) -> Step:
    """Gradients of an MLP 256-512-10 added up over 8 micro-batches of 32, then SGD."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))
    inputs, targets = t.randn(8, 32, 256), t.randint(10, (8, 32))
    optimizer = t.optim.SGD(model.parameters(), lr=0.01)
    loss_function = nn.CrossEntropyLoss()
    loss_of = compiled(lambda inputs, targets: loss_function(model(inputs), targets))

    def run() -> float:
        total = 0.0
        optimizer.zero_grad()
        for x, y in zip(inputs, targets):
            loss = loss_of(x, y) / 8
            loss.backward()
            total += loss.item()
        optimizer.step()
        return total

    given = [*model.parameters(), inputs, targets]
    return Step(run, given, lambda: loss_of(inputs[0], targets[0]), model)


def hessian_vector(t: Any, compiled: Any = eager) -> Step:
    """A product of the Hessian with a vector, through a tanh MLP 64-64-1, batch 64."""
    t.manual_seed(0)
    nn = t.nn
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    parameters = list(model.parameters())
    inputs, targets = t.randn(64, 64), t.randn(64, 1)
    vector = [t.randn_like(p) for p in parameters]
    loss_of = compiled(lambda inputs, targets: (model(inputs) - targets).pow(2).mean())

    def run() -> float:
        loss = loss_of(inputs, targets)
        gradients = t.autograd.grad(loss, parameters, create_graph=True)
        along = sum((g * v).sum() for g, v in zip(gradients, vector))
        product = t.autograd.grad(along, parameters)
        return float(product[0].sum().item())

    return Step(run, [*parameters, inputs, targets, *vector])
