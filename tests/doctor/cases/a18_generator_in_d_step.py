# expect R03
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G, D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)), nn.Linear(4, 1)
optG = torch.optim.SGD(G.parameters(), lr=0.01)
optD = torch.optim.SGD(D.parameters(), lr=0.01)
one, zero = torch.ones(5, 1), torch.zeros(5, 1)
for _ in range(4):
    fake = G(torch.randn(5, 3))
    d = bce(D(torch.randn(5, 4)), one) + bce(D(fake.detach()), zero)
    optD.zero_grad()
    d.backward()
    optD.step()
    g = bce(D(G(torch.randn(5, 3))), one)
    optG.zero_grad()
    g.backward()
    optG.step()
