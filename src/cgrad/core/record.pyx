"""What the tape keeps of a call: the node, its edges, the values that rules name.

Also the places where history moves from one tensor to another: results of a user's Op, tensors written in place.  Needs the GIL.
Next: apply.pyx, which calls this; tape.pyx, the node itself.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport malloc
from libc.string cimport memset

from cgrad.core.dtype cimport KIND, KIND_FLOAT
from cgrad.core.primitive cimport NONDIFF, Primitive, input_facts
from cgrad.core.storage cimport LENT
from cgrad.core.tape cimport (
    FEW_INPUTS, Node, Rest, grad_enabled, inside_op, is_tracked, new_node, node_rest, set_node_shape, track, watch_gradient,
)
from cgrad.core.tensor cimport (
    CUT, DERIVED, FROZEN, LOST, MARKED, NOTED, REQUIRES_GRAD, STEPPED, TRACED, Tensor, UNRECORDED, VIEW, alias_tensor, become_view, copy_tensor,
    leave_graph, refresh, set_extra, shape_tuple, stale,
)
from cgrad.kernels.table cimport FLOAT64

cdef extern from "Python.h":
    ctypedef struct PyCodeObject:
        pass
    int PyCode_Addr2Line(PyCodeObject* code, int offset)

cdef object watcher = None         # while anomalies are looked for: watcher(node, inputs, results)


def set_record_watcher(function):
    """Tell what is called with each node that is made, its inputs and its results; None: nothing."""
    global watcher
    watcher = function


cdef Node record(Primitive p, PyObject** inputs, int n, Tensor out, tuple options):
    """The node of a call whose inputs include a tracked one.  `out` may be None if there are several results."""
    cdef Node node = new_node(p, n)
    cdef Tensor x
    cdef Node before
    cdef unsigned long long save = 0
    cdef unsigned int named = 0
    cdef int i, k
    cdef bint joint = p.joint is not None
    if n > 2:
        make_room(node, n)
    for i in range(n):
        k = 0 if joint else i
        if not (p.has_rule >> k) & 1 or not isinstance(<object>inputs[i], Tensor):
            continue
        x = <Tensor>inputs[i]
        if not x.flags & REQUIRES_GRAD:
            continue
        save |= p.saves[k]
        named |= 1u << k
        before = x.node
        if before is None:
            set_edge(node, i, x, x.output_number)
            if x.extra is not None:
                track(node)      # a hook of the leaf may come to hold what is made from it
        else:
            set_edge(node, i, before, x.output_number)
            if is_tracked(before):
                track(node)      # a cycle through an earlier node can come back through this one
                track(x)
    if save or named & p.saves_all:
        for i in range(n):
            if (save >> i) & 1 or named & p.saves_all:
                save_input(node, i, <object>inputs[i])
    if named & p.names_shapes:
        node.options = (options or ()) + input_facts(inputs, n)
    elif options is not None:
        node.options = options
    if out is not None:
        set_node_shape(node, out.dtype_id, out.rank, out.dims)
        if named & p.saves_out:
            node.saved_out = alias_tensor(out)
            node.version_out = out.storage.version
            out.storage.kept = True
        out.node = node
        out.flags |= REQUIRES_GRAD
        if is_tracked(node):
            track(out)
        if watcher is not None:
            watcher(node, [<object>inputs[i] for i in range(n)], (out,))
    return node


cdef int make_room(Node node, int n) except -1:
    """Places for the edges and saved values of inputs from the third on."""
    cdef Rest rest = node_rest(node)
    if n > 2:
        rest.edges = [None] * (n - 2)
        rest.saved = [None] * (n - 2)
        if n - 2 > FEW_INPUTS:
            rest.edge_outputs = <int*>malloc((n - 2) * sizeof(int))
            rest.versions = <unsigned int*>malloc((n - 2) * sizeof(int))
            if rest.edge_outputs == NULL or rest.versions == NULL:
                raise MemoryError()
        memset(rest.edge_outputs, 0, (n - 2) * sizeof(int))
        memset(rest.versions, 0, (n - 2) * sizeof(int))
    return 0


cdef inline int save_input(Node node, int i, object value) except -1:
    cdef unsigned int version = 0
    if isinstance(value, Tensor):
        if (<Tensor>value).storage.source == LENT and not (<Tensor>value).flags & REQUIRES_GRAD:
            value = copy_tensor(<Tensor>value)
        version = (<Tensor>value).storage.version
        (<Tensor>value).storage.kept = True
    return set_saved(node, i, value, version)


cdef bint keeps(Primitive p, PyObject** inputs, int n, int i) noexcept:
    """Whether a record of this call would keep input i."""
    cdef int k
    if not grad_enabled():
        return False
    if p.joint is not None or p.saves_all:
        return True
    for k in range(n):
        if isinstance(<object>inputs[k], Tensor) and (<Tensor>inputs[k]).flags & TRACED and (p.saves[k] >> i) & 1:
            return True
    return False


cdef unsigned int fresh_flags(PyObject** inputs, int n) except? 4096:
    """The flags of the inputs after views whose base was written in place have learnt of it."""
    cdef unsigned int flags = 0
    cdef int i
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor):
            if stale(<Tensor>inputs[i]) and grad_enabled():
                refresh(<Tensor>inputs[i])
            flags |= (<Tensor>inputs[i]).flags
    return flags


cdef bint wants_node(Primitive p, unsigned int flags, Tensor out, PyObject** inputs, int n) except -1:
    # After a kernel whose inputs had some flag set: is this call to be recorded?  If not, its result is told why it has no graph.
    cdef bint slope = p.kind != NONDIFF and KIND[out.dtype_id] == KIND_FLOAT
    if flags & REQUIRES_GRAD and slope and grad_enabled():
        return True
    if flags & REQUIRES_GRAD:
        leave_graph(out, STEPPED if not slope else DERIVED | UNRECORDED if inside_op() else UNRECORDED)
    elif flags & NOTED:
        inherit_line(out, inputs, n)
    return False


cdef int inherit_line(Tensor out, PyObject** inputs, int n) except -1:
    cdef int i
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor) and (<Tensor>inputs[i]).flags & NOTED:
            note_leaving(out, (<Tensor>inputs[i]).extra["left"])
    return 0


cdef object attach(Primitive p, PyObject** inputs, int n, tuple args, int n_options, unsigned int flags, object result):
    """Record a call of a general operation, whose options are the last of `args`, if it is to be recorded."""
    cdef int i
    cdef Tensor out
    cdef Node node
    if isinstance(result, Tensor):
        for i in range(n):
            if inputs[i] is <PyObject*>result:
                out = alias_tensor(<Tensor>result)
                become_view(out, <Tensor>result)
                result = out
                break
        out = <Tensor>result
        out.flags |= flags & LOST
        if not flags & MARKED or not wants_node(p, flags, out, inputs, n):
            return out
        if out.base is not None:
            check_base(out, inputs, n)
    elif isinstance(result, tuple):
        out = None
        if not flags & (MARKED | LOST) or not any_wants_node(p, flags, <tuple>result, inputs, n):
            return result
    else:
        return result
    node = record(p, inputs, n, out, args[len(args) - n_options:] if n_options else None)
    if out is None:
        attach_results(p, node, inputs, n, <tuple>result)
        if watcher is not None:
            watcher(node, [<object>inputs[i] for i in range(n)], result)
    return result


cdef bint any_wants_node(Primitive p, unsigned int flags, tuple results, PyObject** inputs, int n) except -1:
    cdef bint wanted = False
    for result in results:
        if isinstance(result, Tensor):
            (<Tensor>result).flags |= flags & LOST
            wanted |= wants_node(p, flags, <Tensor>result, inputs, n)
    return wanted


cdef void check_base(Tensor out, PyObject** inputs, int n) noexcept:
    """A result that shows part of a copy which its operation has made is no view: the copy is not in the graph, so writes would end there."""
    cdef int i
    for i in range(n):
        if isinstance(<object>inputs[i], Tensor) and (out.base is <Tensor>inputs[i] or out.base is (<Tensor>inputs[i]).base):
            return
    out.base = None
    out.flags &= ~<unsigned int>VIEW


cdef int attach_results(Primitive p, Node node, PyObject** inputs, int n, tuple results) except -1:
    """Give several results their node."""
    cdef Tensor x
    cdef Rest rest = node_rest(node)
    cdef int k = 0
    rest.shapes = []
    for result in results:
        if isinstance(result, Tensor):
            x = <Tensor>result
            if k == 0:
                set_node_shape(node, x.dtype_id, x.rank, x.dims)
            else:
                rest.shapes.append((x.dtype_id, shape_tuple(x.rank, x.dims)))
            if KIND[x.dtype_id] == KIND_FLOAT:
                if x.base is not None:
                    check_base(x, inputs, n)
                x.node = node
                x.output_number = k
                x.flags |= REQUIRES_GRAD
                if is_tracked(node):
                    track(x)
        else:
            rest.shapes.append((FLOAT64, ()))
        k += 1
    node.n_outputs = k
    if p.saves_out:
        node.saved_out = tuple([None if not p.read_results >> k & 1 else alias_tensor(<Tensor>value) if isinstance(value, Tensor) else value
                                for k, value in enumerate(results)])
        node.version_out = versions(<tuple>node.saved_out)
        for value in node.saved_out:
            if isinstance(value, Tensor):
                (<Tensor>value).storage.kept = True
    return 0


cdef unsigned int versions(tuple tensors) noexcept:
    cdef unsigned int total = 0
    for value in tensors:
        if isinstance(value, Tensor):
            total += (<Tensor>value).storage.version
    return total


def record_custom(call, tuple inputs, result):
    """Give the result (a tensor or a tuple) of a user's Op a node that calls back `call.backward(grads, create_graph, node)`.

    `call.release()` is called when backward has passed and the graph is not retained.  The results are aliases, and the call does not
    know its node, so that nothing makes a cycle: a dropped graph is freed at once.
    """
    cdef Node node = new_node(call, len(inputs))
    cdef Tensor x, out
    cdef Rest rest = node_rest(node)
    cdef int i, k = 0
    rest.shapes = []
    track(node)          # the instance may hold anything, so the collector must see the node
    make_room(node, len(inputs))
    for i in range(len(inputs)):
        if not isinstance(inputs[i], Tensor) or not (<Tensor>inputs[i]).flags & REQUIRES_GRAD:
            continue
        x = <Tensor>inputs[i]
        if stale(x):
            refresh(x)
        set_edge(node, i, x.node if x.node is not None else x, x.output_number)
    results = []
    for value in (result if isinstance(result, tuple) else (result,)):
        if isinstance(value, Tensor):
            out = alias_tensor(<Tensor>value)
            if k == 0:
                set_node_shape(node, out.dtype_id, out.rank, out.dims)
            else:
                rest.shapes.append((out.dtype_id, shape_tuple(out.rank, out.dims)))
            if KIND[out.dtype_id] == KIND_FLOAT:
                out.node = node
                out.output_number = k
                out.flags |= REQUIRES_GRAD
                track(out)
            value = out
        elif k > 0:
            rest.shapes.append((FLOAT64, ()))
        results.append(value)
        k += 1
    node.n_outputs = k
    if watcher is not None:
        watcher(node, inputs, tuple(results))
    return tuple(results) if isinstance(result, tuple) else results[0]


def connected(Tensor x not None, Node node, int output):
    """An alias of `x` at the place of a node's result in the graph."""
    cdef Tensor out = alias_tensor(x)
    out.node = node
    out.output_number = output
    out.flags |= REQUIRES_GRAD
    track(out)
    return out


