"""Reading and writing along one axis by a tensor of indices: gather and scatter, take.

The rules are those of indexing.py: reading is linear and its adjoint adds, writing replaces.  Indices are checked completely before
anything is read or written (core/forward/gather.pyx).  Next: slices.py.
"""
from cgrad.core.arguments import as_tensor, one_axis
from cgrad.core.forward import gather as along
from cgrad.core.forward import index as forward
from cgrad.ops.creation import zeros
from cgrad.ops.define import LINEAR, define, in_place, public
from cgrad.ops.indexing import _index_scatter, _kept, _key, getitem


# ------------------------------------------------------------------------------------------------------------------ gather, scatter
_gather = define("gather", forward=along.gather, moves=True, inputs=("x", "index"), options=("axis",),
                 vjp=(lambda g, index, axis, shape_x: _gather_adjoint(g, index, axis, shape_x), None), kind=LINEAR, public=False)
_gather_adjoint = define("gather_adjoint", forward=along.gather_adjoint, inputs=("x", "index"), options=("axis", "shape"),
                         vjp=(lambda g, index, axis: _gather(g, index, axis), None), kind=LINEAR,
                         batch=lambda x, index, axis, shape, size: _gather_adjoint(x, index, axis + 1, (size, *shape)), public=False)
_scatter_clear = define("scatter_clear", forward=along.scatter_clear, moves=True, inputs=("x", "index"), options=("axis",),
                        vjp=(lambda g, index, axis: _scatter_clear(g, index, axis), None), kind=LINEAR, public=False)


def _gradient_of_src(g, index, axis, shape_src, stays=None):
    value = _gather(g, index, axis)
    if stays is not None:
        value = _kept(value, stays)
    if value.shape != shape_src:       # only a corner of src was used
        value = _index_scatter(value, tuple(slice(0, n) for n in value.shape), shape_src)
    return value


_scatter_add = define("scatter_add", forward=along.scatter_add, inputs=("x", "src", "index"), options=("axis",),
                      vjp=(lambda g: g, lambda g, index, axis, shape_src: _gradient_of_src(g, index, axis, shape_src), None), kind=LINEAR, public=False)
_scatter = define("scatter", forward=along.scatter, moves=True, inputs=("x", "src", "index"), options=("axis",),
                  vjp=(lambda g, index, axis: _scatter_clear(g, index, axis),
                       lambda g, index, axis, shape_src: _gradient_of_src(g, index, axis, shape_src, along.last_scatters(index, axis, g.shape)), None),
                  kind=LINEAR, public=False)


def _fitting(x, index, *more):
    """Operands with one axis in place of none; an index without elements fits any tensor."""
    operands = [y if y.ndim else y.reshape(1) for y in (x, index, *more)]
    if not index.size and operands[1].ndim != operands[0].ndim:
        operands[1:] = [zeros((0,) * operands[0].ndim, dtype=y.dtype) for y in operands[1:]]
    return operands


def scattered(name, function, x, axis, index, src):
    """function(x, src, index, axis), with 0-d operands and numbers made to fit."""
    x, index = as_tensor(name, x), as_tensor(name, index)
    axis, shape = one_axis(name, axis, x.ndim), x.shape
    src = forward.value_for(x, src, name)
    if src.ndim == 0 and index.ndim:
        src = src.broadcast_to(index.shape)
    x, index, src = _fitting(x, index, src)
    out = function(x, src, index, axis)
    return out if shape else out.reshape(())


@public(method=True)
def gather(x, axis, index):
    """
    Elements along one axis, chosen separately at each place.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        As many axes as `x`, not longer than `x` along the others than `axis`.  Negative numbers count from the end.  Here and in the
        functions that scatter, 0-d tensors stand for one element along one axis.

    Returns
    -------
    Tensor
        In the shape of `index`: ``out[i][j] = x[i][index[i][j]]`` for axis 1.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    See Also
    --------
    take_along_axis : broadcasts the other axes.

    Notes
    -----
    Gradient: ``g`` added at the places that were read.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.gather(cg.tensor([[1, 2], [3, 4]]), 1, cg.tensor([[0, 0], [1, 0]]))
    tensor([[1, 1],
            [4, 3]])
    """
    x, index = as_tensor("gather", x), as_tensor("gather", index)
    axis, shape = one_axis("gather", axis, x.ndim), index.shape
    x, index = _fitting(x, index)
    out = _gather(x, index, axis)
    return out if out.shape == shape else out.reshape(shape)


@public(method=True)
def scatter(x, axis, index, src, *, reduce=None):
    """
    A copy of a tensor with elements of another written along one axis: the reverse of `gather`.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        As many axes as `x`, and not larger than `src`.
    src : Tensor or number
        What is written.
    reduce : str, optional
        ``"add"`` or ``"multiply"`` to join it with what is there; see `scatter_add` and `scatter_reduce`.

    Returns
    -------
    Tensor
        ``out[i][index[i][j]] = src[i][j]`` for axis 1; of several writes to one place the last stays.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: 0 for overwritten elements of `x`, ``g`` gathered at the places for those of `src` that stay.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.scatter(cg.zeros(1, 3), 1, cg.tensor([[2, 0]]), 1.0)
    tensor([[1., 0., 1.]])
    """
    if reduce is None:
        return scattered("scatter", _scatter, x, axis, index, src)
    if reduce == "add":
        return scattered("scatter", _scatter_add, x, axis, index, src)
    if reduce != "multiply":
        raise ValueError(f'scatter: reduce must be None, "add" or "multiply", got {reduce!r}')
    from cgrad.ops.scattering import scatter_reduce  # a later file
    return scatter_reduce(x, axis, index, src, "prod")


