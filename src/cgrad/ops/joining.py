"""Joining tensors, cutting them, repeating and padding.

All of it is linear: the gradient of a joined tensor is cut, that of pieces is joined, that of repetitions is summed.
`split`, `chunk` and `unstack` give views.  Next: matmul.py.
"""
import builtins
import operator

import numpy as np

from cgrad.core.convert import tensor_from
from cgrad.core.forward import join as forward
from cgrad.core.tensor import Tensor
from cgrad.core.arguments import as_tensor, one_axis, whole_number
from cgrad.ops.creation import is_followed, zeros
from cgrad.ops.define import LINEAR, define, joint, public
from cgrad.ops.indexing import _getitem, take
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
_roll = define("roll", forward=forward.roll, moves=True, inputs=("x",), options=("shifts", "axes"),
               vjp=lambda g, shifts, axes: _roll(g, tuple(-s for s in shifts), axes), kind=LINEAR, public=False)
_repeat = define("repeat", forward=forward.repeat, moves=True, inputs=("x",), options=("times", "axis"),
                 vjp=lambda g, times, axis, shape_x: reshape(g, shape_x[:axis + 1] + (times,) + shape_x[axis + 1:]).sum(axis + 1),
                 kind=LINEAR, public=False)


def _untiled(g, times, shape_x):
    shape = tuple(n for pair in zip(times, shape_x) for n in pair)
    return reshape(g, shape).sum(tuple(range(0, len(shape), 2))) if shape else g


_tile = define("tile", forward=forward.tile, moves=True, inputs=("x",), options=("times",), vjp=_untiled,
               batch=lambda x, times: _tile(x, (1, *times)), kind=LINEAR, public=False)


def _unpadded(g, widths, shape_x):
    return _getitem(g, tuple(slice(before, before + n) for (before, after), n in zip(widths, shape_x)))


_pad = define("pad", forward=forward.pad, moves=True, inputs=("x",), options=("widths", "value"), vjp=_unpadded,
              jvp=lambda tx, widths: _pad(tx, widths, 0), batch=lambda x, widths, value: _pad(x, ((0, 0), *widths), value), public=False)


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
        return _concat([reshape(x, (-1,)) if x.size else reshape(x, (0,)) for x in xs], 0)
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
        return reshape(x, (1, x.size, 1) if x.ndim < 2 else (*x.shape, 1))
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
    return concat([x if x.ndim > 1 else reshape(x, (x.size, 1)) for x in _tensors("column_stack", xs)], 1)


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


