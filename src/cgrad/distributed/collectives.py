"""Operations in which all ranks take part: sums, copies and pieces of tensors across processes.

Each is linear, and its derivative is another one of them: what the ranks differentiate is the sum of their results, and a gradient goes back to the
rank that the value came from.  So they nest to any order.  A call is checked against those of the other ranks before anything is exchanged; backward
repeats calls that were checked.  MPI reads and writes the memory of the tensors itself; one that is not contiguous is copied, float16 and bfloat16
travel as float32.  Next: data_parallel.py.
"""
from __future__ import annotations

from typing import Any, Literal

import cgrad as cg
from cgrad.core.arguments import as_floating, as_tensor, one_axis
from cgrad.core.tensor import Tensor
from cgrad.distributed.group import group
from cgrad.ops.define import LINEAR, define

__all__ = ["all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"]


# ---------------------------------------------------------------------------------------------------- the operations and their derivatives
def _exchange(start, what, send, out):
    """Let MPI read the memory of one tensor and write that of another."""
    own, send, receive = group(what), send.detach().contiguous().numpy(), out.numpy()
    own.wait([start(own.comm, send, receive)], what)
    return out


def _sum_everywhere(x):
    return _exchange(lambda comm, send, receive: comm.Iallreduce(send, receive), "all_reduce", x, cg.empty(x.shape, dtype=x.dtype))


def _sum_at(x, root):
    total = _exchange(lambda comm, send, receive: comm.Ireduce(send, receive, root=root), "reduce", x, cg.empty(x.shape, dtype=x.dtype))
    return total if group("reduce").rank == root else cg.zeros_like(total)


def _copy_of(x, root):
    copy = x.detach().contiguous().clone()
    return _exchange(lambda comm, send, receive: comm.Ibcast(receive, root=root), "broadcast", copy, copy)


