"""A branch that no backward ever uses: found by what it still holds, and what it costs.

Run: python examples/17_unused_branch.py
"""

import time

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses
from torch import nn


class TwoHeads(nn.Module):
    """A classifier with a second head that rebuilds the image, for looking at only."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 128), nn.Tanh())
        self.classify = nn.Linear(128, 10)
        self.expand = nn.Linear(128, 256)
        self.rebuild = nn.Linear(256, 64)

    def forward(self, x, branch):
        features = self.body(x)
        if branch == "left out":
            return self.classify(features), None
        with torch.set_grad_enabled(branch == "recorded"):
            wide = torch.tanh(self.expand(features))
            image = torch.sigmoid(self.rebuild(wide))
        return self.classify(features), image


def measure(branch, args):
    """Train with the branch recorded, under no_grad or left out; print what it costs."""
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images.flatten(1)
    model = TwoHeads()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step():
        scores, image = model(images, branch)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss, image

    with SavedBytes(leave_out=model.parameters()) as saved:
        loss, image = step()
    recorded = [loss] if image is None else [loss, image]
    unused = len(nodes(*recorded)) - len(nodes(loss))
    no_grad = [name for name, parameter in model.named_parameters() if parameter.grad is None]

    start = time.perf_counter()
    losses = [step()[0].item() for _ in range(args.steps)]
    milliseconds = (time.perf_counter() - start) / args.steps * 1e3
    print(f"{branch:15}{unused:14}{kib(saved.peak):>14}{kib(saved.held):>24}{milliseconds:9.2f}")
    for line, size in saved.lines():
        print(f"{kib(size):>20} never used, recorded at {line}")
    if branch == "recorded":
        print(f"{'':9}parameters without a gradient: {', '.join(no_grad)}")
    return losses


def main():
    args = arguments(__doc__, steps=20)
    print(f"{'the branch is':15}{'unused nodes':>14}{'peak held':>14}", end="")
    print(f"{'held after backward':>24}{'ms/step':>9}")
    for branch in ("recorded", "under no_grad", "left out"):
        losses = measure(branch, args)
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
