"""Cutting tensors in pieces: views, each of them.  The primitives are in joining.py.  Next: repeating.py."""
import operator

from cgrad.core.arguments import as_tensor, one_axis, whole_number
from cgrad.core.tensor import Tensor
from cgrad.ops.define import public
from cgrad.ops.indexing import _getitem
from cgrad.ops.joining import _split, _unstack


# ------------------------------------------------------------------------------------------------------------------ cutting
@public(method=True)
def split(x, size_or_sizes, axis=0):
    """
    Stretches along an axis.

    Parameters
    ----------
    x : Tensor
    size_or_sizes : int or list of int
        Length of each stretch (the last may be shorter), or all lengths, which must add up.
    axis : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        Lengths that are negative or do not add up.

    See Also
    --------
    chunk : into a number of parts.
    tensor_split : at given places, as NumPy's split.

    Notes
    -----
    Gradient: the pieces' gradients joined.  An int means PyTorch's size, not NumPy's number of sections.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.split(cg.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    x = as_tensor("split", x)
    axis = _axis_to_cut("split", x, axis)
    n = x.shape[axis]
    if isinstance(size_or_sizes, (list, tuple)) or isinstance(size_or_sizes, Tensor) and size_or_sizes.ndim:
        sizes = size_or_sizes.tolist() if isinstance(size_or_sizes, Tensor) else size_or_sizes
        return _split(x, tuple(whole_number("split", "a length", size) for size in sizes), axis)
    size = whole_number("split", "the length", size_or_sizes)
    if size < 0 or size == 0 and n:
        raise ValueError(f"split: the length of a piece must be positive, got {size}")
    if n == 0:
        return _split(x, (0,), axis)
    return _split(x, (size,) * (n // size) + ((n % size,) if n % size else ()), axis)


def _axis_to_cut(name, x, axis):
    if x.ndim == 0:
        raise ValueError(f"{name}: a 0-d tensor cannot be cut")
    return one_axis(name, axis, x.ndim)


@public(method=True)
def chunk(x, chunks, axis=0):
    """
    At most a number of stretches of equal length (the last may be shorter) along an axis.

    Parameters
    ----------
    x : Tensor
    chunks : int
    axis : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        `chunks` is not positive.

    Notes
    -----
    Gradient: the pieces' gradients joined.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.chunk(cg.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    x = as_tensor("chunk", x)
    axis = _axis_to_cut("chunk", x, axis)
    chunks = whole_number("chunk", "chunks", chunks)
    if chunks <= 0:
        raise ValueError(f"chunk: chunks must be positive, got {chunks}")
    n = x.shape[axis]
    if n == 0:
        return _split(x, (0,) * chunks, axis)
    return split(x, -(-n // chunks), axis)


@public(method=True)
def tensor_split(x, indices_or_sections, axis=0):
    """
    Stretches along an axis, as NumPy's `array_split`.

    Parameters
    ----------
    x : Tensor
    indices_or_sections : int or list of int
        Into how many parts (the first ones are longer by one if they cannot be equal), or at which places to cut.
    axis : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        The number of parts is not positive.

    Notes
    -----
    Gradient: the pieces' gradients joined.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor_split(cg.arange(5), [1, 3])
    (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    x = as_tensor("tensor_split", x)
    axis = _axis_to_cut("tensor_split", x, axis)
    n = x.shape[axis]
    where = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(where, (list, tuple)):
        cuts = [operator.index(place) for place in where]
        return tuple(_getitem(x, (slice(None),) * axis + (slice(start, stop),)) for start, stop in zip([0, *cuts], [*cuts, n]))
    parts = whole_number("tensor_split", "the number of parts", where)
    if parts <= 0:
        raise ValueError(f"tensor_split: the number of parts must be positive, got {parts}")
    return _split(x, tuple(n // parts + (k < n % parts) for k in range(parts)), axis)


def _equal_parts(name, x, indices_or_sections, axis, least):
    x = as_tensor(name, x)
    if x.ndim < least:
        raise ValueError(f"{name}: needs at least {least} axes, got shape {x.shape}")
    n = x.shape[axis]
    if isinstance(indices_or_sections, int) and indices_or_sections > 0 and n % indices_or_sections:
        raise ValueError(f"{name}: {indices_or_sections} parts do not divide the length {n} of axis {axis}; use tensor_split")
    return tensor_split(x, indices_or_sections, axis)


@public(method=True)
def hsplit(x, indices_or_sections):
    """
    Parts along axis 1, of a vector along axis 0: the reverse of `hstack`.

    Parameters
    ----------
    x : Tensor
    indices_or_sections : int or list of int
        Into how many equal parts, or at which places to cut.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        Parts that cannot be equal, or too few axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hsplit(cg.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """
    return _equal_parts("hsplit", x, indices_or_sections, 0 if as_tensor("hsplit", x).ndim == 1 else 1, 1)


@public(method=True)
def vsplit(x, indices_or_sections):
    """
    Parts along axis 0: the reverse of `vstack`.

    Parameters
    ----------
    x : Tensor
        At least 2-d.
    indices_or_sections : int or list of int
        As for `hsplit`.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        Parts that cannot be equal, or too few axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vsplit(cg.tensor([[1, 2], [3, 4]]), 2)
    (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _equal_parts("vsplit", x, indices_or_sections, 0, 2)


@public(method=True)
def dsplit(x, indices_or_sections):
    """
    Parts along axis 2: the reverse of `dstack`.

    Parameters
    ----------
    x : Tensor
        At least 3-d.
    indices_or_sections : int or list of int
        As for `hsplit`.

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        Parts that cannot be equal, or too few axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> [part.shape for part in cg.dsplit(cg.zeros(2, 3, 4), [1])]
    [(2, 3, 1), (2, 3, 3)]
    """
    return _equal_parts("dsplit", x, indices_or_sections, 2, 3)


@public(method=True)
def split_with_sizes(x, split_sizes, axis=0):
    """
    PyTorch's name of `split` with a list of lengths.

    Parameters
    ----------
    x : Tensor
    split_sizes : list of int
        All lengths, which must add up.
    axis : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        Lengths that are negative or do not add up.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.split_with_sizes(cg.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return split(x, list(split_sizes), axis)


@public(method=True)
def unstack(x, axis=0):
    """
    All slices along an axis, which disappears: the reverse of `stack`.

    Parameters
    ----------
    x : Tensor
    axis : int, default 0

    Returns
    -------
    tuple of Tensor
        Views.

    Raises
    ------
    ValueError
        A 0-d tensor.

    Notes
    -----
    Gradient: the slices' gradients stacked.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unstack(cg.tensor([[1, 2], [3, 4]]), axis=1)
    (tensor([1, 3]), tensor([2, 4]))
    """
    x = as_tensor("unstack", x)
    return _unstack(x, _axis_to_cut("unstack", x, axis))
