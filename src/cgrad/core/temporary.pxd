"""Whether an operand is a temporary of the interpreter, which nobody can see again."""
from cpython.object cimport PyObject

cdef bint is_temporary(PyObject* x) noexcept
