# expect R06
import torch
from torch import nn

rnn, head = nn.RNN(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.01)
h = None
for _ in range(4):
    y, h = rnn(torch.randn(5, 2, 3), h)
    loss = head(y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
