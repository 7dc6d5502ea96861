"""Recording: only what needs a gradient is recorded, and under no_grad nothing is.

Run: python examples/02_recording.py
"""

import torch
from common import SavedBytes, arguments, digits, kib, nodes, save_losses
from torch import nn


@torch.no_grad()
def predict(model, images):
    """`no_grad` also decorates functions."""
    return model(images).argmax(1)


def measure(what, forward, parameters):
    """Print how many nodes `forward` records and how many bytes they hold."""
    with SavedBytes(leave_out=parameters) as saved:
        output = forward()
    print(f"{what:44}{len(nodes(output)):6}{kib(saved.held):>14}   {output.requires_grad}")
    return output


def main():
    args = arguments(__doc__)
    torch.manual_seed(args.seed)
    images, labels = digits()
    images = images.flatten(1)
    model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
    loss_of = nn.CrossEntropyLoss()
    parameters = list(model.parameters())

    def forward():
        return loss_of(model(images), labels)

    print(f"{'':44}{'nodes':>6}{'bytes held':>14}   requires_grad")
    weight = torch.randn(64, 10)
    measure("plain tensors", lambda: (images @ weight).tanh().sum(), [])
    loss = measure("a model whose parameters require grad", forward, parameters)

    with torch.no_grad():
        measure("the same under no_grad", forward, parameters)
        with torch.enable_grad():
            measure("enable_grad inside no_grad", forward, parameters)
    with torch.inference_mode():
        measure("under inference_mode", forward, parameters)
    measure("a function decorated with no_grad", lambda: predict(model, images), parameters)

    model[0].requires_grad_(False)
    measure("first layer frozen", forward, parameters)
    model.requires_grad_(False)
    measure("all layers frozen", forward, parameters)
    save_losses(args, [loss])


if __name__ == "__main__":
    main()
