# expect R06 not R05
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
reg = sum(w.pow(2).sum() for w in model.parameters())
for _ in range(4):
    loss = model(torch.randn(8, 4)).pow(2).mean() + reg
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
