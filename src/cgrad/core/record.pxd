"""What the tape keeps of a call."""
from cpython.object cimport PyObject

from cgrad.core.primitive cimport Primitive
from cgrad.core.tape cimport Node
from cgrad.core.tensor cimport Tensor

cdef Node record(Primitive p, PyObject** inputs, int n, Tensor out, tuple options)
cdef object attach(Primitive p, PyObject** inputs, int n, tuple args, int n_options, unsigned int flags, object result)
cdef bint keeps(Primitive p, PyObject** inputs, int n, int i) noexcept      # would the tape keep input i?
cdef unsigned int fresh_flags(PyObject** inputs, int n) except? 4096
cdef bint wants_node(Primitive p, unsigned int flags, Tensor out, PyObject** inputs, int n) except -1
cpdef take_history(Tensor x, Tensor out, bint written)
cdef unsigned int versions(tuple tensors) noexcept                   # of their memory, summed: grows with every write
cdef int make_room(Node node, int n) except -1                       # for the edges and saved values of inputs from the third on

cdef inline int set_edge(Node node, int i, object edge, int output) except -1:
    if i == 0:
        node.edge0 = edge
        node.edge_output0 = output
    elif i == 1:
        node.edge1 = edge
        node.edge_output1 = output
    else:
        node.rest.edges[i - 2] = edge
        node.rest.edge_outputs[i - 2] = output
    return 0

cdef inline int set_saved(Node node, int i, object value, unsigned int version) except -1:
    if i == 0:
        node.saved0 = value
        node.version0 = version
    elif i == 1:
        node.saved1 = value
        node.version1 = version
    else:
        node.rest.saved[i - 2] = value
        node.rest.versions[i - 2] = version
    return 0
