# expect R01
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters())
ema = 0.0
for _ in range(6):
    loss = model(torch.ones(3, 4)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema = 0.9 * ema + 0.1 * loss
