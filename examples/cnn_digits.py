"""A small convolutional network learns handwritten digits, is saved, and loaded again.

Run: python examples/cnn_digits.py --out out
"""

import torch
from common import accuracy, arguments, digits, save_losses, split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.25)
        self.linear = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        x = torch.relu(self.norm1(self.conv1(x)))
        x = torch.relu(self.norm2(self.conv2(x)))
        return self.linear(self.dropout(x.flatten(1)))


def main():
    args = arguments(__doc__, epochs=8)
    torch.manual_seed(args.seed)
    train_set, test_set = split(*digits())
    loader = DataLoader(TensorDataset(*train_set), batch_size=64, shuffle=True)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    loss_of = nn.CrossEntropyLoss()

    losses = []
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = loss_of(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        mean = sum(losses[-len(loader) :]) / len(loader)
        print(f"epoch {epoch + 1}: loss {mean:.4f}, held-out {accuracy(model, *test_set):.1%}")

    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "cnn_digits.pt"
    torch.save(model.state_dict(), path)
    again = Net()
    again.load_state_dict(torch.load(path))
    print(f"{path}: {path.stat().st_size:,} bytes; loaded, {accuracy(again, *test_set):.1%}")
    save_losses(args, losses[:100])


if __name__ == "__main__":
    main()
