"""Elementwise operations on tensors and Python numbers, unrecorded: promote, broadcast, allocate, run the loop.

Small contiguous operands go straight to the loop; Python numbers are weak operands that go there from the stack and never become
tensors.  Needs the GIL (released inside long loops).  Next: record.pyx, what is kept of a call.
"""
from cpython.object cimport PyObject

import numpy as np

from cgrad.core.door cimport failed
from cgrad.core.dtype cimport (
    ITEMSIZE, KIND, KIND_BOOL, KIND_FLOAT, KIND_INT, promote, default_float, dtype_object,
)
from cgrad.core.primitive cimport BOOLEAN, MAX_INPUTS, Primitive, SAME
from cgrad.core.element cimport store_item
from cgrad.core.storage cimport written
from cgrad.core.tensor cimport (
    CONTIGUOUS, Tensor, cast_tensor, empty_like, empty_tensor, launch, same_shape, scalar_tensor, shape_text,
)
from cgrad.kernels.iterate cimport run_converted
from cgrad.kernels.table cimport BOOL, INT64, MAX_DIMS, computing_dtype, loop_t


ctypedef int (*quiet_store_t)(int dtype, char* data, object value) noexcept
cdef quiet_store_t store = <quiet_store_t>store_item          # -1 for an error, which `refused` takes up


cdef int refused(Primitive p, int dtype, object value) except -1:
    try:
        failed()
    except (OverflowError, ValueError) as error:
        raise type(error)(f"{p.name}: {value!r:.40} is out of range for {dtype_object(dtype).name}, the dtype of the tensor that it meets") from None
    return 0


cdef int _i
for _i in range(MAX_INPUTS + 1):
    ONES[_i] = 1

cdef converter_t convert = NULL
cdef object array_type = np.ndarray
cdef object scalar_type = np.generic


cdef void set_converter(converter_t function) noexcept:
    global convert
    convert = function


cdef bint is_array(object x) except -1:
    return isinstance(x, array_type) or isinstance(x, scalar_type)


cdef Tensor as_tensor(Primitive p, object x):
    if isinstance(x, Tensor):
        return <Tensor>x
    if isinstance(x, bool):
        return scalar_tensor(x, BOOL)
    if isinstance(x, float):
        return scalar_tensor(x, default_float())
    if isinstance(x, int):
        return scalar_tensor(x, INT64)
    if is_array(x):
        try:
            return convert(x)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{p.name}: {error}") from None
    raise TypeError(f"{p.name}: operands are tensors, arrays or numbers, got {type(x).__name__}; make a tensor with cgrad.tensor(...)")


cdef inline int number_kind(object x) noexcept:
    if isinstance(x, float):
        return KIND_FLOAT
    if isinstance(x, bool):
        return KIND_BOOL
    return KIND_INT


cdef inline int with_number(int dtype, int kind) noexcept:
    # The dtype of a tensor that meets a Python number: the number only matters if its kind is higher.
    if kind <= KIND[dtype]:
        return dtype
    return INT64 if kind == KIND_INT else default_float()


cdef int operand_dtype(Primitive p, int dtype) except -1:
    """The dtype that operands of a common dtype are brought to; the loop may yet be one of its computing dtype."""
    if p.loops[computing_dtype(dtype)] != NULL or p.loops[dtype] != NULL:
        return dtype
    if p.result != SAME and p.loops[computing_dtype(default_float())] != NULL and KIND[dtype] != KIND_FLOAT:
        return default_float()
    if KIND[dtype] == KIND_BOOL and p.result != BOOLEAN:
        raise TypeError(f"{p.name}: not defined for bool tensors; convert them first, for instance with x.int(), or use the logical functions")
    raise TypeError(f"{p.name}: not defined for tensors of dtype {dtype_object(dtype).name}")


