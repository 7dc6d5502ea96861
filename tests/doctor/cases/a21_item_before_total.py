# expect R15
import torch
from torch import nn

net, D = nn.Linear(4, 4), nn.Linear(4, 1)
D.requires_grad_(False)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
log = []
for _ in range(4):
    x = torch.randn(5, 4)
    fake = net(x)
    rec = (fake - x).pow(2).mean()
    adv = nn.functional.softplus(-D(fake)).mean().item()
    log.append(adv)
    total = rec + 0.1 * adv
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