def is_recorded(tuple inputs):
    """Whether a call with these inputs goes on the tape."""
    if grad_enabled():
        for x in inputs:
            if isinstance(x, Tensor) and (<Tensor>x).flags & REQUIRES_GRAD:
                return True
    return False


def which_tracked(inputs):
    """For each input whether it is a tensor that requires grad."""
    cdef list out = []
    cdef Tensor x
    for value in inputs:
        if isinstance(value, Tensor):
            x = <Tensor>value
            if stale(x):
                refresh(x)
            out.append(bool(x.flags & REQUIRES_GRAD))
        else:
            out.append(False)
    return tuple(out)


def kept_by(dict state, result):
    """What a user's Op keeps after forward: (tensor, version) of each tensor in its state, and the names of those computed on the way.

    Tensors computed on the way carry a mark (DERIVED), which is taken off here.
    """
    cdef list versions = []
    cdef list between = []
    cdef tuple results = result if isinstance(result, tuple) else (result,)
    cdef bint marked
    for name, value in state.items():
        marked = False
        if isinstance(value, Tensor):
            marked = keep(<Tensor>value, results, versions)
        elif isinstance(value, (tuple, list)):
            for x in value:
                if isinstance(x, Tensor) and keep(<Tensor>x, results, versions):
                    marked = True
        if marked:
            between.append(name)
    for x in results:
        if isinstance(x, Tensor):
            (<Tensor>x).flags &= ~<unsigned int>DERIVED
    return versions, between