cdef Tensor compute1(Primitive p, Tensor x):
    cdef int dtype = x.dtype_id
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef char* data[2]
    cdef int itemsize[2]
    cdef const Py_ssize_t* strides[2]
    cdef PyObject* inputs[1]
    if loop == NULL:
        dtype = operand_dtype(p, dtype)
        loop = p.loops[dtype]
        x = cast_tensor(x, dtype)
        if loop == NULL:
            inputs[0] = <PyObject*>x
            return compute(p, inputs, 1)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    data[1] = x.data
    if x.flags & CONTIGUOUS and x.count <= SMALL:
        loop(data, ONES, x.count)
        return out
    itemsize[0] = ITEMSIZE[out.dtype_id]
    itemsize[1] = ITEMSIZE[dtype]
    if x.flags & CONTIGUOUS:
        strides[0] = strides[1] = ONES
        launch(loop, 2, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    else:
        strides[0] = out.dims + out.rank
        strides[1] = x.dims + x.rank
        launch(loop, 2, data, itemsize, x.rank, x.dims, strides, p.weight, x.count)
    return out


cdef Tensor compute2(Primitive p, Tensor x, Tensor y):
    cdef int dtype = x.dtype_id
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    cdef PyObject* inputs[2]
    if loop == NULL or not same_shape(x, y) or not x.flags & y.flags & CONTIGUOUS:
        inputs[0] = <PyObject*>x
        inputs[1] = <PyObject*>y
        return compute(p, inputs, 2)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    data[1] = x.data
    data[2] = y.data
    if x.count <= SMALL:
        loop(data, ONES, x.count)
        return out
    itemsize[0] = ITEMSIZE[out.dtype_id]
    itemsize[1] = itemsize[2] = ITEMSIZE[dtype]
    strides[0] = strides[1] = strides[2] = ONES
    launch(loop, 3, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    return out


cdef int broadcast(Primitive p, PyObject** inputs, int n, int* rank, Py_ssize_t* shape) except -1:
    """The common shape of the tensors among the inputs."""
    cdef Tensor x
    cdef int i, k, lead
    rank[0] = 0
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            x = <Tensor>inputs[i]
            if x.rank > rank[0]:
                rank[0] = x.rank
    for k in range(rank[0]):
        shape[k] = 1
    for i in range(n):
        if not isinstance(<object>inputs[i], Tensor):
            continue
        x = <Tensor>inputs[i]
        lead = rank[0] - x.rank
        for k in range(x.rank):
            if shape[lead + k] == 1:
                shape[lead + k] = x.dims[k]
            elif x.dims[k] != 1 and x.dims[k] != shape[lead + k]:
                shapes = [shape_text((<Tensor>inputs[j]).rank, (<Tensor>inputs[j]).dims)
                          for j in range(n) if isinstance(<object>inputs[j], Tensor)]
                raise ValueError(f"{p.name}: shapes {', '.join(shapes)} do not broadcast; axes must match from the right or be 1")
    return 0


cdef Tensor compute(Primitive p, PyObject** inputs, int n):
    """Any mixture of tensors and numbers; dtypes promote, shapes broadcast.  At least one tensor."""
    cdef Tensor x, out
    cdef int dtype = -1, kind = -1, rank, i, k, lead, first = 1 if p.masked else 0
    cdef Py_ssize_t shape[MAX_DIMS]
    cdef Py_ssize_t layout[MAX_INPUTS + 1][MAX_DIMS]
    cdef const Py_ssize_t* strides[MAX_INPUTS + 1]
    cdef char* data[MAX_INPUTS + 1]
    cdef int itemsize[MAX_INPUTS + 1]
    cdef int held[MAX_INPUTS + 1]
    cdef int seen[MAX_INPUTS + 1]
    cdef double numbers[MAX_INPUTS]
    cdef list casts = None      # keeps converted operands alive
    cdef int native
    for i in range(first, n):
        value = <object>inputs[i]
        if isinstance(value, Tensor):
            x = <Tensor>value
            dtype = x.dtype_id if dtype < 0 else promote(dtype, x.dtype_id)
        elif number_kind(value) > kind:
            kind = number_kind(value)
    if dtype < 0:
        dtype = BOOL
    if kind >= 0:
        dtype = with_number(dtype, kind)
    dtype = operand_dtype(p, dtype)
    native = dtype if p.loops[dtype] != NULL else computing_dtype(dtype)
    if p.whole_exponent and KIND[dtype] == KIND_INT:
        check_exponent(<object>inputs[1])
    broadcast(p, inputs, n, &rank, shape)
    out = empty_tensor(BOOL if p.result == BOOLEAN else dtype, rank, shape)
    data[0] = out.data
    itemsize[0] = ITEMSIZE[out.dtype_id]
    strides[0] = out.dims + rank
    for i in range(n):
        value = <object>inputs[i]
        strides[i + 1] = layout[i]
        held[i + 1] = BOOL if i < first else dtype
        seen[i + 1] = BOOL if i < first else native
        if isinstance(value, Tensor):
            x = cast_tensor(<Tensor>value, held[i + 1])
            if x is not value:
                casts = [x] if casts is None else casts + [x]
            lead = rank - x.rank
            for k in range(rank):
                layout[i][k] = 0 if k < lead or x.dims[k - lead] == 1 and shape[k] != 1 else x.dims[x.rank + k - lead]
            data[i + 1] = x.data
        else:
            if KIND[dtype] == KIND_FLOAT and p.result != BOOLEAN:
                held[i + 1] = seen[i + 1]       # a number that meets float16 is not rounded to it, unless to be compared
            if store(held[i + 1], <char*>&numbers[i], value):
                refused(p, held[i + 1], value)
            for k in range(rank):
                layout[i][k] = 0
            data[i + 1] = <char*>&numbers[i]
        itemsize[i + 1] = ITEMSIZE[held[i + 1]]
    if native != dtype:
        held[0] = out.dtype_id
        seen[0] = BOOL if p.result == BOOLEAN else native
        if out.count > SMALL:
            with nogil:
                run_converted(p.loops[native], n + 1, data, held, seen, rank, shape, strides, p.weight)
        else:
            run_converted(p.loops[native], n + 1, data, held, seen, rank, shape, strides, p.weight)
    elif rank == 0:
        p.loops[dtype](data, ONES, 1)
    else:
        launch(p.loops[dtype], n + 1, data, itemsize, rank, shape, strides, p.weight, out.count)
    return out


cdef bint compute_over(Primitive p, PyObject** inputs, int n, Tensor out) except -1:
    """Write the result into the memory of one of the inputs: a gradient or an intermediate result that nobody needs any more.

    Spares a block and a third of the memory traffic.  False, and nothing is done, where an input would have to be cast or broadcast.
    """
    cdef Tensor x
    cdef double numbers[MAX_INPUTS]
    cdef char* data[MAX_INPUTS + 1]
    cdef int itemsize[MAX_INPUTS + 1]
    cdef Py_ssize_t steps[MAX_INPUTS + 1]
    cdef const Py_ssize_t* strides[MAX_INPUTS + 1]
    cdef int i, dtype = out.dtype_id
    if p.loops[dtype] == NULL or p.result == BOOLEAN or p.masked or p.whole_exponent and KIND[dtype] == KIND_INT:
        return False
    for i in range(n):
        value = <object>inputs[i]
        if isinstance(value, Tensor):
            x = <Tensor>value
            if x.dtype_id != dtype or not x.flags & CONTIGUOUS or not same_shape(x, out):
                return False
            data[i + 1] = x.data
            steps[i + 1] = 1
        else:
            if with_number(dtype, number_kind(value)) != dtype:
                return False
            if store(dtype, <char*>&numbers[i], value):
                refused(p, dtype, value)
            data[i + 1] = <char*>&numbers[i]
            steps[i + 1] = 0
    data[0] = out.data
    steps[0] = 1
    if out.count <= SMALL:
        p.loops[dtype](data, steps, out.count)
    else:
        for i in range(n + 1):
            itemsize[i] = ITEMSIZE[dtype]
            strides[i] = &steps[i]
        launch(p.loops[dtype], n + 1, data, itemsize, 1, &out.count, strides, p.weight, out.count)
    written(out.storage, p.name)
    return True


cdef int check_exponent(object y) except -1:
    """Integers have no negative powers."""
    if (y < 0) if not isinstance(y, Tensor) else (y < 0).any().item():
        raise ValueError("power: integers have no negative powers; convert the base first, for instance with x.float()")
    return 0


cdef Tensor compute_number(Primitive p, Tensor x, object number, bint number_first):
    """A tensor and a Python number."""
    cdef int dtype = with_number(x.dtype_id, number_kind(number))
    cdef loop_t loop = p.loops[dtype]
    cdef Tensor out
    cdef PyObject* inputs[2]
    cdef char* data[3]
    cdef Py_ssize_t steps[3]
    cdef double value
    if loop == NULL or dtype != x.dtype_id or not x.flags & CONTIGUOUS or x.count > SMALL:
        inputs[1 if number_first else 0] = <PyObject*>x
        inputs[0 if number_first else 1] = <PyObject*>number
        return compute(p, inputs, 2)
    if store(dtype, <char*>&value, number):
        refused(p, dtype, number)
    if p.whole_exponent and KIND[dtype] == KIND_INT and not number_first:
        check_exponent(number)
    out = empty_like(x, BOOL if p.result == BOOLEAN else dtype)
    data[0] = out.data
    steps[0] = 1
    if number_first:
        data[1] = <char*>&value
        data[2] = x.data
        steps[1] = 0
        steps[2] = 1
    else:
        data[1] = x.data
        data[2] = <char*>&value
        steps[1] = 1
        steps[2] = 0
    loop(data, steps, x.count)
    return out
