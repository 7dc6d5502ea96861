"""In-place operations: which break the graph, with their errors, and which do not.

Run: python examples/13_inplace.py
"""

import torch
from common import arguments, error_of, save_losses


def leaf():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def change_leaf():
    x = leaf()
    x.add_(1)


def change_view_of_leaf():
    x = leaf()
    x[0] = 5.0


def change_leaf_under_no_grad():
    x = leaf()
    with torch.no_grad():
        x.add_(1)
    (x * 2).sum().backward()


def change_saved_result():
    x = leaf()
    y = x.exp()  # the rule of exp needs its result
    y.add_(1)
    y.sum().backward()


def change_saved_input():
    h = leaf() * 2
    y = h**2  # the rule of pow needs its input
    h.add_(1)
    y.sum().backward()


def change_what_nobody_saved():
    h = leaf() * 2
    y = h + 1  # the rule of add needs neither input nor result
    h.mul_(3)
    (y + h).sum().backward()


def change_weight_between_forward_and_backward():
    x, weight = leaf(), torch.ones(3, requires_grad=True)
    loss = (x * weight).sum()
    with torch.no_grad():
        weight.sub_(0.1)  # what an optimizer step does
    loss.backward()


def residual(inplace):
    """x + relu(x) with the relu in place: no error, and a different result."""
    h = leaf() - 2
    return h + (torch.relu_(h) if inplace else torch.relu(h))


def main():
    args = arguments(__doc__)
    cases = [
        change_leaf,
        change_view_of_leaf,
        change_leaf_under_no_grad,
        change_saved_result,
        change_saved_input,
        change_what_nobody_saved,
        change_weight_between_forward_and_backward,
    ]
    for case in cases:
        print(f"{case.__name__.replace('_', ' ')}:\n    ", end="")
        print(error_of(case).replace("\n", "\n    "))

    wrong, right = residual(inplace=True), residual(inplace=False)
    print("\nNot every mistake raises. h + relu(h), with the relu in place:")
    print(f"    {wrong.tolist()} instead of {right.tolist()}")
    save_losses(args, [*wrong, *right])


if __name__ == "__main__":
    main()
