# expect R18
import torch

p = torch.rand(3, requires_grad=True) * 0.01
optimizer = torch.optim.SGD([p], lr=0.1)
