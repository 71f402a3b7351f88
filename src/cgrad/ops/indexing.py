"""Reading and writing at places: ``x[key]``, gather and scatter, take, masks.

Reading is linear and its adjoint adds, so that repeated places count; writing replaces, so that overwritten numbers get no
gradient.  Keys and indices are checked completely before anything is read or written (core/forward/index.pyx).  Next: joining.py.
"""
import builtins
import math

from cgrad.core import batching, forward_mode
from cgrad.core import inplace as core
from cgrad.core.forward import gather as along
from cgrad.core.forward import index as forward
from cgrad.core.tensor import Tensor, register_method
from cgrad.core.arguments import as_tensor, one_axis, shape_tuple, whole_number
from cgrad.ops.batching import with_ndim
from cgrad.ops.creation import arange, zeros, zeros_like
from cgrad.ops.define import LINEAR, NONDIFF, define, public

# ------------------------------------------------------------------------------------------------------------------ x[key]
def _all(key):
    """The key for all examples of a batch."""
    return (slice(None), *key) if isinstance(key, tuple) else (slice(None), key)


def _batch_axis(key):
    """Where the axis of the batch lies in ``x[_all(key)]``: behind the axes of index arrays if these come first because they are apart."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if isinstance(part, Tensor)]
    places = [k for k, part in enumerate(parts) if isinstance(part, (int, Tensor))]
    if not arrays or places[-1] - places[0] == len(places) - 1:
        return 0
    return max(1 if part.dtype.kind == "bool" else part.ndim for part in arrays)


def _moved(x, start, end):
    """One axis at another place."""
    if start == end:
        return x
    order = [k for k in range(x.ndim) if k != start]
    order.insert(end, start)
    return x.permute_dims(order)


def _value_batch(x, value, key):
    """The values of a batch that are to go to places of x, with axes in the order of ``x[_all(key)]``."""
    ndim = forward.rank_of_read(x, _all(key))
    if value.ndim > ndim:                  # leading axes of length 1 that the assignment drops
        value = value.reshape(value.shape[:1] + value.shape[value.ndim - ndim + 1:])
    return _moved(with_ndim(value, ndim - 1), 0, _batch_axis(key))


_getitem = define("getitem", forward=forward.getitem, moves=True, inputs=("x",), options=("key",),
                  vjp=lambda g, key, shape_x: _index_scatter(g, key, shape_x),
                  batch=lambda x, key: _moved(_getitem(x, _all(key)), _batch_axis(key), 0), kind=LINEAR, public=False)
_index_scatter = define("index_scatter", forward=forward.index_scatter, inputs=("x",), options=("key", "shape"),
                        vjp=lambda g, key: _getitem(g, key),
                        batch=lambda x, key, shape, size: _index_scatter(_moved(x, 0, _batch_axis(key)), _all(key), (size, *shape)),
                        kind=LINEAR, public=False)
_index_clear = define("index_clear", forward=forward.index_clear, moves=True, inputs=("x",), options=("key",),
                      vjp=lambda g, key: _index_clear(g, key), batch=lambda x, key: _index_clear(x, _all(key)), kind=LINEAR, public=False)


def _kept(value, stays):
    from cgrad.ops.compare import where  # compare.py is a later file
    return where(stays, value, 0)


def _gradient_of_value(g, key, shape_x, shape_value):
    value = _getitem(g, key)
    stays = forward.last_writes(key, shape_x)
    if stays is not None:
        value = _kept(value, stays)
    if len(shape_value) > value.ndim:      # leading axes of length 1 that the assignment dropped
        value = value.reshape((1,) * (len(shape_value) - value.ndim) + value.shape)
    return value


_PUT_RULES = (lambda g, key: _index_clear(g, key), _gradient_of_value)
_index_put = define("index_put", forward=forward.index_put, moves=True, inputs=("x", "value"), options=("key",), vjp=_PUT_RULES, kind=LINEAR,
                    batch=lambda x, value, key: _index_put(x, _value_batch(x, value, key), _all(key)), public=False)
_index_write = define("setitem", forward=forward.write_alias, moves=True, inputs=("x", "value"), options=("key",), vjp=_PUT_RULES, kind=LINEAR,
                      public=False)
_index_add = define("index_add", forward=forward.index_add, inputs=("x", "value"), options=("key",),
                    vjp=(lambda g: g, lambda g, key, shape_value: _gradient_of_added(g, key, shape_value)), kind=LINEAR,
                    batch=lambda x, value, key: _index_add(x, _value_batch(x, value, key), _all(key)), public=False)


def _gradient_of_added(g, key, shape_value):
    value = _getitem(g, key)
    if len(shape_value) > value.ndim:
        value = value.reshape((1,) * (len(shape_value) - value.ndim) + value.shape)
    return value



# ------------------------------------------------------------------------------------------------------------------ keys that differ
def _getitem_batched(x, key):
    """``x[key]`` where the examples of a vmap have different index arrays: one more index array counts the examples."""
    key = key if isinstance(key, tuple) else (key,)
    level = forward_mode.highest_level([part for part in key if isinstance(part, Tensor)])
    if forward_mode.highest_level((x,)) > level:
        return forward_mode.through(x, lambda part: getitem(part, key), lambda values: _moved(getitem(values, _all(key)), _batch_axis(key), 0))
    values = batching.split_batched(x, level)
    key, _, ndim = _counted(key, level, values is not None)
    out = getitem(x if values is None else values, key)
    parts = key[values is not None:]
    places = [k for k, part in enumerate(parts) if isinstance(part, (int, Tensor))]
    before = 0
    if places[-1] - places[0] == len(places) - 1:              # the axes of the arrays stay in their place
        before = sum(part is not Ellipsis for part in parts[:places[0]])
        if Ellipsis in parts[:places[0]]:
            before = out.ndim - 1 - ndim - sum(part is not Ellipsis for part in parts[places[-1] + 1:])
    if values is None:
        out = _moved(out, before, 0)
    elif before:                                               # here the axes of the arrays came first, behind the batch
        order = list(range(out.ndim))
        out = out.permute_dims([0, *order[ndim + 1:ndim + 1 + before], *order[1:ndim + 1], *order[ndim + 1 + before:]])
    return batching.make_batched(out, level)


def _counted(key, level, batched):
    """A key for the values of a batch, the size of the batch, and the number of axes that its arrays give each example."""
    key = [part if isinstance(part, (int, slice, Tensor)) or part is None or part is Ellipsis else as_tensor("getitem", part) for part in key]
    if any(isinstance(part, Tensor) and part.dtype.kind == "bool" for part in key):
        raise RuntimeError("vmap: a boolean mask selects another number of elements in each example of a batch; use cgrad.where(mask, x, 0) and the like")
    found = [batching.split_batched(part, level) for part in key]
    size = next(part.shape[0] for part in found if part is not None)
    ndim = max(part.ndim for part in key if isinstance(part, Tensor))
    key = [part if values is None else with_ndim(values, ndim) for part, values in zip(key, found)]
    return ((arange(size).reshape((size,) + (1,) * ndim),) if batched else ()) + tuple(key), size, ndim


def _setitem_batched(x, key, value):
    """``x[key] = value`` where the examples of a vmap have different index arrays."""
    core.write_inplace(x, _index_put_batched(x, key if isinstance(key, tuple) else (key,), value), "setitem")


def _index_put_batched(x, key, value, accumulate=False):
    level, top = [forward_mode.highest_level([part for part in parts if isinstance(part, Tensor)]) for parts in (key, (x, value))]
    if top > level:
        (x, tx), (value, tvalue) = forward_mode.unpack_dual(x, top), forward_mode.unpack_dual(value, top)
        if tx is None and tvalue is None:
            raise RuntimeError("vmap: x[index] = value, with an index of an outer vmap inside another one, is not possible; use cgrad.scatter or cgrad.where")
        tx, tvalue = [zeros_like(v) if t is None else t for v, t in ((x, tx), (value, tvalue))]
        return forward_mode.make_dual(_index_put_batched(x, key, value, accumulate), _index_put_batched(tx, key, tvalue, accumulate),
                                      top)
    places = [k for k, part in enumerate(key) if not isinstance(part, slice) and part is not None and part is not Ellipsis]
    if places[-1] != len(places) - 1:
        raise RuntimeError("vmap: x[index] = value, with an index that differs between the examples, takes indices at the start of the key only; "
                           "use cgrad.scatter or cgrad.where")
    counted, size, ndim = _counted(key, level, True)
    values, inner = batching.split_batched(x, level), batching.split_batched(value, level)
    values = x.broadcast_to((size, *x.shape)) if values is None else values
    value = value if inner is None else with_ndim(inner, ndim + x.ndim - len(places))
    return batching.make_batched(index_put(values, counted, value, accumulate), level)


forward.set_recorded(_getitem, _index_put, _index_write, _getitem_batched, _setitem_batched)
getitem = forward.get_entry
setitem = forward.set_entry


def _key(axis, index):
    return (slice(None),) * axis + (index,)


@public(method=True)
def index_put(x, key, value, accumulate=False):
    """
    A copy of a tensor with other numbers at some places: ``x[key] = value`` without changing `x`.

    Parameters
    ----------
    x : Tensor
    key : int, slice, None, Ellipsis, array of integers or bools, or a tuple of these
        As in ``x[key]``.
    value : Tensor or number
        Broadcasts to the shape of ``x[key]``.
    accumulate : bool, optional
        Whether the value is added to what is there; every repetition of a place counts.

    Returns
    -------
    Tensor
        Shape and dtype of `x`.

    Raises
    ------
    IndexError
        The key does not fit.
    ValueError
        The value does not broadcast.
    TypeError
        The value's kind (bool, int, float) is above that of `x`.

    Notes
    -----
    Gradient: 0 for the overwritten numbers (``g`` if accumulated), ``g[key]`` for the value.  Of several writes to one place the last
    stays and gets the gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_put(cg.zeros(3), 1, 5.0)
    tensor([0., 5., 0.])
    """
    x = as_tensor("index_put", x)
    if batching.any_batched(key):
        return _index_put_batched(x, key if isinstance(key, tuple) else (key,), forward.value_for(x, value, "index_put"), accumulate)
    return (_index_add if accumulate else _index_put)(x, forward.value_for(x, value, "index_put"), forward.frozen(key))


# ------------------------------------------------------------------------------------------------------------------ gather, scatter
_gather = define("gather", forward=along.gather, moves=True, inputs=("x", "index"), options=("axis",),
                 vjp=(lambda g, index, axis, shape_x: _gather_adjoint(g, index, axis, shape_x), None),
                 jvp=lambda tx, index, axis: _gather(tx, index, axis), public=False)
_gather_adjoint = define("gather_adjoint", forward=along.gather_adjoint, inputs=("x", "index"), options=("axis", "shape"),
                         vjp=(lambda g, index, axis: _gather(g, index, axis), None),
                         jvp=lambda tx, index, axis, shape: _gather_adjoint(tx, index, axis, shape),
                         batch=lambda x, index, axis, shape, size: _gather_adjoint(x, index, axis + 1, (size, *shape)), public=False)
_scatter_clear = define("scatter_clear", forward=along.scatter_clear, moves=True, inputs=("x", "index"), options=("axis",),
                        vjp=(lambda g, index, axis: _scatter_clear(g, index, axis), None),
                        jvp=lambda tx, index, axis: _scatter_clear(tx, index, axis), public=False)


def _scatter_add_tangent(tx, tsrc, index, axis, out):
    if tsrc is None:
        return tx
    return _scatter_add(along.zeros_for(out) if tx is None else tx, tsrc, index, axis)


def _scatter_tangent(tx, tsrc, src, index, axis, out):
    tx = along.zeros_for(out) if tx is None else tx
    return _scatter(tx, along.zeros_for(src) if tsrc is None else tsrc, index, axis)


def _gradient_of_src(g, index, axis, shape_src):
    value = _gather(g, index, axis)
    if value.shape != shape_src:       # only a corner of src was used
        value = _index_scatter(value, tuple(slice(0, n) for n in value.shape), shape_src)
    return value


def _gradient_of_scattered(g, index, axis, shape_src):
    stays = along.last_scatters(index, axis, g.shape)
    value = _gather(g, index, axis)
    if stays is not None:
        value = _kept(value, stays)
    if value.shape != shape_src:
        value = _index_scatter(value, tuple(slice(0, n) for n in value.shape), shape_src)
    return value


_scatter_add = define("scatter_add", forward=along.scatter_add, inputs=("x", "src", "index"), options=("axis",),
                      vjp=(lambda g: g, _gradient_of_src, None), jvp=_scatter_add_tangent, public=False)
_scatter = define("scatter", forward=along.scatter, moves=True, inputs=("x", "src", "index"), options=("axis",),
                  vjp=(lambda g, index, axis: _scatter_clear(g, index, axis), _gradient_of_scattered, None),
                  jvp=_scatter_tangent, public=False)


def _fitting(name, x, index, *more):
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
    x, index, src = _fitting(name, x, index, src)
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
    x, index = _fitting("gather", x, index)
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


def _at_slices(name, x, axis, index, value, accumulate=False):
    """Slices along an axis written or added to; a 0-d tensor has one slice, and a 0-d index picks one."""
    x, index = as_tensor(name, x), as_tensor(name, index)
    axis, shape = one_axis(name, axis, x.ndim), x.shape
    if index.ndim > 1:
        raise ValueError(f"{name}: index must be a vector, got shape {index.shape}")
    value = forward.value_for(x, value, name)
    x, index = x if shape else x.reshape(1), index if index.ndim else index.reshape(1)
    if batching.is_batched(index):         # scatter takes indices that differ between the examples of a vmap
        places = index.reshape([-1 if k == axis else 1 for k in range(x.ndim)]).broadcast_to(x.shape[:axis] + index.shape + x.shape[axis + 1:])
        out = (scatter_add if accumulate else scatter)(x, axis, places, value.broadcast_to(places.shape))
    else:
        out = index_put(x, _key(axis, index), value, accumulate)
    return out if shape else out.reshape(())


@public(method=True)
def index_add(x, axis, index, source, alpha=1):
    """
    A copy of a tensor with slices of another added along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
        1-d; may repeat.
    source : Tensor
        Broadcasts to the shape of ``take(x, index, axis)``.
    alpha : number, default 1
        Factor on `source`.

    Returns
    -------
    Tensor
        Shape of `x`; every repetition of an index counts.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: ``g`` for `x`; ``alpha * g`` at the indices for `source`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_add(cg.zeros(3), 0, cg.tensor([0, 0, 2]), cg.ones(3))
    tensor([2., 0., 1.])
    """
    return _at_slices("index_add", x, axis, index, source if alpha == 1 else as_tensor("index_add", source) * alpha, True)


@public(method=True)
def index_copy(x, axis, index, source):
    """
    A copy of a tensor with slices replaced along one axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
    source : Tensor
        Broadcasts to the shape of ``take(x, index, axis)``.

    Returns
    -------
    Tensor
        Shape of `x`.

    Raises
    ------
    IndexError
        An index is out of range.
    ValueError
        The shapes do not fit.

    Notes
    -----
    Gradient: as for `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_copy(cg.zeros(3), 0, cg.tensor([2]), cg.ones(1))
    tensor([0., 0., 1.])
    """
    return _at_slices("index_copy", x, axis, index, source)


@public(method=True)
def index_fill(x, axis, index, value):
    """
    A copy of a tensor with one number in some slices along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : Tensor of int
    value : number or 0-d Tensor

    Returns
    -------
    Tensor
        Shape of `x`.

    Raises
    ------
    IndexError
        An index is out of range.

    Notes
    -----
    Gradient: as for `index_put`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.index_fill(cg.zeros(3), 0, cg.tensor([0, 2]), 7.0)
    tensor([7., 0., 7.])
    """
    return _at_slices("index_fill", x, axis, index, value)


@public(method=True)
def select(x, axis, index):
    """
    One slice along an axis; the axis disappears.

    Parameters
    ----------
    x : Tensor
    axis : int
    index : int

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        The index is out of range.

    Notes
    -----
    Gradient: ``g`` at the slice, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([[1, 2], [3, 4]]).select(1, 0)
    tensor([1, 3])
    """
    x = as_tensor("select", x)
    if x.ndim == 0:
        raise IndexError("select: a 0-d tensor has no axis to select from")
    return getitem(x, _key(one_axis("select", axis, x.ndim), whole_number("select", "index", index)))


@public(method=True)
def narrow(x, axis, start, length):
    """
    A stretch along an axis.

    Parameters
    ----------
    x : Tensor
    axis : int
    start : int
        First position; negative numbers count from the end.
    length : int

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    IndexError
        The stretch leaves the axis.

    Notes
    -----
    Gradient: ``g`` at the stretch, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(5).narrow(0, 1, 3)
    tensor([1, 2, 3])
    """
    x = as_tensor("narrow", x)
    if x.ndim == 0:
        raise IndexError("narrow: a 0-d tensor has no axis to narrow")
    axis = one_axis("narrow", axis, x.ndim)
    start, length = whole_number("narrow", "start", start), whole_number("narrow", "length", length)
    n = x.shape[axis]
    first = start + n if start < 0 else start
    if not 0 <= first <= n or not 0 <= length <= n - first:
        raise IndexError(f"narrow: start {start} and length {length} leave axis {axis} of length {n}")
    return getitem(x, _key(axis, slice(first, first + length)))


@public(method=True)
def narrow_copy(x, axis, start, length):
    """
    A stretch along an axis as a copy.

    Parameters
    ----------
    x : Tensor
    axis, start, length : int
        As for `narrow`.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        The stretch leaves the axis.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.narrow_copy(cg.arange(5), 0, 1, 3)
    tensor([1, 2, 3])
    """
    return narrow(x, axis, start, length).clone()


# ------------------------------------------------------------------------------------------------------------------ masks
def bool_mask(name, mask):
    mask = as_tensor(name, mask)
    if mask.dtype.kind != "bool":
        raise TypeError(f"{name}: the mask must be of dtype bool, got {mask.dtype.name}")
    return mask


def common_shape(name, x, y):
    """The shape to which both broadcast."""
    n = builtins.max(x.ndim, y.ndim)
    shape = []
    for a, b in zip((1,) * (n - x.ndim) + tuple(x.shape), (1,) * (n - y.ndim) + tuple(y.shape)):
        if a != b and a != 1 and b != 1:
            raise ValueError(f"{name}: shapes {x.shape} and {y.shape} do not broadcast")
        shape.append(b if a == 1 else a)
    return tuple(shape)


@public(method=True)
def masked_select(x, mask):
    """
    The elements where a mask is true, in one row.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
        Broadcasts with `x`.

    Returns
    -------
    Tensor
        1-d.

    Raises
    ------
    TypeError
        The mask is not of bools.
    ValueError
        The shapes do not broadcast.

    Notes
    -----
    Gradient: ``g`` at the places that were read, 0 elsewhere.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([[1, 2], [3, 4]])
    >>> cg.masked_select(x, x > 2)
    tensor([3, 4])
    """
    x, mask = as_tensor("masked_select", x), bool_mask("masked_select", mask)
    shape = common_shape("masked_select", x, mask)
    return getitem(x.broadcast_to(shape), mask.broadcast_to(shape)).reshape(-1)


@public(method=True)
def masked_fill(x, mask, value):
    """
    A copy of a tensor with one number where a mask is true.

    Parameters
    ----------
    x : Tensor
    mask : Tensor of bool
        Broadcasts with `x`.
    value : number or 0-d Tensor

    Returns
    -------
    Tensor
        The broadcast shape, dtype of `x`.

    Raises
    ------
    TypeError
        The mask is not of bools, or the kind of `value` does not fit `x`.
    ValueError
        The shapes do not broadcast.

    Notes
    -----
    Gradient: ``g`` where the mask is false, for `x`; the sum of ``g`` where it is true, for `value`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.masked_fill(cg.tensor([1.0, 2.0]), cg.tensor([True, False]), -1.0)
    tensor([-1.,  2.])
    """
    from cgrad.ops.compare import where  # compare.py is a later file
    x, mask = as_tensor("masked_fill", x), bool_mask("masked_fill", mask)
    if not isinstance(value, (bool, int, float)) or not x.dtype.is_floating_point:
        value = forward.value_for(x, value, "masked_fill")
        if value.ndim:
            raise ValueError(f"masked_fill: value must be one number, got shape {value.shape}")
        if value.dtype != x.dtype:
            value = value.astype(x.dtype)
    return where(mask, value, x)


# ------------------------------------------------------------------------------------------------------------------ where numbers are
_argwhere = define("argwhere", forward=along.argwhere, moves=True, inputs=("x",), kind=NONDIFF, public=False)


@public(method=True)
def argwhere(x):
    """
    Places of the elements that are not zero.

    Parameters
    ----------
    x : Tensor

    Returns
    -------
    Tensor
        int64, shape (n, ndim): one place a row, in C order.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.argwhere(cg.tensor([[0, 5], [7, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return _argwhere(as_tensor("argwhere", x))


@public(method=True)
def nonzero(x, *, as_tuple=True):
    """
    Places of the elements that are not zero, axis by axis.

    Parameters
    ----------
    x : Tensor
    as_tuple : bool, default True
        False gives the matrix that `argwhere` gives, PyTorch's default.

    Returns
    -------
    tuple of Tensor
        One int64 vector for each axis; together they index `x`.

    Raises
    ------
    ValueError
        A 0-d tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([0, 5, 7])
    >>> cg.nonzero(x)
    (tensor([1, 2]),)
    """
    x = as_tensor("nonzero", x)
    places = _argwhere(x)
    if not as_tuple:
        return places
    if x.ndim == 0:
        raise ValueError("nonzero: a 0-d tensor has no places; reshape it to (1,) first")
    return tuple(places[:, k] for k in range(x.ndim))


@public(method=False)
def unravel_index(indices, shape):
    """Places in a flattened tensor as places along each axis.

    Parameters
    ----------
    indices : Tensor of int
    shape : tuple of int
        That of the tensor.

    Returns
    -------
    tuple of Tensor
        int64, one for each axis, in the shape of `indices`.

    Raises
    ------
    IndexError
        A place outside of the tensor.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.unravel_index(cg.tensor([1, 5]), (2, 3))
    (tensor([0, 1]), tensor([1, 2]))
    """
    indices, shape = as_tensor("unravel_index", indices), shape_tuple("unravel_index", shape)
    _check_places("unravel_index", indices, math.prod(shape))
    places = []
    for n in reversed(shape):
        places.append(indices % n)
        indices = indices // n
    return tuple(reversed(places))


@public(method=False)
def ravel_multi_index(indices, shape):
    """Places along each axis as places in the flattened tensor: the reverse of `unravel_index`.

    Parameters
    ----------
    indices : tuple of Tensor of int
        One for each axis; they broadcast.
    shape : tuple of int
        That of the tensor.

    Returns
    -------
    Tensor
        int64.

    Raises
    ------
    IndexError
        A place outside of the tensor.
    ValueError
        Another number of indices than of axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ravel_multi_index((cg.tensor([0, 1]), cg.tensor([1, 2])), (2, 3))
    tensor([1, 5])
    """
    indices, shape = [as_tensor("ravel_multi_index", part) for part in indices], shape_tuple("ravel_multi_index", shape)
    if len(indices) != len(shape) or not shape:
        raise ValueError(f"ravel_multi_index: needs an index for each axis of shape {shape}, got {len(indices)}")
    place = 0
    for part, n in zip(indices, shape):
        _check_places("ravel_multi_index", part, n)
        place = part + place * n
    return place


def _check_places(name, indices, n):
    if indices.dtype.is_floating_point or indices.dtype.kind == "bool":
        raise TypeError(f"{name}: indices must be integers, got {indices.dtype.name}")
    every = batching.all_examples(indices)
    if every.size and not 0 <= every.min().item() <= every.max().item() < n:
        raise IndexError(f"{name}: indices from {every.min().item()} to {every.max().item()} are out of range for {n} places")


# ------------------------------------------------------------------------------------------------------------------ in place
def in_place(function):
    """Make a function a method that writes its result into the tensor."""
    name = function.__name__ + "_"

    def method(self, *args, **kwargs):
        return core.inplace(name, function, self, *args, **kwargs)
    method.__name__ = method.__qualname__ = name
    method.__wrapped__ = function        # its signature is theirs
    first = function.__doc__.strip().splitlines()[0]
    method.__doc__ = f"`{function.__name__}` written into the tensor itself; returns it.\n\n{first}"
    register_method(name, method)


for _function in (masked_fill, scatter, scatter_add, index_put, index_add, index_copy, index_fill):
    in_place(_function)
