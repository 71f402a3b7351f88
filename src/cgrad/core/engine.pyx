"""Backward: walk the nodes back from the results and hand every leaf its gradient.

A node made later can only depend on nodes made earlier, so the sequence number alone is an order: a heap of the nodes that have
received a gradient gives the next one, no counting pass is needed, and nothing recurses.  For each node the engine unpacks the saved
values (checking that they were not overwritten), runs the fused kernel of a rule or the Python rule, sums the result back over
broadcast axes, and passes it along.  Gradients of leaves are gathered and written to `.grad` only after everything went well, so an
error leaves every `.grad` as it was, but for leaves with hooks that wait for it: theirs is written as soon as it is complete.
Saved values are freed as soon as their node has run, unless the graph is retained.
Needs the GIL throughout (long kernels release it); several backwards may interleave, even on shared nodes.
Next: forward_mode.pyx, the other direction.
"""
cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cgrad.core.batching cimport is_batch, level_of, wrap
from cgrad.core.door cimport Door, enter
from cgrad.core.dtype cimport KIND, KIND_FLOAT, dtype_object
from cgrad.core.element cimport store_item
from cgrad.core.elementwise cimport Py_REFCNT, compute, compute1, compute2, compute_over, is_spare
from cgrad.core.graph cimport awaited_leaves, find_needed, freed, lost
from cgrad.core.hooks cimport Packed, any_accumulated_hook, call_accumulated_hooks, hooked, unpacked
from cgrad.core.leaves cimport Leaves, add_into, fits_held, keep_gradient, set_accumulation
from cgrad.core.primitive cimport (
    FROM_GRADIENT, FROM_OUT, FROM_ZERO, Primitive, Rule, call_rule, joint_rule,
)
from cgrad.core.record cimport versions
from cgrad.core.tape cimport (
    FREED, PACKED, Node, Rest, free_node, is_tracked, node_edge, node_edge_output, node_shape, set_grad_mode, track,
)
from cgrad.core.tensor cimport (
    CONTIGUOUS, LEVEL, REQUIRES_GRAD, Tensor, alias_tensor, cast_tensor, empty_tensor, refresh, same_shape, shape_of, shape_text, shape_tuple,
    stale, storage_tensor, strides_of,
)
from cgrad.kernels.reduce cimport reduce_id, run_reduce
from cgrad.kernels.table cimport MAX_DIMS, computing_dtype

cdef extern from "Python.h":
    size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    int PyErr_CheckSignals() except -1
    object PyObject_Vectorcall(object function, PyObject** args, size_t nargsf, PyObject* names)

cdef object add_function = None          # the ops layer's add, cast and sum_to, for derivatives of derivatives
cdef object cast_function = None
cdef object sum_to_function = None
cdef Primitive add_primitive = None
cdef int SUM = reduce_id("sum")
cdef object ZERO = 0.0
cdef object watcher = None               # while anomalies are looked for: watcher(node, input number, gradient)


def set_gradient_watcher(function):
    """Tell what is called with each gradient that a rule gives, before it is passed on; None: nothing."""
    global watcher
    watcher = function


def set_engine_functions(add, cast, sum_to, clone):
    """Tell the recorded functions with which gradients are summed when a derivative of them is wanted."""
    global add_function, cast_function, sum_to_function, add_primitive
    add_function = add
    cast_function = cast
    sum_to_function = sum_to
    add_primitive = add.primitive
    set_accumulation(add, clone)


cdef struct Entry:
    PyObject* node
    PyObject* gradient           # a Tensor, or a list with one entry for each result of the node
    unsigned long long sequence


