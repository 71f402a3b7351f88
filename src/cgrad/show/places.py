"""Places in the code: the modules and the line that each node of a computation was recorded in, known when it is run to be looked at."""
from __future__ import annotations

from typing import Any, NamedTuple

from cgrad.core.source import users_line
from cgrad.autograd.mode import enable_grad
from cgrad.core import watchers
from cgrad.core.tensor import Tensor
from cgrad.core.tape import Node
from cgrad.core.untracked import untracked_text
from cgrad.show.names import modules_in
from cgrad.tree import flatten

__all__ = ["LookedAt", "joined", "look_at", "modules_of"]


class LookedAt(NamedTuple):
    """Results with a graph, and what is known of where it was recorded.

    `places` has (titles of the modules around it, outermost first; line of code) for each node, `arguments` the tensors that the module of
    each title was called with; both are empty if the results were there before.
    """

    results: tuple[Tensor, ...]
    places: dict[Node, tuple[tuple[str, ...], Any]]
    arguments: dict[str, list[Tensor]]


def modules_of(results, frame):
    """The modules whose calls are to be known, by name: the one that is called, or those that the variables of a frame name."""
    if not _is_function(results):
        return {}
    return {"": results[0]} if hasattr(results[0], "named_modules") else modules_in(frame)


def look_at(name, results, args, modules):
    """Check the results that a function of this package was given; a callable among them is called."""
    looked = _call(results[0], args, modules) if _is_function(results) else LookedAt(results, {}, {})
    if not looked.results:
        raise TypeError(f"{name}: expected tensors, or a function that returns tensors")
    for y in looked.results:
        if not isinstance(y, Tensor):
            raise TypeError(f"{name}: expected tensors, or a function that returns tensors, got {type(y).__name__}")
        if not y.requires_grad:
            raise RuntimeError(f"{name}: a result of shape {tuple(y.shape)} has no graph: {untracked_text(y)}")
    return looked


def joined(name, path):
    """The path of a part of a module that a variable names."""
    return f"{name}.{path}" if name and path else name or path


def _is_function(results):
    return len(results) == 1 and callable(results[0]) and not isinstance(results[0], Tensor)


def _call(function, args, modules):
    places, arguments, stack, handles = {}, {}, [], []

    def enter(title, values):
        stack.append(title)
        arguments.setdefault(title, []).extend(x for x in flatten(values)[0] if isinstance(x, Tensor))

    def note(node, inputs, results):
        places[node] = tuple(stack), users_line()

    for name, module in modules.items():
        for path, part in module.named_modules():
            if name or path:
                title = f"{joined(name, path)}: {type(part).__name__}"
                handles.append(part.register_forward_pre_hook(lambda m, a, k, title=title: enter(title, [a, k]), with_kwargs=True))
                handles.append(part.register_forward_hook(lambda m, a, out: stack.pop() and None, always_call=True))
    with enable_grad():
        watchers.add("record", note)
        try:
            out = function(*args)
        finally:
            watchers.remove("record", note)
            for handle in handles:
                handle.remove()
    found = [y for y in flatten(out)[0] if isinstance(y, Tensor) and y.requires_grad] or [out]
    return LookedAt(tuple(found), places, arguments)
