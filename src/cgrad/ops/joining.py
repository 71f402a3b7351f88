"""Joining tensors, and the primitives of joining, cutting, repeating and padding.

All of it is linear: the gradient of a joined tensor is cut, that of pieces is joined, that of repetitions is summed.
Next: splitting.py.
"""
from cgrad.core.arguments import as_tensor, one_axis
from cgrad.core.forward import join as forward
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import zeros
from cgrad.ops.define import LINEAR, define, joint, public
from cgrad.ops.indexing import _getitem
from cgrad.ops.shape import reshape


def _cut(g, axis, sizes):
    """Consecutive stretches of `g` along `axis`."""
    pieces, start = [], 0
    for size in sizes:
        pieces.append(_getitem(g, (slice(None),) * axis + (slice(start, start + size),)))
        start += size
    return pieces


def _whole(gs, shapes, dtype):
    """The gradients of pieces (of one piece alone: a tensor), with zeros where no gradient came."""
    gs = (gs,) if isinstance(gs, Tensor) else gs
    return [zeros(s, dtype=dtype) if g is None else g for g, s in zip(gs, shapes)]


_concat = define("concat", forward=forward.concat, moves=True, inputs="xs", options=("axis",),
                 vjp=joint(lambda g, shapes, axis: _cut(g, axis, [shape[axis] for shape in shapes])), kind=LINEAR, public=False)
_stack = define("stack", forward=forward.stack, moves=True, inputs="xs", options=("axis",),
                vjp=joint(lambda g, axis: _unstack(g, axis)), kind=LINEAR, public=False)


def _joined_pieces(g, sizes, axis, shape_x, dtype_x):
    shapes = [shape_x[:axis] + (size,) + shape_x[axis + 1:] for size in sizes]
    return _concat(_whole(g, shapes, dtype_x), axis)


def _stacked_slices(g, axis, shape_x, dtype_x):
    if not shape_x[axis]:
        return zeros(shape_x, dtype=dtype_x)
    return _stack(_whole(g, [shape_x[:axis] + shape_x[axis + 1:]] * shape_x[axis], dtype_x), axis)


_split = define("split", forward=forward.split, moves=True, inputs=("x",), options=("sizes", "axis"), vjp=_joined_pieces, kind=LINEAR, public=False)
_unstack = define("unstack", forward=forward.unstack, moves=True, inputs=("x",), options=("axis",), vjp=_stacked_slices, kind=LINEAR, public=False)


def _tensors(name, xs):
    """The tensors of a list or tuple, numbers and arrays among them converted."""
    if forward.all_tensors(xs):
        return xs
    if isinstance(xs, Tensor):
        raise TypeError(f"{name}: expected a list or tuple of tensors, got one tensor of shape {xs.shape}; put it into a list")
    if not hasattr(xs, "__iter__"):
        raise TypeError(f"{name}: expected a list or tuple of tensors, got {type(xs).__name__}")
    xs = [as_tensor(name, x) for x in xs]
    if not xs:
        raise ValueError(f"{name}: at least one tensor is needed")
    return xs


# ------------------------------------------------------------------------------------------------------------------ joining
@public(method=False)
def concat(xs, axis=0):
    """
    Tensors one after another along an existing axis.

    Parameters
    ----------
    xs : list or tuple of Tensor
        Equal shapes except along `axis`.  Dtypes are promoted.
    axis : int or None, default 0
        None joins the flattened tensors.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        No tensors, or shapes that do not fit.

    See Also
    --------
    stack : along a new axis.

    Notes
    -----
    Gradient: each tensor gets its stretch of ``g``.  Empty tensors of shape (0,) among others are left out, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.concat([cg.zeros(2), cg.ones(1)])
    tensor([0., 0., 1.])
    """
    xs = _tensors("concat", xs)
    if axis is None:
        return _concat([reshape(x, (-1,)) if x.numel() else reshape(x, (0,)) for x in xs], 0)
    if not forward.same_rank(xs):
        xs = [x for x in xs if x.shape != (0,)] or xs[:1]
    if xs[0].ndim == 0:
        raise ValueError("concat: 0-d tensors have no axis to join along; use stack")
    return _concat(xs, one_axis("concat", axis, xs[0].ndim))


