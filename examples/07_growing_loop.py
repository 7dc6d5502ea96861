"""A training loop whose memory grows until it dies: the growth, who holds it, and the cure.

Run: python examples/07_growing_loop.py --limit 20

The loop keeps each step's loss as a tensor. `--limit` is the memory, in MiB, at which it "dies".
"""

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(title, args, keep, backward):
    """Train for some steps, keeping `keep(loss)` of each; report what the kept values hold."""
    torch.manual_seed(args.seed)
    images, labels = digits()
    data = TensorDataset(images.flatten(1), labels)
    loader = DataLoader(data, batch_size=128, shuffle=True, drop_last=True)
    model = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history, held, losses = [], [], []

    with SavedBytes(leave_out=model.parameters()) as saved:
        while len(history) < args.steps and saved.held < args.limit * 2**20:
            for x, y in loader:
                loss = nn.functional.cross_entropy(model(x), y)
                optimizer.zero_grad()
                backward(loss)
                optimizer.step()
                history.append(keep(loss))
                losses.append(loss.item())
                held.append(saved.held)

    steps, growth = len(held), (held[-1] - held[0]) / (len(held) - 1)
    kept = len(nodes(*(value for value in history if isinstance(value, torch.Tensor))))
    print(f"\n{title}")
    print(f"  {steps} steps: grows by {kib(growth)} and {kept / steps:.0f} nodes a step")
    if held[-1] >= args.limit * 2**20:
        print(f"  DIED at the limit of {args.limit} MiB, which is filled by what was recorded at")
        for line, size in saved.lines()[:2]:
            print(f"  {kib(size):>14}  {line}")
    for name, holder in {"the last loss": [loss], "history": history}.items():
        before = saved.held
        loss = None
        holder.clear()
        print(f"  letting go of {name:14} releases {kib(before - saved.held)}")
    return losses


def main():
    args = arguments(__doc__, steps=200, limit=20)
    train(
        "history.append(loss), with backward(retain_graph=True)",
        args,
        keep=lambda loss: loss,
        backward=lambda loss: loss.backward(retain_graph=True),
    )
    train(
        "history.append(loss), with a plain backward()",
        args,
        keep=lambda loss: loss,
        backward=lambda loss: loss.backward(),
    )
    print("  In truth, a plain backward has released the saved tensors: only bare nodes pile up.")
    losses = train(
        "the cure, history.append(loss.item())",
        args,
        keep=lambda loss: loss.item(),
        backward=lambda loss: loss.backward(),
    )
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
