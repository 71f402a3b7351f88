"""Plans: what a key means for a tensor, checked completely, and the reading and writing it stands for.

Owns NumPy's indexing rules: ints, slices, None, Ellipsis, masks, integer arrays and any mixture of them.  `parse` raises before
anything is read or written, so a bad index leaves everything as it was; `basic_view` is the short way for keys without arrays.
Called by index.pyx.  Parsing holds the GIL; long loops (kernels/index.pyx) run without it.  Next to read: index.pyx.
"""
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memset

from cgrad.core.dtype cimport ITEMSIZE, KIND, KIND_FLOAT, KIND_INT, dtype_object
from cgrad.core.storage cimport Storage, new_storage, written
from cgrad.core.element cimport item_of
from cgrad.core.forward.ordered cimport as_index
from cgrad.core.tensor cimport (
    CONTIGUOUS, Tensor, cast_tensor, copy_into, copy_tensor, empty_tensor, readable, scalar_tensor, shape_of, shape_text, strides_of, view_tensor,
    writable,
)
from cgrad.kernels.index cimport ADD, GET, SET, Mode, Walk, check_indices, count_true, index_offsets, mask_offsets, run_walk
from cgrad.kernels.table cimport BOOL, INT64, MAX_DIMS

import operator

import numpy as np

from cgrad.core.convert import tensor_from

cdef extern from "Python.h":
    int PySlice_Unpack(object slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step) except -1
    int unpacked "PySlice_Unpack"(object slice, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t* step)
    void PyErr_Clear()
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t* start, Py_ssize_t* stop, Py_ssize_t step)
    Py_ssize_t PY_SSIZE_T_MAX
    bint PySlice_Check(object)
    bint PyLong_CheckExact(object)
    long long PyLong_AsLongAndOverflow "PyLong_AsLongLongAndOverflow"(object, int*) except? -1
    PyObject* PyTuple_GET_ITEM(object, Py_ssize_t)
    Py_ssize_t PyTuple_GET_SIZE(object)

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop


# ------------------------------------------------------------------------------------------------------ parsing

cdef int out_of_bounds(object index, int axis, Py_ssize_t size) except -1:
    raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")


cdef object bad_index(object part):
    what = f"a float ({part})" if isinstance(part, float) else f"{type(part).__name__} ({part!r:.40})"
    return IndexError(f"only integers, slices (`:`), ellipsis (`...`), None and integer or boolean arrays are valid indices, got {what}")


cdef object read_part(object part):
    """One element of a key as int, slice, None, Ellipsis, or a Tensor of int64 or bool."""
    cdef Tensor index
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, (bool, np.bool_)):
        return scalar_tensor(bool(part), BOOL)
    if isinstance(part, Tensor):
        index = part
        readable(index, "an index")
    elif isinstance(part, (np.ndarray, list, tuple, range)) or hasattr(part, "__array__"):
        if isinstance(part, (int, np.integer)):
            return operator.index(part)
        try:
            index = tensor_from(part, None, None)
        except TypeError:
            raise bad_index(part) from None
        except OverflowError as error:
            raise IndexError(f"index array: {error}") from None
        if index.count == 0 and not isinstance(part, np.ndarray) and KIND[index.dtype_id] == KIND_FLOAT:
            index = cast_tensor(index, INT64)       # [] as an index selects nothing
    else:
        try:
            return operator.index(part)
        except TypeError:
            raise bad_index(part) from None
    if index.dtype_id == BOOL:
        return index
    if KIND[index.dtype_id] != KIND_INT:
        raise IndexError(f"tensors and arrays used as indices must hold integers or bools, not {dtype_object(index.dtype_id).name}")
    if index.rank == 0:
        return item_of(index.dtype_id, index.data)
    return as_index(index)


cdef Plan parse(Tensor x, object key, str op):
    try:
        return parsed(x, key)
    except (IndexError, TypeError, ValueError) as error:
        raise named(op, error, x) from None


