"""dtype objects and the promotion table."""
from cgrad.kernels.table cimport N_DTYPES

cdef int ITEMSIZE[N_DTYPES]
cdef int promote(int a, int b) except -1   # dtype id of the common type of two tensors; TypeError for uint64 and a signed one

cdef enum Kind:                            # order of kinds in promotion of Python scalars
    KIND_BOOL = 0
    KIND_INT = 1
    KIND_FLOAT = 2

cdef int KIND[N_DTYPES]

cdef class DType:
    cdef readonly str name                 # "float32"
    cdef readonly int itemsize
    cdef readonly str kind                 # "bool", "unsigned integer", "integer", "floating"
    cdef readonly bint is_floating_point
    cdef readonly tuple limits             # smallest and largest integer; () for floats
    cdef int id

cdef DType dtype_object(int id)            # the singleton
cdef int dtype_id(object dtype) except -1  # DType, NumPy dtype or type, Python bool/int/float, or a name; TypeError otherwise
cdef int default_float() noexcept nogil    # FLOAT32 unless set_default_dtype changed it
