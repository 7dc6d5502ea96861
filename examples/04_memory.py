"""What the graph of a model holds in memory: node by node, which tensor, and for which rule.

Run: python examples/04_memory.py
"""

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses, saved_tensors
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.linear = nn.Linear(512, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.sigmoid(self.conv2(x))
        return self.linear(x.flatten(1))


def report(loss, parameters):
    """Print every tensor that the graph keeps; return the total, each storage counted once."""
    names = {tensor.untyped_storage().data_ptr(): name for name, tensor in parameters.items()}
    seen, total = {}, 0
    print(f"{'node':26}{'its rule needs':16}{'shape':18}{'bytes':>10}")
    for node in nodes(loss):
        for name, tensor in saved_tensors(node).items():
            storage = tensor.untyped_storage()
            pointer, size = storage.data_ptr(), storage.nbytes()
            if pointer in names:
                note = f"the parameter {names[pointer]}, not counted"
            elif pointer in seen:
                note = f"shared with {seen[pointer]}, counted once"
            else:
                note = "" if tensor.nbytes == size else f"a view of {tensor.nbytes:,} bytes"
                seen[pointer] = f"{node.name()}'s {name}"
                total += size
            print(f"{node.name():26}{name:16}{tuple(tensor.shape)!s:18}{size:10,}  {note}")
    return total


def main():
    args = arguments(__doc__)
    torch.manual_seed(args.seed)
    images, labels = digits()
    images, labels = images[:256], labels[:256]
    model = Net()

    with SavedBytes(leave_out=model.parameters()) as saved:
        loss = nn.functional.cross_entropy(model(images), labels)
        total = report(loss, dict(model.named_parameters()))

    print("\nThe lines that hold most:")
    for line, size in saved.lines()[:5]:
        print(f"{kib(size):>12}  {line}")

    before = saved.held
    print(f"\ntotal of the table       {total:10,} bytes")
    print(f"held before backward     {before:10,} bytes")
    loss.backward()
    print(f"released by backward     {before - saved.held:10,} bytes")
    print(f"still held               {saved.held:10,} bytes")
    save_losses(args, [loss, *(p.grad.norm() for p in model.parameters())])


if __name__ == "__main__":
    main()
