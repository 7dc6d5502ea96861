"""Joining, splitting, repeating, grids: as torch's, down to views and nodes."""

import pytest

import clew
from functions.expressions import assert_as_torch

JOINED = """
t.cat([])
t.cat([x(2, 3), x(3, 2)])
t.cat([x(2, 3), x(0)], 1)
t.cat([x(0), x(0)], 1)
t.cat([x(), x(2)])
t.cat([x(2, 3), x(2, 3, 1)])
t.cat([x(2), n(2)])
t.cat([x(2), 3])
t.cat(x(2))
t.cat([x(2, 3), x(2, 3)], 5)
t.cat((x(2, 3), x(2, 1)), axis=-1)
t.concat([x(2).float(), x(3)])
t.stack([])
t.stack([x(2), x(3)])
t.stack([x(2), n(2)], -1)
t.stack([x(2, 3), x(2, 3)], 1)
t.hstack([x(2), x(2)])
t.hstack([x(2, 2), x(2, 3)])
t.hstack([])
t.vstack([x(2), x(2)])
t.dstack([x(2), x(2)])
t.column_stack([x(2), x(2, 3)])
t.row_stack([x(2), x(2, 2)])
t.block_diag(x(2), x(), x(2, 2))
t.block_diag(x(2, 2, 2))
t.block_diag()
""".strip().splitlines()

SPLIT = """
t.split(x(4, 3), 3)
t.split(x(4, 3), 2, -1)
t.split(x(4, 3), [1, 3])
t.split(x(4, 3), [1, 2])
t.split(x(4, 3), -1)
t.split(x(4, 3), 0)
t.split(x(4, 3), 2.0)
t.split(x(), 1)
t.split(x(0), 0)
x(4, 3).split(split_size=2, dim=1)
t.split_with_sizes(x(4, 3), [1, 3])
t.chunk(x(4, 3), 3)
t.chunk(x(0, 2), 3)
t.chunk(x(4, 3), 0)
t.unsafe_split(x(4, 3), 3)
t.unsafe_split_with_sizes(x(4, 3), [1, 3])
t.tensor_split(x(4, 3), 3)
t.tensor_split(x(4, 3), (1, -1))
t.tensor_split(x(4, 3), t.tensor([1, 2]))
t.tensor_split(x(4, 3), 0)
t.hsplit(x(4, 4), 2)
t.hsplit(x(4, 3), 2)
t.vsplit(x(4, 3), [1, 3])
t.dsplit(x(4, 3), 2)
t.unbind(x(4, 3))
t.unbind(x(4, 3), 1)
t.unbind(x(0, 2))
t.unbind(x())
t.unbind(x(4, 3))[1]
t.split(x(4, 3), [1, 2, 1])[1]
""".strip().splitlines()

REPEATED = """
t.flip(x(4, 3), (0, 1))
t.flip(x(4, 3), (0, 0))
t.flip(x(2, 3, 4).permute(2, 0, 1), (1,))
t.fliplr(x(2))
t.flipud(x(4, 3))
t.roll(x(4, 3), 1)
t.roll(x(4, 3), (1, -2), (0, 1))
t.roll(x(4, 3), (1, 2))
t.roll(x(), 1)
t.rot90(x(4, 3))
t.rot90(x(4, 3), 2)
t.rot90(x(2, 3, 4), 3, (2, 0))
t.rot90(x(4, 3), 1, (0, -2))
x(2, 3).repeat(2, 1, 2)
x(2, 3).repeat(0, 1)
x(2, 3).repeat(2)
x(2, 3).repeat(2, -1)
t.tile(x(2, 3), (2,))
t.repeat_interleave(x(2, 3), 2)
t.repeat_interleave(x(2, 3), 2, 1)
t.repeat_interleave(x(2, 3), t.tensor([1, 3]), 0)
t.repeat_interleave(t.tensor([1, 0, 2]))
t.repeat_interleave(x(2, 3), t.tensor([1, 3, 1]), 0)
t.repeat_interleave(x(2, 3), 2, 0, output_size=5)
t.repeat_interleave(x(2, 3), -1)
t.meshgrid(x(2), x(3), indexing="ij")
t.meshgrid(x(2), x(3), x(4), indexing="xy")
t.meshgrid([x(2), x(3)], indexing="zz")
t.meshgrid(x(2), n(3))
t.cartesian_prod(x(2), x(3))
t.cartesian_prod(x(2), x(2, 2))
t.combinations(x(3))
t.combinations(x(3), 3, True)
t.combinations(x(3), -1)
t.broadcast_tensors(x(2, 3), x(3))
t.broadcast_tensors(x(2, 3), x(4))
t.broadcast_to(x(3), (2, 3))
tuple(t.broadcast_shapes((2, 1), (3,)))
t.broadcast_shapes((2,), (3,))
t.atleast_1d(x(), x(2))
t.atleast_2d(x(2))
t.atleast_3d(x(2))
t.atleast_3d(x(2, 3))
""".strip().splitlines()


COPIED = """
x(2, 3, 4).transpose(0, 1).clone()
x(3, 4).expand(2, 3, 4).clone()
x(4, 5).t().clone(memory_format=t.contiguous_format)
x(4, 5).t().clone(memory_format=t.preserve_format)
x(4, 3).t().reshape(3, 2, 2)
x(4, 3).t().reshape(12)
""".strip().splitlines()


@pytest.mark.parametrize("call", [*JOINED, *SPLIT, *REPEATED, *COPIED])
def test_as_torch(call):
    assert_as_torch(call)


@pytest.mark.parametrize(
    "split", [lambda x: x.split(2), lambda x: x.unbind(), lambda x: x.chunk(2)]
)
def test_pieces_of_one_call_cannot_be_written_to(split):
    x = clew.ones(4, 3, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="is the output of a function that returns multiple"):
        split(x)[0].add_(1)


def test_unsafe_pieces_can_be_written_to():
    x = clew.ones(4, 3, requires_grad=True)
    piece = (x * 1).unsafe_split(2)[0]
    piece.mul_(3)
    piece.sum().backward()
    assert x.grad.sum().item() == 18


def test_meshgrid_warns_without_indexing():
    with pytest.warns(UserWarning, match="it will be required to pass the indexing argument"):
        clew.meshgrid(clew.ones(2), clew.ones(3))


def test_out():
    out = clew.empty(5)
    assert clew.hstack([clew.ones(2), clew.zeros(3)], out=out) is out
    assert out.tolist() == [1, 1, 0, 0, 0]
