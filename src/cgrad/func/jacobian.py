"""Whole matrices of derivatives: jacrev, jacfwd, jacobian, hessian, and hvp, which needs no matrix."""
from __future__ import annotations

from cgrad.func.arguments import Picked
from cgrad.func.grad import value_and_grad
from cgrad.func.jvp import jvp, push
from cgrad.func.vjp import Pullback
from cgrad.ops.creation import zeros
from cgrad.ops.joining import stack
from cgrad.tree import unflatten

__all__ = ["jacrev", "jacfwd", "jacobian", "hessian", "hvp"]


def jacrev(func, argnums=0, has_aux=False):
    """A function that returns the Jacobian of `func`, row by row in reverse mode: best for few outputs.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate.
    has_aux : bool, default False

    Returns
    -------
    callable
        Returns for an output of shape S and an argument of shape T a tensor of shape S + T; for trees, a tree of arguments in
        the place of each output. With `has_aux`, the pair (Jacobian, aux).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jacrev(lambda x: x ** 2)(cg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    def transformed(*args, **kwargs):
        pulled = Pullback("jacrev", func, args, kwargs, argnums, has_aux)
        jacobian = _by_rows(pulled)
        return (jacobian, pulled.aux) if has_aux else jacobian
    return transformed


def _by_rows(pulled):
    inputs = pulled.picked.tensors
    blocks = []
    for k, y in enumerate(pulled.results):
        rows = []
        for i in range(y.size):
            seeds = [None] * len(pulled.results)
            seeds[k] = _unit(y, i)
            rows.append(pulled.pull(seeds))
        columns = [[row[j] for row in rows] for j in range(len(inputs))]
        blocks.append(pulled.picked.as_arguments([_gather(c, y, x, 0) for c, x in zip(columns, inputs)]))
    return unflatten(pulled.shape, blocks)


def jacfwd(func, argnums=0, has_aux=False):
    """A function that returns the Jacobian of `func`, column by column in forward mode: best for few inputs.

    Parameters
    ----------
    func : callable
        Returns a tensor or a tree of tensors, or with `has_aux` the pair (output, anything).
    argnums : int or tuple of int, default 0
        Which positional arguments to differentiate.
    has_aux : bool, default False

    Returns
    -------
    callable
        As for `jacrev`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.jacfwd(lambda x: x ** 2)(cg.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    def transformed(*args, **kwargs):
        picked = Picked("jacfwd", func, args, kwargs, argnums)
        inputs = picked.tensors
        zero = [zeros(x.shape, dtype=x.dtype) for x in inputs]
        columns = []                     # for each input the tangents of all results, element by element
        results, shape, aux = None, None, None
        for j, x in enumerate(inputs):
            columns.append([])
            for i in range(x.size):
                results, moved, shape, aux = push("jacfwd", picked, zero[:j] + [_unit(x, i)] + zero[j + 1:], has_aux)
                columns[j].append(moved)
        if results is None:              # every input is empty: the shape of the output is still needed
            results, _, shape, aux = push("jacfwd", picked, zero, has_aux)
        blocks = [picked.as_arguments([_gather([moved[k] for moved in columns[j]], y, x, -1) for j, x in enumerate(inputs)])
                  for k, y in enumerate(results)]
        jacobian = unflatten(shape, blocks)
        return (jacobian, aux) if has_aux else jacobian
    return transformed


def _unit(x, i):
    """Zeros of the shape of x with a one at flat position i."""
    e = zeros((x.size,), dtype=x.dtype)
    e[i] = 1.0
    return e.reshape(x.shape)


def _gather(parts, y, x, axis):
    shape = tuple(y.shape) + tuple(x.shape)
    if not parts:
        return zeros(shape, dtype=x.dtype)
    return stack(parts, axis).reshape(shape)


def jacobian(func, argnums=0, has_aux=False, mode=None):
    """A function that returns the Jacobian of `func`, in the mode that needs fewer passes.

    Parameters
    ----------
    func : callable
    argnums : int or tuple of int, default 0
    has_aux : bool, default False
    mode : {None, "reverse", "forward"}
        None takes reverse mode, unless there are fewer inputs than outputs.

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
        return jacfwd(func, argnums, has_aux)
    if mode == "reverse":
        return jacrev(func, argnums, has_aux)

    def transformed(*args, **kwargs):
        pulled = Pullback("jacobian", func, args, kwargs, argnums, has_aux)
        if sum(x.size for x in pulled.picked.tensors) < sum(y.size for y in pulled.results):
            return jacfwd(func, argnums, has_aux)(*args, **kwargs)
        found = _by_rows(pulled)
        return (found, pulled.aux) if has_aux else found
    return transformed


def hessian(func, argnums=0):
    """A function that returns the matrix of second derivatives of `func`, forward over reverse mode.

    Parameters
    ----------
    func : callable
        Returns a tensor; of several elements, each gets its matrix.
    argnums : int or tuple of int, default 0

    Returns
    -------
    callable
        For an output of shape S and an argument of shape T, returns a tensor of shape S + T + T.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.hessian(lambda x: (x ** 3).sum())(cg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def hvp(func, primals, tangents):
    """The gradient of `func` and the product of its second derivatives with a vector, without the matrix.

    Parameters
    ----------
    func : callable
        Returns one number.
    primals, tangents : tuple
        The arguments and the vector, in the same structure.

    Returns
    -------
    gradient, product
        Shaped like the arguments; of a single one not in a tuple.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.func.hvp(lambda x: (x ** 3).sum(), (cg.tensor([1.0, 2.0]),), (cg.tensor([1.0, 10.0]),))
    (tensor([ 3., 12.]), tensor([  6., 120.]))
    """
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    differentiated = value_and_grad(func, argnums)
    return jvp(lambda *args: differentiated(*args)[1], primals, tangents)