@cython.final
cdef class Run:
    """One backward: the nodes that have received a gradient and not yet passed it on, newest first."""

    cdef Entry* entries          # a heap by sequence number
    cdef Entry few[4]            # its first memory
    cdef Py_ssize_t count, capacity
    cdef bint create_graph, retain
    cdef dict shared             # entries of nodes that another backward has in its queue, by node identity
    cdef Leaves leaves
    cdef dict wanted             # (node, result number) or leaf -> True: what autograd.grad asked for; None in backward
    cdef dict found              # the same keys -> gradient
    cdef unsigned long long oldest        # the sequence number of the oldest wanted node, 0 for leaves
    cdef set needed              # nodes on the way to what is wanted; None: all
    cdef list awaited            # (sequence number of its oldest use, leaf) of leaves with hooks that wait for .grad, the next to be complete last
    cdef list after              # functions that such hooks want to have called at the end

    def __cinit__(self):
        self.entries = self.few
        self.capacity = 4
        self.leaves = Leaves.__new__(Leaves)

    def __dealloc__(self):
        if self.entries != self.few:
            free(self.entries)

    cdef int clear(self) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            if (<Node>self.entries[i].node).run == <void*>self:
                (<Node>self.entries[i].node).run = NULL
        while self.count > 0:
            self.count -= 1
            Py_DECREF(<object>self.entries[self.count].node)
            Py_XDECREF(self.entries[self.count].gradient)
        return 0

    # The heap.  A node remembers its place, so that a further gradient finds it at once.
    cdef inline void place(self, Py_ssize_t i, Entry entry) noexcept:
        self.entries[i] = entry
        if (<Node>entry.node).run == <void*>self:
            (<Node>entry.node).entry = <int>i
        else:
            self.shared[<object>entry.node] = i

    cdef void sift_up(self, Py_ssize_t i, Entry entry) noexcept:
        cdef Py_ssize_t parent
        while i > 0:
            parent = (i - 1) >> 1
            if self.entries[parent].sequence >= entry.sequence:
                break
            self.place(i, self.entries[parent])
            i = parent
        self.place(i, entry)

    cdef void sift_down(self, Py_ssize_t i, Entry entry) noexcept:
        cdef Py_ssize_t child
        while True:
            child = 2 * i + 1
            if child >= self.count:
                break
            if child + 1 < self.count and self.entries[child + 1].sequence > self.entries[child].sequence:
                child += 1
            if entry.sequence >= self.entries[child].sequence:
                break
            self.place(i, self.entries[child])
            i = child
        self.place(i, entry)

    cdef Py_ssize_t find(self, Node node) except -2:
        """Where the node is queued, or -1."""
        if node.run == <void*>self:
            return node.entry
        if self.shared is not None:          # whoever held the node first may have passed it on since
            return self.shared.get(node, -1)
        return -1

    cdef int push(self, Node node, object gradient) except -1:
        cdef Entry entry
        cdef void* grown
        if self.count == self.capacity:
            grown = malloc(4 * self.capacity * sizeof(Entry))
            if grown == NULL:
                raise MemoryError()
            memcpy(grown, self.entries, self.count * sizeof(Entry))
            if self.entries != self.few:
                free(self.entries)
            self.entries = <Entry*>grown
            self.capacity *= 4
        if node.run == NULL:
            node.run = <void*>self
        elif self.shared is None:
            self.shared = {}
        Py_INCREF(node)
        Py_INCREF(gradient)
        entry.node = <PyObject*>node
        entry.gradient = <PyObject*>gradient
        entry.sequence = node.sequence
        self.count += 1
        self.sift_up(self.count - 1, entry)
        return 0

    cdef Entry pop(self) noexcept:
        """The newest node and its gradient; both references go to the caller."""
        cdef Entry top = self.entries[0]
        self.count -= 1
        if self.count > 0:
            self.sift_down(0, self.entries[self.count])
        if (<Node>top.node).run == <void*>self:
            (<Node>top.node).run = NULL
        else:
            del self.shared[<object>top.node]
        return top

    # Gradients on their way.
    cdef int deliver(self, object edge, int output, Tensor g) except -1:
        """Add a gradient (of the right shape and dtype) for one result of a node, or for a leaf."""
        cdef Node node
        cdef Py_ssize_t i
        cdef list several
        cdef PyObject* old
        cdef Tensor total
        if isinstance(edge, Tensor):
            # Since the graph was made, a leaf may have been told to stop, or become a result by a write in place.
            if (<Tensor>edge).node is not None or not (<Tensor>edge).flags & REQUIRES_GRAD or self.wanted is not None and edge not in self.wanted:
                return 0
            i = self.leaves.find(<PyObject*>edge)
            if i < 0:
                self.leaves.append(edge, g)
                return 0
            old = self.leaves.items[i].gradient
            total = self.add(old, g)
            if <PyObject*>total is not old:
                self.leaves.replace(i, total)
            return 0
        node = <Node>edge
        if self.needed is not None and node not in self.needed:
            return 0
        i = self.find(node)
        if node.n_outputs == 1:
            if i < 0:
                self.push(node, g)
                return 0
            old = self.entries[i].gradient
            total = self.add(old, g)
            i = self.find(node)
            if <PyObject*>total is not old:
                Py_INCREF(total)
                self.entries[i].gradient = <PyObject*>total
                Py_DECREF(<object>old)
            return 0
        if i < 0:
            several = [None] * node.n_outputs
            several[output] = g
            self.push(node, several)
            return 0
        several = <list>self.entries[i].gradient
        held = several[output]
        several[output] = None
        held = g if held is None else self.add(<PyObject*>held, g)
        several[output] = held
        return 0

    cdef Tensor add(self, PyObject* held, Tensor g):
        """held + g, written into the memory of held if the one reference to it is the caller's and nobody shares the memory."""
        cdef bint alone = Py_REFCNT(held) == 1
        cdef Tensor x = <Tensor>held
        if self.create_graph or (x.flags | g.flags) & LEVEL:
            return add_function(x, g)
        if alone and g.flags & CONTIGUOUS and is_spare(x) and add_primitive.loops[x.dtype_id] != NULL:
            add_into(x, g, True)
            return x
        return compute2(add_primitive, x, g)


