"""Calls: from operands to kernel and node."""
from cgrad.core.primitive cimport Primitive

cdef object apply1(Primitive p, object x)
cdef object apply2(Primitive p, object a, object b)
cdef object apply_elementwise(Primitive p, tuple args)
cdef object apply_general(Primitive p, tuple args)
cdef Primitive operator_primitive(int which)             # None where a Python function serves the operator
cdef object operator_function(int which)
cdef bint is_operand(object x) except -1
