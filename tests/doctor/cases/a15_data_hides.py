# expect R13
import torch

a = torch.tensor([0.5, 1.0], requires_grad=True)
y = torch.sigmoid(a)
y.data.zero_()
y.sum().backward()
