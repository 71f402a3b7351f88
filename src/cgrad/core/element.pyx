"""One element of memory as a Python number, and back.

Called wherever Python numbers meet tensors: item(), weak operands, filling.  Needs the GIL.  Next: tensor.pyx.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t

from cgrad.core.dtype cimport dtype_object
from cgrad.kernels.table cimport BOOL, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64


cdef object item_of(int dtype, const char* data):
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
    return <int>(<uint8_t*>data)[0]


cdef int store_item(int dtype, char* data, object value) except -1:
    cdef int64_t n
    if dtype == FLOAT32:
        (<float*>data)[0] = <float><double>float(value)
        return 0
    if dtype == FLOAT64:
        (<double*>data)[0] = float(value)
        return 0
    if dtype == BOOL:
        (<uint8_t*>data)[0] = bool(value)
        return 0
    if isinstance(value, float) and not (<double>value == <double>value and abs(<double>value) < 9.3e18):
        raise ValueError(f"{value!r} cannot be stored in a tensor of {dtype_object(dtype).name}")
    n = int(value)
    if dtype == INT64:
        (<int64_t*>data)[0] = n
    elif dtype == INT32:
        if n != <int32_t>n:
            out_of_range(dtype, value)
        (<int32_t*>data)[0] = <int32_t>n
    elif dtype == INT16:
        if n != <int16_t>n:
            out_of_range(dtype, value)
        (<int16_t*>data)[0] = <int16_t>n
    elif dtype == INT8:
        if n != <int8_t>n:
            out_of_range(dtype, value)
        (<int8_t*>data)[0] = <int8_t>n
    else:
        if n != <uint8_t>n:
            out_of_range(dtype, value)
        (<uint8_t*>data)[0] = <uint8_t>n
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
