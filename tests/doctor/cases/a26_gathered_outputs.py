# expect R17
import torch
from torch import nn

net = nn.Conv2d(3, 21, 1)
dp = nn.DataParallel(net, device_ids=[0, 1, 2, 3])
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
labels = torch.zeros(4, 6, 6, dtype=torch.int64)
for _ in range(3):
    out = dp(torch.randn(4, 3, 6, 6))
    loss = nn.functional.cross_entropy(out, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
