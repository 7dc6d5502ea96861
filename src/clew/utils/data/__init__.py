"""PyTorch's ``torch.utils.data``: datasets, samplers, the DataLoader.  Layer 5.

Imports the core, and nothing of the other clients.
"""

from clew.utils.data._utils.collate import default_collate, default_convert
from clew.utils.data._utils.worker import get_worker_info
from clew.utils.data.dataloader import DataLoader
from clew.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from clew.utils.data.distributed import DistributedSampler
from clew.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