def keep_version(Tensor x not None):
    """The version of what x holds; the first write from now on is noted (`writer_of`)."""
    x.storage.kept = True
    return x.storage.version


def writer_of(Tensor x not None):
    """The first write after the tape last kept what x holds: the operation's name, (file, line, function) or None, and the version made.

    The name is None if there was none.
    """
    if x.storage.writer == NULL:
        return None, None, 0
    name, code, offset = <tuple>x.storage.writer
    source = None if code is None else (code.co_filename, PyCode_Addr2Line(<PyCodeObject*>code, offset), code.co_name)
    return name, source, x.storage.noted_version


def why_unrecorded(Tensor x not None):
    """The ways by which x, or what it was computed from, left the graph, and (file, line, function) if that was noted."""
    ways = [name for flag, name in ((CUT, "detached"), (UNRECORDED, "unrecorded"), (FROZEN, "frozen")) if x.flags & flag]
    return ways or ["stepped"] * bool(x.flags & STEPPED), None if x.extra is None else x.extra.get("left")


def note_leaving(Tensor x not None, source):
    """Let x remember where it left the graph."""
    x.flags |= NOTED
    set_extra(x, "left", source)


cdef bint keep(Tensor x, tuple results, list versions) except -1:
    cdef bint marked = x.flags & DERIVED != 0
    versions.append((x, keep_version(x)))
    for y in results:
        if y is x:
            return False            # the engine puts results back to their place in the graph
    x.flags &= ~<unsigned int>DERIVED
    return marked


cpdef take_history(Tensor x, Tensor out, bint written):
    """Let `x` have the history of `out`, as if out's operation had made it; `written` tells the other views of its memory."""
    if written:
        x.storage.history += 1
    x.node = out.node
    x.output_number = out.output_number
    x.flags |= out.flags & REQUIRES_GRAD
    x.view_history = x.storage.history
    if x.retains_grad:
        watch_gradient(x.node, x.output_number, x)


def forget_history(Tensor x not None):
    """Make a recorded tensor a leaf that does not require grad."""
    if x.flags & VIEW:
        raise RuntimeError("detach_: a view cannot be taken out of the graph in place; use x.detach()")
    x.node = None
    x.output_number = 0
    leave_graph(x, CUT)
    return x