cdef object named(str op, object error, Tensor x):
    return type(error)(f"{op}: {error}; the tensor has shape {shape_text(x.rank, shape_of(x))}")


cdef Plan parsed(Tensor x, object key):
    cdef Plan plan = Plan.__new__(Plan)
    cdef list parts = list(key) if isinstance(key, tuple) else [key]
    cdef list arrays = []            # (Tensor, axis)
    cdef Tensor index
    cdef Py_ssize_t i, start, stop, step, size, n, used = 0
    cdef int axis = 0, rank = 0, k, m, run = 0    # run: 0 no index yet, 1 inside the first run of indices, 2 after it, 3 a second run
    cdef bint ellipsis = False, has_array = False
    plan.x = x
    for k in range(<int> len(parts)):
        part = read_part(parts[k])
        parts[k] = part
        if part is None:
            continue
        if part is Ellipsis:
            if ellipsis:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = True
        elif isinstance(part, Tensor):
            has_array = True
            index = part
            used += index.rank if index.dtype_id == BOOL else 1
        else:
            used += 1
    if used > x.rank:
        raise IndexError(f"too many indices: {used} for {x.rank} axes")
    if not ellipsis:
        parts.append(Ellipsis)

    plan.start = 0
    plan.first = 0
    for part in parts:
        if has_array and (isinstance(part, (int, Tensor))):
            if run == 0:
                plan.first = rank
                run = 1
            elif run == 2:
                run = 3
        elif run == 1:
            run = 2
        if part is None:
            if rank == MAX_DIMS:
                raise too_many_axes()
            plan.shape[rank] = 1
            plan.strides[rank] = 0
            rank += 1
        elif part is Ellipsis:
            for _ in range(x.rank - <int> used):
                if rank == MAX_DIMS:
                    raise too_many_axes()
                plan.shape[rank] = shape_of(x)[axis]
                plan.strides[rank] = strides_of(x)[axis]
                rank += 1
                axis += 1
        elif isinstance(part, slice):
            if rank == MAX_DIMS:
                raise too_many_axes()
            PySlice_Unpack(part, &start, &stop, &step)
            n = PySlice_AdjustIndices(shape_of(x)[axis], &start, &stop, step)
            plan.shape[rank] = n
            plan.strides[rank] = step * strides_of(x)[axis] if n > 1 else strides_of(x)[axis]
            if n > 0:
                plan.start += start * strides_of(x)[axis]
            rank += 1
            axis += 1
        elif isinstance(part, Tensor):
            arrays.append((part, axis))
            index = part
            if index.dtype_id != BOOL:
                axis += 1
                continue
            for m in range(index.rank):
                if shape_of(index)[m] != shape_of(x)[axis + m] and shape_of(index)[m] != 0:      # none of no elements, as in NumPy
                    raise IndexError(f"boolean index of shape {shape_text(index.rank, shape_of(index))} does not fit: its axis {m} has length "
                                     f"{shape_of(index)[m]}, axis {axis + m} of the tensor {shape_of(x)[axis + m]}")
            axis += index.rank
        else:
            size = shape_of(x)[axis]
            if not -size <= part < size:
                out_of_bounds(part, axis, size)
            i = part
            plan.start += (i + size if i < 0 else i) * strides_of(x)[axis]
            axis += 1
    plan.rank = rank
    plan.basic = not has_array
    if has_array:
        place_arrays(plan, arrays, run == 3)
    return plan


cdef object too_many_axes():
    return IndexError(f"the result would have more than {MAX_DIMS} axes")


