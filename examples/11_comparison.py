"""retain_graph, detach, no_grad and inference_mode on one model: nodes, bytes held and time.

Run: python examples/11_comparison.py
"""

import time

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 128)
        )
        self.head = nn.Linear(128, 10)

    def forward(self, x, detach=False):
        features = self.body(x)
        return self.head(features.detach() if detach else features)


def memory(model, forward, backward):
    """Nodes recorded, bytes held after forward and after backward, and the loss."""
    with SavedBytes(leave_out=model.parameters()) as saved:
        loss = forward()
        count, before = len(nodes(loss)), saved.held
        backward(loss)
    return count, before, saved.held, loss.item()


def median_times(rows, repeats):
    """Milliseconds of each row, the rows taking turns so that a busy machine slows them alike."""
    times = {title: [] for title in rows}
    for _ in range(repeats):
        for title, (forward, backward) in rows.items():
            start = time.perf_counter()
            backward(forward())
            times[title].append((time.perf_counter() - start) * 1e3)
    return {title: sorted(row)[repeats // 2] for title, row in times.items()}


def main():
    args = arguments(__doc__, steps=50)
    torch.manual_seed(args.seed)
    images, labels = digits()
    x, y = images[:512].flatten(1), labels[:512]
    model = Net()

    def forward(detach=False):
        return nn.functional.cross_entropy(model(x, detach), y)

    def forward_only(mode):
        with mode():
            return forward()

    rows = {
        "backward()": (forward, lambda loss: loss.backward()),
        "backward(retain_graph=True)": (forward, lambda loss: loss.backward(retain_graph=True)),
        "detach() before the head": (lambda: forward(detach=True), lambda loss: loss.backward()),
        "no backward": (forward, lambda loss: None),
        "no_grad()": (lambda: forward_only(torch.no_grad), lambda loss: None),
        "inference_mode()": (lambda: forward_only(torch.inference_mode), lambda loss: None),
    }
    losses = []
    times = median_times(rows, args.steps)
    print(f"{'':30}{'nodes':>6}{'after forward':>16}{'after backward':>16}{'ms':>9}")
    for title, row in rows.items():
        count, before, after, loss = memory(model, *row)
        print(f"{title:30}{count:6}{kib(before):>16}{kib(after):>16}{times[title]:9.2f}")
        losses.append(loss)
    save_losses(args, losses)


if __name__ == "__main__":
    main()
