"""A GAN learns handwritten digits; then what detach, retain_graph and the order of steps cost.

Run: python examples/gan.py --out out

Writes out/gan_epoch_000.png and so on: the same 64 noise vectors, drawn as training goes on.
"""

import time

import torch
from common import SavedBytes, arguments, digits, error_of, kib, save_grid, save_losses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOISE = 32


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(NOISE, 64, 2, bias=False),  # 2 x 2
        nn.BatchNorm2d(64),
        nn.GELU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1, bias=False),  # 4 x 4
        nn.BatchNorm2d(32),
        nn.GELU(),
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),  # 8 x 8
        nn.Tanh(),
    )


def discriminator():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(256, 1),
    )


class Gan:
    """The two networks, their optimizers, and one training step of each."""

    def __init__(self):
        self.g, self.d = generator(), discriminator()
        self.optimizer_g = torch.optim.Adam(self.g.parameters(), lr=1e-3, betas=(0.5, 0.999))
        self.optimizer_d = torch.optim.Adam(self.d.parameters(), lr=5e-4, betas=(0.5, 0.999))

    def parameters(self):
        return [*self.g.parameters(), *self.d.parameters()]

    def fake(self, count):
        return self.g(torch.randn(count, NOISE, 1, 1))

    def d_loss(self, real, fake):
        return score(self.d(real), 0.9) + score(self.d(fake), 0.0)

    def g_loss(self, fake):
        return score(self.d(fake), 1.0)

    def d_step(self, real, fake, detach=True, retain_graph=False):
        loss = self.d_loss(real, fake.detach() if detach else fake)
        self.optimizer_d.zero_grad()
        loss.backward(retain_graph=retain_graph)
        self.optimizer_d.step()
        return loss

    def g_step(self, fake):
        loss = self.g_loss(fake)
        self.optimizer_g.zero_grad()
        loss.backward()
        self.optimizer_g.step()
        return loss

    def step(self, real, **variant):
        fake = self.fake(len(real))
        d_loss = self.d_step(real, fake, **variant)
        g_loss = self.g_step(fake)
        return d_loss.item(), g_loss.item()


def score(logits, target):
    return nn.functional.binary_cross_entropy_with_logits(logits, torch.full_like(logits, target))


# ---- training ----


def nearest(samples, images):
    """For each sample, the distance to the nearest image and that image's index."""
    a, b = samples.flatten(1), images.flatten(1)
    squared = a.pow(2).sum(1, keepdim=True) + b.pow(2).sum(1) - 2 * a @ b.T
    return squared.clamp(min=0).sqrt().min(1)


@torch.no_grad()
def report(gan, noise, images, labels, path):
    """Draw the samples of `noise`, and print how near they are to real digits."""
    gan.g.eval()
    samples = gan.g(noise)
    gan.g.train()
    save_grid(path, (samples + 1) / 2, columns=16)
    distance, index = nearest(samples, images)
    kinds = len(set(labels[index].tolist()))
    print(f"{path}: distance to the nearest digit {distance.mean().item():.3f}, {kinds} kinds")


def train(gan, images, labels, args):
    """Train, reporting every `args.every` epochs; return the losses of both networks in turn."""
    loader = DataLoader(TensorDataset(images), batch_size=32, shuffle=True, drop_last=True)
    noise = torch.randn(64, NOISE, 1, 1)
    losses = []
    for epoch in range(args.epochs + 1):
        if epoch % args.every == 0 or epoch == args.epochs:
            report(gan, noise, images, labels, args.out / f"gan_epoch_{epoch:03}.png")
        if epoch < args.epochs:
            for (real,) in loader:
                losses.extend(gan.step(real))
    distance, _ = nearest(images[:64], images[64:])
    print(f"(64 real digits: distance to the nearest other one {distance.mean().item():.3f})")
    return losses


# ---- what it costs ----


def measure(title, real, **variant):
    """Print what one step with this way of computing the D loss holds, and the time it takes."""
    gan = Gan()
    gan.step(real, **variant)
    with SavedBytes(leave_out=gan.parameters()) as saved:
        fake = gan.fake(len(real))
        gan.optimizer_g.zero_grad()
        d_loss = gan.d_step(real, fake, **variant)
        between = saved.held
        reached = sum(parameter.grad is not None for parameter in gan.g.parameters())
        g_loss = gan.g_step(fake)
    after = saved.held
    del d_loss, g_loss
    times = []
    for _ in range(20):
        start = time.perf_counter()
        gan.step(real, **variant)
        times.append(time.perf_counter() - start)
    milliseconds = sorted(times)[len(times) // 2] * 1e3
    print(f"{title:33}{kib(saved.peak):>12}{kib(between):>14}{kib(after):>14}", end="")
    print(f"{reached:12}{milliseconds:9.2f}")


def g_loss_too_early(real, retain_graph):
    """The mistake: D changes between the forward pass of the G loss and its backward."""
    gan = Gan()
    fake = gan.fake(len(real))
    g_loss = gan.g_loss(fake)
    gan.d_step(real, fake, retain_graph=retain_graph)
    g_loss.backward(retain_graph=retain_graph)


def both_backward_first(real):
    """The silent mistake: how far the G loss moves the gradient that D then steps with."""
    gan = Gan()
    fake = gan.fake(len(real))
    gan.d_loss(real, fake.detach()).backward()
    right = [parameter.grad.clone() for parameter in gan.d.parameters()]
    gan.g_loss(fake).backward()
    wrong = [parameter.grad for parameter in gan.d.parameters()]
    return max((a - b).abs().max().item() for a, b in zip(right, wrong, strict=True))


def costs(real):
    print(f"\n{'the D loss on':33}{'peak held':>12}{'after D step':>14}", end="")
    print(f"{'after G step':>14}{'grads in G':>12}{'ms/step':>9}")
    measure("fake.detach()", real)
    measure("fake.detach(), retain_graph=True", real, retain_graph=True)
    measure("fake, retain_graph=True", real, detach=False, retain_graph=True)
    print("In truth: with detach and a fresh D(fake), retain_graph is not needed and only holds")
    print("memory; without detach, D's backward fills G's gradients too, and nobody uses them.")

    print("\nThe mistakes")
    print("- D loss on fake, neither detach nor retain_graph:")
    print(" ", error_of(lambda: Gan().step(real, detach=False)))
    print("- G loss computed before optimizer_d.step():")
    print(" ", error_of(lambda: g_loss_too_early(real, retain_graph=False)))
    print("- the same with retain_graph=True. In truth, it cannot help:")
    print(" ", error_of(lambda: g_loss_too_early(real, retain_graph=True)))
    print("- both backward passes first, then both steps: no error, but the G loss has changed")
    print(f"  D's gradient by up to {both_backward_first(real):.4f}")


def main():
    args = arguments(__doc__, epochs=80, every=20)
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images * 2 - 1
    losses = train(Gan(), images, labels, args)
    save_losses(args, losses[:200])
    costs(images[:64])


if __name__ == "__main__":
    main()
