"""Optimizers and schedules of the learning rate. Names, formulas and state layout are PyTorch's.

Examples
--------
>>> import cgrad as cg
>>> w = cg.tensor([5.0], requires_grad=True)
>>> opt = cg.optim.SGD([w], lr=0.1)
>>> for _ in range(100):
...     opt.zero_grad()
...     (w * w).sum().backward()
...     opt.step()
>>> bool(abs(w) < 1e-6)
True
"""
from typing import TYPE_CHECKING

from cgrad.ops.define import open_doors
from cgrad.optim import lr_scheduler
from cgrad.optim.adagrad import Adadelta, Adagrad, RMSprop, Rprop
from cgrad.optim.adam import Adam, Adamax, AdamW, NAdam, RAdam
from cgrad.optim.lbfgs import LBFGS
from cgrad.optim.muon import Muon
from cgrad.optim.optimizer import Optimizer
from cgrad.optim.sgd import ASGD, SGD

__all__ = ["ASGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "LBFGS", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "SGD",
           "lr_scheduler", "swa_utils"]

if TYPE_CHECKING:
    from cgrad.optim import swa_utils


open_doors(globals(), {"swa_utils": None})                     # needed by few
