"""Hooks: functions of the user that see, and may change, the gradient of a tensor when backward knows it.

Those of a leaf are kept with the tensor, those of a result with its node.  Others are called once the `.grad` of a leaf has got its sum; the
engine asks which leaf is complete only while some leaf has such a hook.  Saved-tensor hooks put something else in the place of what a
node saved: a watcher of the record packs it, so without one nothing is asked; the engine unpacks it.  Needs the GIL.
Next: engine.pyx, which calls them.
"""
cimport cython
from cpython.object cimport PyObject

import gc
from types import FunctionType, ModuleType

from cgrad.core.dtype cimport dtype_object
from cgrad.core.element cimport no_leaf
from cgrad.core.elementwise cimport Py_REFCNT
from cgrad.core.primitive cimport Primitive
from cgrad.core.record cimport record
from cgrad.core.storage cimport new_storage
from cgrad.core.tape cimport PACKED, Node, node_rest, set_grad_mode, track, track_graph
from cgrad.core.tensor cimport (
    BATCHED, LEVEL, REQUIRES_GRAD, Tensor, alias_tensor, copy_tensor, refresh, same_shape, set_extra, shape_of, shape_text, stale,
    storage_tensor, strides_of,
)

cdef enum:
    FAR = 1000                 # objects in which tensors are looked for


def add_hook(Tensor x not None, function):
    """Call `function(gradient)` when the gradient of x is known; returns a function that removes it."""
    cdef list hooks
    no_leaf(x.flags & BATCHED, "register_hook")
    if stale(x):
        refresh(x)
    if x.node is None:
        if x.extra is None or "hooks" not in x.extra:
            set_extra(x, "hooks", [])
        hooks = x.extra["hooks"]
    else:
        if node_rest(x.node).hooks is None:
            x.node.rest.hooks = []
        hooks = x.node.rest.hooks
        track_graph(x.node)          # the function may come to hold tensors made from x
        track(x)
    track_held(function)
    entry = [x.output_number, function]

    def remove():
        for i, found in enumerate(hooks):
            if found is entry:
                del hooks[i]
                break
    hooks.append(entry)
    return remove


cdef int track_held(object function) except -1:
    """Let the cyclic collector see the tensors that a function holds: some may have been made from the one it is a hook of."""
    cdef list stack = [function]
    cdef set seen = set()
    while stack and len(seen) < FAR:
        held = stack.pop()
        if id(held) in seen or isinstance(held, (type, ModuleType)):
            continue
        seen.add(id(held))
        if isinstance(held, Tensor):
            track(held)
            stack.append((<Tensor>held).base)
            if (<Tensor>held).node is not None:
                track_graph((<Tensor>held).node)
        elif isinstance(held, FunctionType):
            stack += [held.__closure__, held.__defaults__, held.__kwdefaults__]      # its globals live on anyway
        else:
            stack += gc.get_referents(held)[:FAR]
    return 0


cdef int living = 0            # hooks of living leaves that wait for their .grad


cdef bint any_accumulated_hook() noexcept:
    return living > 0


@cython.final
cdef class AccumulatedHooks:
    """The hooks of one leaf that are called when its .grad has got its sum."""

    cdef dict functions          # by number, in the order of registration
    cdef int count, last

    def __cinit__(self):
        self.functions = {}

    def __dealloc__(self):
        global living
        living -= self.count

    cdef int change(self, int by) except -1:
        global living
        self.count += by
        living += by
        return 0


def add_accumulated_hook(Tensor x not None, function):
    """Call `function(x)` when x.grad has got its sum; returns a function that removes it."""
    cdef AccumulatedHooks hooks
    cdef int number
    no_leaf(x.flags & BATCHED, "register_post_accumulate_grad_hook")
    if not has_accumulated_hook(x):
        set_extra(x, "accumulated", AccumulatedHooks())
    hooks = x.extra["accumulated"]
    track_held(function)
    hooks.last += 1
    number = hooks.last
    hooks.functions[number] = function
    hooks.change(1)

    def remove():
        if hooks.functions.pop(number, None) is not None:
            hooks.change(-1)
    return remove


cdef int call_accumulated_hooks(Tensor x, list after) except -1:
    """The functions that the hooks return are put into `after`, each once."""
    for function in list((<AccumulatedHooks>x.extra["accumulated"]).functions.values()):
        returned = function(x)
        if callable(returned) and not isinstance(returned, Tensor):
            if returned not in after:
                after.append(returned)
        elif returned is not None:
            raise RuntimeError("register_post_accumulate_grad_hook: a hook returned a value, which nobody takes; assign to x.grad, "
                               "or change the gradient before it is added (register_hook)")
    return 0


def run_accumulated_hooks(xs):
    """Call the hooks of the leaves among these tensors that wait for .grad, if there are any, and what they return."""
    cdef list after = []
    for x in xs:
        if has_accumulated_hook(<Tensor?>x):
            call_accumulated_hooks(<Tensor>x, after)
    for function in after:
        function()