cdef int place_arrays(Plan plan, list arrays, bint split) except -1:
    """Broadcast the index arrays, turn them into offsets, and put their axes where NumPy puts them."""
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t n, i, step
    cdef int rank = 0, axis, k, lead
    cdef Tensor x = plan.x, index
    cdef Storage mine
    cdef Py_ssize_t* offsets
    cdef Py_ssize_t* places
    cdef int64_t bad = 0
    cdef bint fine, first
    cdef list masks = []             # the offsets of each mask, None for an integer array
    if split:
        plan.first = 0
    for index, _ in arrays:
        rank = max(rank, 1 if index.dtype_id == BOOL else index.rank)
    if plan.rank + rank > MAX_DIMS:
        raise too_many_axes()
    for k in range(rank):
        shape[k] = 1
    for index, axis in arrays:
        if index.dtype_id == BOOL:
            n = count_true(index.data, index.rank, shape_of(index), strides_of(index))
            mine = new_storage(n * sizeof(Py_ssize_t))
            mask_offsets(index.data, index.rank, shape_of(index), strides_of(index), strides_of(x) + axis, <Py_ssize_t*> mine.data)
            masks.append(mine)
            if shape[rank - 1] == 1:
                shape[rank - 1] = n
            elif n != 1 and n != shape[rank - 1]:
                raise cannot_broadcast(arrays)
            continue
        masks.append(None)
        lead = rank - index.rank
        for k in range(index.rank):
            if shape[lead + k] == 1:
                shape[lead + k] = shape_of(index)[k]
            elif shape_of(index)[k] != 1 and shape_of(index)[k] != shape[lead + k]:
                raise cannot_broadcast(arrays)
    plan.n_index = 1
    for k in range(rank):
        if shape[k] and plan.n_index > PY_SSIZE_T_MAX // 16 // shape[k]:
            raise MemoryError(f"index arrays broadcast to shape {shape_text(rank, shape)}, which is too large")
        plan.n_index *= shape[k]
    if len(arrays) == 1 and masks[0] is not None:
        plan.offsets = masks[0]
    else:
        plan.offsets = new_storage(plan.n_index * sizeof(Py_ssize_t))
        offsets = <Py_ssize_t*> plan.offsets.data
        first = True
        for (index, axis), mask in zip(arrays, masks):
            if mask is not None:
                mine = mask
                places = <Py_ssize_t*> mine.data
                step = 1 if mine.nbytes != sizeof(Py_ssize_t) else 0
                for i in range(plan.n_index):
                    offsets[i] = (0 if first else offsets[i]) + places[i % shape[rank - 1] * step]
                first = False
                continue
            lead = rank - index.rank
            for k in range(rank):
                strides[k] = 0 if k < lead or shape_of(index)[k - lead] == 1 else strides_of(index)[k - lead]
            if plan.n_index == 0:      # nothing will be read; the indices are checked all the same
                fine = check_indices(<int64_t*> index.data, index.rank, shape_of(index), strides_of(index), shape_of(x)[axis], &bad)
            else:
                fine = index_offsets(<int64_t*> index.data, rank, shape, strides, shape_of(x)[axis], strides_of(x)[axis],
                                     offsets, not first, &bad)
            if not fine:
                out_of_bounds(bad, axis, shape_of(x)[axis])
            first = False
    for k in range(plan.rank - 1, plan.first - 1, -1):
        plan.shape[k + rank] = plan.shape[k]
        plan.strides[k + rank] = plan.strides[k]
    for k in range(rank):
        plan.shape[plan.first + k] = shape[k]
        plan.strides[plan.first + k] = 0
    plan.index_rank = rank
    plan.rank += rank
    return 0


cdef object cannot_broadcast(list arrays):
    cdef Tensor index
    shapes = []
    for index, _ in arrays:
        if index.dtype_id == BOOL:
            shapes.append(f"({count_true(index.data, index.rank, shape_of(index), strides_of(index))},)")
        else:
            shapes.append(shape_text(index.rank, shape_of(index)))
    return IndexError(f"shape mismatch: index arrays of shapes {', '.join(shapes)} cannot be broadcast together")


# ------------------------------------------------------------------------------------------------------ short ways

