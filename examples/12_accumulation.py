"""Gradient accumulation over micro-batches, and what a forgotten zero_grad() does.

Run: python examples/12_accumulation.py
"""

import torch
from common import arguments, digits, save_losses
from torch import nn


def network(seed):
    """A fresh network; seeding here gives each training run below the same batches too."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))


def gradient(model):
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def accumulated(x, y, pieces, divide, seed):
    """The gradient after one backward for each of `pieces` equal micro-batches."""
    model = network(seed)
    for part_x, part_y in zip(x.chunk(pieces), y.chunk(pieces), strict=True):
        loss = nn.functional.cross_entropy(model(part_x), part_y)
        (loss / pieces if divide else loss).backward()
    return gradient(model)


def train(x, y, steps, clear, seed):
    """Train, clearing the gradients or not, and watch `.grad` on the way; return the losses."""
    model = network(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    losses = []
    print(f"\n{'step':>4}{'loss':>10}{'|.grad|':>10}{'|new grad|':>12}{'passes in .grad':>17}")
    for step in range(steps):
        batch = torch.randint(len(y), (64,))
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        if clear:
            optimizer.zero_grad()
        new = torch.autograd.grad(loss, model[0].weight, retain_graph=True)[0]
        loss.backward()
        losses.append(loss.item())
        weight = model[0].weight
        if step in (0, 1, 2, 10, steps - 1):
            # backward() adds in place: each pass after the first is one more version of .grad
            passes = weight.grad._version + 1
            print(f"{step:4}{loss.item():10.4f}{weight.grad.norm().item():10.4f}", end="")
            print(f"{new.norm().item():12.4f}{passes:17}")
        optimizer.step()
    return losses


def main():
    args = arguments(__doc__, steps=100)
    images, labels = digits()
    images = images.flatten(1)

    x, y = images[:256], labels[:256]
    whole = accumulated(x, y, pieces=1, divide=True, seed=args.seed)
    for pieces in (2, 4, 16):
        right = accumulated(x, y, pieces, divide=True, seed=args.seed)
        wrong = accumulated(x, y, pieces, divide=False, seed=args.seed)
        far = (right - whole).abs().max().item()
        print(f"{pieces:2} micro-batches: at most {far:.1e} from the gradient of one batch", end="")
        print(f"; loss not divided: {(wrong.norm() / whole.norm()).item():.2f} times as long")

    print("\nWith optimizer.zero_grad() each step:", end="")
    losses = train(images, labels, args.steps, clear=True, seed=args.seed)
    print("\nForgotten: each step moves along the sum of all gradients so far.", end="")
    forgotten = train(images, labels, args.steps, clear=False, seed=args.seed)
    print(f"\nmean of the last 10 losses: {sum(losses[-10:]) / 10:.3f}", end="")
    print(f", forgotten {sum(forgotten[-10:]) / 10:.3f}")
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
