"""Operations that write into a tensor: augmented assignment, methods ending in an underscore, ``out=``.

Outside the graph they write into the memory and bump its version.  Inside, the operation is recorded as usual and the tensor takes
the value and history of the result; a write through a view goes on to its base (ops/strided.py).  Checked before anything is
written.  Needs the GIL.  Next: engine.pyx.
"""
from cpython.object cimport PyObject

from cgrad.core.apply cimport apply2, is_operand, operator_function, operator_primitive
from cgrad.core.batching cimport is_batch, level_of, wrap
from cgrad.core.door cimport Door, PyVectorcall_NARGS, handed_on, named_arguments, raw_call_t
from cgrad.core.dtype cimport ITEMSIZE, KIND, dtype_object
from cgrad.core.elementwise cimport ONES, as_tensor, compute, compute_over, is_number
from cgrad.core.hooks cimport Packed, keep_packed
from cgrad.core.primitive cimport BOOLEAN, MAX_INPUTS, Primitive
from cgrad.core.record cimport take_history
from cgrad.core.forward.plan cimport may_overlap_itself
from cgrad.core.storage cimport written
from cgrad.core.tape cimport Node, grad_enabled, node_edge
from cgrad.core.tensor cimport (
    BATCHED, CONTIGUOUS, DUAL, REQUIRES_GRAD, SLOW, Tensor, copy_into, copy_tensor, launch, refresh, same_shape,
    set_extra, set_inplace_operator, shape_of, shape_text, shape_tuple, stale, writable,
)

from cgrad.core.door import set_out_writer
from cgrad.core.tape import latest_sequence

cdef object casting = None         # the recorded cast
cdef object broadcasting = None
cdef object replacing = None       # the recorded copy into a tensor
cdef object cloning = None
cdef object write_view = None      # a recorded write through a view


cdef int check_inplace(str name, Tensor x) except -1:
    writable(x, name)
    if x.flags & REQUIRES_GRAD and grad_enabled() and (x.node is None or x.base is not None and x.base.node is None and x.base.flags & REQUIRES_GRAD):
        tracked_leaf(name, "a leaf tensor that requires grad" if x.node is None else "a view of a leaf tensor that requires grad")
    if may_overlap_itself(x):
        raise RuntimeError(f"{name}: the tensor has several elements in one place (shape {shape_text(x.rank, x.dims)}, strides "
                           f"{shape_text(x.rank, x.dims + x.rank)}), so it cannot be changed in place; take x.clone() first")
    return 0


cdef int tracked_leaf(str name, str what) except -1:
    raise RuntimeError(f"{name}: {what} cannot be changed in place while operations are recorded; "
                       "change it under cgrad.no_grad(), or work on x.clone()")


cdef int check_result(str name, Tensor x, Tensor out) except -1:
    if not same_shape(x, out):
        raise ValueError(f"{name}: the result has shape {shape_text(out.rank, out.dims)} and cannot be written in place into shape "
                         f"{shape_text(x.rank, x.dims)}")
    if KIND[out.dtype_id] > KIND[x.dtype_id]:
        raise TypeError(f"{name}: the result is {dtype_object(out.dtype_id).name} and cannot be written in place into a tensor of "
                        f"{dtype_object(x.dtype_id).name}; keep the result under a name, or convert the tensor first")
    return 0


cdef int run_inplace(Primitive p, Tensor x, Tensor y) except -1:
    cdef char* data[3]
    cdef int itemsize[3]
    cdef const Py_ssize_t* strides[3]
    data[0] = data[1] = x.data
    data[2] = y.data
    itemsize[0] = itemsize[1] = itemsize[2] = ITEMSIZE[x.dtype_id]
    strides[0] = strides[1] = strides[2] = ONES
    launch(p.loops[x.dtype_id], 3, data, itemsize, 1, &x.count, strides, p.weight, x.count)
    written(x.storage, p.name)
    return 0


cdef object apply_inplace(Primitive p, Tensor x, object other, str name):
    cdef Tensor y = None, out
    cdef PyObject* inputs[2]
    cdef unsigned int flags
    if stale(x):
        refresh(x)
    flags = x.flags
    if isinstance(other, Tensor):
        y = <Tensor>other
        if stale(y):
            refresh(y)
    elif not is_number(other):
        y = as_tensor(p, other)
    if y is not None:
        flags |= y.flags
        other = y
    check_inplace(name, x)
    if flags & SLOW or flags & REQUIRES_GRAD and grad_enabled():
        out = apply2(p, x, other)
        check_result(name, x, out)
        return write_through(x, out, p.name)
    inputs[0] = <PyObject*>x
    inputs[1] = <PyObject*>other
    if y is not None and y.dtype_id == x.dtype_id and p.result != BOOLEAN and p.loops[x.dtype_id] != NULL and same_shape(x, y) \
            and x.flags & y.flags & CONTIGUOUS and (x.storage is not y.storage or x.data == y.data):
        run_inplace(p, x, y)
        return x
    out = compute(p, inputs, 2)
    check_result(name, x, out)
    copy_into(x, out, p.name)
    return x


