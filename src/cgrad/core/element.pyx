"""One element of memory as a Python number, and back.

Called wherever Python numbers meet tensors: item(), weak operands, filling.  Needs the GIL.  Next: tensor.pyx.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from cgrad.core.dtype cimport ITEMSIZE, dtype_object
from cgrad.kernels.dispatch cimport cast_loop
from cgrad.kernels.table cimport BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64

cdef Py_ssize_t[2] STEPS = [0, 0]


cdef object item_of(int dtype, const char* data):
    cdef float single
    cdef char* pair[2]
    if dtype == FLOAT32:
        return <double>(<float*>data)[0]
    if dtype == FLOAT64:
        return (<double*>data)[0]
    if dtype == INT64:
        return (<int64_t*>data)[0]
    if dtype == BOOL:
        return (<uint8_t*>data)[0] != 0
    if dtype == INT32:
        return (<int32_t*>data)[0]
    if dtype == INT16:
        return (<int16_t*>data)[0]
    if dtype == INT8:
        return <int>(<int8_t*>data)[0]
    if dtype == UINT8:
        return <int>(<uint8_t*>data)[0]
    if dtype == UINT16:
        return <int>(<uint16_t*>data)[0]
    if dtype == UINT32:
        return (<uint32_t*>data)[0]
    if dtype == UINT64:
        return (<uint64_t*>data)[0]
    pair[0], pair[1] = <char*>&single, <char*>data
    cast_loop(dtype, FLOAT32)(pair, STEPS, 1)
    return <double>single


cdef int store_item(int dtype, char* data, object value) except -1:
    cdef int64_t n
    cdef double number
    cdef char* pair[2]
    if dtype == FLOAT32:
        (<float*>data)[0] = <float><double>float(value)
        return 0
    if dtype == FLOAT64:
        (<double*>data)[0] = float(value)
        return 0
    if dtype == BOOL:
        (<uint8_t*>data)[0] = bool(value)
        return 0
    if dtype >= FLOAT16:
        number = float(value)
        pair[0], pair[1] = data, <char*>&number
        cast_loop(FLOAT64, dtype)(pair, STEPS, 1)
        return 0
    if isinstance(value, float) and not (<double>value == <double>value and abs(<double>value) < 1.9e19):
        raise ValueError(f"{value!r} cannot be stored in a tensor of {dtype_object(dtype).name}")
    value = int(value)
    if dtype == INT64:
        (<int64_t*>data)[0] = value
        return 0
    if dtype == UINT64:
        if not 0 <= value <= dtype_object(dtype).limits[1]:
            out_of_range(dtype, value)
        (<uint64_t*>data)[0] = value
        return 0
    n = value
    # All others have at most 32 bits: shifted to the range of unsigned numbers, nothing is left above these.
    if (n if dtype < INT8 else n + (<int64_t>1 << (8 * ITEMSIZE[dtype] - 1))) >> (8 * ITEMSIZE[dtype]):
        out_of_range(dtype, value)
    if ITEMSIZE[dtype] == 4:
        (<int32_t*>data)[0] = <int32_t>n
    elif ITEMSIZE[dtype] == 2:
        (<int16_t*>data)[0] = <int16_t>n
    else:
        (<int8_t*>data)[0] = <int8_t>n
    return 0


cdef int out_of_range(int dtype, object value) except -1:
    raise OverflowError(f"{value!r} is out of range for {dtype_object(dtype).name}")


# ---------------------------------------------------------------------- inside vmap, where one tensor stands for many
class BatchError(RuntimeError):
    """The numbers of one example were asked of a tensor that stands for all of a batch."""


cdef int no_single_number(str how, tuple shape) except -1:
    raise BatchError(f"vmap: {how} needs the numbers of a tensor of shape {shape}, but inside vmap it stands for all examples of the batch at once; "
                     "choose with cgrad.where instead of `if`, keep numbers as tensors and write with cgrad functions, or loop over the examples in Python")


cdef int no_leaf(bint batched, str name) except -1:
    if batched:
        raise RuntimeError(f"{name}: a tensor inside vmap stands for all examples of the batch and has no .grad; differentiate there with cgrad.func.grad, "
                           "vjp or jvp")
    return 0