def _joined(x, axis, lengths):
    front = x.detach().movedim(axis, 0)
    out = cg.empty((sum(lengths), *front.shape[1:]), dtype=x.dtype)
    counts = [n * (out.size // max(len(out), 1)) for n in lengths]
    return _exchange(lambda comm, send, receive: comm.Iallgatherv(send, [receive, counts]), "all_gather", front, out).movedim(0, axis)


def _own_share(x, axis, lengths):
    front = x.detach().movedim(axis, 0)
    out = cg.empty((lengths[group("reduce_scatter").rank], *front.shape[1:]), dtype=x.dtype)
    counts = [n * (front.size // max(len(front), 1)) for n in lengths]
    return _exchange(lambda comm, send, receive: comm.Ireduce_scatter(send, receive, counts), "reduce_scatter", front, out).movedim(0, axis)


def _collective(name, forward, vjp, options, batch):
    return define(name, forward=forward, inputs=("x",), options=options, vjp=vjp, batch=batch, kind=LINEAR, public=False)


_all_reduce = _collective("all_reduce", _sum_everywhere, lambda g: _all_reduce(g), (), lambda x: _all_reduce(x))
_reduce = _collective("reduce", _sum_at, lambda g, root: _broadcast(g, root), ("root",), lambda x, root: _reduce(x, root))
_broadcast = _collective("broadcast", _copy_of, lambda g, root: _reduce(g, root), ("root",), lambda x, root: _broadcast(x, root))
_all_gather = _collective("all_gather", _joined, lambda g, axis, lengths: _reduce_scatter(g, axis, lengths), ("axis", "lengths"),
                          lambda x, axis, lengths: _all_gather(x, axis + 1, lengths))
_reduce_scatter = _collective("reduce_scatter", _own_share, lambda g, axis, lengths: _all_gather(g, axis, lengths), ("axis", "lengths"),
                              lambda x, axis, lengths: _reduce_scatter(x, axis + 1, lengths))


# ---------------------------------------------------------------------------------------------------- what the program calls
def _checked(op, x, option=None, free=None):
    """The shapes of x on all ranks, which must make the same call; its gradient must be wanted on all ranks or on none."""
    tracked = "with a gradient" if x.requires_grad and cg.is_grad_enabled() else "without a gradient"
    return group(op).agree(op, x, [tracked] if option is None else [tracked, option], free)


def _root(op, root):
    size = group(op).size
    if not isinstance(root, int) or isinstance(root, bool) or not 0 <= root < size:
        raise ValueError(f"{op}: root must be a rank, 0 to {size - 1}, got {root!r}")
    return root


def _summable(op, x):
    x = as_tensor(op, x)
    if x.dtype == cg.bool:
        raise TypeError(f"{op}: bools have no sum; convert them first, x.int()")
    return x


def all_reduce(x: Any, op: Literal["sum", "mean"] = "sum") -> Tensor:
    """The sum of the tensors of all ranks, on every rank.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks; any dtype but bool.
    op : {"sum", "mean"}
        The mean is the sum divided by the number of ranks.

    Returns
    -------
    Tensor
        The same bits on all ranks.

    Raises
    ------
    ValueError
        On all ranks, if these differ in the shape, dtype or ``op``, make different calls, or only some of them want a gradient.

    Notes
    -----
    Gradient: the ``all_reduce`` of the gradients.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.all_reduce(cg.tensor([1.0, 2.0]))      # on one rank
    tensor([1., 2.])
    """
    if op not in ("sum", "mean"):
        raise ValueError(f"all_reduce: op must be 'sum' or 'mean', got {op!r}")
    x = _summable("all_reduce", x) if op == "sum" else as_floating("all_reduce", x)
    _checked("all_reduce", x, op)
    total = _all_reduce(x)
    return total if op == "sum" else total / group("all_reduce").size


def reduce(x: Any, root: int = 0) -> Tensor:
    """The sum of the tensors of all ranks on one of them, zeros on the others.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks; any dtype but bool.
    root : int, default 0
        The rank that gets the sum.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        On all ranks, if their calls differ.

    Notes
    -----
    Gradient: the `broadcast` of that of the root.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.reduce(cg.tensor(3.0))
    tensor(3.)
    """
    x = _summable("reduce", x)
    _checked("reduce", x, _root("reduce", root))
    return _reduce(x, root)


def broadcast(x: Any, root: int = 0) -> Tensor:
    """The tensor of one rank on every rank.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks; only that of the root is read.
    root : int, default 0
        The rank whose tensor it is.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        On all ranks, if their calls differ.

    Notes
    -----
    Gradient: the sum over all ranks goes to the root, zeros to the others (`reduce`).  A rank other than the root must ask for a gradient of its
    tensor if the root does, so that it takes part in that sum.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.broadcast(cg.tensor([1, 2]))
    tensor([1, 2])
    """
    x = as_tensor("broadcast", x)
    _checked("broadcast", x, _root("broadcast", root))
    return _broadcast(x, root)


def all_gather(x: Any, axis: int = 0) -> Tensor:
    """The tensors of all ranks joined along an axis, in the order of the ranks, on every rank.

    Parameters
    ----------
    x : Tensor
        At least 1-d; its length along the axis may differ between ranks.
    axis : int, default 0

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        The axis is out of range.
    ValueError
        On all ranks, if their calls differ in more than that length; or x is 0-d.

    Notes
    -----
    Gradient: the sum over all ranks of what belongs to this one (`reduce_scatter`).

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.all_gather(cg.ones((2, 3))).shape
    (2, 3)
    """
    x = as_tensor("all_gather", x)
    if x.ndim == 0:
        raise ValueError("all_gather: a 0-d tensor has no axis to join along; use x.reshape(1)")
    axis = one_axis("all_gather", axis, x.ndim)
    shapes = _checked("all_gather", x, axis, free=axis)
    return _all_gather(x, axis, tuple([shape[axis] for shape in shapes]))


def reduce_scatter(x: Any, axis: int = 0) -> Tensor:
    """The sum of the tensors of all ranks, of which each rank gets an equal part along an axis.

    Parameters
    ----------
    x : Tensor
        Of the same shape and dtype on all ranks; its length along the axis is a multiple of the number of ranks.
    axis : int, default 0

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        The axis is out of range.
    ValueError
        The length cannot be divided; or on all ranks, if their calls differ.

    Notes
    -----
    Gradient: those of all ranks joined (`all_gather`).

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.distributed.init()
    >>> cg.distributed.reduce_scatter(cg.tensor([1.0, 2.0]))      # on one rank
    tensor([1., 2.])
    """
    x = _summable("reduce_scatter", x)
    size = group("reduce_scatter").size
    axis = one_axis("reduce_scatter", axis, x.ndim)
    if x.ndim == 0 or x.shape[axis] % size:
        raise ValueError(f"reduce_scatter: the length of axis {axis} must be a multiple of the number of ranks, {size}; got shape {tuple(x.shape)}")
    _checked("reduce_scatter", x, axis)
    return _reduce_scatter(x, axis, (x.shape[axis] // size,) * size)
