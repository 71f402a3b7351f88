"""Where PyTorch keeps `cgrad.data` (``torch.utils.data``) and `cgrad.checkpoint` (``torch.utils.checkpoint``), for scripts that come from there.

Examples
--------
>>> from cgrad.utils.data import DataLoader
>>> import cgrad as cg
>>> DataLoader is cg.data.DataLoader
True
"""
from cgrad.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