cdef object hooked(object function, Tensor g):
    """The gradient after a hook."""
    changed = function(g)
    if changed is None:
        return g
    if not isinstance(changed, Tensor) or not same_shape(<Tensor>changed, g) or (<Tensor>changed).dtype_id != g.dtype_id:
        raise RuntimeError(f"hook: returned {describe(changed)} for a gradient of shape {shape_text(g.rank, g.dims)} and dtype "
                           f"{dtype_object(g.dtype_id).name}; return None or a tensor like it")
    return changed


cdef str describe(object x):
    if isinstance(x, Tensor):
        return f"a tensor of shape {shape_text((<Tensor>x).rank, (<Tensor>x).dims)} and dtype {dtype_object((<Tensor>x).dtype_id).name}"
    return type(x).__name__


# ---------------------------------------------------------------------- saved tensors
cdef Primitive identity = None


def set_identity(function):
    """Tell the recorded operation that changes nothing, through which what was unpacked for a leaf stays connected to it."""
    global identity
    identity = function.primitive


@cython.final
cdef class Packed:
    """A saved tensor as a pack hook has left it."""

    def __repr__(self):
        return f"<packed: {self.held!r}>"


def pack_node(Node node, tuple results, pack, unpack):
    """Put what `pack` makes of them in the place of the tensors that a fresh node has saved."""
    cdef dict done = {}           # a tensor that is saved twice is packed once
    node.saved0 = packed(node, node.saved0, pack, unpack, done)
    node.saved1 = packed(node, node.saved1, pack, unpack, done)
    if node.rest is not None and node.rest.saved is not None:
        node.rest.saved = [packed(node, value, pack, unpack, done) for value in node.rest.saved]
    if isinstance(node.saved_out, tuple):
        node.saved_out = tuple([packed(node, value, pack, unpack, done) for value in node.saved_out])
    else:
        node.saved_out = packed(node, node.saved_out, pack, unpack, done)
    if done:
        node.state = PACKED
        track_graph(node)         # the functions, and what they made, may hold anything
        for x in results:
            if isinstance(x, Tensor):
                track(x)


cdef object packed(Node node, object value, object pack, object unpack, dict done):
    cdef Tensor x, view
    cdef Packed p
    cdef Py_ssize_t holders
    cdef bint mode
    if not isinstance(value, Tensor) or (<Tensor>value).flags & LEVEL:
        return value
    if id(value) in done:
        return done[id(value)]
    x = <Tensor>value
    p = Packed.__new__(Packed)
    p.unpack = unpack
    p.version = x.storage.version
    p.output = x.output_number
    if x.flags & REQUIRES_GRAD:
        p.place = x if x.node is None else x.node
    p.like = storage_tensor(new_storage(0), NULL, x.dtype_id, x.rank, shape_of(x), strides_of(x))
    view = alias_tensor(x)
    holders = Py_REFCNT(<PyObject*>x.storage) - 1
    mode = set_grad_mode(False)
    try:
        p.held = pack(view)
    finally:
        set_grad_mode(mode)
    view = None
    if x.storage.version != p.version:
        raise RuntimeError(f"saved_tensors_hooks: the pack hook has changed a tensor in place that {node.primitive.name} saved; work on a copy (x.clone())")
    if Py_REFCNT(<PyObject*>x.storage) > holders:
        p.storage = x.storage
    done[id(value)] = p
    return p


cdef Tensor unpacked(Packed p, str name, bint connected):
    """The tensor again; `connected` to what it came from, for derivatives of derivatives."""
    cdef Tensor x, leaf
    cdef PyObject* inputs[1]
    cdef bint mode = set_grad_mode(False)
    try:
        made = p.held if p.unpack is None else p.unpack(p.held)
    finally:
        set_grad_mode(mode)
    if not isinstance(made, Tensor) or not same_shape(<Tensor>made, p.like) or (<Tensor>made).dtype_id != p.like.dtype_id:
        raise RuntimeError(f"saved_tensors_hooks: the unpack hook returned {describe(made)} for {describe(p.like)} that {name} saved; "
                           "it must return a tensor like the one that was packed")
    x = alias_tensor(<Tensor>made)
    if not connected or p.place is None:
        return x
    if isinstance(p.place, Node):
        x.node = <Node>p.place
        x.output_number = p.output
        x.flags |= REQUIRES_GRAD
        track(x)
    else:
        leaf = <Tensor>p.place
        inputs[0] = <PyObject*>leaf
        record(identity, inputs, 1, x, None)
    return x


cdef int keep_packed(Packed p, str name) except -1:
    p.held = copy_tensor(unpacked(p, name, False))
    p.unpack = None
    p.storage = None
    return 0