# ---------------------------------------------------------------------- shapes of gradients
cdef Tensor sum_to(Tensor g, int rank, const Py_ssize_t* shape, bint* possible):
    """Sum g over the axes along which an input of this shape was broadcast."""
    cdef unsigned long long axes = 0
    cdef int k, lead = g.rank - rank
    cdef Tensor out
    possible[0] = lead >= 0
    if not possible[0]:
        return g
    for k in range(g.rank):
        if k < lead:
            axes |= <unsigned long long>1 << k
        elif g.dims[k] != shape[k - lead]:
            if shape[k - lead] != 1:
                possible[0] = False
                return g
            axes |= <unsigned long long>1 << k
    g = cast_tensor(g, computing_dtype(g.dtype_id))       # `fit` rounds the sum
    out = empty_tensor(g.dtype_id, rank, shape)
    with nogil:
        failed = run_reduce(SUM, g.dtype_id, g.data, g.rank, g.dims, g.dims + g.rank, axes, out.data)
    if failed:
        raise MemoryError("backward: no memory to sum a gradient over its broadcast axes")
    return out


cdef object fit(Run run, Node node, int i, object value, object edge, int output):
    """A rule's result as a gradient for the edge: a tensor of its shape and dtype."""
    cdef Tensor g
    cdef int rank, dtype, k
    cdef const Py_ssize_t* shape
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef bint same, possible
    if not isinstance(value, Tensor):
        raise TypeError(f"{node.primitive.name}: backward gave {type(value).__name__} for input {i}; a gradient is a Tensor or None")
    g = <Tensor>value
    if isinstance(edge, Tensor):
        rank = (<Tensor>edge).rank
        shape = (<Tensor>edge).dims
        dtype = (<Tensor>edge).dtype_id
    else:
        rank = (<Node>edge).out_rank
        shape = node_shape(<Node>edge)
        dtype = (<Node>edge).out_dtype
        if output > 0:
            dtype, dims_tuple = (<Node>edge).rest.shapes[output - 1]
            rank = len(dims_tuple)
            for k in range(rank):
                dims[k] = dims_tuple[k]
            shape = dims
    same = g.rank == rank
    if same:
        for k in range(rank):
            if g.dims[k] != shape[k]:
                same = False
                break
    if not same:
        if run.create_graph or g.flags & LEVEL:
            possible = g.rank >= rank
            for k in range(rank if possible else 0):
                if g.dims[g.rank - rank + k] != shape[k] and shape[k] != 1:
                    possible = False
            if possible:
                g = sum_to_function(g, shape_tuple(rank, shape))
        else:
            g = sum_to(g, rank, shape, &possible)
        if not possible:
            raise RuntimeError(f"{node.primitive.name}: backward gave a gradient of shape "
                               f"{shape_text((<Tensor>value).rank, (<Tensor>value).dims)} for input {i} "
                               f"of shape {shape_text(rank, shape)}; a gradient has the shape of its input, "
                               "or one that it was broadcast to")
    if g.dtype_id != dtype:
        if run.create_graph or g.flags & LEVEL:
            g = cast_function(g, dtype_object(dtype))
        else:
            g = cast_tensor(g, dtype)
    if watcher is not None:
        watcher(node, i, g)
    return g


