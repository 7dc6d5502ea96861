"""detach(): the same storage and version, no history; and what goes wrong with it.

Run: python examples/08_detach.py
"""

import torch
from common import arguments, error_of, save_losses


def fresh():
    x = torch.tensor([2.0], requires_grad=True)
    return x, x * 3


def main():
    args = arguments(__doc__)
    x, y = fresh()
    z = y.detach()
    print("z = y.detach()")
    print(f"  requires_grad {z.requires_grad}, grad_fn {z.grad_fn}, leaf {z.is_leaf}")
    print(f"  same storage: {z.data_ptr() == y.data_ptr()}")
    z.mul_(2)
    print(f"  after z.mul_(2): y = {y.item()}, versions of y and z: {y._version}, {z._version}")

    print("\nw = y.detach()**2; w.backward()   (in truth, this raises)")
    x, y = fresh()
    w = y.detach() ** 2
    print(" ", error_of(w.backward))
    print(f"  x.grad = {x.grad}")

    print("\nz = y.detach().requires_grad_(); w = z**2; w.backward()   (z is a new leaf)")
    x, y = fresh()
    z = y.detach().requires_grad_()
    (z**2).backward()
    print(f"  z.grad = {z.grad.item()}, x.grad = {x.grad}: the gradient stops at z")

    print("\nw = y.detach()**2 + y; w.backward()   (no error, and half of the gradient)")
    x, y = fresh()
    (y.detach() ** 2 + y).backward()
    partial = x.grad
    x, y = fresh()
    (y**2 + y).backward()
    print(f"  x.grad = {partial.item()}; without detach {x.grad.item()}")

    print("\nAn in-place change through an alias of y, which y**2 keeps for its backward")
    x, y = fresh()
    w = y**2
    y.detach().add_(1)
    print("  y.detach().add_(1):", error_of(w.backward))
    x, y = fresh()
    w = y**2
    y.data.add_(1)
    w.backward()
    print(f"  y.data.add_(1): no error and x.grad = {x.grad.item()}; the truth is 36.0")
    save_losses(args, [z.grad, partial, x.grad])


if __name__ == "__main__":
    main()
