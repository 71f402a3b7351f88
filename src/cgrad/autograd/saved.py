"""Saved-tensor hooks: what the tape keeps of a call passes through functions of the user; on disk, for example.

The functions of the innermost context of a thread are called from a watcher of the record, so that recording costs nothing without
one.  Next: core/hooks.pyx, which packs and unpacks.
"""
from __future__ import annotations

import os
import tempfile
import threading
import weakref
from pathlib import Path

import numpy as np

from cgrad.core import convert, hooks, watchers
from cgrad.core.dtype import bfloat16, uint16
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import empty

__all__ = ["save_on_disk", "saved_tensors_hooks"]

_state = threading.local()


class saved_tensors_hooks:
    """Let functions decide what is kept of the tensors that operations save for backward, and make tensors of it again.

    A context manager for the calling thread; of nested ones the innermost applies.

    Parameters
    ----------
    pack_hook : callable
        ``pack_hook(tensor)`` returns anything; called when an operation saves the tensor. It must not change the tensor.
    unpack_hook : callable
        ``unpack_hook(packed)`` returns a tensor of that shape and dtype; called each time backward needs it, inside the context or not.

    Raises
    ------
    RuntimeError
        In forward, if `pack_hook` changes the tensor; in backward, if `unpack_hook` returns something else than such a tensor.

    Notes
    -----
    Packed is whatever the rule of an operation names: inputs, parameters and other leaves among them, and results (of `exp`, say). Not
    packed are Python numbers, the state of an `Op` or `Function`, and the arguments of a `checkpoint`. A tensor that one operation saves
    twice is packed once. The hooks see tensors outside the graph, with recording off; what they save themselves is not packed. What was
    unpacked is put back to its place in the graph, so derivatives of any order work.

    What `pack_hook` returns may hold the tensor's own memory; then changing that in place is an error in backward, as ever. Otherwise it
    is a copy, which later changes do not reach.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.1, 0.2], requires_grad=True)
    >>> def pack(x):
    ...     return (x * 100).round().to(cg.int8)
    >>> with cg.autograd.saved_tensors_hooks(pack, lambda packed: packed.to(cg.float32) / 100):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([0.2000, 0.4000])
    """

    def __init__(self, pack_hook, unpack_hook):
        for what, function in (("pack_hook", pack_hook), ("unpack_hook", unpack_hook)):
            if not callable(function):
                raise TypeError(f"saved_tensors_hooks: {what} must be a function, got {type(function).__name__}")
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        if not hasattr(_state, "stack"):
            _state.stack = []
        _state.stack.append(self)
        watchers.add("record", _recorded)
        return self

    def __exit__(self, *exc):
        _state.stack.pop()
        watchers.remove("record", _recorded)


def _recorded(node, inputs, results):
    """Called with every node that is made, by any thread; once for each context that is open."""
    stack = getattr(_state, "stack", None)
    if not stack or stack[-1] is None or node.is_packed:
        return
    stack.append(None)                  # what the hooks save themselves is not packed
    try:
        hooks.pack_node(node, results, stack[-2].pack_hook, stack[-2].unpack_hook)
    finally:
        stack.pop()


class save_on_disk(saved_tensors_hooks):
    """Keep the large tensors that operations save for backward in files instead of memory.

    A context manager for the calling thread. It frees memory only if nothing else holds the tensors: inputs, parameters and other results
    that the program keeps stay in memory all the same.

    Parameters
    ----------
    folder : str or path, optional
        Where the files go; by default the system's folder for temporary files. (On some systems that is memory, too.)
    min_bytes : int, default 1 MiB
        Smaller tensors stay in memory.

    Raises
    ------
    OSError
        In forward, if a file cannot be written; in backward, if it cannot be read.

    Notes
    -----
    Each tensor has its own file, which goes away with what needs it: when backward has passed the operation (unless the graph is retained), when
    the graph is dropped, or when the program ends.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.ones(100, 100, requires_grad=True)
    >>> with cg.autograd.save_on_disk(min_bytes=10_000):
    ...     y = cg.exp(cg.sin(x)).sum()
    >>> y.backward()
    >>> x.grad[0, 0]
    tensor(1.2534)
    """

    def __init__(self, folder=None, min_bytes=1 << 20):
        self.folder = Path(tempfile.gettempdir() if folder is None else folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"save_on_disk: there is no folder {self.folder}")
        self.min_bytes = min_bytes
        super().__init__(self._pack, _unpack)

    def _pack(self, x):
        return x if x.nbytes < max(self.min_bytes, 1) else _File(x, self.folder)


def _unpack(packed):
    return packed if isinstance(packed, Tensor) else packed.read()


class _File:
    """A tensor in a file, which is removed with this object."""

    def __init__(self, x, folder):
        self.shape, self.dtype = x.shape, x.dtype
        handle, self.path = tempfile.mkstemp(prefix="cgrad-", suffix=".saved", dir=folder)
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())
        with open(handle, "wb") as file:
            file.write(memoryview(_bytes(x.contiguous())))

    def read(self):
        x = empty(self.shape, dtype=self.dtype)
        with open(self.path, "rb") as file:
            n = file.readinto(memoryview(_bytes(x)))
        if n != x.nbytes:
            raise OSError(f"save_on_disk: {self.path} has {n} bytes where {x.nbytes} were written")
        return x


def _bytes(x):
    """The memory of a contiguous tensor; NumPy has no bfloat16."""
    return convert.numpy(convert.retyped(x, uint16) if x.dtype is bfloat16 else x).reshape(-1).view(np.uint8)


def _remove(path, process):
    if os.getpid() == process:          # a forked child drops its copy of the graph, not the parent's files
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
