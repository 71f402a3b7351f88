"""What the tape keeps: the tensors that a node saves for backward, and the memory that they hold."""
from __future__ import annotations

from cgrad.core.graph import memory_of
from cgrad.core.tensor import Tensor

__all__ = ["Kept", "size_text"]


class Kept:
    """The saved values of a record and the bytes that they hold beyond leaves, results and what else is held anyway.

    Attributes
    ----------
    saved : dict
        Node -> list of (what it is to the operation, tensor).
    nbytes : dict
        Node -> bytes of the memory that it is the first to keep; what is held anyway counts nothing.
    held : set
        Identities of that memory.
    """

    def __init__(self, record, held=()):
        self.held = {memory_of(x)[0] for x in (*record.leaves, *record.results, *held)}
        self.saved, self.nbytes, seen = {}, {}, set(self.held)
        for node in record.nodes:
            self.saved[node] = list(_saved(node))
            total = 0
            for _, x in self.saved[node]:
                memory, nbytes = memory_of(x)
                if memory not in seen:
                    seen.add(memory)
                    total += nbytes
            self.nbytes[node] = total


def _saved(node):
    operation = node.operation
    if not hasattr(operation, "input_names"):                # a user's Op, a checkpoint
        for x in {id(x): x for x, *_ in getattr(operation, "versions", ()) if isinstance(x, Tensor)}.values():
            yield "state", x
        return
    names = operation.input_names
    for i, x in enumerate(node.saved_inputs):
        if isinstance(x, Tensor):
            yield names[i] if i < len(names) else f"input {i}", x
    for x in node.saved_results:
        if isinstance(x, Tensor):
            yield "out", x


def size_text(nbytes):
    """1500 -> "1.5 kB"."""
    for unit in ("B", "kB", "MB"):
        if nbytes < 1000:
            return f"{nbytes} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"
