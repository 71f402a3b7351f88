"""DataParallel: every rank computes the gradients of its part of a batch; they are averaged while backward still goes on.

The gradients of a few parameters at a time share a *bucket*, one flat tensor.  As soon as backward has brought all gradients of a bucket, it is sent
(a non-blocking all-reduce), and every later gradient asks how far the sending is, since MPI works only when it is called; if asked to, a thread
does so in between.  Buckets are sent in the same order on all ranks.  When backward has ended, what it did not reach is sent as zeros, and the
averages are written to `.grad`.

At the end of a bucket there is a number for each parameter, 1 from a rank that has a gradient of it, and one for the weight of the rank.  They are
summed along with the gradients and say what to divide by, which parameters no rank has used, and whether any rank still has data.  Next: sharded.py.
"""
from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.distributed.group import Group, group
from cgrad.nn.module import Module
from cgrad.optim import Optimizer

__all__ = ["DataParallel", "broadcast_parameters"]

PAUSE = 2e-4               # seconds between two questions of the thread


class Bucket:
    """Gradients of some parameters in one flat tensor, which MPI sums in place; float16 and bfloat16 as float32."""

    def __init__(self, params: dict[int, Tensor], dtype: cg.dtype):
        size = sum(p.size for p in params.values())
        self.flat = cg.zeros((size + len(params) + 1,), dtype=dtype)
        self.gradients = self.flat[:size]
        self.memory = self.flat.numpy()                     # what MPI sees
        self.used = dict(zip(params, range(size, size + len(params))))
        self.pieces = {}
        start = 0
        for i, p in params.items():
            self.pieces[i] = self.flat[start:start + p.size].reshape(p.shape)
            start += p.size
        self.missing = set(params)

    def put(self, i: int, g: Tensor) -> None:
        self.pieces[i].copy_(g)
        self.memory[self.used[i]] = 1
        self.missing.remove(i)

    def close(self, weight: float) -> None:
        """Make it ready to be sent, as the part of a rank that counts `weight`."""
        for i in self.missing:
            self.pieces[i].zero_()
            self.memory[self.used[i]] = 0
        if weight != 1:
            self.gradients.mul_(weight)
        self.memory[-1] = weight

    def divided(self, by: float) -> Iterator[tuple[int, Tensor]]:
        """The gradients that some rank has, after the sum; then the bucket is empty again."""
        for i, piece in self.pieces.items():
            if self.memory[self.used[i]]:
                yield i, piece / by
        self.missing = set(self.pieces)


