"""Node: what one recorded operation leaves behind, and the thread-local switch that says whether to record."""
from cpython.object cimport PyObject

cdef extern from "Python.h":
    int PyObject_GC_IsTracked(PyObject* x)

cdef bint grad_enabled() noexcept nogil
cdef bint set_grad_mode(bint enabled) noexcept nogil     # returns what it was

# Whether this thread is inside a user's Op.forward, where recording is off but dependence on tracked inputs is marked.
cdef bint inside_op() noexcept nogil
cdef int tell_leaving(object x) except -1                # a tensor left the graph
cdef void note_number() noexcept nogil                   # a number leaves a tensor, perhaps inside a user's Op.forward

# Name of the user's Op whose rule runs under create_graph in this thread, or None: numbers must not leave the graph there.
cdef object strict_rule()
cdef void set_strict_rule(object name) noexcept          # the caller keeps the name alive

cdef enum:
    FRESH = 0
    FREED = 1
    PACKED = 2                     # the user's pack hook has made something else of what it saved (hooks.pyx)
    NODE_DIMS = 4
    FEW_INPUTS = 2                 # beyond the first two, whose edges and versions need no allocation of their own


cdef class Rest:
    # What few nodes need: inputs from the third on, results from the second on, watched results, hooks.
    cdef list edges                # from input 2 on
    cdef list saved
    cdef int* edge_outputs
    cdef unsigned int* versions
    cdef int few_outputs[FEW_INPUTS]
    cdef unsigned int few_versions[FEW_INPUTS]
    cdef list shapes               # (dtype id, shape tuple) of results from the second on
    cdef list watchers             # (output number, weak reference to the tensor) of tensors that retain their gradient
    cdef list hooks                # (output number, callable)
    cdef object source             # where the user's code made the node, if somebody wanted to know


cdef class Node:
    # Edges and saved values of the first two inputs sit in the object; those of later inputs in `rest`.
    cdef object primitive          # Primitive, or the CustomCall of a user's Op
    cdef object edge0, edge1       # Node, leaf Tensor, or None where no gradient is due
    cdef object saved0, saved1     # inputs that a rule names
    cdef object saved_out          # the result (a tuple of several) without its node, if a rule names it
    cdef object options            # tuple of call options
    cdef Rest rest
    cdef unsigned long long sequence
    cdef Py_ssize_t out_dims[NODE_DIMS]    # shape of the first result; where out_rank > NODE_DIMS, the first is the address of it
    cdef void* run                 # the backward that has this node in its queue, and its entry there
    cdef int entry
    cdef unsigned int version0, version1, version_out
    cdef int n_inputs, n_outputs
    cdef int edge_output0, edge_output1    # which result of edge0/edge1 the input was
    cdef signed char out_dtype, out_rank   # of the first result
    cdef signed char state         # FRESH, FREED or PACKED
    cdef signed char walked        # it and all that lies behind it is seen by the cyclic collector


cdef Node new_node(object primitive, int n_inputs)
cdef int set_node_shape(Node node, int dtype, int rank, const Py_ssize_t* shape) except -1
cdef inline const Py_ssize_t* node_shape(Node node) noexcept:
    if node.out_rank > NODE_DIMS:
        return <Py_ssize_t*>node.out_dims[0]
    return node.out_dims
cdef inline object node_edge(Node node, int i):
    if i == 0:
        return node.edge0
    if i == 1:
        return node.edge1
    return node.rest.edges[i - 2] if node.rest is not None and node.rest.edges is not None else None
cdef inline int node_edge_output(Node node, int i):
    if i == 0:
        return node.edge_output0
    if i == 1:
        return node.edge_output1
    return node.rest.edge_outputs[i - 2] if node.rest is not None and node.rest.edges is not None else 0
cdef Rest node_rest(Node node)                            # made on demand
cdef int watch_gradient(Node node, int output, object tensor) except -1    # backward keeps the gradient of that result in tensor.grad
cdef void free_node(Node node, bint edges) noexcept       # drop saved values, and edges, too; a later backward is an error
cdef void track(object x) noexcept                        # let the cyclic collector see an object that it was told to ignore
cdef int track_graph(Node node) except -1                 # the same for a node, what it saved, and all that lies behind it
cdef inline bint is_tracked(object x) noexcept:
    return PyObject_GC_IsTracked(<PyObject*>x)
cdef void untrack(PyObject* x) noexcept
