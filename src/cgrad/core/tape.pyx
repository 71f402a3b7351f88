# cython: embedsignature=True, embedsignature.format=clinic
"""Node: what one recorded operation leaves behind, and the thread-local switch that says whether to record.

A node keeps the edges to the nodes (or leaf tensors) its inputs came from, the values its rules name with the storage version
they had, and the shape of its result.  It never keeps the result tensor itself, so a graph of ordinary nodes has no cycle and is
freed by reference counts alone.  The cyclic collector would walk a large graph over and over (890 ns an operation instead of 150 to
230 in a chain of a million), so nodes, and tensors made by operations, are untracked until something makes a cycle possible: a user's
Op, a hook, a gradient with a graph; from there on, what is computed from them is tracked, too.  Long chains are freed without recursion:
a node that dies while another is being freed waits its turn.  Needs the GIL, but for the mode switch.
Next: engine.pyx, which walks nodes back; primitive.pyx, which makes them.
"""
cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import weakref

from cgrad.core.pool cimport Pool, give, init_pool, set_dealloc, take, set_pool_limit

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) int cgrad_recording = 1;
    static __declspec(thread) int cgrad_inside_op = 0;
    static __declspec(thread) PyObject *cgrad_strict = NULL;
    #else
    static _Thread_local int cgrad_recording = 1;
    static _Thread_local int cgrad_inside_op = 0;
    static _Thread_local PyObject *cgrad_strict = NULL;
    #endif
    static int cgrad_swap_inside_op(int value) { int old = cgrad_inside_op; cgrad_inside_op = value; return old; }
    static int cgrad_swap_recording(int value) { int old = cgrad_recording; cgrad_recording = value; return old; }
    """
    int cgrad_recording
    int cgrad_inside_op
    int cgrad_swap_inside_op(int value) noexcept nogil
    PyObject* cgrad_strict
    int cgrad_swap_recording(int value) noexcept nogil

cdef extern from "Python.h":
    void PyObject_GC_Track(void* x)
    void PyObject_GC_UnTrack(void* x)
    int PyObject_IS_GC(PyObject* x)


cdef bint grad_enabled() noexcept nogil:
    return cgrad_recording


cdef bint set_grad_mode(bint enabled) noexcept nogil:
    return cgrad_swap_recording(enabled)


cdef bint inside_op() noexcept nogil:
    return cgrad_inside_op != 0


cdef object leaving_watcher = None


def set_leaving_watcher(function):
    """Tell what is called with every tensor that leaves the graph; None: nothing."""
    global leaving_watcher
    leaving_watcher = function


cdef int tell_leaving(object x) except -1:
    if leaving_watcher is not None:
        leaving_watcher(x)
    return 0


cdef void note_number() noexcept nogil:
    global cgrad_inside_op
    if cgrad_inside_op:
        cgrad_inside_op = 2


def swap_inside_op(int inside):
    """Set whether this thread is inside a user's Op.forward: 0 no, 1 yes, 2 yes and numbers were taken out of tensors; returns what it was."""
    return cgrad_swap_inside_op(inside)


def swap_strict_rule(name):
    """Set the name of the user's Op whose rule must not let numbers leave the graph (None: none); returns what it was.

    The caller keeps the name alive until it is set back.
    """
    old = strict_rule()
    set_strict_rule(name)
    return old


cdef object strict_rule():
    return None if cgrad_strict == NULL else <object>cgrad_strict


cdef void set_strict_rule(object name) noexcept:
    global cgrad_strict
    cgrad_strict = NULL if name is None else <PyObject*>name


def is_grad_enabled():
    """Whether operations of this thread are recorded.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.is_grad_enabled()
    True
    """
    return bool(cgrad_recording)


def latest_sequence():
    """The sequence number of the node recorded last, by any thread."""
    return next_sequence


def swap_grad_enabled(bint enabled):
    """Set whether operations of this thread are recorded; returns what it was."""
    return bool(cgrad_swap_recording(enabled))


cdef void track(object x) noexcept:
    if not PyObject_GC_IsTracked(<PyObject*>x):
        PyObject_GC_Track(<void*>x)


cdef void untrack(PyObject* x) noexcept:
    PyObject_GC_UnTrack(x)


cdef int track_graph(Node node) except -1:
    cdef list stack = [node]
    cdef int i
    while stack:
        node = <Node>stack.pop()
        if node.walked:
            continue
        node.walked = True
        track(node)
        for i in range(node.n_inputs):
            edge = node_edge(node, i)
            if isinstance(edge, Node):
                stack.append(edge)
            elif edge is not None:
                track(edge)
        for value in node.saved_tensors:
            track_value(value)
    return 0


cdef int track_value(object value) except -1:
    if PyObject_IS_GC(<PyObject*>value):
        track(value)
    return 0


@cython.final
cdef class Rest:
    def __cinit__(self):
        self.edge_outputs = self.few_outputs
        self.versions = self.few_versions

    def __dealloc__(self):
        if self.edge_outputs != self.few_outputs:
            free(self.edge_outputs)
        if self.versions != self.few_versions:
            free(self.versions)


cdef unsigned long long next_sequence = 0


