"""Sparse tensors against torch's: parts, products, elementwise functions, sums, gradients, text."""

from __future__ import annotations

import copy
import pickle

import pytest

import clew
from clew import nn
from clew.errors import OtherLayout
from twins import assert_same

EXPRESSIONS = """
s
c
h
s.is_coalesced(), c.is_coalesced(), s._nnz(), c._nnz(), h._nnz()
s._indices(), s._values(), c.indices(), c.values()
s.shape, s.size(1), s.dim(), s.ndim, s.numel(), len(s), s.sparse_dim(), h.dense_dim()
s.is_sparse, str(s.layout), str(s.dtype), s.type(), s.device.type, s.stride(), s.is_contiguous()
s.to_dense(), h.to_dense(), c.to_dense()
d.to_sparse(), d.to_sparse(1), e.zeros(2, 0).to_sparse(), e.tensor(3.0).to_sparse().to_dense()
s.t(), s.T, s.transpose(0, 1).to_dense(), s.to_sparse() is s
s.double(), s.to(e.float64), s.int(), s.bool().coalesce(), s.float() is s
s.clone(), s.detach(), s.data, copy.deepcopy(c)
e.sparse.mm(s, d), e.mm(s, d), s @ d, e.spmm(s, d), e.matmul(s, d), s.mm(d), s.matmul(d)
e.ones(4, 2) @ s, e.mv(s, d[:, 0]), s @ d[:, 0], e.sparse.mm(s, s.t()).to_dense()
e.addmm(e.ones(2), s, d), e.sparse.addmm(e.ones(2, 2), s, d, beta=2.0, alpha=-1.5)
s * 2, 2 * s, s / 2, -s, s * d.t(), d.t() * s, s * e.tensor(3.0)
s + s, s - s, c + c, d.t() + s, d.t() - s, e.add(c, c, alpha=3)
(c + b).coalesce(), (c - b).to_dense(), (c * b).to_dense(), (s * c).to_dense()
s.sin(), e.sqrt(s), s.abs(), s.relu(), s.pow(2), s.tanh(), s.floor(), s.sign()
s.sum(), e.sum(s), e.sparse.sum(s), e.sparse.sum(s, 0), e.sparse.sum(s, 1), e.sparse.sum(h, 2)
e.sparse.softmax(s, 1), e.sparse.log_softmax(s, 1), e.sparse.softmax(c, 0, dtype=e.float64)
s[0], s[0, 1], s[-1, 2], c[1].to_dense(), h[1].to_dense()
e.cat([s, s]), e.cat([c, c], 1).coalesce(), e.stack([s, s]), s.unsqueeze(0)
s.index_select(0, e.tensor([1, 0, 1])).to_dense(), e.zeros_like(s)
d.t().sparse_mask(c), s.sparse_mask(c)
e.sparse_coo_tensor((2, 3)), e.sparse_coo_tensor(i, v), e.sparse_coo_tensor(i, v, dtype=e.float64)
e.sparse_coo_tensor([[0, 1]], [2.0, 3.0]), e.sparse.FloatTensor(i, v, e.Size([2, 3]))
s.mul_(2), s.div_(4)
e.is_tensor(s), isinstance(s, e.Tensor), s.requires_grad, s.is_leaf, s.grad, s.grad_fn
"""

REFUSED = """
s.indices()
s.values()
s + d.t()
s.numpy()
e.sparse_coo_tensor(i, v[:2], (2, 3))
s[5]
bool(s)
s.item()
e.sparse.mm(s, d.t())
"""