cdef Tensor basic_view(Tensor x, object key):
    """The view for a key of plain ints, slices, None and Ellipsis; None for any other key, also for a wrong one."""
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t i, start, stop, step, n, offset = 0
    cdef Py_ssize_t n_parts = PyTuple_GET_SIZE(key) if type(key) is tuple else 1
    cdef PyObject* part
    cdef int axis = 0, rank = 0, used = 0, new = 0, dots = 0, k, m
    for k in range(n_parts):
        part = PyTuple_GET_ITEM(key, k) if type(key) is tuple else <PyObject*> key
        if PyLong_CheckExact(<object> part):
            used += 1
        elif PySlice_Check(<object> part):
            used += 1
            new += 1
        elif part == <PyObject*> None:
            new += 1
        elif part == <PyObject*> Ellipsis:
            dots += 1
        else:
            return None
    if used > x.rank or dots > 1 or x.rank - used + new > MAX_DIMS:
        return None
    for k in range(n_parts):
        part = PyTuple_GET_ITEM(key, k) if type(key) is tuple else <PyObject*> key
        if part == <PyObject*> None:
            shape[rank] = 1
            strides[rank] = 0
            rank += 1
        elif part == <PyObject*> Ellipsis:
            for _ in range(x.rank - used):
                shape[rank] = x.dims[axis]
                strides[rank] = x.dims[x.rank + axis]
                rank += 1
                axis += 1
        elif PySlice_Check(<object> part):
            if unpacked(<object> part, &start, &stop, &step) < 0:
                PyErr_Clear()
                return None
            n = PySlice_AdjustIndices(x.dims[axis], &start, &stop, step)
            shape[rank] = n
            strides[rank] = step * x.dims[x.rank + axis] if n > 1 else x.dims[x.rank + axis]
            if n > 0:
                offset += start * x.dims[x.rank + axis]
            rank += 1
            axis += 1
        else:
            i = PyLong_AsLongAndOverflow(<object> part, &m)
            if m or i < -x.dims[axis] or i >= x.dims[axis]:
                return None
            offset += (i + x.dims[axis] if i < 0 else i) * x.dims[x.rank + axis]
            axis += 1
    while axis < x.rank:
        shape[rank] = x.dims[axis]
        strides[rank] = x.dims[x.rank + axis]
        rank += 1
        axis += 1
    return view_tensor(x, rank, shape, strides, offset)


cdef object frozen_key(object key, Tensor x, str op):
    """The key as it can be kept for a later backward: arrays become Tensors of their own, other objects ints and slices of ints."""
    try:
        return frozen_parts(key)
    except (IndexError, TypeError, ValueError) as error:
        raise named(op, error, x) from None


cdef tuple frozen_parts(object key):
    cdef list parts = list(key) if isinstance(key, tuple) else [key]
    cdef Tensor index
    cdef Py_ssize_t start, stop, step
    cdef int k
    for k in range(<int> len(parts)):
        part = parts[k]
        if type(part) is int or part is None or part is Ellipsis:
            continue
        if isinstance(part, slice):
            if not (plain(part.start) and plain(part.stop) and plain(part.step)):
                PySlice_Unpack(part, &start, &stop, &step)
                parts[k] = slice(None if part.start is None else start, None if part.stop is None else stop, step)
            continue
        part = read_part(part)
        if isinstance(part, Tensor):
            index = part
            part = copy_tensor(index) if index is parts[k] or not isinstance(parts[k], (list, tuple, range)) else index
        parts[k] = part
    return tuple(parts)


cdef inline bint plain(object bound):
    return bound is None or type(bound) is int


cdef bint plain_key(object key):
    """Whether the key is made of nothing that could change later."""
    if type(key) is tuple:
        for part in <tuple> key:
            if not plain_part(part):
                return False
        return True
    return plain_part(key)


cdef inline bint plain_part(object part):
    return (type(part) is int or part is None or part is Ellipsis
            or type(part) is slice and plain(part.start) and plain(part.stop) and plain(part.step))


