"""A graph of two operations: its nodes, its leaves, what it keeps, and the gradient.

Run: python examples/01_graph.py
"""

import torch
from common import arguments, save_losses


def show(node, depth=0):
    """Print a node and, indented below it, the nodes its gradient flows on to."""
    kept = {name: getattr(node, name) for name in dir(node) if name.startswith("_saved_")}
    kept = ", ".join(f"{name} = {value}" for name, value in kept.items() if value is not None)
    print("  " * depth + node.name(), f"  keeps {kept}" if kept else "")
    for following, _ in node.next_functions:
        if following is not None:
            show(following, depth + 1)


def main():
    args = arguments(__doc__)
    a = torch.tensor([2.0], requires_grad=True)
    b = a * 3
    c = b**2

    for name, tensor in {"a": a, "b": b, "c": c}.items():
        kind = "leaf" if tensor.is_leaf else "not a leaf"
        grad_fn = tensor.grad_fn.name() if tensor.grad_fn else None
        print(f"{name} = {tensor.item():4}  {kind:10}  grad_fn {grad_fn}")

    print("\nThe graph, from c back to a:")
    show(c.grad_fn)
    print("the tensor kept by PowBackward0 is b itself:", c.grad_fn._saved_self is b)

    b.retain_grad()  # only leaves keep their gradient unless they are asked to
    c.backward()
    print("\nAfter c.backward():")
    print(f"b.grad = {b.grad.item()}   dc/db = 2b = 12")
    print(f"a.grad = {a.grad.item()}   dc/da = 2b * 3 = 36")
    save_losses(args, [c, b.grad, a.grad])


if __name__ == "__main__":
    main()
