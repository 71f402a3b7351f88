"""Reading and writing at places: ``x[key]``.

Reading is linear and its adjoint adds, so that repeated places count; writing replaces, so that overwritten numbers get no
gradient.  Keys are checked completely before anything is read or written (core/forward/index.pyx).  Next: gathering.py.
"""
from cgrad.core import batching, forward_mode
from cgrad.core import inplace as core
from cgrad.core.arguments import as_tensor
from cgrad.core.forward import index as forward
from cgrad.core.tensor import Tensor
from cgrad.ops.batching import with_ndim
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import LINEAR, define, in_place, public
from cgrad.ops.ranges import arange


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


def _gradient_of_value(g, key, shape_value, stays=None):
    value = _getitem(g, key)
    if stays is not None:
        value = _kept(value, stays)
    if len(shape_value) > value.ndim:      # leading axes of length 1 that the assignment dropped
        value = value.reshape((1,) * (len(shape_value) - value.ndim) + value.shape)
    return value


_PUT_RULES = (lambda g, key: _index_clear(g, key),
              lambda g, key, shape_x, shape_value: _gradient_of_value(g, key, shape_value, forward.last_writes(key, shape_x)))
_index_put = define("index_put", forward=forward.index_put, moves=True, inputs=("x", "value"), options=("key",), vjp=_PUT_RULES, kind=LINEAR,
                    batch=lambda x, value, key: _index_put(x, _value_batch(x, value, key), _all(key)), public=False)
_index_write = define("setitem", forward=forward.write_alias, moves=True, inputs=("x", "value"), options=("key",), vjp=_PUT_RULES, kind=LINEAR,
                      public=False)
_index_add = define("index_add", forward=forward.index_add, inputs=("x", "value"), options=("key",),
                    vjp=(lambda g: g, lambda g, key, shape_value: _gradient_of_value(g, key, shape_value)), kind=LINEAR,
                    batch=lambda x, value, key: _index_add(x, _value_batch(x, value, key), _all(key)), public=False)



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
    return (_index_add if accumulate else _index_put)(x, forward.value_for(x, value, "index_put"), forward.frozen(key, x, "index_put"))


in_place(index_put)