# ------------------------------------------------------------------------------------------------------ running a plan

cdef int run(Plan plan, Tensor y, const Py_ssize_t* y_strides, Mode mode) except -1:
    """Move elements between the plan's places and `y`, whose strides over the result's axes are given."""
    cdef Walk walk
    cdef Py_ssize_t count = 1
    cdef int k, last = plan.first + plan.index_rank - 1, dtype = plan.x.dtype_id
    walk.x = plan.x.data + plan.start * ITEMSIZE[dtype]
    walk.y = y.data
    walk.outer = plan.first
    walk.inner = plan.rank - last - 1
    walk.n_index = plan.n_index
    walk.offsets = <const Py_ssize_t*> plan.offsets.data
    walk.y_step = y_strides[last]
    for k in range(plan.rank):
        count *= plan.shape[k]
    for k in range(plan.first):
        walk.outer_shape[k] = plan.shape[k]
        walk.outer_x[k] = plan.strides[k]
        walk.outer_y[k] = y_strides[k]
    for k in range(walk.inner):
        walk.inner_shape[k] = plan.shape[last + 1 + k]
        walk.inner_x[k] = plan.strides[last + 1 + k]
        walk.inner_y[k] = y_strides[last + 1 + k]
    if count >= LONG_LOOP:
        with nogil:
            run_walk(&walk, mode, dtype)
    else:
        run_walk(&walk, mode, dtype)
    return 0


cdef Tensor read(Plan plan):
    cdef Tensor out
    if plan.basic:
        return view_tensor(plan.x, plan.rank, plan.shape, plan.strides, plan.start)
    out = empty_tensor(plan.x.dtype_id, plan.rank, plan.shape)
    run(plan, out, strides_of(out), GET)
    return out


cdef bint stretch(Tensor value, int rank, const Py_ssize_t* shape, Py_ssize_t* strides) noexcept:
    """Strides that show `value` in `shape`; leading axes of length 1 that the shape lacks are dropped, as NumPy does on assignment."""
    cdef int k, lead = rank - value.rank
    for k in range(-lead):
        if shape_of(value)[k] != 1:
            return False
    for k in range(rank):
        if k < lead:
            strides[k] = 0
        elif shape_of(value)[k - lead] == shape[k]:
            strides[k] = strides_of(value)[k - lead]
        elif shape_of(value)[k - lead] == 1:
            strides[k] = 0
        else:
            return False
    return True


cdef bint overlap(Tensor x, Tensor y) noexcept:
    """Whether the memory between first and last byte of both meets (also of storages borrowed from one array)."""
    cdef Py_ssize_t x_low, x_high, y_low, y_high
    extent(x, &x_low, &x_high)
    extent(y, &y_low, &y_high)
    return x.count > 0 and y.count > 0 and x_low < y_high and y_low < x_high


cdef void extent(Tensor x, Py_ssize_t* low, Py_ssize_t* high) noexcept:
    cdef Py_ssize_t reach
    cdef int k
    low[0] = high[0] = <Py_ssize_t> x.data
    for k in range(x.rank):
        reach = (shape_of(x)[k] - 1) * strides_of(x)[k] * ITEMSIZE[x.dtype_id]
        if reach < 0:
            low[0] += reach
        else:
            high[0] += reach
    high[0] += ITEMSIZE[x.dtype_id]


cdef bint may_overlap_itself(Tensor x) noexcept:
    """By the strides: each must reach beyond what the axes of smaller ones span.  Some odd layouts without overlap are suspected, too."""
    cdef Py_ssize_t steps[MAX_DIMS]
    cdef Py_ssize_t spans[MAX_DIMS]
    cdef Py_ssize_t step, reach = 0
    cdef int k, at, n = 0
    if x.flags & CONTIGUOUS or x.count == 0:
        return False
    for k in range(x.rank):
        if shape_of(x)[k] > 1:
            step = abs(strides_of(x)[k])
            at = n
            while at > 0 and steps[at - 1] > step:
                steps[at], spans[at] = steps[at - 1], spans[at - 1]
                at -= 1
            steps[at], spans[at] = step, step * (shape_of(x)[k] - 1)
            n += 1
    for k in range(n):
        if steps[k] <= reach:
            return True
        reach += spans[k]
    return False


