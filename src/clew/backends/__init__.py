"""``clew.backends``: the libraries behind PyTorch's operations, most of which clew does not use.

Layer 5.  Programs set flags here before they begin; the flags can be set and read, and change
nothing.  But `mkldnn` is the switch of oneDNN, and `numba`, which PyTorch does not
have, that of clew's compiled kernels.
"""

from __future__ import annotations

from clew.backends import cpu as cpu
from clew.backends import cuda as cuda
from clew.backends import cudnn as cudnn
from clew.backends import mkl as mkl
from clew.backends import mkldnn as mkldnn
from clew.backends import mps as mps
from clew.backends import numba as numba
from clew.backends import openmp as openmp
