"""A public function that takes calls as they come, as a vector of arguments."""
from cpython.object cimport PyObject

ctypedef object (*vectorcall_t)(object self, PyObject** args, size_t nargsf, PyObject* names)


cdef class Door:
    cdef vectorcall_t vectorcall       # takes the call; at first `enter`, which passes it on to the function
    cdef object function
    cdef dict renames
    cdef object no_out                 # why a call takes no out=, or None
    cdef dict __dict__


cdef object into(str name, object function, tuple args, dict kwargs, object out)     # the function's result written into `out`