cdef int distinct(Tensor x, str op) except -1:
    """Raise where several elements of `x` share one place in memory."""
    if x.count and may_overlap_itself(x):
        raise ValueError(f"{op}: several elements of this tensor of shape {shape_text(x.rank, x.dims)} and strides "
                         f"{shape_text(x.rank, x.dims + x.rank)} share one place in memory; write into a copy, x.clone()")
    return 0


cdef int put(Plan plan, Tensor value, Mode mode, str op) except -1:
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Tensor full
    cdef int k
    cdef bint even = True
    if value.dtype_id != plan.x.dtype_id:
        value = cast_tensor(value, plan.x.dtype_id)
    if not stretch(value, plan.rank, plan.shape, strides):
        raise ValueError(f"{op}: a value of shape {shape_text(value.rank, shape_of(value))} does not broadcast to the indexed shape "
                         f"{shape_text(plan.rank, plan.shape)}")
    # The kernel steps through the index axes as through one.
    for k in range(plan.first, plan.first + plan.index_rank - 1):
        if strides[k] != strides[k + 1] * plan.shape[k + 1]:
            even = False
    if not even or overlap(plan.x, value):
        full = empty_tensor(value.dtype_id, plan.rank, plan.shape)
        copy_into(full, value)
        return run(plan, full, strides_of(full), mode)
    return run(plan, value, strides, mode)


cdef int write(Plan plan, Tensor value, str op) except -1:
    writable(plan.x, op)
    distinct(plan.x, op)
    if plan.basic:
        return write_view(view_tensor(plan.x, plan.rank, plan.shape, plan.strides, plan.start), value, op)
    put(plan, value, SET, op)
    if plan.n_index != 0:
        written(plan.x.storage, op)
    return 0


cdef int write_view(Tensor view, Tensor value, str op) except -1:
    cdef Py_ssize_t strides[MAX_DIMS]
    if not stretch(value, view.rank, shape_of(view), strides):
        raise ValueError(f"{op}: a value of shape {shape_text(value.rank, shape_of(value))} does not broadcast to the indexed "
                         f"shape {shape_text(view.rank, shape_of(view))}")
    if value.storage is not view.storage and overlap(view, value):
        value = copy_tensor(value)
    return copy_into(view, value, op)


cdef int accumulate(Plan plan, Tensor value) except -1:
    cdef Tensor view, total
    if plan.basic:
        view = view_tensor(plan.x, plan.rank, plan.shape, plan.strides, plan.start)
        total = copy_tensor(view)
        plain_add(total, value)
        copy_into(view, total)
        return 0
    put(plan, value, ADD, "scatter_add_into")
    written(plan.x.storage, "scatter_add_into")
    return 0


cdef int plain_add(Tensor total, Tensor value) except -1:
    """total += value through the scatter kernel with one index."""
    cdef Plan plan = parsed(total, (None, scalar_tensor(True, BOOL), Ellipsis))
    return put(plan, value, ADD, "scatter_add_into")


cdef Tensor zeros(int dtype, tuple shape):
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef int k
    if len(shape) > MAX_DIMS:
        raise ValueError(f"at most {MAX_DIMS} axes are possible, got {len(shape)}")
    for k in range(<int> len(shape)):
        dims[k] = shape[k]
        if dims[k] < 0:
            raise ValueError(f"an axis cannot have a negative length; got shape {shape}")
    cdef Tensor out = empty_tensor(dtype, <int> len(shape), dims)
    memset(out.data, 0, out.count * ITEMSIZE[dtype])
    return out
