# expect R13
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReLU(inplace=True), nn.Conv2d(2, 2, 3, padding=1), nn.ReLU(inplace=True)
        )

    def forward(self, x):
        o = self.branch(x)
        return o + x


stem, block = nn.Conv2d(1, 2, 1), Block()
optimizer = torch.optim.SGD([*stem.parameters(), *block.parameters()], lr=0.01)
for _ in range(3):
    loss = block(stem(torch.randn(2, 1, 4, 4))).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
