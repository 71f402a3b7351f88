"""Indexing: ``x[key]`` and ``x[key] = value``, and the functions that serve as their derivatives.

Called by ops/indexing.py, which adds the derivatives, and by Tensor's `[]` through `get_entry` and `set_entry`, which record
only where something is being tracked.  Everything is checked before the first element is written.  Next to read: gather.pyx.
"""
cimport cython
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport KIND, KIND_BOOL, KIND_FLOAT, KIND_INT, dtype_object
from cgrad.core.forward.plan cimport (
    Plan, accumulate, basic_view, distinct, frozen_key, parse, plain_key, put, read, write, write_view, zeros)
from cgrad.core.tape cimport grad_enabled, inside_op
from cgrad.core.element cimport store_item
from cgrad.core.storage cimport written
from cgrad.core.tensor cimport (
    LOST, NOTED, REQUIRES_GRAD, SLOW, Tensor, UNRECORDED, alias_tensor, copy_tensor, empty_tensor, leave_graph, refresh, stale, view_tensor, writable,
)
from cgrad.kernels.index cimport ADD, SET
from cgrad.kernels.table cimport BOOL, INT64

import numpy as np

from cgrad.core.convert import tensor_from
from cgrad.core.batching import any_batched
from cgrad.core.inplace import check_inplace_target as check_target, write_inplace as write_result
from cgrad.core.record import note_leaving, take_history


# ------------------------------------------------------------------------------------------------------ x[key]

cdef object recorded_get = None
cdef object recorded_put = None
cdef object recorded_write = None
cdef object batched_get = None
cdef object batched_set = None


def set_recorded(getter, putter, writer, get_batched, set_batched):
    """Tell what `get_entry` and `set_entry` call for a tensor that is being tracked, and for a key that differs within a batch."""
    global recorded_get, recorded_put, recorded_write, batched_get, batched_set
    batched_get = get_batched
    batched_set = set_batched
    recorded_get = getter
    recorded_put = putter
    recorded_write = writer


def getitem(Tensor x not None, object key):
    """
    ``x[key]``, not recorded: a view for ints, slices, None and Ellipsis, else a copy.

    Raises
    ------
    IndexError
        An index is out of range, of a wrong type, or there are too many.

    Examples
    --------
    >>> from cgrad.core.convert import tensor_from, tolist
    >>> from cgrad.core.forward.index import getitem
    >>> tolist(getitem(tensor_from([[1, 2], [3, 4]]), (slice(None), [1, 0])))
    [[2, 1], [4, 3]]
    """
    cdef Tensor out = basic_view(x, key)
    return out if out is not None else read(parse(x, key, "getitem"))


def get_entry(Tensor x not None, object key):
    """
    ``x[key]``, recorded if `x` is being tracked.

    Parameters
    ----------
    x : Tensor
    key : int, slice, None, Ellipsis, array of integers or bools, or a tuple of these
        NumPy's rules.  Integer and boolean arrays may be Tensors, NumPy arrays or lists.

    Returns
    -------
    Tensor
        A view of `x` if the key holds no array, else a copy.

    Raises
    ------
    IndexError
        An index is out of range, of a wrong type, or there are too many.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.arange(6).reshape(2, 3)
    >>> x[1, ::2]
    tensor([3, 5])
    >>> x[x > 2]
    tensor([3, 4, 5])
    """
    if stale(x):
        refresh(x)
    cdef Tensor out
    if x.flags & (REQUIRES_GRAD | SLOW) and wanted(x.flags):
        return recorded_get(x, frozen(key, x, "getitem")) if plain_key(key) or not any_batched(key) else batched_get(x, key)
    out = basic_view(x, key)
    if out is None:
        if any_batched(key):
            return batched_get(x, key)
        out = read(parse(x, key, "getitem"))
    out.flags |= x.flags & LOST
    if x.flags & REQUIRES_GRAD:
        leave_graph(out, UNRECORDED)
    elif x.flags & NOTED:
        note_leaving(out, x.extra["left"])
    return out


@cython.final
cdef class Rows:
    """The elements of a tensor along its first axis, one after another."""

    cdef Tensor x
    cdef Py_ssize_t i

    def __init__(self, Tensor x not None):
        self.x = x

    def __iter__(self):
        return self

    def __length_hint__(self):
        return self.x.dims[0] - self.i

    def __next__(self):
        cdef Tensor x = self.x
        cdef Py_ssize_t i = self.i
        if i >= x.dims[0]:
            raise StopIteration
        self.i = i + 1
        if x.flags & (REQUIRES_GRAD | SLOW | LOST) or stale(x):
            return get_entry(x, i)
        return view_tensor(x, x.rank - 1, x.dims + 1, x.dims + x.rank + 1, i * x.dims[x.rank])