# ---------------------------------------------------------------------- one node
cdef int overwritten(Node node, Tensor x, int i, unsigned int version) except -1:
    from cgrad.core.overwritten import overwritten as error
    names = node.primitive.input_names
    which = "its result" if i < 0 else f"input {i}, {names[i]}" if i < len(names) else f"input {i}"
    raise error(node.primitive.name, x, which, version, node.source)


cdef int overwritten_result(Node node) except -1:
    """One of several saved results was changed; their versions were summed."""
    cdef tuple results = tuple([x for x in node.saved_out if isinstance(x, Tensor)])
    changes = versions(results) - node.version_out
    for x in results:
        if (<Tensor>x).storage.version >= changes:
            overwritten(node, <Tensor>x, -1, (<Tensor>x).storage.version - changes)


cdef object unpack_out(Run run, Node node):
    """The saved result, connected to the graph if derivatives of derivatives are wanted."""
    cdef Tensor x
    if node.saved_out is None:
        return None
    if node.state == PACKED:
        return unpack_packed_out(run, node)
    if isinstance(node.saved_out, tuple):
        if versions(<tuple>node.saved_out) != node.version_out:
            overwritten_result(node)
        if not run.create_graph:
            return node.saved_out
        return tuple([connect(node, <Tensor>value, k) if isinstance(value, Tensor) else value for k, value in enumerate(node.saved_out)])
    x = <Tensor>node.saved_out
    if x.storage.version != node.version_out:
        overwritten(node, x, -1, node.version_out)
    return connect(node, x, 0) if run.create_graph else x


cdef object unpack_packed_out(Run run, Node node):
    cdef object out = node.saved_out
    cdef tuple results = out if isinstance(out, tuple) else (out,)
    results = tuple([restored(run, node, value, -1, 0) for value in results])
    if run.create_graph:
        results = tuple([connect(node, <Tensor>value, k) if isinstance(value, Tensor) else value for k, value in enumerate(results)])
    return results if isinstance(out, tuple) else results[0]


cdef object restored(Run run, Node node, object value, int i, unsigned int version):
    """A saved value of a node whose saved tensors were packed."""
    cdef Packed p
    if not isinstance(value, Packed):
        check_version(node, value, i, version)
        return value
    p = <Packed>value
    if p.storage is not None and p.storage.version != p.version:
        overwritten(node, storage_tensor(p.storage, p.storage.data, p.like.dtype_id, p.like.rank, shape_of(p.like), strides_of(p.like)), i, p.version)
    return unpacked(p, node.primitive.name, run.create_graph)


cdef Tensor connect(Node node, Tensor saved, int output):
    cdef Tensor x = alias_tensor(saved)
    if KIND[x.dtype_id] == KIND_FLOAT:
        x.node = node
        x.output_number = output
        x.flags |= REQUIRES_GRAD
        if is_tracked(node):
            track(x)
    return x


cdef inline int check_version(Node node, object value, int i, unsigned int version) except -1:
    if value is not None and isinstance(value, Tensor) and (<Tensor>value).storage.version != version:
        overwritten(node, <Tensor>value, i, version)
    return 0


