# expect R15
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
feat, head = nn.Linear(4, 6), nn.Linear(6, 1)
optG = torch.optim.Adam(G.parameters())
optD = torch.optim.Adam([*feat.parameters(), *head.parameters()])
one, zero = torch.ones(5, 1), torch.zeros(5, 1)
for _ in range(4):
    x = torch.randn(5, 4)
    fake = G(x)
    feat_r, feat_f = feat(x), feat(fake.detach())
    lat = (feat_f - feat_r).pow(2).mean()
    rec = (fake - x).abs().mean()
    adv = bce(head(feat(fake)), one)
    total = adv + 50 * rec + lat
    optG.zero_grad()
    total.backward()
    optG.step()
    optD.zero_grad()
    d = bce(head(feat(x)), one) + bce(head(feat(fake.detach())), zero)
    d.backward()
    optD.step()