@public(method=False)
def stack(xs, axis=0):
    """
    Tensors one after another along a new axis.

    Parameters
    ----------
    xs : list or tuple of Tensor
        Equal shapes.  Dtypes are promoted.
    axis : int, default 0
        Place of the new axis in the result.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        No tensors, or different shapes.

    See Also
    --------
    concat : along an existing axis.

    Notes
    -----
    Gradient: each tensor gets its slice of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.stack([cg.zeros(2), cg.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    xs = _tensors("stack", xs)
    return _stack(xs, one_axis("stack", axis, xs[0].ndim + 1))


def _at_least(x, n):
    """`x` with at least `n` axes: new ones come first, but for a third axis last, as NumPy has it."""
    if x.ndim >= n:
        return x
    if n == 3:
        return reshape(x, (1, x.numel(), 1) if x.ndim < 2 else (*x.shape, 1))
    return reshape(x, (1,) * (n - x.ndim) + x.shape)


def _raised(name, xs, n):
    if len(xs) == 1 and isinstance(xs[0], (list, tuple)) and any(isinstance(x, Tensor) for x in xs[0]):
        xs = xs[0]
        return tuple(_at_least(as_tensor(name, x), n) for x in xs)
    xs = [_at_least(as_tensor(name, x), n) for x in xs]
    return xs[0] if len(xs) == 1 else tuple(xs)


@public(method=False)
def atleast_1d(*xs):
    """
    Tensors with at least one axis.

    Parameters
    ----------
    *xs : Tensor
        Or one list of them.

    Returns
    -------
    Tensor or tuple of Tensor
        Views; a number becomes a vector.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.atleast_1d(cg.tensor(3))
    tensor([3])
    """
    return _raised("atleast_1d", xs, 1)


@public(method=False)
def atleast_2d(*xs):
    """
    Tensors with at least two axes.

    Parameters
    ----------
    *xs : Tensor
        Or one list of them.

    Returns
    -------
    Tensor or tuple of Tensor
        Views; a vector becomes a row.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.atleast_2d(cg.tensor([1, 2]))
    tensor([[1, 2]])
    """
    return _raised("atleast_2d", xs, 2)


@public(method=False)
def atleast_3d(*xs):
    """
    Tensors with at least three axes.

    Parameters
    ----------
    *xs : Tensor
        Or one list of them.

    Returns
    -------
    Tensor or tuple of Tensor
        Views; a matrix of shape (m, n) gets the shape (m, n, 1), a vector (1, n, 1).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.atleast_3d(cg.zeros(2, 3)).shape
    (2, 3, 1)
    """
    return _raised("atleast_3d", xs, 3)


@public(method=False)
def hstack(xs):
    """
    Tensors side by side: along axis 1, vectors along axis 0.

    Parameters
    ----------
    xs : list or tuple of Tensor

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Gradient: each tensor gets its stretch of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.hstack([cg.zeros(1), cg.ones(2)])
    tensor([0., 1., 1.])
    """
    xs = [_at_least(x, 1) for x in _tensors("hstack", xs)]
    return concat(xs, 0 if xs[0].ndim == 1 else 1)


@public(method=False)
def vstack(xs):
    """
    Tensors one below the other: along axis 0, vectors as rows.

    Parameters
    ----------
    xs : list or tuple of Tensor

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Gradient: each tensor gets its stretch of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vstack([cg.zeros(2), cg.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return concat([_at_least(x, 2) for x in _tensors("vstack", xs)], 0)


@public(method=False)
def dstack(xs):
    """
    Tensors one behind the other: along axis 2, which matrices and vectors get first.

    Parameters
    ----------
    xs : list or tuple of Tensor

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Gradient: each tensor gets its stretch of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.dstack([cg.zeros(2), cg.ones(2)])
    tensor([[[0., 1.],
             [0., 1.]]])
    """
    return concat([_at_least(x, 3) for x in _tensors("dstack", xs)], 2)


@public(method=False)
def column_stack(xs):
    """
    Tensors side by side along axis 1, vectors as columns.

    Parameters
    ----------
    xs : list or tuple of Tensor

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        Shapes that do not fit.

    Notes
    -----
    Gradient: each tensor gets its stretch of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.column_stack([cg.zeros(2), cg.ones(2)])
    tensor([[0., 1.],
            [0., 1.]])
    """
    return concat([x if x.ndim > 1 else reshape(x, (x.numel(), 1)) for x in _tensors("column_stack", xs)], 1)