cdef int run_node(Run run, Node node, object g, bint spare) except -1:
    """Pass the gradient of a node's result on to its inputs; the last fused rule may write over a `spare` one."""
    cdef Primitive p
    cdef Rule rule
    cdef PyObject* few[2]
    cdef PyObject** inputs = few
    cdef list many = None
    cdef int i, last, n = node.n_inputs
    cdef int n_options
    cdef Py_ssize_t references
    cdef object out, edge, value, needs = None
    cdef object saved0 = node.saved0, saved1 = node.saved1      # held here: another thread's backward may free the node meanwhile
    cdef bint packed = node.state == PACKED
    if node.state == FREED:
        freed(node)
    if not isinstance(node.primitive, Primitive):
        run_custom(run, node, g)
        return 0
    p = <Primitive>node.primitive
    if packed:
        value = saved0
        saved0 = restored(run, node, saved0, 0, node.version0)
        saved1 = saved0 if saved1 is value else restored(run, node, saved1, 1, node.version1)
    else:
        check_version(node, saved0, 0, node.version0)
        check_version(node, saved1, 1, node.version1)
    few[0] = <PyObject*>saved0
    few[1] = <PyObject*>saved1
    if n > 2:
        many = [saved0, saved1, *node.rest.saved]
        for i in range(2, n):
            if packed:
                many[i] = restored(run, node, many[i], i, node.rest.versions[i - 2])
            else:
                check_version(node, many[i], i, node.rest.versions[i - 2])
        inputs = list_items(<PyObject*>many)
    out = unpack_out(run, node)
    if p.joint is not None:
        n_options = len(p.option_names)
        needs = tuple([wanted_edge(run, node_edge(node, i)) for i in range(n)])
        values = call_rule(joint_rule(p, g, run.create_graph), g, inputs, n, out, node.options, n_options, needs, None, None)
        if not isinstance(values, (tuple, list)) or len(values) != n:
            raise RuntimeError(f"{p.name}: its rule must return a gradient for each of {n} inputs")
        for i in range(n):
            edge = node_edge(node, i)
            if edge is not None and values[i] is not None:
                run.deliver(edge, node_edge_output(node, i), fit(run, node, i, values[i], edge, node_edge_output(node, i)))
        if node.state == FREED:
            freed(node)
        return 0
    references = Py_REFCNT(<PyObject*>g)
    last = n - 1
    while last >= 0 and not wanted_edge(run, node_edge(node, last)):
        last -= 1
    for i in range(last + 1):
        edge = node_edge(node, i)
        if edge is None or not wanted_edge(run, edge):
            continue
        rule = <Rule>p.rules[i]
        if not run.create_graph and rule.passes_gradient:
            value = g
        elif not run.create_graph and rule.fused is not None and not (<Tensor>g).flags & LEVEL:
            value = fused(rule, <Tensor>g, inputs, out, spare and i == last and Py_REFCNT(<PyObject*>g) == references)
        elif not run.create_graph and rule.fused is not None and aligned_batch(rule, <Tensor>g, inputs, out):
            value = wrap(fused(rule, (<Tensor>g).extra["batch"][1], inputs, out, False), level_of(g))
        else:
            value = call_rule(rule, g, inputs, n, out, node.options, len(p.option_names), needs, None,
                              edge_facts(edge, node_edge_output(node, i)) if rule.names_own else None)
            if value is None:
                continue
        run.deliver(edge, node_edge_output(node, i), <Tensor>fit(run, node, i, value, edge, node_edge_output(node, i)))
    if node.state == FREED:                  # by another thread, perhaps before all edges were read
        freed(node)
    return 0


cdef extern from *:
    """
    #define CGRAD_LIST_ITEMS(x) (((PyListObject*)(x))->ob_item)
    """
    PyObject** list_items "CGRAD_LIST_ITEMS" (PyObject* x)


cdef tuple edge_facts(object edge, int output):
    """(shape, dtype) of what a gradient goes to."""
    cdef Node node
    if isinstance(edge, Tensor):
        return shape_tuple((<Tensor>edge).rank, (<Tensor>edge).dims), dtype_object((<Tensor>edge).dtype_id)
    node = <Node>edge
    if output > 0:
        dtype, shape = node.rest.shapes[output - 1]
        return shape, dtype_object(dtype)
    return shape_tuple(node.out_rank, node_shape(node)), dtype_object(node.out_dtype)


cdef inline bint wanted_edge(Run run, object edge) except -1:
    if edge is None:
        return False
    if run.wanted is None:
        return True
    if isinstance(edge, Tensor):
        return edge in run.wanted
    return edge in run.needed