@cython.final
cdef class Node:
    """One recorded operation, the ``grad_fn`` of its result.

    Attributes
    ----------
    name : str
        Name of the operation.
    next_functions : tuple
        For each input the pair (node or leaf tensor or None, number of its result).

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> (x * x).grad_fn
    <MultiplyBackward>
    """

    @property
    def name(self):
        return self.primitive.name

    @property
    def sequence_number(self):
        """Counts up over all recorded operations."""
        return self.sequence

    @property
    def source(self):
        """Where the user's code recorded the operation, as (file, line, function); None unless `autograd.detect_anomaly` was on."""
        return None if self.rest is None else self.rest.source

    @source.setter
    def source(self, value):
        node_rest(self).source = value

    @property
    def is_freed(self):
        """Whether a backward has freed what the node kept."""
        return self.state == FREED

    @property
    def is_packed(self):
        """Whether a pack hook has made something else of what the node saved."""
        return self.state == PACKED

    @property
    def next_functions(self):
        return tuple((node_edge(self, i), node_edge_output(self, i)) for i in range(self.n_inputs))

    @property
    def operation(self):
        """The entry of the operation, with the names of its inputs and its rules; of a user's Op, what calls it."""
        return self.primitive

    @property
    def arguments(self):
        """What the call was given beside its inputs, by name."""
        return dict(zip(getattr(self.primitive, "option_names", ()), self.options or ()))

    @property
    def saved_inputs(self):
        """For each input what is kept of it for backward, or None."""
        values = [self.saved0, self.saved1]
        if self.rest is not None and self.rest.saved is not None:
            values += self.rest.saved
        return tuple(values[:self.n_inputs])

    @property
    def saved_results(self):
        """The results that are kept for backward, with None for those of several that are not; () if none is."""
        return self.saved_out if isinstance(self.saved_out, tuple) else () if self.saved_out is None else (self.saved_out,)

    @property
    def saved_tensors(self):
        """The tensors that the node keeps for its backward, or what a pack hook has made of them."""
        values = [self.saved0, self.saved1]
        if self.rest is not None and self.rest.saved is not None:
            values += self.rest.saved
        if isinstance(self.saved_out, tuple):
            values += self.saved_out
        else:
            values.append(self.saved_out)
        return tuple(v for v in values if v is not None)

    def __repr__(self):
        return "<" + "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) + "Backward>"


cdef Pool pool
cdef PyObject* dying = NULL              # nodes without a reference, linked through `run`, that wait until the one being freed is done
cdef bint freeing = False


cdef void dealloc(PyObject* o) noexcept:
    # A chain of any length: a node that dies while another one is freed joins a list instead of being freed inside it.
    global dying, freeing
    PyObject_GC_UnTrack(o)
    if freeing:
        (<Node>o).run = dying
        dying = o
        return
    freeing = True
    while True:
        drop(o)
        if dying == NULL:
            break
        o = dying
        dying = <PyObject*>(<Node>o).run
    freeing = False


cdef inline void drop(PyObject* o) noexcept:
    if (<Node>o).out_rank > NODE_DIMS:
        free(<void*>(<Node>o).out_dims[0])
    # Asking first is cheaper than counting None's references up and down.
    (<Node>o).primitive = None
    if (<Node>o).edge0 is not None:
        (<Node>o).edge0 = None
    if (<Node>o).edge1 is not None:
        (<Node>o).edge1 = None
    if (<Node>o).saved0 is not None:
        (<Node>o).saved0 = None
    if (<Node>o).saved1 is not None:
        (<Node>o).saved1 = None
    if (<Node>o).saved_out is not None:
        (<Node>o).saved_out = None
    if (<Node>o).options is not None:
        (<Node>o).options = None
    if (<Node>o).rest is not None:
        (<Node>o).rest = None
    give(&pool, o)


init_pool(&pool, Node.__new__(Node))
set_dealloc(<PyTypeObject*>Node, dealloc)


def limit_pool(size_t nbytes):
    """Bound how many dead nodes are kept, by the bytes that the allocator may keep; the others are freed."""
    set_pool_limit(&pool, nbytes)


cdef Node new_node(object primitive, int n_inputs):
    global next_sequence
    cdef Node node = <Node>take(&pool)
    next_sequence += 1
    node.sequence = next_sequence
    node.primitive = primitive
    node.n_inputs = n_inputs
    node.n_outputs = 1
    node.state = FRESH
    node.walked = False
    node.out_rank = 0
    node.run = NULL
    return node


cdef int set_node_shape(Node node, int dtype, int rank, const Py_ssize_t* shape) except -1:
    cdef int i
    node.out_dtype = dtype
    node.out_rank = rank
    if rank <= NODE_DIMS:
        for i in range(rank):
            node.out_dims[i] = shape[i]
        return 0
    node.out_dims[0] = <Py_ssize_t>malloc(rank * sizeof(Py_ssize_t))
    if node.out_dims[0] == 0:
        node.out_rank = 0
        raise MemoryError()
    memcpy(<void*>node.out_dims[0], shape, rank * sizeof(Py_ssize_t))
    return 0


cdef Rest node_rest(Node node):
    if node.rest is None:
        node.rest = Rest.__new__(Rest)
    return node.rest


cdef int watch_gradient(Node node, int output, object tensor) except -1:
    cdef Rest rest = node_rest(node)
    if rest.watchers is None:
        rest.watchers = []
    rest.watchers.append((output, weakref.ref(tensor)))
    return 0


cdef void free_node(Node node, bint edges) noexcept:
    node.state = FREED
    if node.saved0 is not None:
        node.saved0 = None
    if node.saved1 is not None:
        node.saved1 = None
    if node.saved_out is not None:
        node.saved_out = None
    if node.options is not None:
        node.options = None
    if node.rest is not None:
        node.rest.saved = None
    if edges:
        node.edge0 = None
        node.edge1 = None
        if node.rest is not None:
            node.rest.edges = None
