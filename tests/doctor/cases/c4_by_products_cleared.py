# silent
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G, D = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optG = torch.optim.SGD(G.parameters(), lr=0.01)
optD = torch.optim.SGD(D.parameters(), lr=0.01)
one, zero = torch.ones(6, 1), torch.zeros(6, 1)
for _ in range(4):
    fake = G(torch.randn(6, 3))
    D.zero_grad()
    bce(D(torch.randn(6, 4)), one).backward()
    bce(D(fake.detach()), zero).backward()
    optD.step()
    G.zero_grad()
    bce(D(fake), one).backward()
    optG.step()