cdef inline bint wanted(unsigned int flags) noexcept:
    # Inside a user's Op.forward nothing is recorded, but results are marked: that goes the recorded way, too.
    return grad_enabled() or flags & SLOW or inside_op()


# ------------------------------------------------------------------------------------------------------ x[key] = value

cdef int store_checked(int dtype, char* data, object value, str op) except -1:
    try:
        return store_item(dtype, data, value)
    except OverflowError:
        text = str(value) if abs(value) < 2 ** 200 else f"of {abs(value).bit_length()} bits"
        raise OverflowError(f"{op}: int {text} does not fit {dtype_object(dtype).name}") from None


def frozen(object key, Tensor x not None, str op):
    """The key of `x` as it can be kept for a later backward: arrays become Tensors of their own, other objects ints and slices of ints."""
    return key if plain_key(key) else frozen_key(key, x, op)


def value_for(Tensor x not None, object value, str op="setitem"):
    """
    `value` as a Tensor that can be stored in `x` without losing its kind.

    Raises
    ------
    TypeError
        Floats for a tensor of ints, or numbers for one of bools; a Python number that is exactly representable is taken.
    """
    cdef Tensor out
    cdef object lossless
    if isinstance(value, Tensor):
        out = value
    elif isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
        if KIND[x.dtype_id] == KIND_FLOAT:
            out = empty_tensor(x.dtype_id, 0, NULL)
            store_checked(x.dtype_id, out.data, value, op)
            return out
        lossless = value == int(value) if value == value and abs(value) != float("inf") else False
        if KIND[x.dtype_id] == KIND_BOOL:
            lossless = value in (0, 1)
        if not lossless:
            raise TypeError(f"{op}: {value!r} cannot be stored in a tensor of {dtype_object(x.dtype_id).name} without loss")
        out = empty_tensor(x.dtype_id, 0, NULL)
        store_checked(x.dtype_id, out.data, int(value), op)
        return out
    else:
        try:
            out = tensor_from(value, None, None)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{op}: {error}") from None
        if isinstance(value, (list, tuple)) and (KIND[out.dtype_id] <= KIND[x.dtype_id] or out.count == 0):
            # read once more with the target's dtype, so that Python floats keep all their digits
            return tensor_from(value, dtype_object(x.dtype_id))
    if KIND[out.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{op}: values of {dtype_object(out.dtype_id).name} cannot be stored in a tensor of "
                        f"{dtype_object(x.dtype_id).name} without loss; convert them first, value.astype(cgrad.{dtype_object(x.dtype_id).name})")
    return out


def setitem(Tensor x not None, object key, object value):
    """
    ``x[key] = value``, not recorded.

    The key, the value's dtype and shape, and whether `x` may be written are checked before the first element is written.

    Raises
    ------
    IndexError
        The key does not fit `x`.
    ValueError
        The value does not broadcast to the indexed shape, or `x` is read-only or a broadcast view.
    TypeError
        The value's kind of number does not fit.

    Examples
    --------
    >>> from cgrad.core.convert import tensor_from, tolist
    >>> from cgrad.core.forward.index import setitem
    >>> x = tensor_from([1, 2, 3])
    >>> setitem(x, slice(0, 2), 7)
    >>> tolist(x)
    [7, 7, 3]
    """
    cdef Tensor view = basic_view(x, key)
    if view is None:
        write(parse(x, key, "setitem"), value_for(x, value), "setitem")
        return
    writable(x, "setitem")
    distinct(x, "setitem")
    if view.rank == 0 and (KIND[x.dtype_id] == KIND_FLOAT and (type(value) is float or type(value) is int)
                           or KIND[x.dtype_id] == KIND_INT and type(value) is int):
        store_checked(x.dtype_id, view.data, value, "setitem")
        written(x.storage, "setitem")
        return
    write_view(view, value_for(x, value), "setitem")


