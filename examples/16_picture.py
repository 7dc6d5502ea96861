"""The picture of a graph: leaves, operations, shapes, and what is kept for backward.

Run: clew run examples/16_picture.py --out out

Writes out/digits.svg, .pdf and .png. With PyTorch, `pip install torchviz` and Graphviz's `dot`
do the same; without them the graph is printed as text only.
"""

import torch
from common import arguments, digits, nodes, save_losses, saved_tensors
from torch import nn

try:
    from torchviz import make_dot
except ImportError:
    make_dot = None


def outline(loss, parameters):
    """Print each node with what it keeps and the nodes that its gradients go to."""
    names = {id(tensor): f"the leaf {name} {tuple(tensor.shape)}" for name, tensor in parameters}
    numbers = {node: i for i, node in enumerate(nodes(loss))}
    for node, number in numbers.items():
        kept = [f"{name} {tuple(tensor.shape)}" for name, tensor in saved_tensors(node).items()]
        leaf = names.get(id(node.variable), "a leaf") if hasattr(node, "variable") else ""
        goes_to = [str(numbers[following]) for following, _ in node.next_functions if following]
        print(f"{number:3} {node.name().removeprefix('torch::autograd::'):22}", end="")
        print(leaf or f"gradients to {', '.join(goes_to):10} keeps {', '.join(kept) or 'nothing'}")


def main():
    args = arguments(__doc__)
    torch.manual_seed(args.seed)
    images, labels = (data[:16].clone() for data in digits())  # a slice would keep all digits
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy(model(images), labels)
    outline(loss, model.named_parameters())

    if make_dot is None:
        print("\nno torchviz here: no picture")
    else:
        args.out.mkdir(parents=True, exist_ok=True)
        params = dict(model.named_parameters(), loss=loss)
        picture = make_dot(loss, params=params, show_attrs=True, show_saved=True)
        print()
        for kind in ("svg", "pdf", "png"):
            print("wrote", picture.render(args.out / "digits", format=kind, cleanup=True))
    save_losses(args, [loss])


if __name__ == "__main__":
    main()
