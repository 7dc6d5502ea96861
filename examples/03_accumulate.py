"""backward() adds to .grad: two passes add up, zero_grad() clears, and what clearing costs.

Run: python examples/03_accumulate.py
"""

import torch
from common import arguments, digits, kib, save_losses
from torch import nn


def main():
    args = arguments(__doc__)
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images.flatten(1)
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = nn.CrossEntropyLoss()

    def backward():
        loss = loss_of(model(images), labels)
        loss.backward()
        return loss.detach()

    print("before any backward: weight.grad =", model.weight.grad)
    loss = backward()
    first = model.weight.grad.clone()
    grad = model.weight.grad
    backward()
    print(f"|grad| after one pass   {first.norm().item():.6f}")
    print(f"|grad| after two passes {grad.norm().item():.6f}")
    print("two passes are twice one:", torch.equal(grad, 2 * first))
    print("the second pass added to the same tensor:", model.weight.grad is grad)

    optimizer.zero_grad(set_to_none=False)
    print("\nzero_grad(set_to_none=False): zeros in the same tensor:", model.weight.grad is grad)
    print(f"  largest entry {grad.abs().max().item()}, {kib(grad.nbytes)} still allocated")
    backward()
    print("  the next pass adds to it:", torch.equal(grad, first))

    optimizer.zero_grad()
    print("zero_grad(), which means set_to_none=True: weight.grad =", model.weight.grad)
    print("  our own reference is untouched:", torch.equal(grad, first))
    backward()
    print("  the next pass makes a new tensor:", model.weight.grad is not grad)
    save_losses(args, [loss, first.norm(), model.weight.grad.norm()])


if __name__ == "__main__":
    main()