GRADIENTS = """
e.sparse.mm(e.sparse_coo_tensor(i, v, (2, 3)), d)
e.sparse_coo_tensor(i, v, (2, 3)).t() @ d[:2]
d.t() @ e.sparse_coo_tensor(i, v, (2, 3)).t()
e.sparse_coo_tensor(i, v, (2, 3)).to_dense() ** 2
e.sparse_coo_tensor(i, v, (2, 3)).coalesce().values() ** 2
(e.sparse_coo_tensor(i, v, (2, 3)) * d.t()).to_dense().sin()
e.sparse.softmax(e.sparse_coo_tensor(i, v, (2, 3)), 1).to_dense() ** 2
e.sparse.sum(e.sparse_coo_tensor(i, v, (2, 3)), 1).to_dense() ** 2
d.to_sparse().to_dense() * d + v.sum()
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def plain(value):
    """Sparse tensors as their parts and text."""
    if isinstance(value, tuple | list) and not hasattr(value, "numel"):
        return [plain(v) for v in value]
    if getattr(value, "is_sparse", False):
        return [value._indices(), value._values(), tuple(value.shape), str(value)]
    return value


def names(e):
    i = e.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    v = e.tensor([3.0, 4.0, 5.0, 1.0])
    s = e.sparse_coo_tensor(i, v.clone(), (2, 3))
    hybrid = e.sparse_coo_tensor(i, e.arange(8.0).reshape(4, 2), (2, 3, 2))
    b = e.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]).to_sparse()
    d = e.tensor([[0.0, 1.0], [2.0, 0.0], [4.0, 5.0]])
    return {"e": e, "i": i, "v": v, "s": s, "c": s.coalesce(), "h": hybrid, "b": b, "d": d,
            "copy": copy}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse CSR", "ignore:.*is deprecated")
@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_expression(expression):
    assert_same(lambda e: plain(eval(expression, names(e))))


@pytest.mark.parametrize("expression", lines(REFUSED))
def test_refused(expression):
    def run(e):
        try:
            eval(expression, names(e))
        except Exception as error:
            return next(k.__name__ for k in type(error).__mro__ if k.__module__ == "builtins")
        return "nothing"

    assert_same(run)


@pytest.mark.parametrize("expression", lines(GRADIENTS))
def test_gradients(expression):
    def run(e):
        known = names(e)
        known["v"].requires_grad_()
        known["d"].requires_grad_()
        result = eval(expression, known)
        result.sum().backward()
        return result.detach(), known["v"].grad.to_dense(), known["d"].grad.to_dense()

    assert_same(run)


def test_a_sparse_leaf_gets_a_sparse_gradient():
    leaf = clew.eye(3).to_sparse().requires_grad_()
    (leaf @ clew.arange(6.0).reshape(3, 2)).sum().backward()
    assert leaf.grad.is_sparse and leaf.grad.to_dense().diagonal().tolist() == [1.0, 5.0, 9.0]
    assert leaf.is_leaf and leaf.requires_grad


def test_second_order():
    i = clew.tensor([[0, 1, 1], [2, 0, 2]])
    v = clew.rand(3, dtype=clew.float64, requires_grad=True)
    d = clew.rand(3, 2, dtype=clew.float64, requires_grad=True)

    def product(v, d):
        return clew.sparse.mm(clew.sparse_coo_tensor(i, v, (2, 3)), d)

    assert clew.autograd.gradcheck(product, (v, d))
    assert clew.autograd.gradgradcheck(product, (v, d))


def test_what_needs_a_dense_tensor_says_so():
    s = names(clew)["s"]
    for refused in (lambda: s.exp(), lambda: s.view(6), lambda: s.max(), lambda: s == s):
        with pytest.raises(NotImplementedError, match="with arguments from the 'SparseCPU'") as c:
            refused()
        assert isinstance(c.value, OtherLayout) and "to_dense()" in c.value.__notes__[0]
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        clew.sparse_coo_tensor([[5]], [1.0], (2,))
    with pytest.raises(RuntimeError, match="negative index -1 for dim 0"):
        clew.sparse_coo_tensor([[-1]], [1.0], (2,))
    with pytest.raises(NotImplementedError, match=r"torch\.strided only"):
        clew.zeros(2, 3, layout=clew.sparse_coo)


def test_a_module_holds_one():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("adjacency", names(clew)["c"])
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return self.linear(self.adjacency @ x)

    layer = Layer().double()
    assert layer.adjacency.is_sparse and layer.adjacency.dtype is clew.float64
    layer(clew.ones(3, 2, dtype=clew.float64)).sum().backward()
    assert layer.linear.weight.grad is not None
    copied = pickle.loads(pickle.dumps(layer.adjacency))
    assert clew.equal(copied.to_dense(), layer.adjacency.to_dense())