cdef inline PyObject* fused_operand(Rule rule, int i, Tensor g, PyObject** inputs, object out) noexcept:
    if rule.fused_source[i] == FROM_GRADIENT:
        return <PyObject*>g
    if rule.fused_source[i] == FROM_OUT:
        return <PyObject*>out
    return <PyObject*>ZERO if rule.fused_source[i] == FROM_ZERO else inputs[rule.fused_index[i]]


cdef Tensor fused(Rule rule, Tensor g, PyObject** inputs, object out, bint spare):
    cdef PyObject* operands[3]
    cdef int i
    for i in range(rule.n_fused):
        operands[i] = fused_operand(rule, i, g, inputs, out)
    if spare and is_spare(g) and compute_over(rule.fused, operands, rule.n_fused, g):
        return g
    if rule.n_fused == 2 and isinstance(<object>operands[0], Tensor) and isinstance(<object>operands[1], Tensor) \
            and (<Tensor>operands[0]).dtype_id == (<Tensor>operands[1]).dtype_id:
        return compute2(rule.fused, <Tensor>operands[0], <Tensor>operands[1])
    if rule.n_fused == 1:
        return compute1(rule.fused, <Tensor>operands[0])
    return compute(rule.fused, operands, rule.n_fused)


cdef bint aligned_batch(Rule rule, Tensor g, PyObject** inputs, object out) except -1:
    """Whether g stands for plain gradients that a fused rule can take all at once: no operand has more axes than one of them."""
    cdef int i
    cdef PyObject* x
    if not is_batch(g) or (<Tensor>g.extra["batch"][1]).flags & LEVEL:
        return False
    for i in range(rule.n_fused):
        if rule.fused_source[i] != FROM_GRADIENT:
            x = fused_operand(rule, i, g, inputs, out)
            if isinstance(<object>x, Tensor) and (<Tensor>x).rank > g.rank:
                return False
    return True


cdef int run_custom(Run run, Node node, object g) except -1:
    """A user's Op: it gets gradients by position and returns one for each input."""
    cdef int i, n = node.n_inputs
    values = node.primitive.backward(g, run.create_graph, node)
    for i in range(n):
        edge = node_edge(node, i)
        if edge is not None and values[i] is not None:
            run.deliver(edge, node_edge_output(node, i), fit(run, node, i, values[i], edge, node_edge_output(node, i)))
    return 0


cdef object watch(Run run, Node node, object g):
    """Hooks on a node's results; then the gradients that were asked to be kept wait with those of the leaves."""
    cdef Rest rest = node.rest
    cdef Tensor x
    for output, hook in list(rest.hooks or ()):
        value = g if node.n_outputs == 1 else g[output]
        if value is None:
            continue
        value = hooked(hook, <Tensor>value)
        if node.n_outputs == 1:
            g = value
        else:
            g[output] = value
    for output, reference in (rest.watchers or ()) if run.wanted is None else ():
        tensor = reference()
        if tensor is None:
            continue
        x = <Tensor>tensor
        value = g if node.n_outputs == 1 else g[output]
        if value is not None and x.node is node and not stale(x):          # else written in place since: that has a node of its own
            run.leaves.append(x, value)
    return g


# ---------------------------------------------------------------------- a whole backward
cdef int execute(Run run) except -1:
    cdef Entry entry
    cdef Node node
    cdef object g
    cdef bint keep_on
    cdef unsigned int steps = 0
    while run.count > 0:
        steps += 1
        if not steps & 7:
            PyErr_CheckSignals()          # fused rules never come to Python, which would look for Ctrl-C
        entry = run.pop()
        if run.awaited is not None:
            finish_leaves(run, entry.sequence)
        node = <Node>entry.node
        g = <object>entry.gradient
        Py_DECREF(node)          # ours now by the typed names
        Py_DECREF(g)
        if node.rest is not None and (node.rest.hooks or node.rest.watchers):
            g = watch(run, node, g)
        keep_on = True
        if run.wanted is not None and node in run.found:
            for output in range(node.n_outputs):
                if (node, output) in run.wanted:
                    value = g if node.n_outputs == 1 else g[output]
                    run.found[node, output] = value
                    value = None
            keep_on = run.found[node]
        if keep_on:
            if node.n_outputs > 1:
                g = tuple(g)
            run_node(run, node, g, Py_REFCNT(<PyObject*>g) == 1)
        entry.gradient = NULL
        g = None
        if keep_on and not run.retain and saves_something(node):
            free_node(node, steps == 1)          # of the newest, the result perhaps, often all that is kept of a graph
            if not isinstance(node.primitive, Primitive):
                node.primitive.release()
    return 0


