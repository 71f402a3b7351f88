"""ShardedOptimizer: each rank keeps the state of its share of the parameters (ZeRO, stage 1).

Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion parameter models" (2020), whose first stage it is.  Parameters are dealt out
whole, so any optimizer that treats them one by one can be shared out, and a saved state does not know of it.  Next: nn/, optim/, which know nothing of ranks.
"""
from __future__ import annotations

from typing import Any

import numpy as np

import cgrad as cg
from cgrad.distributed.data_parallel import _pack, _unpack
from cgrad.distributed.group import group
from cgrad.optim import Optimizer

__all__ = ["ShardedOptimizer"]


class ShardedOptimizer(Optimizer):
    """An optimizer whose state is shared out: each rank updates its share of the parameters and gets the others from their owners.

    Parameters
    ----------
    optimizer : Optimizer
        Over the same parameters in the same order on all ranks, which have the same gradients (as `DataParallel` makes them).

    Raises
    ------
    TypeError
        The optimizer has a ``step`` of its own, which looks at all parameters together (LBFGS).

    Notes
    -----
    A step gives the same bits as that of `optimizer`.  With n ranks, state takes 1/n of the memory on each, if no single parameter is larger
    than that; a step sends all parameters once.  `param_groups` are those of `optimizer`, so schedules work on either.

    `state_dict` is made on all ranks together and is whole on rank 0 only; any number of ranks loads it, and so does the optimizer alone.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> net = cg.distributed.DataParallel(cg.nn.Linear(2, 1))
    >>> optimizer = cg.distributed.ShardedOptimizer(cg.optim.Adam(net.parameters()))
    >>> net(cg.ones((4, 2))).mean().backward()
    >>> optimizer.step()
    """

    def __init__(self, optimizer: Optimizer):
        if not isinstance(optimizer, Optimizer) or type(optimizer).step is not Optimizer.step:
            raise TypeError(f"ShardedOptimizer: {type(optimizer).__name__} is not an optimizer that updates its parameters one by one, "
                            "so it cannot be shared out")
        self.inner = optimizer
        self._group = group("ShardedOptimizer")
        super().__init__([{"params": list(g["params"])} for g in optimizer.param_groups], {})
        self.param_groups = optimizer.param_groups
        self.defaults = optimizer.defaults
        self._deal()

    def _deal(self):
        """The owner of each parameter: the largest first, each to the rank that has least."""
        params = [p for group in self.param_groups for p in group["params"]]
        loads = [0] * self._group.size
        self._owner = {}
        for p in sorted(params, key=lambda p: -p.size):                # a stable sort: the same on all ranks
            self._owner[p] = rank = loads.index(min(loads))
            loads[rank] += p.size
        self._shares = [[p for p in params if self._owner[p] == rank] for rank in range(self._group.size)]
        self._drop()

    def _drop(self):
        """Forget the state of the parameters of others."""
        for p in [p for p in self.inner.state if self._owner.get(p) != self._group.rank]:
            del self.inner.state[p]
        self.state = self.inner.state

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, on all ranks."""
        if not hasattr(self, "_owner"):                                # within __init__
            super().add_param_group(param_group)
            return
        self.inner.add_param_group(param_group)
        self._deal()

    def _update(self):
        others = [(p, p.grad) for p, rank in self._owner.items() if rank != self._group.rank and p.grad is not None]
        for p, _ in others:
            p.grad = None                                              # what has no gradient is left alone
        try:
            self.inner._update()
        finally:
            for p, g in others:
                p.grad = g
        self._gather()

    def _gather(self):
        """Send the own share of the parameters to all ranks, and take theirs."""
        if self._group.size == 1:
            return
        sizes = [sum(_nbytes(p) for p in share) for share in self._shares]
        mine = self._shares[self._group.rank]
        packed, everything = _pack(mine) if mine else np.empty(0, np.uint8), np.empty(sum(sizes), np.uint8)
        self._group.wait([self._group.comm.Iallgatherv(packed, [everything, sizes])], "ShardedOptimizer: the parameters of the other ranks")
        _unpack(everything, [p for share in self._shares for p in share])

    def state_dict(self) -> dict[str, Any]:
        """The state of `optimizer`: whole on rank 0, the own share on the others; all ranks must call it.

        Examples
        --------
        >>> import cgrad as cg
        >>> _ = cg.distributed.init()
        >>> optimizer = cg.distributed.ShardedOptimizer(cg.optim.SGD([cg.zeros(2, requires_grad=True)], lr=0.1))
        >>> optimizer.state_dict()["param_groups"][0]["lr"]
        0.1
        """
        own = self.inner.state_dict()
        self._group.meet("ShardedOptimizer.state_dict")
        for part in self._group.comm.gather(own["state"], root=0) or ():
            own["state"].update(part)
        return own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a whole state, on all ranks; each keeps its share.

        Raises
        ------
        ValueError
            As `cgrad.optim.Optimizer.load_state_dict`; nothing is changed then.
        """
        self.inner.load_state_dict(state_dict)
        self._drop()
        self._stepped = True


def _nbytes(p):
    return p.size * (4 if p.dtype == cg.bfloat16 else p.dtype.itemsize)