@public(method=True)
def scatter_add(x, axis, index, src):
    """
    A copy of a tensor with elements of another added along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        As many axes as `x`, and not larger than `src`.
    src : Tensor or number
        What is added.

    Returns
    -------
    Tensor
        ``out[i][index[i][j]] += src[i][j]`` for axis 1; every repetition counts.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: ``g`` for `x`, ``g`` gathered at the places for `src`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.scatter_add(cg.zeros(3), 0, cg.tensor([0, 2, 2]), cg.tensor([1.0, 2.0, 3.0]))
    tensor([1., 0., 5.])
    """
    return scattered("scatter_add", _scatter_add, x, axis, index, src)


@public(method=True)
def take(x, indices, axis=None):
    """
    Elements or slices along one axis.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of int, array, list or int
        Any shape.
    axis : int, optional
        Without it, `x` is read as one flat row.

    Returns
    -------
    Tensor
        The shape of `x` with that of `indices` in place of `axis`.

    Raises
    ------
    IndexError
        An index is out of range.

    Notes
    -----
    Gradient: ``g`` added at the places that were read.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.take(cg.tensor([[1, 2, 3], [4, 5, 6]]), [2, 0], axis=1)
    tensor([[3, 1],
            [6, 4]])
    """
    x = as_tensor("take", x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_axis("take", axis, x.ndim)
    if x.ndim == 0:
        x = x.reshape(1)
    return getitem(x, _key(axis, indices))


@public(method=True)
def index_select(x, axis, index):
    """
    Slices along one axis, as PyTorch spells it; `take` with a vector.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        0-d or 1-d.

    Returns
    -------
    Tensor
        As many slices as indices; the element itself for one index into a 0-d tensor.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        `index` has several axes.

    Notes
    -----
    Gradient: ``g`` added at the slices that were read.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_select(cg.tensor([[1, 2], [3, 4]]), 0, cg.tensor([1, 1]))
    tensor([[3, 4],
            [3, 4]])
    """
    x, index = as_tensor("index_select", x), as_tensor("index_select", index)
    if index.ndim > 1:
        raise ValueError(f"index_select: index must be a vector, got shape {index.shape}")
    out = take(x, index.reshape(-1), axis)
    return out if x.ndim or index.size != 1 else out.reshape(())


@public(method=True)
def take_along_axis(x, indices, axis=-1):
    """
    Elements along one axis, chosen separately at each place; fits what `argsort` and `argmax` give.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of int
        As many axes as `x`; the axes other than `axis` broadcast against those of `x`.
    axis : int or None, default -1
        None reads `x` as one flat row.

    Returns
    -------
    Tensor
        The broadcast shape, with the length of `indices` along `axis`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: ``g`` added at the places that were read.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[3, 1], [2, 4]])
    >>> cg.take_along_axis(x, cg.tensor([[1], [0]]), axis=1)
    tensor([[1],
            [2]])
    """
    x, indices = as_tensor("take_along_axis", x), as_tensor("take_along_axis", indices)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = one_axis("take_along_axis", axis, x.ndim)
    if x.ndim != indices.ndim or x.ndim == 0:
        raise ValueError(f"take_along_axis: x and indices must have the same number of axes (at least 1), got shapes {x.shape} and "
                         f"{indices.shape}")
    shape = []
    for k, (n, m) in enumerate(zip(x.shape, indices.shape)):
        if k != axis and n != m and n != 1 and m != 1:
            raise ValueError(f"take_along_axis: shapes {x.shape} and {indices.shape} do not broadcast along axis {k}")
        shape.append(m if n == 1 or k == axis else n)
    indices = indices.broadcast_to(tuple(shape))
    x = x.broadcast_to(tuple(n if k == axis else shape[k] for k, n in enumerate(x.shape)))
    return _gather(x, indices, axis)


@public(method=True)
def take_along_dim(x, indices, axis=None):
    """
    Elements along one axis, chosen separately at each place: `take_along_axis` with PyTorch's default.

    Parameters
    ----------
    x : Tensor
    indices : Tensor of int
    axis : int, optional
        As for `take_along_axis`; without it, both are read as one flat row.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: ``g`` added at the places that were read.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.take_along_dim(cg.tensor([[3, 1], [2, 4]]), cg.tensor([3, 0]))
    tensor([4, 3])
    """
    indices = as_tensor("take_along_dim", indices)
    return take_along_axis(x, indices.reshape(-1) if axis is None else indices, axis)


for _function in (scatter, scatter_add):
    in_place(_function)
