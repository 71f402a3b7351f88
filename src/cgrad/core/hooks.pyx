"""Hooks: functions of the user that see, and may change, the gradient of a tensor when backward knows it.

Those of a leaf are kept with the tensor, those of a result with its node.  Others are called once the `.grad` of a leaf has got its sum; the
engine asks which leaf is complete only while some leaf has such a hook.  Needs the GIL.
Next: engine.pyx, which calls them.
"""
cimport cython

from cgrad.core.dtype cimport dtype_object
from cgrad.core.element cimport no_leaf
from cgrad.core.tape cimport node_rest, track, track_graph
from cgrad.core.tensor cimport BATCHED, Tensor, refresh, same_shape, set_extra, shape_text, stale


def add_hook(Tensor x, function):
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
        track_graph(x.node)          # the function may hold tensors made from x
        track(x)
    entry = [x.output_number, function]

    def remove():
        for i, found in enumerate(hooks):
            if found is entry:
                del hooks[i]
                break
    hooks.append(entry)
    return remove


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


def add_accumulated_hook(Tensor x, function):
    """Call `function(x)` when x.grad has got its sum; returns a function that removes it."""
    cdef AccumulatedHooks hooks
    cdef int number
    no_leaf(x.flags & BATCHED, "register_post_accumulate_grad_hook")
    if not has_accumulated_hook(x):
        set_extra(x, "accumulated", AccumulatedHooks())
    hooks = x.extra["accumulated"]
    hooks.last += 1
    number = hooks.last
    hooks.functions[number] = function
    hooks.change(1)

    def remove():
        if hooks.functions.pop(number, None) is not None:
            hooks.change(-1)
    return remove


cdef int call_accumulated_hooks(Tensor x) except -1:
    for function in list((<AccumulatedHooks>x.extra["accumulated"]).functions.values()):
        if function(x) is not None:
            raise RuntimeError("register_post_accumulate_grad_hook: a hook returned a value, which nobody takes; assign to x.grad, "
                               "or change the gradient before it is added (register_hook)")
    return 0


def run_accumulated_hooks(Tensor x):
    """Call the hooks that wait for x.grad, if there are any."""
    if has_accumulated_hook(x):
        call_accumulated_hooks(x)


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
