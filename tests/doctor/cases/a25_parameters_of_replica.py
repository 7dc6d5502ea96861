# expect R17
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2)

    def forward(self, x):
        device = next(self.parameters()).device
        return self.lin(x.to(device))


dp = nn.DataParallel(Net(), [0, 1])
for _ in range(3):
    dp(torch.randn(6, 4)).sum().backward()
