"""A frozen feature extractor and a new classifier, against training everything.

Run: python examples/10_finetune.py

The extractor learns the digits 0 to 4; then the digits 5 to 9 are learnt on top of it.
"""

import copy
import time

import torch
from common import SavedBytes, accuracy, arguments, digits, kib, nodes, save_losses, split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, features, classes=5):
        super().__init__()
        self.features = features
        self.classifier = nn.Linear(128, classes)

    def forward(self, x):
        return self.classifier(self.features(x))


def conv_features():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.Tanh(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
    )


def train(model, images, labels, epochs):
    """Train the parameters of `model` that require grad; return the losses."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(trained, lr=2e-3)
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def finetune(title, features, train_set, test_set, epochs):
    """Train a new classifier on `features`; print what it took and what it reached."""
    model = Net(features)
    with SavedBytes(leave_out=model.parameters()) as saved:
        loss = nn.functional.cross_entropy(model(train_set[0][:32]), train_set[1][:32])
        count, held = len(nodes(loss)), saved.held
        loss.backward()
    parameters = list(model.named_parameters())
    reached = {name.split(".")[0] for name, parameter in parameters if parameter.grad is not None}
    model.zero_grad()

    start = time.perf_counter()
    losses = train(model, *train_set, epochs)
    milliseconds = (time.perf_counter() - start) / len(losses) * 1e3
    print(f"{title:22}{count:6}{kib(held):>12}{milliseconds:9.2f}", end="")
    print(f"{losses[-1]:9.4f}{accuracy(model, *test_set):9.1%}   {', '.join(sorted(reached))}")
    return losses


def main():
    args = arguments(__doc__, epochs=6)
    torch.manual_seed(args.seed)
    images, labels = digits()
    low = labels < 5

    features = conv_features()
    losses = train(Net(features), images[low], labels[low], args.epochs)
    print(f"pretrained on 0 to 4: loss {losses[0]:.3f} -> {losses[-1]:.3f}\n")

    train_set, test_set = split(images[~low], labels[~low] - 5)
    frozen = copy.deepcopy(features).requires_grad_(False)
    print(f"{'on 5 to 9':22}{'nodes':>6}{'bytes held':>12}{'ms/step':>9}", end="")
    print(f"{'loss':>9}{'accuracy':>9}   gradients reach")
    losses += finetune("frozen extractor", frozen, train_set, test_set, args.epochs)
    losses += finetune("training everything", features, train_set, test_set, args.epochs)
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