cdef object write_through(Tensor x, Tensor out, str name):
    """Write a recorded result into x; if x is a view, its base learns of it."""
    if out.node is not None:
        keep_overwritten(out.node, x)
    if out.dtype_id != x.dtype_id:
        out = casting(out, dtype_object(x.dtype_id))
    if x.flags & ~out.flags & (REQUIRES_GRAD | DUAL) and (x.flags & DUAL or grad_enabled()):
        out = replacing(x, out)          # what has no slope cuts off what x was
    if (x.flags | out.flags) & BATCHED:
        return write_batch(x, out, name)
    if x.base is not None and out.node is not None:
        if x.base.node is None and x.base.flags & REQUIRES_GRAD:
            tracked_leaf(out.node.primitive.name, "a view of a leaf tensor that requires grad")
        return write_view(x, out, name)
    return rebase(x, out, name)


cdef object write_batch(Tensor x, Tensor out, str name):
    """Write a result inside vmap: into the values of all examples."""
    cdef int level = level_of(x)
    cdef Tensor values, target
    if out.flags & DUAL and x.extra is not None:
        # The memory is written as ever, but what x stands for from now on is the result: rules may have kept what it was.
        target = x.extra.get("memory")
        if target is None and is_batch(x):
            target = wrap(x.extra["batch"][1], level)
        elif target is None and level == level_of(out):
            target = x.extra["dual"][1]
        if target is not None:
            write_through(target, out.extra["dual"][1], name)
            set_extra(x, "memory", target)
            set_extra(x, "dual", out.extra["dual"])
            x.flags |= DUAL | (out.flags & REQUIRES_GRAD)
            return x
    if not is_batch(x) or level_of(out) > level:
        raise RuntimeError(f"vmap: a batched value cannot be written in place into a tensor of shape {shape_text(x.rank, shape_of(x))} that all examples "
                           "share; write into a tensor made like a batched one (cgrad.zeros_like(x)), or put the parts together with cgrad.stack or where")
    values = x.extra["batch"][1]
    check_inplace("vmap", values)
    if level_of(out) == level:
        write_through(values, out.extra["batch"][1], name)
    else:
        write_through(values, broadcasting(out, shape_tuple(values.rank, shape_of(values))), name)
    x.node = values.node
    x.output_number = values.output_number
    x.flags |= values.flags & REQUIRES_GRAD
    return x


cdef object rebase(Tensor x, Tensor out, str name):
    """Write `out` into `x`, with its history or tangent."""
    if out.flags & DUAL:
        copy_into(x, out, name)
        set_extra(x, "dual", out.extra["dual"])
        x.flags |= DUAL | (out.flags & REQUIRES_GRAD)
        return x
    copy_into(x, out, name)
    if out.node is not None:
        take_history(x, out, True)
    return x


cdef int keep_overwritten(Node node, Tensor x) except -1:
    """The rules of an in-place operation may need what it is about to overwrite: let the node keep a copy, at x's old place in the graph."""
    cdef list saved
    cdef int i
    saved0 = node.saved0
    node.saved0 = apart_from(x, saved0, node, &node.version0)
    if node.saved1 is saved0:
        node.saved1 = node.saved0
        node.version1 = node.version0
    else:
        node.saved1 = apart_from(x, node.saved1, node, &node.version1)
    if node.rest is not None and node.rest.saved is not None:
        saved = node.rest.saved
        for i in range(len(saved)):
            saved[i] = apart_from(x, saved[i], node, &node.rest.versions[i])
    return 0


cdef object apart_from(Tensor x, object saved, Node node, unsigned int* version):
    """A saved value, or a copy of it (of version 0) if it lies in the memory of x."""
    if isinstance(saved, Tensor) and (<Tensor>saved).storage is x.storage:
        version[0] = 0
        return kept_copy(<Tensor>saved)
    if isinstance(saved, Packed) and (<Packed>saved).storage is x.storage:
        keep_packed(<Packed>saved, node.primitive.name)
    return saved


cdef int keep_behind(Node last, Tensor x, unsigned long long since) except -1:
    """The same for a function made of several operations: all nodes behind the last one that were recorded after number `since`."""
    cdef list stack = [last]
    cdef set seen = set()
    cdef Node node
    cdef int i
    while stack:
        node = <Node>stack.pop()
        if node.sequence <= since or node in seen:
            continue
        seen.add(node)
        keep_overwritten(node, x)
        for i in range(node.n_inputs):
            edge = node_edge(node, i)
            if isinstance(edge, Node):
                stack.append(edge)
    return 0


