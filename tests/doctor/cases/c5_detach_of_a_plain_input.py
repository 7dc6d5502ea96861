# silent
import torch
from torch import nn

model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(4):
    x = torch.randn(6, 4)
    loss = (model(x.detach()) - x.detach()).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
