# expect R12
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G, D = nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optG = torch.optim.SGD(G.parameters(), lr=0.1)
optD = torch.optim.SGD(D.parameters(), lr=0.1)
one, zero = torch.ones(5, 1), torch.zeros(5, 1)
z, x = torch.randn(5, 3), torch.randn(5, 4)
dl = bce(D(x), one) + bce(D(G(z).detach()), zero)
gl = bce(D(G(z)), one)
optD.zero_grad()
dl.backward(retain_graph=True)
optD.step()
optG.zero_grad()
gl.backward()
