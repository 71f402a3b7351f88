"""Whole matrices of derivatives: jacrev, jacfwd, jacobian, hessian, and hvp, which needs no matrix."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec

from cgrad.core.batching import enter_level, enter_map, leave_map, make_batched, split_batched, unbatched
from cgrad.core.element import BatchError
from cgrad.func.arguments import Picked, checked
from cgrad.func.grad import differentiated
from cgrad.func.jvp import along, push
from cgrad.func.vjp import Pullback
from cgrad.ops.creation import zeros, zeros_like
from cgrad.ops.triangles import eye
from cgrad.ops.joining import concat, stack
from cgrad.ops.shape import expand_dims, moveaxis
from cgrad.tree import tree_map, unflatten

__all__ = ["jacrev", "jacfwd", "jacobian", "hessian", "hvp"]


_P = ParamSpec("_P")

#: elements that a batch of derivatives may have for each tensor, if no chunk_size is given
_BUDGET = 1 << 25


def jacrev(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *, chunk_size: int | None = None) -> Callable[_P, Any]:
    """A function that returns the Jacobian of `func`, by rows in reverse mode: best for few outputs.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate.
    has_aux : bool, default False
    chunk_size : int, optional
        How many rows to compute at once. By default as many as need a moderate amount of memory, most often all.

    Returns
    -------
    callable
        Returns for an output of shape S and an argument of shape T a tensor of shape S + T; for trees, a tree of arguments in
        the place of each output. With `has_aux`, the pair (Jacobian, aux).

    Notes
    -----
    The function is called once, and the unit vectors are pulled back as one batch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jacrev(lambda x: x ** 2)(cg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check("jacrev", func, chunk_size)

    def transformed(*args, **kwargs):
        pulled = Pullback("jacrev", func, args, kwargs, argnums, has_aux)
        jacobian = _by_rows(pulled, chunk_size)
        return (jacobian, pulled.aux) if has_aux else jacobian
    return transformed


def _check(name, func, chunk_size):
    checked(name, func)
    if chunk_size is not None and (isinstance(chunk_size, bool) or operator.index(chunk_size) < 1):
        raise ValueError(f"{name}: chunk_size must be a positive number of rows or columns, got {chunk_size!r}")


def _chunks(n, chunk_size, tensors):
    """(start, stop) of the unit vectors to send at once."""
    step = chunk_size or max(_BUDGET // max([1, *[x.size for x in tensors]]), 1)
    return [(start, min(start + step, n)) for start in range(0, n, step)] if step < n else [(0, n)] * (n > 0)


def _units(x, start, stop):
    """The unit vectors number start to stop in the shape of x, along a new first axis."""
    rows = eye(stop - start, x.size, k=start, dtype=x.dtype)
    return rows if x.ndim == 1 else rows.reshape((stop - start, *x.shape))


def _by_rows(pulled, chunk_size):
    inputs, results = pulled.picked.tensors, pulled.results
    blocks = []
    for k, y in enumerate(results):
        parts = []                       # for each chunk of rows the gradients of all inputs
        for start, stop in _chunks(y.size, chunk_size, (*inputs, *results)):
            try:
                parts.append(_rows_at_once(pulled, k, _units(y, start, stop)))
            except BatchError:           # the rule of a user's Op works with numbers
                parts.append([stack(rows, 0) for rows in zip(*[_row(pulled, k, g) for g in _units(y, start, stop)])])
        blocks.append(pulled.picked.as_arguments([_joined([part[j] for part in parts], y, x) for j, x in enumerate(inputs)]))
    return unflatten(pulled.shape, blocks)


def _row(pulled, k, g):
    return pulled.pull([g if i == k else None for i in range(len(pulled.results))])


def _rows_at_once(pulled, k, units):
    if len(units) == 1:
        return [expand_dims(g, 0) for g in _row(pulled, k, units[0])]
    level = enter_level()
    found = _row(pulled, k, make_batched(units, level))
    return [unbatched(g, level, len(units)) for g in found]


def _joined(parts, y, x):
    """The Jacobian of an output by an input from chunks of its rows."""
    if not parts:
        return zeros(y.shape + x.shape, dtype=x.dtype)
    rows = parts[0] if len(parts) == 1 else concat(parts, 0)
    return rows if y.ndim == 1 else rows.reshape(y.shape + x.shape)


def jacfwd(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *, chunk_size: int | None = None) -> Callable[_P, Any]:
    """A function that returns the Jacobian of `func`, by columns in forward mode: best for few inputs.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate.
    has_aux : bool, default False
    chunk_size : int, optional
        How many columns to compute at once. By default as many as need a moderate amount of memory, most often all.

    Returns
    -------
    callable
        As for `jacrev`.

    Notes
    -----
    The function is called once, on tensors that carry all unit vectors as one batch of tangents.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jacfwd(lambda x: x ** 2)(cg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check("jacfwd", func, chunk_size)

    def transformed(*args, **kwargs):
        picked = Picked("jacfwd", func, args, kwargs, argnums)
        inputs = picked.tensors
        chunks = _chunks(sum([x.size for x in inputs]), chunk_size, inputs)
        parts = []                       # for each chunk of columns the tangents of all results, along a new first axis
        for start, stop in chunks:
            try:
                results, moved, shape, aux = _columns_at_once(picked, _directions(inputs, start, stop), stop - start, has_aux)
            except BatchError:           # an `if` on a number that depends on the direction, or the jvp of a user's Op
                moved = []
                for i in range(start, stop):
                    results, column, shape, aux = push("jacfwd", picked, [t.reshape(x.shape) for t, x in zip(_directions(inputs, i, i + 1), inputs)], has_aux)
                    moved.append(column)
                moved = [stack(list(columns), 0) for columns in zip(*moved)]
            parts.append(moved)
        if not chunks:                   # every input is empty: the shape of the output is still needed
            results, moved, shape, aux = push("jacfwd", picked, [zeros_like(x) for x in inputs], has_aux)
            parts.append([zeros((0, *y.shape), dtype=y.dtype) for y in results])
        blocks = [picked.as_arguments(_cut([part[k] for part in parts], y, inputs)) for k, y in enumerate(results)]
        jacobian = unflatten(shape, blocks)
        return (jacobian, aux) if has_aux else jacobian
    return transformed


def _directions(inputs, start, stop):
    """The unit vectors number start to stop of all inputs together, as one batch for each input."""
    out, offset = [], 0
    for x in inputs:
        out.append(eye(stop - start, x.size, k=start - offset, dtype=x.dtype).reshape((stop - start, *x.shape)))
        offset += x.size
    return out


def _columns_at_once(picked, directions, size, has_aux):
    level = enter_map(size, "same")
    try:
        results, moved, shape, aux = push("jacfwd", picked, [make_batched(t, level) for t in directions], has_aux)
    finally:
        leave_map()
    # The results themselves are the same for all directions, even where a gradient inside made a batch of them.
    results, aux = [tree_map(lambda y: y if split_batched(y, level) is None else split_batched(y, level)[0], tree) for tree in (results, aux)]
    return results, [unbatched(t, level, size) for t in moved], shape, aux


def _cut(parts, y, inputs):
    """The Jacobian of an output by each input from chunks of its columns."""
    columns = parts[0] if len(parts) == 1 else concat(parts, 0)
    columns = moveaxis(columns, 0, -1)
    out, offset = [], 0
    for x in inputs:
        out.append(columns[..., offset:offset + x.size].reshape((*y.shape, *x.shape)))
        offset += x.size
    return out


def jacobian(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, mode: Literal["reverse", "forward"] | None = None, *,
             chunk_size: int | None = None) -> Callable[_P, Any]:
    """A function that returns the Jacobian of `func`, in the mode that needs fewer passes.

    Parameters
    ----------
    func : callable
    argnums : int or tuple of int, default 0
    has_aux : bool, default False
    mode : {None, "reverse", "forward"}
        None takes reverse mode, unless there are fewer inputs than outputs.
    chunk_size : int, optional
        As for `jacrev`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jacobian(lambda x: cg.stack([x.sum(), x.prod()]))(cg.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 1., 1.],
            [6., 3., 2.]])
    """
    if mode not in (None, "reverse", "forward"):
        raise ValueError(f'jacobian: mode must be None, "reverse" or "forward", got {mode!r}')
    if mode == "forward":
        return jacfwd(func, argnums, has_aux, chunk_size=chunk_size)
    if mode == "reverse":
        return jacrev(func, argnums, has_aux, chunk_size=chunk_size)
    _check("jacobian", func, chunk_size)

    def transformed(*args, **kwargs):
        pulled = Pullback("jacobian", func, args, kwargs, argnums, has_aux)
        if sum(x.size for x in pulled.picked.tensors) < sum(y.size for y in pulled.results):
            return jacfwd(func, argnums, has_aux, chunk_size=chunk_size)(*args, **kwargs)
        found = _by_rows(pulled, chunk_size)
        return (found, pulled.aux) if has_aux else found
    return transformed


def hessian(func: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, *, chunk_size: int | None = None) -> Callable[_P, Any]:
    """A function that returns the matrix of second derivatives of `func`: the Jacobian of its gradient.

    Parameters
    ----------
    func : callable
        Returns a tensor; of several elements, each gets its matrix. With `has_aux`, the pair (tensor, anything).
    argnums : int or tuple of int, default 0
    has_aux : bool, default False
    chunk_size : int, optional
        As for `jacrev`.

    Returns
    -------
    callable
        For an output of shape S and an argument of shape T, returns a tensor of shape S + T + T; for trees, a tree of trees. With
        `has_aux`, the pair (Hessian, aux).

    Notes
    -----
    The function and its gradient are computed once, and the unit vectors are pulled back through the recorded gradient as one batch.
    For a scalar that is the same as forward over reverse, H being symmetric, and took two thirds of its time for 64 variables.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.hessian(lambda x: (x ** 3).sum())(cg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    checked("hessian", func)
    return jacrev(jacrev(func, argnums, has_aux), argnums, has_aux, chunk_size=chunk_size)


def hvp(func: Callable[..., Any], primals: Sequence[Any], tangents: Any, has_aux: bool = False,
        argnums: int | Sequence[int] | None = None) -> tuple[Any, ...]:
    """The gradient of `func` and the product of its second derivatives with a vector, without the matrix.

    Parameters
    ----------
    func : callable
        Returns one number, or with `has_aux` the pair (number, anything).
    primals : tuple
        The arguments, each a tensor or a tree of tensors.
    tangents : tuple
        The vector, in the structure of the arguments that are differentiated.
    has_aux : bool, default False
    argnums : int or tuple of int, optional
        Which arguments to differentiate, the others may be anything; by default all. For an int, `tangents` is the vector of that one.

    Returns
    -------
    gradient, product
        Shaped like the arguments that are differentiated; of a single one not in a tuple. And aux with `has_aux`.

    Notes
    -----
    Forward over reverse: the derivative of the gradient along the vector.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.hvp(lambda x: (x ** 3).sum(), (cg.tensor([1.0, 2.0]),), (cg.tensor([1.0, 10.0]),))
    (tensor([ 3., 12.]), tensor([  6., 120.]))
    """
    checked("hvp", func)

    def gradient(*args):
        value, found = differentiated("hvp", func, numbers, has_aux, args, {})
        return (found, value[1]) if has_aux else found
    numbers = argnums
    if argnums is None and isinstance(primals, (tuple, list)):
        numbers = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return along("hvp", gradient, primals, tangents, has_aux, argnums)
