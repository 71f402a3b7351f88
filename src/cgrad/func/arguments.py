"""What all transformations share: picking arguments, tracking them, letting results go."""
from __future__ import annotations

import operator

from cgrad.core.forward_mode import bottoms, rebuilt
from cgrad.core.graph import sources
from cgrad.core.tensor import Tensor
from cgrad.tree import flatten, unflatten

__all__ = []


class Picked:
    """The arguments that are differentiated, as a flat list of tensors, and the way back to a call."""

    def __init__(self, name, function, args, kwargs, argnums):
        if not callable(function):
            raise TypeError(f"{name}: expected a function, got {type(function).__name__}")
        self.name, self.function, self.args, self.kwargs = name, function, list(args), kwargs
        self.single = not isinstance(argnums, (tuple, list))
        self.numbers = [_argnum(name, n, len(args)) for n in ((argnums,) if self.single else argnums)]
        if len(set(self.numbers)) < len(self.numbers):
            raise ValueError(f"{name}: argnums {tuple(argnums)} name an argument twice")
        self.tensors, self.shape = flatten(args[self.numbers[0]] if self.single else [args[n] for n in self.numbers])
        for x in self.tensors:
            if not isinstance(x, Tensor):
                raise TypeError(f"{name}: the arguments to differentiate must be tensors or trees of tensors, got {type(x).__name__} "
                                f"in argument {', '.join(map(str, self.numbers))}; make a tensor with cgrad.tensor(...)")
            if not x.dtype.is_floating_point:
                raise TypeError(f"{name}: only floating point tensors can be differentiated, got {x.dtype} "
                                f"in argument {', '.join(map(str, self.numbers))}")

    def call(self, tensors):
        """The function's result with these tensors in the place of the picked ones."""
        trees = unflatten(self.shape, tensors)
        for n, value in zip(self.numbers, [trees] if self.single else trees):
            self.args[n] = value
        return self.function(*self.args, **self.kwargs)

    def as_arguments(self, values):
        """A flat list of values in the shape of the picked arguments."""
        trees = unflatten(self.shape, values)
        return trees if self.single else tuple(trees)


def _argnum(name, n, count):
    i = operator.index(n)
    if not -count <= i < count:
        raise ValueError(f"{name}: there is no argument {i}; the function was called with {count} positional arguments")
    return i % count


def seen_from_outside(recording, inputs, tracked_inputs, results):
    """Whether derivatives of the results must be recorded, because something outside may differentiate them again."""
    if not recording:
        return False
    if any([x.requires_grad for x in bottoms(inputs)]):
        return True
    leaves, _ = sources(bottoms(results), bottoms(tracked_inputs), 0, True)
    return bool(leaves)


def released(tree, keep):
    """The results without their graph, unless somebody outside still needs it."""
    if keep:
        return tree
    if isinstance(tree, Tensor):
        return _free(tree)
    leaves, shape = flatten(tree)
    return unflatten(shape, [_free(x) for x in leaves])


def _free(x):
    return rebuilt(x, lambda t: t.detach() if t.requires_grad else t) if isinstance(x, Tensor) else x


def split_aux(name, result, has_aux):
    """(result, auxiliary data or None) of a function's return value."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{name}: with has_aux=True the function must return (output, aux), got {type(result).__name__}")
    return result


def tensors_of(name, tree):
    """(flat list, shape) of a function's output, all tensors."""
    leaves, shape = flatten(tree)
    for y in leaves:
        if not isinstance(y, Tensor):
            raise TypeError(f"{name}: the function must return tensors, got {type(y).__name__}")
    return leaves, shape
