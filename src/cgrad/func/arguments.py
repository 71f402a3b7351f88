"""What all transformations share: picking arguments, tracking them, letting results go."""
from __future__ import annotations

import operator

from cgrad.core.forward_mode import bottoms, without_graph
from cgrad.core.graph import sources
from cgrad.core.tensor import Tensor
from cgrad.tree import LEAF, flatten, tree_map, unflatten

__all__ = []


class Picked:
    """The arguments that are differentiated, as a flat list of tensors, and the way back to a call.  Argnums None means all."""

    def __init__(self, name, function, args, kwargs, argnums):
        checked(name, function)
        self.name, self.function, self.args, self.kwargs = name, function, list(args), kwargs
        if argnums is None:
            argnums = range(len(args))
        self.single = not isinstance(argnums, (tuple, list, range))
        self.numbers = [_argnum(name, n, len(args)) for n in ((argnums,) if self.single else argnums)]
        if len(set(self.numbers)) < len(self.numbers):
            raise ValueError(f"{name}: argnums {tuple(argnums)} name an argument twice")
        self.tensors, self.shape = flatten(args[self.numbers[0]] if self.single else [args[n] for n in self.numbers], none_is_leaf=False)
        for x in self.tensors:
            if not isinstance(x, Tensor):
                raise TypeError(f"{name}: the arguments to differentiate must be tensors or trees of tensors, got {type(x).__name__} "
                                f"in argument {self._numbers()}; make a tensor with cgrad.tensor(...), or leave the argument out of argnums")
            if not x.dtype.is_floating_point:
                raise TypeError(f"{name}: only floating point tensors can be differentiated, got {x.dtype} in argument {self._numbers()}; "
                                "convert it, for instance with double(), or leave the argument out of argnums")

    def _numbers(self):
        return ", ".join(map(str, self.numbers))

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


def checked(name, function):
    """Refuse what is no function."""
    if not callable(function):
        raise TypeError(f"{name}: expected a function, got {type(function).__name__}")


def _argnum(name, n, count):
    try:
        i = operator.index(n)
    except TypeError:
        raise TypeError(f"{name}: argnums must be the number of an argument or a tuple of such, got {n!r}") from None
    if not -count <= i < count:
        raise ValueError(f"{name}: there is no argument {i}; the function was called with {count} positional arguments")
    return i % count


def tensors_like(name, what, tree, shape, like):
    """The leaves of `tree`, which must have the structure `shape` of the tensors `like`, and their shapes."""
    if isinstance(tree, Tensor) and len(like) == 1:           # a single tensor needs nothing around it
        found = [(tree, "")]
    else:
        found = _walk(name, what, tree, shape, "")
    for (t, path), x in zip(found, like):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}: {what} must be tensors, got {type(t).__name__}{path and f' at {path}'}")
        if t.shape != x.shape:
            raise ValueError(f"{name}: {what} must have the shape {tuple(x.shape)} of what they belong to, got {tuple(t.shape)}{path and f' at {path}'}")
    return [t for t, _ in found]


def _walk(name, what, tree, shape, path):
    if shape is LEAF:
        if not isinstance(tree, (dict, list, tuple)):
            return [(tree, path)]
        fits, expected = False, "a tensor"
    else:
        kind, keys, parts = shape
        if keys is not None:
            fits, expected = isinstance(tree, dict) and tree.keys() == set(keys), f"a dict with the keys {list(keys)}"
        elif kind is type(None):
            fits, expected = tree is None, "None"
        else:
            fits, expected = isinstance(tree, (list, tuple)) and len(tree) == len(parts), f"a {kind.__name__} of {len(parts)}"
    if not fits:
        more = f" with the keys {list(tree)}" if isinstance(tree, dict) else f" of {len(tree)}" if isinstance(tree, (list, tuple)) else ""
        raise ValueError(f"{name}: {what} have another structure than what they belong to: expected {expected}{path and f' at {path}'}, "
                         f"got {type(tree).__name__}{more}")
    return [leaf for key, part in zip(range(len(parts)) if keys is None else keys, parts) for leaf in _walk(name, what, tree[key], part, f"{path}[{key!r}]")]


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
    return tree if keep or tree is None else tree_map(without_graph, tree)


def split_aux(name, result, has_aux):
    """(result, auxiliary data or None) of a function's return value."""
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"{name}: with has_aux=True the function must return (output, aux), got {type(result).__name__}")
    return result


def tensors_of(name, tree):
    """(flat list, shape) of a function's output, all tensors; None is no output."""
    leaves, shape = flatten(tree, none_is_leaf=False)
    for y in leaves:
        if not isinstance(y, Tensor):
            raise TypeError(f"{name}: the function must return tensors, got {type(y).__name__}; other things can be handed out with has_aux=True")
    return leaves, shape
