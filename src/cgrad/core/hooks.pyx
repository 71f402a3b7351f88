"""Hooks: functions of the user that see, and may change, the gradient of a tensor when backward knows it.

Those of a leaf are kept with the tensor, those of a result with its node.  Needs the GIL.
Next: engine.pyx, which calls them.
"""
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