# ------------------------------------------------------------------------------------------------------------------ repeating
@public(method=True)
def roll(x, shift, axis=None):
    """
    Elements moved along axes; what leaves at one end comes in at the other.

    Parameters
    ----------
    x : Tensor
    shift : int or tuple of int
        How far; negative numbers move towards the start.  `shifts` is another name.
    axis : int or tuple of int, optional
        One for each shift; without it, the flattened tensor is rolled.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Different numbers of shifts and axes.

    Notes
    -----
    Gradient: ``g`` rolled back.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.roll(cg.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    x = as_tensor("roll", x)
    if axis is None:
        if isinstance(shift, (list, tuple)):
            if not shift:
                raise ValueError("roll: shift is empty; name how far to roll")
            shift = builtins.sum(whole_number("roll", "shift", s) for s in shift)
        return reshape(_roll(reshape(x, (x.size,)), (whole_number("roll", "shift", shift),), (0,)), x.shape)
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    shifts = tuple(shift) if isinstance(shift, (list, tuple)) else (shift,) * len(axes)
    if len(axes) != len(shifts):
        raise ValueError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one shift for each axis, or one number for all")
    if x.ndim == 0:
        raise ValueError("roll: a 0-d tensor has no axis to roll along")
    return _roll(x, tuple(whole_number("roll", "shift", s) for s in shifts), tuple(one_axis("roll", a, x.ndim) for a in axes))


@public(method=True)
def repeat(x, repeats, axis=None):
    """
    Each element, or each slice along an axis, several times in a row.

    Parameters
    ----------
    x : Tensor
    repeats : int or 1-d Tensor of int
        How often; a tensor gives a number for each slice.
    axis : int, optional
        Without it, `x` is read as one flat row.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Negative numbers, or as many as do not fit the axis.

    See Also
    --------
    tile : the whole tensor several times (PyTorch's method ``repeat``).

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.repeat(cg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    x = as_tensor("repeat", x)
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis = one_axis("repeat", axis, x.ndim)
    if x.ndim == 0:
        x = reshape(x, (1,))
    if isinstance(repeats, Tensor) or hasattr(repeats, "__len__"):
        counts = repeats if isinstance(repeats, Tensor) else tensor_from(repeats)
        if counts.dtype.is_floating_point or counts.dtype.kind == "bool":
            raise TypeError(f"repeat: the numbers of repetitions must be integers, got {counts.dtype.name}")
        if counts.ndim > 1 or counts.ndim == 1 and counts.size not in (1, x.shape[axis]):
            raise ValueError(f"repeat: repeats of shape {counts.shape} do not fit axis {axis} of length {x.shape[axis]}")
        counts = counts.tolist()
        if isinstance(counts, list):
            if len(counts) != 1:
                if builtins.min(counts, default=0) < 0:
                    raise ValueError(f"repeat: the numbers of repetitions must not be negative, got {builtins.min(counts)}")
                return take(x, tensor_from(np.repeat(np.arange(len(counts)), counts), "int64", None), axis)
            counts = counts[0]
        repeats = counts
    return _repeat(x, whole_number("repeat", "repeats", repeats), axis)


@public(method=True)
def repeat_interleave(x, repeats, axis=None):
    """
    PyTorch's name of `repeat`.

    Parameters
    ----------
    x : Tensor
    repeats : int or 1-d Tensor of int
    axis : int, optional
        Without it, `x` is read as one flat row.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        As for `repeat`.

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.repeat_interleave(cg.tensor([1, 2]), 2)
    tensor([1, 1, 2, 2])
    """
    return repeat(x, repeats, axis)


@public(method=True)
def tile(x, repetitions, *more):
    """
    The whole tensor several times along its axes.

    Parameters
    ----------
    x : Tensor
    repetitions : int or tuple of int
        One number for each axis, the last for the last; missing ones are 1, surplus ones make new axes.  The method also takes
        several ints.

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Negative numbers.

    See Also
    --------
    repeat : each element several times.

    Notes
    -----
    Gradient: ``g`` summed over the repetitions.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tile(cg.tensor([1, 2]), (2, 2))
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    x = as_tensor("tile", x)
    if more or not isinstance(repetitions, (list, tuple)):
        repetitions = (repetitions, *more)
    times = tuple(whole_number("tile", "a number of repetitions", t) for t in repetitions)
    if len(times) < x.ndim:
        times = (1,) * (x.ndim - len(times)) + times
    if len(times) > x.ndim:
        x = reshape(x, (1,) * (len(times) - x.ndim) + x.shape)
    return _tile(x, times)


# ------------------------------------------------------------------------------------------------------------------ padding
_MODES = {"constant": "constant", "reflect": "reflect", "edge": "edge", "replicate": "edge", "wrap": "wrap", "circular": "wrap",
          "symmetric": "symmetric"}


def pad_widths(name, widths, ndim):
    """NumPy's pad_width as a (before, after) pair for each axis."""
    if isinstance(widths, Tensor):
        widths = widths.tolist()
    if hasattr(widths, "tolist"):
        widths = widths.tolist()
    if not isinstance(widths, (list, tuple)):
        widths = [(widths, widths)] * ndim
    elif len(widths) == 2 and not isinstance(widths[0], (list, tuple)):
        widths = [tuple(widths)] * ndim
    elif len(widths) == 1:
        only = widths[0]
        widths = [tuple(only) if isinstance(only, (list, tuple)) else (only, only)] * ndim
    widths = [tuple(pair) if isinstance(pair, (list, tuple)) else (pair, pair) for pair in widths]
    if len(widths) != ndim or any(len(pair) not in (1, 2) for pair in widths):
        raise ValueError(f"{name}: widths must be one (before, after) pair for each of {ndim} axes, got {widths}")
    return tuple((whole_number(name, "a width", pair[0]), whole_number(name, "a width", pair[-1])) for pair in widths)


@public(method=False)
def pad(x, pad_width, mode="constant", constant_values=0):
    """
    A frame around a tensor.

    Parameters
    ----------
    x : Tensor
    pad_width : int, (before, after), or one such pair for each axis
        How many elements to add; negative numbers cut off (constant mode).
    mode : {"constant", "reflect", "symmetric", "edge", "wrap"}
        What the frame holds: a number, the elements mirrored at the last one (reflect) or beyond it (symmetric), the last one, or
        those of the other end.  "replicate" and "circular" are PyTorch's names of "edge" and "wrap".
    constant_values : number, default 0

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        Widths that do not fit, an unknown mode, or a frame that an axis is too short to fill.

    Notes
    -----
    Gradient: ``g`` within the frame; elements that the frame repeats get what arrives at their copies, too.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.pad(cg.tensor([1, 2, 3]), (1, 2))
    tensor([0, 1, 2, 3, 0, 0])
    >>> cg.pad(cg.tensor([1, 2, 3]), 2, mode="reflect")
    tensor([3, 2, 1, 2, 3, 2, 1])
    """
    x = as_tensor("pad", x)
    widths = pad_widths("pad", pad_width, x.ndim)
    if mode not in _MODES:
        raise ValueError(f"pad: mode must be one of {', '.join(_MODES)}, got {mode!r}")
    if _MODES[mode] == "constant":
        if any(width < 0 for pair in widths for width in pair):
            key = []
            for axis, (n, (before, after)) in enumerate(zip(x.shape, widths)):
                start, stop = builtins.max(0, -before), n - builtins.max(0, -after)
                if stop < start:
                    raise ValueError(f"pad: widths {before, after} cut more than the {n} elements of axis {axis}")
                key.append(slice(start, stop))
            x = _getitem(x, tuple(key))
            widths = tuple((builtins.max(0, before), builtins.max(0, after)) for before, after in widths)
        if isinstance(constant_values, Tensor):
            if is_followed(constant_values):
                raise TypeError("pad: constant_values would leave the graph here; detach() it, or put cgrad.full(...) and the tensor together with concat")
            constant_values = constant_values.item()
        if isinstance(constant_values, float) and not x.dtype.is_floating_point and not constant_values.is_integer():
            raise TypeError(f"pad: constant_values {constant_values} cannot be stored in a tensor of {x.dtype.name} without loss")
        return _pad(x, widths, constant_values)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = take(x, _frame(mode, x.shape[axis], before, after, axis), axis)
    return x


_framed = pad      # below, `pad` is a parameter


@public(method=False)
def constant_pad_nd(x, pad, value=0):
    """
    A frame of one number around a tensor, with widths in PyTorch's order.

    Parameters
    ----------
    x : Tensor
    pad : sequence of int
        ``(before, after)`` of the last axis, then of the one before it, and so on; negative numbers cut off.
    value : number, default 0

    Returns
    -------
    Tensor
        A copy.

    Raises
    ------
    ValueError
        An odd number of widths, more pairs than axes, or more cut off than there is.

    Notes
    -----
    Gradient: ``g`` within the frame.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.constant_pad_nd(cg.tensor([[1, 2]]), (1, 0), 7)
    tensor([[7, 1, 2]])
    """
    x, pad = as_tensor("constant_pad_nd", x), list(pad)
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ValueError(f"constant_pad_nd: needs a (before, after) pair for at most {x.ndim} axes, got {len(pad)} widths")
    return _framed(x, [(0, 0)] * (x.ndim - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2])), constant_values=value)


def _frame(mode, n, before, after, axis):
    """Which element of an axis of length `n` stands at each place of the padded axis."""
    if before < 0 or after < 0:
        raise ValueError(f"pad: widths must not be negative in mode {mode!r}, got {(before, after)} for axis {axis}")
    if n == 0:
        raise ValueError(f"pad: axis {axis} has no elements to fill a frame with in mode {mode!r}")
    places = range(-before, n + after)
    kind = _MODES[mode]
    if kind == "edge":
        return tensor_from([builtins.min(builtins.max(k, 0), n - 1) for k in places], "int64")
    if kind == "wrap":
        return tensor_from([k % n for k in places], "int64")
    if kind == "symmetric":
        return tensor_from([builtins.min(k % (2 * n), 2 * n - 1 - k % (2 * n)) for k in places], "int64")
    if n == 1:
        return tensor_from([0 for _ in places], "int64")
    period = 2 * (n - 1)
    return tensor_from([builtins.min(k % period, period - k % period) for k in places], "int64")
