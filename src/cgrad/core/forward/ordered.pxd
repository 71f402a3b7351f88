"""Numbers of any dtype for kernels that know int64 and the floats: what is put in order, and indices."""
from libc.stdint cimport int64_t, uint64_t

from cgrad.core.dtype cimport KIND, KIND_FLOAT
from cgrad.core.tensor cimport Tensor, cast_tensor
from cgrad.kernels.table cimport INT64, UINT64


cdef inline void turn_top_bits(Tensor x) noexcept:
    cdef Py_ssize_t i
    for i in range(x.count):
        (<uint64_t*> x.data)[i] ^= <uint64_t> 1 << 63


cdef inline Tensor in_order(Tensor x):
    """Floats as they are, all others as int64 in the same order: of uint64 numbers the top bit is turned."""
    cdef Tensor out
    if KIND[x.dtype_id] == KIND_FLOAT:
        return x
    out = cast_tensor(x, INT64)
    if x.dtype_id == UINT64:
        turn_top_bits(out)
    return out


cdef inline Tensor out_of_order(Tensor x, int dtype):
    """What in_order made of a tensor of this dtype, as it was; x is overwritten."""
    if dtype == UINT64:
        turn_top_bits(x)
    return cast_tensor(x, dtype)


cdef inline Tensor as_index(Tensor x):
    """Integers as int64; IndexError for one that only uint64 holds."""
    cdef Tensor out = cast_tensor(x, INT64)
    cdef Py_ssize_t i
    if x.dtype_id == UINT64:
        for i in range(out.count):
            if (<int64_t*> out.data)[i] < 0:
                raise IndexError(f"index {(<uint64_t*> out.data)[i]} is out of bounds for every axis")
    return out
