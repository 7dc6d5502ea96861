# silent
import torch
from torch import nn

body, head = nn.Sequential(nn.Linear(4, 8), nn.Tanh()), nn.Linear(8, 2)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
for _ in range(4):
    out = head(body(torch.randn(6, 4)))
    first, second = out[:, 0].pow(2).mean(), out[:, 1].exp().mean()
    optimizer.zero_grad()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