def set_entry(Tensor x not None, object key, object value):
    """
    ``x[key] = value``, recorded if `x` or `value` is being tracked.

    Parameters
    ----------
    x : Tensor
        Neither read-only nor a broadcast view, nor, while recording, a leaf that requires grad.
    key : object
        As for reading.
    value : Tensor, array, list or number
        Broadcasts to the shape of ``x[key]``; of the same or a lower kind (bool, int, float).

    Raises
    ------
    IndexError
        The key does not fit `x`.
    ValueError
        The value does not broadcast, or `x` may not be written.
    TypeError
        The value's kind does not fit.

    Notes
    -----
    The gradient of what was overwritten is 0.  Where a key names a place several times, the last value stays and gets the gradient.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.zeros(4)
    >>> x[1:3] = cg.tensor([5.0, 6.0])
    >>> x
    tensor([0., 5., 6., 0.])
    """
    cdef Tensor v, out
    if stale(x):
        refresh(x)
    cdef unsigned int flags = x.flags
    if isinstance(value, Tensor):
        if stale(<Tensor> value):
            refresh(<Tensor> value)
        flags |= (<Tensor> value).flags
    if not plain_key(key) and any_batched(key):
        check_target(x, "setitem")
        batched_set(x, key, value_for(x, value))
        return
    if not (flags & (REQUIRES_GRAD | SLOW) and wanted(flags)):
        setitem(x, key, value)
        if not x.flags & REQUIRES_GRAD:
            x.flags |= UNRECORDED if flags & REQUIRES_GRAD else flags & LOST
        return
    check_target(x, "setitem")
    v = value_for(x, value)
    key = frozen(key, x, "setitem")
    if not (v.flags & REQUIRES_GRAD or flags & SLOW) and writes_nothing(x, key, v):
        return
    if flags & SLOW or x.base is not None or not grad_enabled():
        try:
            out = recorded_put(x, v, key)
        except (IndexError, ValueError) as error:
            raise type(error)(str(error).replace("index_put", "setitem", 1)) from None
        write_result(x, out, "setitem")
        return
    # Written where it is, then given the new node: no copy of the whole tensor.
    out = recorded_write(x, v, key)
    if out.node is not None:
        take_history(x, out, True)


cdef bint writes_nothing(Tensor x, object key, Tensor v) except -1:
    """Whether a mask is false everywhere: then nothing changes, and what the tape keeps of `x` stays right.  Checks as a write does.

    Array-API libraries mend rare cases so, `x[x == 0] = 1`, in the middle of what is recorded.
    """
    cdef Plan plan
    for part in key if isinstance(key, tuple) else (key,):
        if isinstance(part, Tensor) and (<Tensor> part).dtype_id == BOOL:
            plan = parse(x, key, "setitem")
            if not plan.basic and plan.n_index == 0:
                write(plan, v, "setitem")
                return True
    return False


def rank_of_read(Tensor x not None, object key):
    """The number of axes of ``x[key]``."""
    return parse(x, key, "getitem").rank


def write_alias(Tensor x not None, Tensor value not None, object key):
    """Write into `x` itself and return an alias of it; what `set_entry` records."""
    write(parse(x, key, "setitem"), value, "setitem")
    return alias_tensor(x)


def last_writes(object key, tuple shape not None):
    """Which values of ``x[key] = values`` stay: a bool Tensor in their shape, or None if all do (no place is named twice)."""
    cdef Tensor number, places, out
    cdef Plan plan
    cdef Py_ssize_t i
    cdef bint all_stay = True
    cdef int64_t* back
    if not isinstance(key, tuple) or not any([isinstance(part, Tensor) and (<Tensor> part).dtype_id != BOOL for part in key]):
        return None
    places = zeros(INT64, shape)
    plan = parse(places, key, "setitem")
    number = empty_tensor(INT64, plan.rank, plan.shape)
    for i in range(number.count):
        (<int64_t*> number.data)[i] = i
    put(plan, number, SET, "setitem")
    out = read(plan)
    back = <int64_t*> out.data
    for i in range(number.count):
        if back[i] != i:
            all_stay = False
    if all_stay:
        return None
    number = empty_tensor(BOOL, plan.rank, plan.shape)
    for i in range(number.count):
        number.data[i] = back[i] == i
    return number


def index_put(Tensor x not None, Tensor value not None, object key):
    """A copy of `x` with `value` at `key`."""
    cdef Tensor out = copy_tensor(x)
    write(parse(out, key, "index_put"), value_for(out, value, "index_put"), "index_put")
    return out


def index_scatter(Tensor g not None, object key, tuple shape not None):
    """Zeros of `shape` with `g` added at `key`: the adjoint of ``x[key]``; repeated indices accumulate."""
    cdef Tensor out = zeros(g.dtype_id, shape)
    cdef Plan plan = parse(out, key, "index_scatter")
    if plan.basic:
        write(plan, g, "index_scatter")
    else:
        put(plan, g, ADD, "index_scatter")
    return out


def index_clear(Tensor g not None, object key):
    """A copy of `g` with zeros at `key`."""
    cdef Tensor out = copy_tensor(g)
    write(parse(out, key, "index_clear"), zeros(g.dtype_id, ()), "index_clear")
    return out


def scatter_add_into(Tensor out not None, object key, Tensor g not None):
    """``out[key] += g`` in place, with repeated indices all counting."""
    cdef Plan plan = parse(out, key, "scatter_add_into")
    writable(out, "scatter_add_into")
    distinct(out, "scatter_add_into")
    accumulate(plan, g)
    return out


def index_add(Tensor x not None, Tensor value not None, object key):
    """A copy of `x` with `value` added at `key`; repeated indices accumulate."""
    cdef Tensor out = copy_tensor(x)
    accumulate(parse(out, key, "index_put"), value)
    return out
