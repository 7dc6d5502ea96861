# expect R17
import torch
from torch import nn


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2)
        self.counter = 0

    def forward(self, x):
        self.counter += 1
        return self.lin(x)


m = Counting()
dp = nn.DataParallel(m, [0, 1])
for _ in range(10):
    dp(torch.randn(6, 4)).sum().backward()
