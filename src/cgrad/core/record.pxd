"""What the tape keeps of a call."""
from cpython.object cimport PyObject

from cgrad.core.primitive cimport Primitive
from cgrad.core.tape cimport Node
from cgrad.core.tensor cimport Tensor

cdef Node record(Primitive p, PyObject** inputs, int n, Tensor out, tuple options)
cdef object attach(Primitive p, PyObject** inputs, int n, tuple args, int n_options, unsigned int flags, object result)
cdef bint keeps(Primitive p, PyObject** inputs, int n, int i) noexcept      # would the tape keep input i?
cdef unsigned int fresh_flags(PyObject** inputs, int n) except? 4096
cdef bint wants_node(Primitive p, unsigned int flags, Tensor out) noexcept
cpdef take_history(Tensor x, Tensor out, bint written)
cdef unsigned int versions(tuple tensors) noexcept                   # of their memory, summed: grows with every write
