"""``torch.nn.parallel`` on a machine without accelerators.  Layer 5.

`DataParallel` splits a batch over accelerators; where there is none it calls its module, which is
what PyTorch does too.  Programs that wrap their model run unmodified.
"""

from __future__ import annotations

from clew.nn.parallel.data_parallel import DataParallel, data_parallel
from clew.nn.parallel.distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
