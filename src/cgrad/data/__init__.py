"""Data sets and mini-batches.

Examples
--------
>>> import cgrad as cg
>>> data = cg.data.TensorDataset(cg.arange(6).reshape(3, 2), cg.tensor([0, 1, 2]))
>>> for x, y in cg.data.DataLoader(data, batch_size=2):
...     print(x.shape, y.tolist())
(2, 2) [0, 1]
(1, 2) [2]
"""
from cgrad.data.collate import default_collate, default_convert
from cgrad.data.dataset import ChainDataset, ConcatDataset, Dataset, IterableDataset, StackDataset, Subset, TensorDataset, random_split
from cgrad.data.loader import DataLoader
from cgrad.data.progress import progress
from cgrad.data.sampler import BatchSampler, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler
from cgrad.data.worker import WorkerInfo, get_worker_info
from cgrad.ops.define import open_doors

__all__ = [
    "BatchSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler", "Sampler",
    "SequentialSampler", "StackDataset", "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
    "default_collate", "default_convert", "get_worker_info", "progress", "random_split",
]

open_doors(globals())
