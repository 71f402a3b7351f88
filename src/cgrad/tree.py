"""Trees: tensors in nested dicts, lists and tuples, taken apart into a flat list and put together again."""
from __future__ import annotations

__all__ = ["flatten", "unflatten", "tree_map"]

LEAF = None
NOTHING = (type(None), None, [])


def flatten(tree, none_is_leaf=True):
    """All leaves of a tree in order, and a description of its shape.

    Dicts, lists, tuples and named tuples are branches, everything else is a leaf; with `none_is_leaf` False, None is a branch without leaves.

    Examples
    --------
    >>> from cgrad.tree import flatten, unflatten
    >>> leaves, shape = flatten({"a": 1, "b": [2, (3,)]})
    >>> leaves
    [1, 2, 3]
    >>> unflatten(shape, ["x", "y", "z"])
    {'a': 'x', 'b': ['y', ('z',)]}
    """
    leaves = []
    return leaves, _take_apart(tree, leaves, none_is_leaf)


def _take_apart(tree, leaves, none_is_leaf):
    if isinstance(tree, dict):
        keys, parts = tuple(tree), tree.values()
    elif isinstance(tree, (list, tuple)):
        keys, parts = None, tree
    elif tree is None and not none_is_leaf:
        return NOTHING
    else:
        leaves.append(tree)
        return LEAF
    shapes = []
    for part in parts:
        if part is None or isinstance(part, (dict, list, tuple)):
            shapes.append(_take_apart(part, leaves, none_is_leaf))
        else:                                # most are leaves: no call for them
            leaves.append(part)
            shapes.append(LEAF)
    return type(tree), keys, shapes


def unflatten(shape, leaves):
    """The tree of this shape with these leaves; the inverse of `flatten`.

    Raises
    ------
    ValueError
        If there are too few or too many leaves.
    """
    if shape is LEAF and len(leaves) == 1:
        return leaves[0]
    leaves = iter(leaves)
    try:
        tree = _put_together(shape, leaves)
    except StopIteration:
        raise ValueError("unflatten: there are fewer leaves than the tree has") from None
    if next(leaves, leaves) is not leaves:
        raise ValueError("unflatten: there are more leaves than the tree has")
    return tree


def _put_together(shape, leaves):
    if shape is LEAF:
        return next(leaves)
    if shape is NOTHING:
        return None
    kind, keys, parts = shape
    values = [next(leaves) if part is LEAF else _put_together(part, leaves) for part in parts]
    if keys is not None:
        if kind is dict:
            return dict(zip(keys, values))
        try:
            return kind(zip(keys, values))
        except TypeError:                    # a defaultdict and the like, whose first argument is no content
            return dict(zip(keys, values))
    if kind is list:
        return values
    return kind(*values) if kind is not tuple and hasattr(kind, "_fields") else kind(values)


def tree_map(function, tree, none_is_leaf=True):
    """The tree with `function` applied to every leaf, as `flatten` finds them.

    Examples
    --------
    >>> from cgrad.tree import tree_map
    >>> tree_map(lambda x: 10 * x, {"a": 1, "b": [2, 3]})
    {'a': 10, 'b': [20, 30]}
    """
    leaves, shape = flatten(tree, none_is_leaf)
    return unflatten(shape, [function(leaf) for leaf in leaves])
