# expect R16
import torch


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        ctx.y = y
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad


x = torch.ones(4, requires_grad=True)
for _ in range(3):
    Copy.apply(x).sum().backward()
    x.grad = None
