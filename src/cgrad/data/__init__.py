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
from cgrad.data.dataset import Dataset, Subset, TensorDataset, random_split
from cgrad.data.loader import DataLoader, default_collate

__all__ = ["DataLoader", "Dataset", "Subset", "TensorDataset", "default_collate", "random_split"]