cdef int finish_leaves(Run run, unsigned long long sequence) except -1:
    """Write the gradients of the leaves that only nodes newer than `sequence` use, and call what waits for that."""
    cdef Py_ssize_t i
    while run.awaited and (<tuple>run.awaited[len(run.awaited) - 1])[0] > sequence:
        x = (<tuple>run.awaited.pop())[1]
        i = run.leaves.find(<PyObject*>x)
        if i >= 0:
            hook_leaf(run, i)
            if (<Tensor>x).gradient is not None:
                fits_held(<Tensor>x, <Tensor>run.leaves.items[i].gradient)
            write_gradient(run, i)
            run.leaves.replace(i, None)
            call_accumulated_hooks(<Tensor>x, run.after)
    return 0


cdef int write_gradient(Run run, Py_ssize_t i) except -1:
    cdef PyObject* g = run.leaves.items[i].gradient
    return keep_gradient(<Tensor>run.leaves.items[i].tensor, <Tensor>g, run.create_graph, Py_REFCNT(g) == 1)


cdef inline bint saves_something(Node node) noexcept:
    return node.saved0 is not None or node.saved1 is not None or node.saved_out is not None or not isinstance(node.primitive, Primitive) \
        or node.rest is not None and saves_rest(node)


cdef bint saves_rest(Node node) noexcept:
    if node.rest.saved is not None:
        for value in node.rest.saved:
            if value is not None:
                return True
    return False


cdef Tensor seed(Tensor y, object g, int i):
    """The gradient that flows into result number i."""
    cdef Tensor t
    if g is None:
        if y.count != 1:
            raise RuntimeError(f"backward: a gradient can be made up only for a scalar result, this one has shape {shape_text(y.rank, y.dims)}; "
                               "reduce it to a scalar first, for instance with sum(), or give the gradient that flows into it")
        t = empty_tensor(y.dtype_id, y.rank, y.dims)
        store_item(y.dtype_id, t.data, 1.0)
        return t
    if not isinstance(g, Tensor):
        raise TypeError(f"backward: the gradient for result {i} must be a Tensor or None, got {type(g).__name__}")
    t = <Tensor>g
    if not same_shape(t, y):
        raise RuntimeError(f"backward: the gradient for result {i} has shape {shape_text(t.rank, t.dims)}, but the result has shape "
                           f"{shape_text(y.rank, y.dims)}")
    if t.dtype_id != y.dtype_id:
        if KIND[t.dtype_id] != KIND_FLOAT:
            raise RuntimeError(f"backward: the gradient for result {i} has dtype {dtype_object(t.dtype_id).name}, but the result has dtype "
                               f"{dtype_object(y.dtype_id).name}")
        t = cast_function(t, dtype_object(y.dtype_id))
    return t