cdef Tensor kept_copy(Tensor like):
    cdef Tensor kept
    if like.node is None and like.flags & REQUIRES_GRAD:       # a leaf, written through an alias: it cannot stand in two places
        return cloning(like)
    kept = copy_tensor(like)
    kept.node = like.node
    kept.output_number = like.output_number
    kept.flags |= like.flags & REQUIRES_GRAD if like.node is not None else 0
    return kept


def set_inplace_helpers(cast, view_writer, broadcast, replace, clone):
    """Tell how a recorded cast, broadcast and copy are made and how a recorded write through a view reaches its base."""
    global casting, write_view, broadcasting, replacing, cloning
    replacing = replace
    cloning = clone
    broadcasting = broadcast
    casting = cast
    write_view = view_writer


def check_inplace_target(Tensor x not None, str name):
    """Refuse what cannot be changed in place: read-only memory, a tracked leaf, overlapping elements."""
    check_inplace(name, x)


def write_inplace(Tensor x not None, Tensor out not None, str name):
    """Write a result (recorded or not) of x's shape into x, with its history; `name` is the operation that does so."""
    return write_through(x, out, name)


cdef object inplace_operation(int which, object x, object y):
    cdef Primitive p = operator_primitive(which)
    if not is_operand(y):
        return NotImplemented
    if p is not None:
        return apply_inplace(p, x, y, p.name)
    return by_function(operator_function(which).__name__, operator_function(which), x, (y,), {})


cdef object by_function(str name, object function, Tensor x, tuple args, dict kwargs):
    cdef Tensor out
    check_inplace(name, x)
    since = latest_sequence()
    out = function(x, *[apart(y, x) for y in args], **{key: apart(y, x) for key, y in kwargs.items()})
    check_result(name, x, out)
    if out.node is not None:
        keep_behind(out.node, x, since)
    return write_through(x, out, name)


cdef object apart(object y, Tensor x):
    """An argument in memory of its own: rules may keep it, and x is about to be overwritten."""
    return cloning(y) if isinstance(y, Tensor) and (<Tensor>y).storage is x.storage else y


cdef class InplaceDoor(Door):
    """A method that writes what a public function gives into the tensor it is called of: ``x.exp_()``."""
    cdef str name
    cdef Primitive p                   # of an operation of two operands, which needs no tuple of arguments


def inplace_method(function, str name):
    """The method `name` that writes in place what a public function gives."""
    cdef InplaceDoor door = InplaceDoor(function, (<Door>function).renames if isinstance(function, Door) else {}, "writes into the tensor itself")
    primitive = getattr(function, "primitive", None)
    if primitive is not None and (<Primitive>primitive).elementwise and (<Primitive>primitive).n_inputs == 2:
        door.p = <Primitive>primitive
    door.vectorcall = enter_inplace
    door.name = door.__name__ = door.__qualname__ = name
    return door


cdef object enter_inplace(object self, PyObject** args, size_t nargsf, PyObject* names):
    return handed_on((<raw_call_t>call_inplace)(<PyObject*>self, args, nargsf, names), self, (<Door>self).renames, args, nargsf, names)


