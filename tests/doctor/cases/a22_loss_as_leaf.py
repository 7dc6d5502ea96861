# expect R14
import torch
from torch import nn

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
y = torch.tensor([0, 1, 2, 0, 1])
for _ in range(4):
    out = model(torch.randn(5, 4)).data
    loss = nn.functional.cross_entropy(out, y)
    loss.requires_grad = True
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
