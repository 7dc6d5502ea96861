# expect R10
import torch
from torch import nn

conv = nn.Conv2d(1, 1, 3, padding=1)
x = torch.randn(1, 1, 4, 4)
skip = x
out = torch.relu(conv(x))
out += skip
out.sum().backward()
