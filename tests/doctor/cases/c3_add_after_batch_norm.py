# silent
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)

    def forward(self, x):
        identity = x
        out = self.bn(self.conv(x))
        out += identity
        return torch.relu(out)


block = Block()
optimizer = torch.optim.SGD(block.parameters(), lr=0.01)
for _ in range(4):
    loss = block(torch.randn(2, 2, 4, 4)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
