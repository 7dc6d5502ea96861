# expect R05
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
D = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt_g = torch.optim.Adam(G.parameters())
opt_d = torch.optim.Adam(D.parameters())
one, zero = torch.ones(6, 1), torch.zeros(6, 1)
for _ in range(4):
    x = torch.randn(6, 4)
    fake = G(x)
    lg = bce(D(fake), one) + (fake - x).abs().mean()
    lg.backward(retain_graph=True)
    opt_g.step()
    opt_d.zero_grad()
    ld = bce(D(x), one) + bce(D(fake.detach()), zero)
    ld.backward()
    opt_d.step()
    opt_g.zero_grad()
    opt_d.zero_grad()
