# silent
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    for _ in range(3):
        (model(torch.randn(8, 4)).pow(2).mean() / 3).backward()
    optimizer.step()
    optimizer.zero_grad()
