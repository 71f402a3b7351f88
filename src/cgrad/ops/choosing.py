"""Choosing elements: all ways to take them from vectors, and functions that see only those chosen for them.

Which elements is worked out once, as a table of indices; the elements themselves are gathered.  Next: joining.py.
"""
import itertools

from cgrad.core.arguments import as_tensor, whole_number
from cgrad.core.convert import tensor_from
from cgrad.core.tensor import Tensor
from cgrad.ops.compare import logical_not, where
from cgrad.ops.creation import asarray, zeros
from cgrad.ops.ranges import meshgrid
from cgrad.ops.define import public
from cgrad.ops.gathering import take
from cgrad.ops.joining import stack
from cgrad.ops.namespace import result_type
from cgrad.ops.scattering import masked_scatter
from cgrad.ops.shape import broadcast_tensors, ravel, reshape


@public(method=False)
def cartesian_prod(*tensors):
    """All ways to take one element from each of several vectors.

    Parameters
    ----------
    *tensors : Tensor
        Vectors of one dtype.

    Returns
    -------
    Tensor, shape (n, number of vectors)
        In the order of nested loops, the last vector changing fastest; a single vector is returned as it is.

    Raises
    ------
    ValueError
        If there is no vector, or an input is none.

    Notes
    -----
    Gradient: ``g`` summed over the rows in which an element stands.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.cartesian_prod(cg.tensor([1, 2]), cg.tensor([5, 6]))
    tensor([[1, 5],
            [1, 6],
            [2, 5],
            [2, 6]])
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise ValueError("cartesian_prod: needs at least one vector")
    vectors = [as_tensor("cartesian_prod", x) for x in tensors]
    for x in vectors:
        if x.ndim != 1:
            raise ValueError(f"cartesian_prod: inputs must be vectors, got one of shape {tuple(x.shape)}")
    if len(vectors) == 1:
        return +vectors[0]
    return stack([ravel(grid) for grid in meshgrid(*vectors, indexing="ij")], axis=1)


@public(method=True)
def combinations(x, r=2, with_replacement=False):
    """All ways to take `r` elements of a vector, in the order of their places.

    Parameters
    ----------
    x : Tensor
        A vector.
    r : int, default 2
        Not negative.
    with_replacement : bool, default False
        Whether an element may be taken again.

    Returns
    -------
    Tensor, shape (n, r)
        Empty for ``r = 0``, with shape (0,).

    Raises
    ------
    ValueError
        If `x` is no vector or `r` is negative.

    Notes
    -----
    Gradient: ``g`` summed over the rows in which an element stands.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.combinations(cg.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    x, r = as_tensor("combinations", x), whole_number("combinations", "r", r)
    if x.ndim != 1:
        raise ValueError(f"combinations: x must be a vector, got shape {tuple(x.shape)}")
    if r < 0:
        raise ValueError(f"combinations: r cannot be negative, got {r}")
    if r == 0:
        return x[:0]
    ways = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    index = [k for way in ways(range(x.size), r) for k in way]
    return reshape(take(x, tensor_from(index, "int64"), 0), (len(index) // r, r))


@public(method=False)
def where_fn(condition, if_true, if_false, *operands):
    """Elementwise choice between two functions, each computed only where it is chosen.

    `where` computes both sides everywhere: where the side not chosen is infinite or NaN, so is the gradient (0 times infinity).
    Here neither function sees the elements of the other.

    Parameters
    ----------
    condition : Tensor of bool
    if_true, if_false : callable or number
        Elementwise functions of as many vectors as there are operands, or constants.
    *operands : Tensor
        Broadcast together and with `condition`.

    Returns
    -------
    Tensor
        Of the broadcast shape and the dtype to which both sides promote.

    Raises
    ------
    TypeError
        If the condition is not of bools, or there is no operand.
    ValueError
        If a function does not return one element for each that it was given.

    Notes
    -----
    Gradient: that of the function chosen; through `condition` there is none.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0.0, 4.0], requires_grad=True)
    >>> y = cg.where_fn(x > 0, cg.sqrt, 0.0, x)
    >>> y.sum().backward()
    >>> y.detach(), x.grad
    (tensor([0., 2.]), tensor([0.0000, 0.2500]))
    """
    condition = as_tensor("where_fn", condition)
    if condition.dtype.name != "bool":
        raise TypeError(f"where_fn: the condition must be of dtype bool, got {condition.dtype.name}")
    if not operands:
        raise TypeError("where_fn: needs an operand for the functions; where(condition, x, y) chooses between values")
    operands = [x if isinstance(x, (bool, int, float)) else as_tensor("where_fn", x) for x in operands]
    weak = result_type(*operands)
    condition, *operands = broadcast_tensors(condition, *[x if isinstance(x, Tensor) else asarray(x, dtype=weak) for x in operands])
    condition = ravel(condition)
    shape = operands[0].shape
    operands = [ravel(x) for x in operands]
    spread = [_spread(side, mask, operands) for side, mask in ((if_true, condition), (if_false, logical_not(condition)))]
    return reshape(where(condition, *spread), shape)


def _spread(function, mask, operands):
    """What one function gives for the elements chosen for it, in their places (and zeros elsewhere); a constant as it is."""
    if not callable(function):
        dtype = operands[0].dtype if operands[0].dtype.is_floating_point or not isinstance(function, float) else None
        return as_tensor("where_fn", function) if not isinstance(function, (bool, int, float)) else asarray(function, dtype=dtype)
    chosen = [x[mask] for x in operands]
    out = as_tensor("where_fn", function(*chosen))
    if out.shape != chosen[0].shape:
        raise ValueError(f"where_fn: {getattr(function, '__name__', 'a function')} returned shape {tuple(out.shape)} for vectors of {chosen[0].shape[0]} "
                         "elements; it must be elementwise")
    return masked_scatter(zeros(mask.shape, dtype=out.dtype), mask, out)