cpdef run_backward(tuple results, tuple gradients, inputs, bint retain_graph, bint create_graph, bint stop=False):
    """Send gradients back from the results.

    With `inputs` None, the gradients of all leaves are added to their `.grad`.  Otherwise `.grad` is left alone and a list with
    the gradient of each input (None where there is none) is returned; with `stop`, without what comes to a leaf through another input.
    """
    cdef Run run = Run.__new__(Run)
    cdef Tensor y, x, g
    cdef bint mode
    cdef int i
    run.create_graph = create_graph
    run.retain = retain_graph
    for i in range(len(results)):
        y = <Tensor?>results[i]
        if stale(y):
            refresh(y)
        if not y.flags & REQUIRES_GRAD:
            from cgrad.core.untracked import untracked_text
            raise RuntimeError(f"backward: result {i} does not require grad and has no graph: {untracked_text(y)}")
    seeds = [seed(<Tensor>results[i], gradients[i], i) for i in range(len(results))]
    if inputs is not None:
        run.wanted = {}
        run.found = {}
        run.oldest = ~run.oldest
        for i in range(len(inputs)):
            x = <Tensor?>inputs[i]
            if stale(x):
                refresh(x)
            if not x.flags & REQUIRES_GRAD:
                from cgrad.core.untracked import untracked_text
                raise RuntimeError(f"grad: input {i} does not require grad, so nothing was recorded for it: {untracked_text(x)}")
            run.oldest = min(run.oldest, 0 if x.node is None else x.node.sequence)
            if x.node is None:
                run.wanted[x] = True
            else:
                run.wanted[x.node, x.output_number] = True
                run.found[x.node] = False
        run.needed = find_needed(run.wanted, run.found, run.oldest, stop, [(<Tensor>y).node for y in results])
        # A wanted node is run, too, if something wanted lies behind it.
        for node in list(run.found):
            run.found[node] = not stop and leads_on(run, <Node>node)
    elif any_accumulated_hook():
        run.after, run.awaited = [], awaited_leaves([(<Tensor>y).node if (<Tensor>y).node is not None else y for y in results])
    mode = set_grad_mode(create_graph)
    try:
        for i in range(len(results)):
            y = <Tensor>results[i]
            g = <Tensor>seeds[i]
            run.deliver(y.node if y.node is not None else y, y.output_number, g)
        seeds = None
        g = None
        execute(run)
        call_leaf_hooks(run)
        if inputs is None:
            flush(run)
    finally:
        run.clear()
        set_grad_mode(mode)
    if inputs is None:
        for function in run.after or ():
            function()
        return None
    out = []
    for value in inputs:
        x = <Tensor>value
        out.append(leaf_gradient(run, x) if x.node is None else run.found.get((x.node, x.output_number)))
    return out


def backward_door(function):
    """`Tensor.backward` from the function behind it: a call without arguments goes straight to the engine."""
    cdef Door door = Door(function, {})
    door.vectorcall = backward_by_vector
    return door


cdef object backward_by_vector(object self, PyObject** args, size_t nargsf, PyObject* names):
    if names == NULL and nargsf & ~PY_VECTORCALL_ARGUMENTS_OFFSET == 1 and isinstance(<object>args[0], Tensor):
        return run_backward((<object>args[0],), (None,), None, False, False)
    return enter(self, args, nargsf, names)


cdef bint leads_on(Run run, Node node) except -1:
    cdef int i
    if lost(node, run.oldest):
        return True
    for i in range(node.n_inputs):
        edge = node_edge(node, i)
        if edge is not None and wanted_edge(run, edge):
            return True
    return False


cdef object leaf_gradient(Run run, Tensor x):
    cdef Py_ssize_t i = run.leaves.find(<PyObject*>x)
    return None if i < 0 else <object>run.leaves.items[i].gradient


cdef int call_leaf_hooks(Run run) except -1:
    cdef Py_ssize_t i
    if run.awaited is not None:
        finish_leaves(run, 0)
    for i in range(run.leaves.count):
        if <object>run.leaves.items[i].gradient is not None:          # else written already
            hook_leaf(run, i)
    return 0


cdef int hook_leaf(Run run, Py_ssize_t i) except -1:
    cdef Tensor x = <Tensor>run.leaves.items[i].tensor
    if x.extra is not None and "hooks" in x.extra:
        for _, hook in list(x.extra["hooks"]):
            run.leaves.replace(i, hooked(hook, <Tensor>run.leaves.items[i].gradient))
    return 0


cdef int flush(Run run) except -1:
    """Everything went well: write the gradients of the leaves (and of results that retain theirs)."""
    cdef Py_ssize_t i
    cdef Tensor x
    for i in range(run.leaves.count):
        x = <Tensor>run.leaves.items[i].tensor
        if x.gradient is not None and <object>run.leaves.items[i].gradient is not None:
            fits_held(x, <Tensor>run.leaves.items[i].gradient)
    for i in range(run.leaves.count):
        if <object>run.leaves.items[i].gradient is not None:          # else written already
            write_gradient(run, i)
    return 0
