"""Loops that build graphs and do not release them: growth per iteration, holder and cure.

Run: python examples/14_unreleased_graphs.py

Nothing here raises; the programs only become slower and larger.
"""

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses
from torch import nn


class Evaluation:
    """Outputs collected for a metric, recorded although no gradient is wanted."""

    def __init__(self, model, cured):
        self.model, self.cured, self.outputs = model, cured, []

    def step(self, x, y):
        with torch.set_grad_enabled(not self.cured):
            self.outputs.append(self.model(x))
        return self.outputs[-1].max().item()


class RunningMean:
    """A mean of the losses for the progress bar: one chain through all past steps."""

    def __init__(self, model, cured):
        self.model, self.cured, self.mean = model, cured, torch.zeros(())

    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.model(x), y)
        self.mean = 0.9 * self.mean + 0.1 * (loss.detach() if self.cured else loss)
        return self.mean.item()


class CarriedState:
    """A recurrent state carried from batch to batch, with the graphs of all earlier batches."""

    def __init__(self, model, cured):
        self.model, self.cured, self.state = model, cured, torch.zeros(64, 10)

    def step(self, x, y):
        state = self.state.detach() if self.cured else self.state
        self.state = torch.tanh(self.model(x) + state)
        loss = nn.functional.cross_entropy(self.state, y)
        loss.backward(retain_graph=not self.cured)
        return loss.item()


def holders(case):
    """The attributes that hold a graph, by name."""
    found = {}
    for name, value in vars(case).items():
        tensors = value if isinstance(value, list) else [value]
        tensors = [t for t in tensors if isinstance(t, torch.Tensor) and t.grad_fn is not None]
        if tensors:
            found[name] = len(nodes(*tensors))
    return found


def measure(kind, cured, args):
    """Print the growth per step, who holds it, and how much is let go with the holder."""
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images.flatten(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10))
    case, held, counts, figures = kind(model, cured), [], [], []
    with SavedBytes(leave_out=model.parameters()) as saved:
        for _ in range(args.steps):
            batch = torch.randint(len(labels), (64,))
            figures.append(case.step(images[batch], labels[batch]))
            held.append(saved.held)
            counts.append(sum(holders(case).values()))
    per_step = (held[-1] - held[0]) / (args.steps - 1)
    nodes_per_step = (counts[-1] - counts[0]) / (args.steps - 1)
    title = f"{kind.__name__}, cured" if cured else kind.__name__
    print(f"{title:22}{kib(per_step):>12}{nodes_per_step:8.1f}", end="")

    names = ", ".join(holders(case)) or "nobody"
    line = saved.lines()[0][0] if held[-1] else ""
    before = saved.held
    del case
    print(f"{names:>10}{kib(before - saved.held):>14}   {line}")
    return figures


def main():
    args = arguments(__doc__, steps=50)
    print(f"{'':22}{'a step':>12}{'nodes':>8}{'held by':>10}{'released':>14}   most recorded at")
    figures = []
    for kind in (Evaluation, RunningMean, CarriedState):
        figures += measure(kind, False, args)
        figures += measure(kind, True, args)
    save_losses(args, figures)


if __name__ == "__main__":
    main()
