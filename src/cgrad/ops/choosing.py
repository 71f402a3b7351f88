"""All ways to take one element from each of several vectors, or several from one.

Which elements is worked out once, as a table of indices; the elements themselves are gathered.  Next: joining.py.
"""
import itertools

from cgrad.core.arguments import as_tensor, whole_number
from cgrad.core.convert import tensor_from
from cgrad.ops.creation import meshgrid
from cgrad.ops.define import public
from cgrad.ops.indexing import take
from cgrad.ops.joining import stack
from cgrad.ops.shape import ravel, reshape


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
