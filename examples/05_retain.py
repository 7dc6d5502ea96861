"""What backward releases, what retain_graph=True keeps, and the error of a second pass.

Run: python examples/05_retain.py
"""

import torch
from common import SavedBytes, arguments, digits, error_of, kib, save_losses
from torch import nn


def main():
    args = arguments(__doc__)
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images.flatten(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))

    def forward():
        return nn.functional.cross_entropy(model(images), labels)

    with SavedBytes(leave_out=model.parameters()) as saved:
        loss = forward()
        print(f"after forward                      {kib(saved.held):>12}")
        loss.backward()
        print(f"after backward()                   {kib(saved.held):>12}")
        print("a second backward():", error_of(loss.backward))

        loss = forward()
        loss.backward(retain_graph=True)
        print(f"\nafter backward(retain_graph=True)  {kib(saved.held):>12}")
        loss.backward(retain_graph=True)
        print(f"after a second one                 {kib(saved.held):>12}")
        loss.backward()
        print(f"after a last plain backward()      {kib(saved.held):>12}")

        loss = forward()
        weight = model[0].weight
        (gradient,) = torch.autograd.grad(loss, weight, create_graph=True)
        print(f"\nafter grad(create_graph=True)      {kib(saved.held):>12}")
        penalty = gradient.pow(2).sum()
        penalty.backward()
        print(f"after backward of a gradient norm  {kib(saved.held):>12}")
        print("  (what is left is the part of loss's own graph that the norm does not pass)")
        del loss, gradient, penalty
        print(f"after the last reference is gone   {kib(saved.held):>12}")

    x = torch.ones(3, requires_grad=True)
    total = (x + 1).sum()
    total.backward()
    print("\nIn truth, a second pass is refused only where something was kept and is gone:")
    print("(x + 1).sum() backward twice:", error_of(total.backward), "- x.grad =", x.grad.tolist())
    save_losses(args, [forward(), weight.grad.norm()])


if __name__ == "__main__":
    main()
