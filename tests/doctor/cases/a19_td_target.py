# expect R04
import torch
from torch import nn

q, target = nn.Linear(4, 2), nn.Linear(4, 2)
optimizer = torch.optim.Adam(q.parameters(), lr=0.01)
for _ in range(4):
    s, s2, r = torch.randn(6, 4), torch.randn(6, 4), torch.randn(6)
    a = torch.zeros(6, 1, dtype=torch.int64)
    loss = nn.functional.mse_loss(q(s).gather(1, a)[:, 0], r + 0.9 * target(s2).max(1).values)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
