"""Training on several processes: data parallelism on MPI.

`group.py` holds what all share: the communicator, waiting with a limit, failing together, saving once.  `collectives.py` are operations that
exchange tensors, with derivatives; `data_parallel.py` averages the gradients of a module while backward goes on; `sharded.py` shares the state
of an optimizer out.  MPI comes from mpi4py, which only `init` imports.  Next: group.py.

Examples
--------
On one process; ``mpiexec -n 4 python script.py`` runs the same lines on four.

>>> import cgrad as cg
>>> comm = cg.distributed.init()
>>> net = cg.distributed.DataParallel(cg.nn.Linear(2, 1))
>>> optimizer = cg.optim.SGD(net.parameters(), lr=0.1)
>>> net(cg.ones((4, 2))).mean().backward()      # gradients are averaged over the processes
>>> optimizer.step()
"""
from cgrad.distributed.collectives import all_gather, all_reduce, broadcast, reduce, reduce_scatter
from cgrad.distributed.data_parallel import DataParallel, broadcast_parameters
from cgrad.distributed.group import barrier, get_rank, get_world_size, init, save
from cgrad.distributed.sharded import ShardedOptimizer
from cgrad.ops.define import open_doors

__all__ = [
    "DataParallel", "ShardedOptimizer", "all_gather", "all_reduce", "barrier", "broadcast", "broadcast_parameters", "get_rank", "get_world_size",
    "init", "reduce", "reduce_scatter", "save",
]

open_doors(globals())
