"""Small programs that run on clew and on real PyTorch alike, and what a model says of their graphs.

Each takes the engine and returns (the tensors to look at, the module or None).
"""

import itertools


def chain(T):
    x = T.ones(4, 3, requires_grad=True)
    w = T.ones(3, requires_grad=True)
    h = (x * w).exp()
    return (h * h).sum(), None


def residual_net(T):
    nn = T.nn
    T.manual_seed(0)

    class Block(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.a, self.b, self.norm = nn.Linear(d, d), nn.Linear(d, d), nn.LayerNorm(d)

        def forward(self, x):
            return x + self.b(nn.functional.gelu(self.a(self.norm(x))))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Block(8) for _ in range(4)])
            self.head = nn.Linear(8, 2)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    net = Net()
    loss = nn.functional.cross_entropy(net(T.randn(4, 8)), T.tensor([0, 1, 1, 0]))
    return loss, net


def convolutional(T):
    nn = T.nn
    T.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(4 * 4 * 4, 5),
    )  # fmt: skip
    return nn.functional.mse_loss(net(T.randn(2, 3, 8, 8)), T.zeros(2, 5)), net


def gan(T):
    nn = T.nn
    T.manual_seed(0)

    def mlp(*sizes):
        layers = [nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
        return nn.Sequential(*[m for layer in layers for m in (layer, nn.LeakyReLU(0.2))])

    g, d = mlp(4, 16, 8), mlp(8, 16, 1)
    fake = g(T.randn(6, 4))
    real = T.randn(6, 8)
    bce = nn.functional.binary_cross_entropy_with_logits
    d_loss = bce(d(real), T.ones(6, 1)) + bce(d(fake.detach()), T.zeros(6, 1))
    g_loss = bce(d(fake), T.ones(6, 1))
    return [d_loss, g_loss], None


def recurrent(T):
    nn = T.nn
    T.manual_seed(0)

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.into, self.again = nn.Linear(3, 5), nn.Linear(5, 5)

        def forward(self, x, h):
            return (self.into(x) + self.again(h)).tanh()

    cell = Cell()
    h = T.zeros(2, 5)
    for x in T.randn(6, 2, 3):
        h = cell(x, h)
    return h.pow(2).mean(), cell


def gated(T):
    T.manual_seed(0)
    cell = T.nn.GRUCell(3, 5)
    return cell(T.randn(2, 3), cell(T.randn(2, 3))).sum(), cell


def double_backward(T):
    x = T.linspace(0.1, 1, 5).requires_grad_()
    y = (x.sin() * x).sum()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    return (g * g).sum(), None


def shared_and_views(T):
    x = T.arange(12.0).reshape(3, 4).requires_grad_()
    h = x * 2
    a, b = h[:2], h.t()[1:]
    return T.cat([a.reshape(-1), (b * b).reshape(-1)]).max(), None


def freed(T):
    y, module = chain(T)
    y.backward()
    return y, module


def written_in_place(T):
    h = (T.ones(3, requires_grad=True) * 2).exp()
    y = (h * h).sum()
    h.detach().add_(1)
    return y, None


def indices_and_reductions(T):
    x = T.arange(24.0).reshape(4, 6).requires_grad_()
    picked = x[T.tensor([0, 2, 2])]
    values, _ = picked.max(dim=1)
    return values.logsumexp(0) + picked.softmax(1)[:, 0].prod() + x.std() + x.norm(), None


def custom_function(T):
    class Cube(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * x * x
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, grad):
            x, _ = ctx.saved_tensors
            return 3 * x * x * grad

    return Cube.apply(T.ones(3, requires_grad=True) * 2).sum(), None


def nothing(T):
    return T.ones(2), None


def only_a_leaf(T):
    return T.ones(2, requires_grad=True), None


PROGRAMS = {f.__name__: f for f in (
    chain, residual_net, convolutional, gan, recurrent, double_backward, shared_and_views, freed,
    written_in_place, indices_and_reductions, custom_function, nothing, only_a_leaf,
)}  # fmt: skip


def facts(graph):
    """What must agree between engines: everything but numbers of nodes and places in memory."""
    return [
        (
            node.name, node.outputs, node.edges, node.label, node.leaf, node.freed, node.order,
            graph.module_of(node), node.iteration, node.site and node.site.text,
            sorted(
                (s.name, s.shape, s.dtype, s.nbytes, s.storage_nbytes, s.role, s.changed, s.reason)
                for s in node.saved
            ),
        )
        for node in graph
    ]  # fmt: skip
