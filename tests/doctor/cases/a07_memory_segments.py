# expect R06
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.key = nn.Linear(4, 4)

    def forward(self, x, M):
        k = self.key(x).sigmoid()
        return k @ M, M + k.t() @ x


attn, head = Attention(), nn.Linear(4, 1)
M = torch.zeros(4, 4)
for segment in torch.randn(6, 5, 4):
    out, M = attn(segment, M)
    loss = head(out).pow(2).mean()
    loss.backward(retain_graph=True)