cdef object call_inplace(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef InplaceDoor door = <InplaceDoor>self
    cdef Py_ssize_t n = PyVectorcall_NARGS(nargsf)
    if n == 0 or not isinstance(<object>args[0], Tensor):
        raise TypeError(f"writes into a tensor, got {f'{<object>args[0]!r:.40}' if n else 'none'}")
    if n == 2 and names == NULL and door.p is not None:
        return apply_inplace(door.p, <Tensor>args[0], <object>args[1], door.name)
    kwargs = named_arguments(args, n, names)
    if "out" in kwargs:
        raise TypeError(f"{door.name}: takes no out=, since it writes into the tensor itself")
    return by_function(door.name, door.function, <Tensor>args[0], tuple([<object>args[k] for k in range(1, n)]), kwargs)


set_inplace_operator(inplace_operation)


# ---------------------------------------------------------------------- out=
def write_out(str name, function, tuple args, dict kwargs, out):
    """``function(*args, **kwargs)`` written into the tensor `out`, which takes the history of the result; a tuple for several results.

    What lies in the memory of `out` is read before anything is written, and rules keep a copy of it.
    """
    cdef bint several = isinstance(out, tuple)
    cdef tuple targets = tuple(out) if several else (out,)
    for x in targets:
        check_target(name, x)
    if not several and computed_there(getattr(function, "primitive", None), args, kwargs, out):
        return out
    since = latest_sequence()
    result = function(*[all_apart(y, targets) for y in args], **{key: all_apart(y, targets) for key, y in kwargs.items()})
    results = result if isinstance(result, tuple) else (result,)
    if isinstance(result, tuple) != several or len(results) != len(targets):
        n = f"{len(results)} results" if isinstance(result, tuple) else "one result"
        wanted = "a tuple of as many tensors" if isinstance(result, tuple) else "one tensor"
        raise TypeError(f"{name}: gives {n}, so out= must be {wanted}, got {f'a tuple of {len(targets)}' if several else 'one tensor'}")
    for x, y in zip(targets, results):
        check_written(name, x, y)
    for x, y in zip(targets, results):
        if (<Tensor>y).flags & REQUIRES_GRAD and ((<Tensor>y).node is None or (<Tensor>y).node.sequence <= since):
            y = cloning(y)           # an operand handed back: what it was made by stays as it is
        write_through(x, y, name)
    return getattr(type(result), "_make", tuple)(targets) if several else out


cdef int check_target(str name, object x) except -1:
    if not isinstance(x, Tensor):
        hint = "; cgrad.from_numpy(array) gives a tensor that shares the memory of an array" if hasattr(x, "__array_interface__") else ""
        raise TypeError(f"{name}: out= must be a Tensor, got {type(x).__name__}{hint}")
    if stale(<Tensor>x):
        refresh(<Tensor>x)
    return check_inplace(name, <Tensor>x)


cpdef int check_written(str name, Tensor x, object result) except -1:
    """Shapes must be equal, and kinds of dtypes must not get lower (NumPy's casting="same_kind")."""
    if not isinstance(result, Tensor):
        raise TypeError(f"{name}: takes no out= here, since the result is {type(result).__name__}, no tensor")
    cdef Tensor y = <Tensor>result
    made, there = dtype_object(y.dtype_id), dtype_object(x.dtype_id)
    if not same_shape(x, y):
        raise ValueError(f"{name}: the result has shape {shape_text(y.rank, y.dims)}, out= has {shape_text(x.rank, x.dims)}; give a tensor of the "
                         f"result's shape, such as cgrad.empty({shape_text(y.rank, y.dims)}, dtype=cgrad.{made.name})")
    if KIND[y.dtype_id] > KIND[x.dtype_id] or made.kind == "integer" and there.kind == "unsigned integer":
        raise TypeError(f"{name}: a result of {made.name} cannot be written into out= of {there.name}; give a tensor of {made.name}, or convert "
                        f"the result with astype")
    return 0


cdef object all_apart(object y, tuple targets):
    """An argument, or a list of them, with memory of its own."""
    if type(y) is list or type(y) is tuple:
        return type(y)([all_apart(z, targets) for z in y])
    for x in targets:
        y = apart(y, <Tensor>x)
    return y


cdef bint computed_there(object primitive, tuple args, dict kwargs, Tensor out) except -1:
    """Compute an elementwise operation at once into `out`, where nothing is recorded and all fits; False if it does not."""
    cdef PyObject* inputs[MAX_INPUTS]
    cdef bint tensors = False
    cdef int i
    if primitive is None or not (<Primitive>primitive).elementwise or kwargs or len(args) != (<Primitive>primitive).n_inputs \
            or out.flags & (REQUIRES_GRAD | SLOW) or not out.flags & CONTIGUOUS:
        return False
    for i in range(len(args)):
        y = args[i]
        inputs[i] = <PyObject*>y
        if isinstance(y, Tensor):
            tensors = True
            if stale(<Tensor>y):
                refresh(<Tensor>y)
            if (<Tensor>y).flags & (REQUIRES_GRAD | SLOW) or (<Tensor>y).storage is out.storage and (<Tensor>y).data != out.data:
                return False
        elif not is_number(y):
            return False
    return tensors and compute_over(<Primitive>primitive, inputs, <int>len(args), out)


set_out_writer(write_out)

cdef object operator_watcher = None


def watch_inplace_operators(watcher):
    """Tell a watcher of operators in place as of calls of the methods, see `door.watch_calls`."""
    global operator_watcher
    operator_watcher = watcher
    set_inplace_operator(inplace_operation if watcher is None else watched_operation)


cdef object watched_operation(int which, object x, object y):
    cdef object watcher = operator_watcher
    if watcher is None:
        return inplace_operation(which, x, y)
    watcher._enter(inplace_method(operator_function(which), operator_function(which).__name__ + "_"), (x, y))
    try:
        return inplace_operation(which, x, y)
    finally:
        watcher._leave()