class DataParallel(Module):
    """A module whose gradients are averaged over all ranks in every backward.

    Parameters
    ----------
    module : Module
        The same on all ranks; parameters and buffers become those of rank 0.  It stays what it is, ``.module``: save its state.
    average : {"ranks", "examples", None}, default "ranks"
        What the average is over.  ``"ranks"``: all count the same, which is right for a mean loss of equally many examples on each.
        ``"examples"``: each counts as the number of examples, the length of the first tensor that the module was called with since the last exchange; right for
        a mean loss of unequal batches.  None: gradients are summed, for a loss that is divided by the size of the whole batch.
    bucket_bytes : int, default 1 MiB
        How much is gathered before it is sent.
    broadcast_buffers : bool, default True
        Let the buffers (running means and the like) be those of rank 0 after every backward.
    progress_thread : bool, default False
        Let a thread keep MPI at work between gradients, which pays if operations take milliseconds and there is a processor to spare; or let MPI
        do so itself (``MPICH_ASYNC_PROGRESS=1``).

    Raises
    ------
    ValueError
        On all ranks, if the models differ: with the first parameter or buffer that does, and how.

    Notes
    -----
    With equally weighted examples the result is the gradient of the mean loss over all ranks' examples, as one process would compute it, up to
    rounding; the bits are the same on all ranks and in every run with as many ranks.  The averages are in ``.grad`` when ``backward`` returns, so they may be
    clipped before the optimizer's step.  A parameter that no rank has used keeps its ``.grad``; one that only some have used gets the average in which
    the others count as zeros.  When the DataParallel object is gone, the module trains on each rank by itself again.

    Every rank must call ``backward`` equally often (`join` for those with less data), and through at least one parameter; gradients of float16 and
    bfloat16 are summed in float32.  On one rank nothing is done.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> net = cg.distributed.DataParallel(cg.nn.Linear(2, 1), average="examples")
    >>> net(cg.ones((4, 2))).mean().backward()
    >>> net.module.bias.grad
    tensor([1.])
    """

    def __init__(self, module: Module, *, average: Literal["ranks", "examples"] | None = "ranks", bucket_bytes: int = 1 << 20,
                 broadcast_buffers: bool = True, progress_thread: bool = False):
        super().__init__()
        if average not in ("ranks", "examples", None):
            raise ValueError(f"DataParallel: average must be 'ranks', 'examples' or None, got {average!r}")
        if not isinstance(module, Module):
            raise TypeError(f"DataParallel: expected a Module, got {type(module).__name__}")
        self._group = group("DataParallel")
        if progress_thread and self._group.MPI.Query_thread() < self._group.MPI.THREAD_MULTIPLE:
            raise RuntimeError("DataParallel: progress_thread needs an MPI that several threads may call (MPI_THREAD_MULTIPLE), which this one is not")
        self.module = module
        self._average, self._bucket_bytes = average, bucket_bytes
        _check_same(self._group, module, "DataParallel", average=average, bucket_bytes=bucket_bytes, broadcast_buffers=broadcast_buffers)
        broadcast_parameters(module)
        self._leaves = [p for p in module.parameters() if p.requires_grad]
        if not self._leaves:
            raise ValueError("DataParallel: no parameter of the module requires a gradient, there is nothing to average")
        self._known = set(self._leaves)
        self._buffers_too = broadcast_buffers and any(True for _ in module.buffers())
        self._syncing = True                   # False inside no_sync
        self._examples = 0                     # since the last exchange
        self._begun = False                    # whether an exchange goes on
        self._sent = 0                         # buckets
        self._requests: list[Any] = []
        self._lock = threading.Lock()          # one thread at a time asks MPI about them
        self._progress_thread = progress_thread
        self._worker: threading.Thread | None = None
        self._order: list[int] | None = []     # in which backward brings the gradients; None: the buckets are made by it already
        self._buckets = self._make_buckets(range(len(self._leaves))[::-1])
        if self._group.size > 1:               # the hooks live as long as this does, and don't keep it alive
            ready = weakref.WeakMethod(self._ready)
            handles = [p.register_post_accumulate_grad_hook(lambda p, i=i: ready()(i, p)) for i, p in enumerate(self._leaves)]
            weakref.finalize(self, lambda: [handle.remove() for handle in handles])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self._average == "examples" and cg.is_grad_enabled():
            first = next((x for x in (*args, *kwargs.values()) if isinstance(x, Tensor) and x.ndim), None)
            if first is None or not len(first):
                raise ValueError("DataParallel: average='examples' counts the first axis of the first tensor, but there is none, or it has length 0")
            self._examples += len(first)
        return self.module(*args, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Inside, gradients add up on each rank; the first backward outside averages the sums.

        Examples
        --------
        >>> import cgrad as cg
        >>> _ = cg.distributed.init()
        >>> net = cg.distributed.DataParallel(cg.nn.Linear(2, 1))
        >>> with net.no_sync():
        ...     (net(cg.ones((4, 2))).mean() / 2).backward()
        >>> (net(cg.ones((4, 2))).mean() / 2).backward()
        >>> net.module.bias.grad
        tensor([1.])
        """
        before, self._syncing = self._syncing, False
        try:
            yield
        finally:
            self._syncing = before

    @contextlib.contextmanager
    def join(self, step: Callable[[], Any]) -> Iterator[None]:
        """Around a loop that has more batches on some ranks: one that has finished takes part without data until all have.

        Parameters
        ----------
        step : callable
            What is done after each backward, such as ``optimizer.step``; a finished rank does the same, so that parameters and state stay equal.

        Notes
        -----
        A rank without data has weight 0: the average is that of the others, weighted as always.

        Examples
        --------
        >>> import cgrad as cg
        >>> _ = cg.distributed.init()
        >>> net = cg.distributed.DataParallel(cg.nn.Linear(2, 1))
        >>> optimizer = cg.optim.SGD(net.parameters(), lr=0.1)
        >>> with net.join(optimizer.step):
        ...     for x in [cg.ones((4, 2))] * 3:
        ...         optimizer.zero_grad()
        ...         net(x).mean().backward()
        ...         optimizer.step()
        """
        yield
        while self._group.size > 1:
            self.zero_grad()
            self._finish(weight=0)
            if not self._weights:
                break
            step()

    # ---------------------------------------------------------------------------------------------- during backward
    def _ready(self, i, p):
        """The hook of parameter i; what it returns is called at the end of backward."""
        if not self._syncing:
            return None
        self._begin()
        bucket = self._bucket_of[i]
        if i not in bucket.missing:
            raise RuntimeError("DataParallel: an earlier backward ended in the middle by an error, and the ranks no longer agree; start again")
        bucket.put(i, p.grad.detach())
        if self._order is not None:
            self._order.append(i)
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            self._send(self._weight())
        self._progress()
        return self._finish

    def _weight(self):
        return self._examples if self._average == "examples" else 1

    def _begin(self):
        """At the first gradient: send the buffers of rank 0, start the thread."""
        if self._begun:
            return
        self._begun = True
        for p in self.module.parameters():
            if p.requires_grad and p not in self._known:
                name = next(name for name, q in self.module.named_parameters() if q is p)
                raise RuntimeError(f"DataParallel: parameter {name!r} requires a gradient now, but did not (or was not there) when the module was wrapped; "
                                   "wrap it anew")
        if self._buffers_too:
            self._packed = _pack(self.module.buffers())
            self._requests.append(self._group.background.Ibcast(self._packed))
        if self._progress_thread:
            self._ended = threading.Event()
            self._worker = threading.Thread(target=self._work, name="cgrad.distributed", daemon=True)
            self._worker.start()

    def _work(self):
        while not self._ended.wait(PAUSE):
            self._progress()

    def _send(self, weight):
        """Start the sum of the next bucket."""
        bucket = self._buckets[self._sent]
        bucket.close(weight)
        with self._lock:
            self._requests.append(self._group.background.Iallreduce(self._group.MPI.IN_PLACE, bucket.memory))
        self._sent += 1

    def _progress(self):
        """Let MPI work: it has no thread of its own."""
        with self._lock:
            if self._requests:
                self._group.MPI.Request.Testall(self._requests)

    def _finish(self, weight=None):
        """At the end of backward: send the rest, wait for all, write the averages."""
        self._begin()
        while self._sent < len(self._buckets):
            self._send(self._weight() if weight is None else weight)
        if self._worker is not None:
            self._ended.set()
            self._worker.join()
            self._worker = None
        self._group.wait(self._requests, "DataParallel: the sum of the gradients")
        self._requests, self._sent, self._examples, self._begun = [], 0, 0, False
        self._weights = float(self._buckets[0].memory[-1])           # of all ranks
        for bucket in self._buckets:
            for i, g in bucket.divided(1.0 if self._average is None else self._weights):
                p = self._leaves[i]
                p.grad = g.astype(p.dtype, copy=False)
        if self._buffers_too:
            _unpack(self._packed, self.module.buffers())
        if self._order is not None:
            self._settle_order()

    # ---------------------------------------------------------------------------------------------- the buckets
    def _make_buckets(self, order):
        """Buckets of at least `bucket_bytes`, each of one dtype, in this order of the parameters; what is left at the end makes smaller ones."""
        buckets, filling = [], {}
        for i in order:
            p = self._leaves[i]
            dtype = cg.float32 if p.dtype.itemsize < 4 else p.dtype
            part = filling.setdefault(dtype, {})
            part[i] = p
            if dtype.itemsize * sum(q.size for q in part.values()) >= self._bucket_bytes:
                buckets.append(Bucket(filling.pop(dtype), dtype))
        buckets += [Bucket(part, dtype) for dtype, part in filling.items()]
        self._bucket_of = {i: bucket for bucket in buckets for i in bucket.pieces}
        return buckets

    def _settle_order(self):
        """After the first exchange: make the buckets anew, in the order in which backward brings the gradients on rank 0."""
        seen = dict.fromkeys(self._order)
        order = np.array([*seen, *(i for i in range(len(self._leaves)) if i not in seen)])
        self._group.wait([self._group.background.Ibcast(order)], "DataParallel: the order of the gradients")
        self._order = None
        self._buckets = self._make_buckets(order.tolist())


# -------------------------------------------------------------------------------------------------- the same start on all ranks
def broadcast_parameters(module: Module, optimizer: Optimizer | None = None, root: int = 0) -> None:
    """Let the parameters and buffers of a module, and the state of an optimizer, be those of one rank.

    Parameters
    ----------
    module : Module
    optimizer : Optimizer, optional
        Of an ordinary kind; that of `ShardedOptimizer` is loaded on all ranks instead.
    root : int, default 0
        The rank that has them, from a file perhaps.

    Raises
    ------
    ValueError
        On all ranks, if the models differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> net = cg.nn.Linear(2, 1)
    >>> cg.distributed.broadcast_parameters(net, cg.optim.Adam(net.parameters()))
    """
    own = group("broadcast_parameters")
    _check_same(own, module, "broadcast_parameters")
    if own.size == 1:
        return
    for x in _state(module):
        packed = _pack([x])
        own.wait([own.comm.Ibcast(packed, root=root)], "broadcast_parameters")
        _unpack(packed, [x])
    if optimizer is not None:
        own.meet("broadcast_parameters")
        state = own.comm.bcast(optimizer.state_dict() if own.rank == root else None, root=root)
        if own.rank != root:
            optimizer.load_state_dict(state)


def _state(module):
    yield from module.parameters()
    yield from module.buffers()


def _described(module):
    """{"parameter name": what it is} of all parameters and buffers."""
    parts = [(f"parameter {name!r}", p, "" if p.requires_grad else ", frozen") for name, p in module.named_parameters()]
    parts += [(f"buffer {name!r}", b, "") for name, b in module.named_buffers()]
    return {key: f"{x.dtype.name} of shape {tuple(x.shape)}{more}" for key, x, more in parts}


def _check_same(own: Group, module: Module, who: str, **options: Any) -> None:
    """Raise on all ranks if the module of one, or an option, is not that of rank 0."""
    mine = {**_described(module), **{f"the option {name}": repr(value) for name, value in options.items()}}
    own.meet(who)
    first = own.comm.bcast(mine, root=0)
    differs = next((f"{key} is {mine.get(key, 'missing')} on rank {own.rank}, {first.get(key, 'missing')} on rank 0"
                    for key in [*first, *mine] if mine.get(key) != first.get(key)), None)
    if differs is None and [*mine] != [*first]:
        differs = f"the parameters of rank {own.rank} have another order than those of rank 0"
    for found in own.comm.allgather(differs):
        if found is not None:
            raise ValueError(f"{who}: {found}; every rank must build the same model")


def _pack(tensors):
    """The values of tensors as bytes, one after the other."""
    return np.concatenate([_array(x).reshape(-1).view(np.uint8) for x in tensors])


def _unpack(packed, tensors):
    """Write them back; what is equal already is left alone."""
    start = 0
    with cg.no_grad():
        for x in tensors:
            old = _array(x)
            new = packed[start:start + old.nbytes]
            start += old.nbytes
            if new.tobytes() != old.tobytes():
                x.copy_(cg.asarray(np.frombuffer(new.tobytes(), old.dtype).reshape(old.shape)))


def _array(x):
    """A tensor as an array that NumPy and MPI know: bfloat16 as float32, which is exact."""
    x = x.detach()
    return (x.float() if x.dtype == cg.bfloat16 else x).contiguous().numpy()
