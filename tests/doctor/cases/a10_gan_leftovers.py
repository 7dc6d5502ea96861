# expect R09
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G, D = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optG = torch.optim.SGD(G.parameters(), lr=0.01)
optD = torch.optim.SGD(D.parameters(), lr=0.01)
real, fake = torch.ones(6, 1), torch.zeros(6, 1)
for _ in range(4):
    z = torch.randn(6, 3)
    g = bce(D(G(z)), real)
    g.backward()
    optG.step()
    optG.zero_grad()
    with torch.no_grad():
        sample = G(z)
    d = bce(D(torch.randn(6, 4)), real) + bce(D(sample), fake)
    d.backward()
    optD.step()
    optD.zero_grad()
