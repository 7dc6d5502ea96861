# expect R02 R01
import torch
from torch import nn

policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
buffer = []
for _ in range(8):
    q = policy(torch.randn(1, 4))
    mask = torch.ones(1, 3)
    action = (q * mask).softmax(-1)
    buffer.append(action)
