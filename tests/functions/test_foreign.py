"""Tensors among NumPy's arrays, numbers, pickles and copies: as torch's."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest

import clew

torch = pytest.importorskip("torch")

CALLS = """
np.asarray(t.ones(2, 3).t())
np.asarray(t.ones(2, requires_grad=True))
np.asarray(t.ones(2), dtype=np.int32)
np.sin(t.ones(2))
np.isnan(t.ones(2))
np.add(np.ones(2), t.ones(2))
np.exp(t.ones(2, requires_grad=True))
np.stack([t.ones(2), t.ones(2)])
np.array([t.ones(2), t.zeros(2)])
np.ones(3)[t.tensor([0, 1])]
np.where(t.tensor([True, False]), 1, 2)
t.ones(2) * np.ones(2)
t.ones(2) * np.array(2.0)
t.ones(2, dtype=t.int64) * np.ones(2, np.float32)
t.ones(2, requires_grad=True) * np.ones(2)
np.array(2.0) * t.ones(2)
np.float64(2) * t.ones(2)
np.float32(2) * t.ones(2, dtype=t.int64)
np.float64(2) ** t.ones(2)
np.float64(1) < t.ones(3)
t.zeros(3) == np.zeros(3)
t.ones(2) + [1, 2]
(1, 2) * t.ones(2)
None + t.tensor(1)
t.tensor([t.tensor(1), t.tensor(2.0)])
t.tensor([[t.tensor(1.0)], [2]])
t.tensor([t.tensor(1).byte(), t.tensor(2).char()])
t.tensor([np.float32(1), np.float32(2)])
t.tensor([np.ones(2), np.ones(2)])
t.tensor([[1], [2, 3]])
t.tensor([[1, 2], 3])
t.tensor([1, "a"])
t.tensor("a")
t.tensor(None)
t.tensor(2**70)
t.tensor(np.ones(2)[::-1])
t.from_numpy(np.ones(2)[::-1])
t.asarray(np.ones(2))
t.asarray(np.ones(2), requires_grad=True)
t.asarray(t.ones(2), copy=True)
t.asarray([1.0, 2.0], dtype=t.float64)
t.asarray(t.ones(2, requires_grad=True))
float(t.ones(2))
int(t.ones(0))
int(t.tensor([[3.7]]))
range(t.tensor(3))
[1, 2, 3][t.tensor(1)]
math.floor(t.tensor(1.5))
divmod(t.tensor(7), 2)
t.tensor(2) ** t.tensor(-1)
t.tensor([1, -1, 3]) ** t.tensor(-3)
t.tensor(2) ** -1
pickle.loads(pickle.dumps(t.tensor(2.0)))
pickle.loads(pickle.dumps(t.ones(2, 3).t()))
pickle.loads(pickle.dumps(t.ones(2, 3)[:, ::2]))
pickle.loads(pickle.dumps(t.ones(3, 1).expand(3, 4)))
pickle.loads(pickle.dumps(t.zeros(0, 3)))
pickle.loads(pickle.dumps(t.ones(2, requires_grad=True)))
pickle.loads(pickle.dumps(t.ones(2, requires_grad=True) * 2))
pickle.loads(pickle.dumps(t.nn.Parameter(t.ones(2, 3).t())))
copy.copy(t.ones(2, 3).t())
copy.copy(t.ones(2, requires_grad=True) * 2)
copy.deepcopy(t.ones(2, 3).t())
copy.deepcopy(t.ones(2, 3).expand(4, 2, 3))
copy.deepcopy(t.ones(2, requires_grad=True) * 2)
t.from_dlpack(np.ones((2, 3)).T)
np.from_dlpack(t.ones(2, 3).t())
t.from_dlpack(t.ones(2).__dlpack__())
t.utils.dlpack.from_dlpack(t.utils.dlpack.to_dlpack(t.ones(3)))
t.ones(2, requires_grad=True).__dlpack__()
t.ones(2).__dlpack_device__()
t.max(t.tensor([1, 2]), 0)
t.sort(t.tensor([2.0, 1.0]))
""".strip().splitlines()


def plain(value):
    if isinstance(value, (clew.Tensor, torch.Tensor)):
        values = value.detach().tolist()
        return "tensor", str(value.dtype), value.stride(), value.requires_grad, values
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), value.strides, value.tolist()
    return repr(value)


def outcome(call, engine):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(eval(call, {"t": engine, "np": np, "math": math, "copy": copy,
                                     "pickle": pickle}))  # fmt: skip
        except Exception as error:
            kind = RuntimeError if isinstance(error, RuntimeError) else type(error)
            kind = TypeError if issubclass(kind, TypeError) else kind
            return kind.__name__, str(error).split("\n")[0]


@pytest.mark.parametrize("call", CALLS)
def test_as_torch(call):
    assert outcome(call, clew) == outcome(call, torch)


def test_memory_is_shared():
    x = clew.zeros(3)
    clew.from_dlpack(x.__dlpack__())[0] = 1
    np.asarray(x)[1] = 2
    clew.asarray(x.numpy())[2] = 3
    assert x.tolist() == [1, 2, 3]
    assert clew.asarray(x.numpy(), copy=True).data_ptr() != x.data_ptr()
