"""Forward mode: dual tensors and the slow road of a call that meets one.

A dual tensor is an alias of its primal that carries (level, primal, tangent).  Each running jvp has a level of its own; a call
peels off the highest level among its inputs, computes the primal result as usual (which may meet lower levels), applies the
operation's forward rule with recorded functions, and wraps the pair again, so levels never confuse each other.  The rule follows
from the kind of the operation; where none fits, the vjp is transposed by differentiating it, which is always right.
Needs the GIL.  Next: ops/define.py, where kinds are given.
"""
from cpython.object cimport PyObject

from cgrad.core.dtype cimport KIND, KIND_FLOAT, dtype_object
from cgrad.core.primitive cimport (
    BILINEAR, LINEAR, NONDIFF, Primitive, Rule, call_rule, tuple_items,
)
from cgrad.core.tape cimport inside_op, set_grad_mode
from cgrad.core.tensor cimport (
    DERIVED, DUAL, REQUIRES_GRAD, Tensor, alias_tensor, same_shape, set_extra, shape_text, shape_tuple,
)

from cgrad.core import apply, engine, primitive

cdef int last_level = 0
cdef object functions = None


def set_forward_functions(namespace):
    """Tell the recorded functions that forward rules need: add, broadcast_to, cast, zeros_like."""
    global functions
    functions = namespace


def enter_level():
    """Start a forward derivative; returns its level, higher than any before, so that threads and leaked duals confuse nothing."""
    global last_level
    last_level += 1
    return last_level


def make_dual(Tensor primal, Tensor tangent, int level):
    """A tensor with the value of `primal` that carries `tangent` at a level."""
    cdef Tensor x
    if not same_shape(primal, tangent) or primal.dtype_id != tangent.dtype_id:
        raise ValueError(f"jvp: a tangent must have the shape {shape_text(primal.rank, primal.dims)} and dtype {dtype_object(primal.dtype_id).name} "
                         f"of its tensor, got {shape_text(tangent.rank, tangent.dims)} and {dtype_object(tangent.dtype_id).name}")
    if KIND[primal.dtype_id] != KIND_FLOAT:
        raise TypeError(f"jvp: only floating-point tensors have tangents, this one is {dtype_object(primal.dtype_id).name}")
    x = alias_tensor(primal)
    x.flags |= DUAL | (primal.flags & (REQUIRES_GRAD | DERIVED))
    x.node = primal.node
    x.output_number = primal.output_number
    set_extra(x, "dual", (level, primal, tangent))
    return x


def unpack_dual(x, int level):
    """(primal, tangent) of a tensor at a level; the tangent is None if it carries none."""
    if isinstance(x, Tensor) and (<Tensor>x).flags & DUAL:
        found, primal, tangent = (<Tensor>x).extra["dual"]
        if found == level:
            return primal, tangent
    return x, None


def split_dual(Tensor x):
    """(level, primal, tangent) of a dual tensor at its highest level."""
    return x.extra["dual"]


def bottom(x):
    """The tensor below all tangents, the one that the graph knows."""
    while isinstance(x, Tensor) and (<Tensor>x).flags & DUAL:
        x = (<Tensor>x).extra["dual"][1]
    return x


def is_dual(x):
    """Whether the tensor carries a tangent of any level."""
    return isinstance(x, Tensor) and bool((<Tensor>x).flags & DUAL)


def highest_level(operands):
    """The highest level among tensors; 0 if none carries a tangent."""
    return level_of(tuple(operands))


cdef int level_of(tuple operands) except -1:
    cdef int level = 0
    for x in operands:
        if isinstance(x, Tensor) and (<Tensor>x).flags & DUAL:
            level = max(level, <int>(<Tensor>x).extra["dual"][0])
    return level


def slow_road(Primitive p, tuple operands, tuple options):
    """A call with an input that is dual, or marked by a user's Op.forward."""
    cdef int level = level_of(operands)
    if level == 0:
        return marked_call(p, operands, options)
    pairs = [unpack_dual(x, level) for x in operands]
    primals = tuple([a for a, _ in pairs])
    tangents = [t for _, t in pairs]
    out = apply.call(p, primals, options)
    if p.kind == NONDIFF:
        return out
    return wrap(out, push(p, primals, tangents, options, out), level)


def wrap(object out, object tangent, int level):
    """A result (or a tuple of them) with its tangent at a level."""
    if isinstance(out, tuple):
        return tuple([wrap(x, t, level) for x, t in zip(out, tangent)])
    if tangent is None or not isinstance(out, Tensor) or KIND[(<Tensor>out).dtype_id] != KIND_FLOAT:
        return out
    if not same_shape(<Tensor>out, <Tensor>tangent):
        tangent = functions.broadcast_to(tangent, shape_tuple((<Tensor>out).rank, (<Tensor>out).dims))
    if (<Tensor>tangent).dtype_id != (<Tensor>out).dtype_id:
        tangent = functions.cast(tangent, dtype_object((<Tensor>out).dtype_id))
    return make_dual(<Tensor>out, <Tensor>tangent, level)


cdef object push(Primitive p, tuple primals, list tangents, tuple options, object out):
    """The tangent of the result."""
    cdef int i, n = len(primals)
    cdef Rule rule
    cdef int n_options = len(p.option_names)
    cdef tuple extended
    if p.jvp is not None:
        extended = options + primitive.facts(primals)
        return call_rule(p.jvp, None, tuple_items(<PyObject*>primals), n, out, extended, n_options, None, tangents, None)
    if p.kind == LINEAR and not p.elementwise:
        filled = tuple([x if not isinstance(x, Tensor) else functions.zeros_like(x) if t is None else t for x, t in zip(primals, tangents)])
        return apply.call(p, filled, options)
    if p.kind == BILINEAR and not p.elementwise:
        total = None
        for i in range(n):
            if tangents[i] is not None:
                term = apply.call(p, primals[:i] + (tangents[i],) + primals[i + 1:], options)
                total = term if total is None else functions.add(total, term)
        return total
    if p.elementwise and p.joint is None:
        extended = options + primitive.facts(primals)
        total = None
        for i in range(n):
            rule = <Rule>p.rules[i]
            if tangents[i] is None or rule is None:
                continue
            term = call_rule(rule, tangents[i], tuple_items(<PyObject*>primals), n, out, extended, n_options, None, None,
                             (extended[n_options][i], extended[n_options + 1][i]))
            total = term if total is None else functions.add(total, term)
        return total
    return transposed(lambda *xs: apply.call(p, xs, options), primals, tangents)


def transposed(function, tuple primals, list tangents):
    """The tangent of function(*primals) from its vjp: g -> vjp(g) is linear, and its own vjp at the tangents is the jvp."""
    cdef Tensor x
    cdef bint mode
    places = [i for i, t in enumerate(tangents) if t is not None]
    mode = set_grad_mode(True)
    try:
        operands = list(primals)
        leaves = [fresh(primals[i]) for i in places]
        for i, x in zip(places, leaves):
            operands[i] = x
        out = function(*operands)
        results = list(out) if isinstance(out, tuple) else [out]
        wanted = [y for y in results if isinstance(y, Tensor) and (<Tensor>y).flags & REQUIRES_GRAD]
        if not wanted:
            return (None,) * len(results) if isinstance(out, tuple) else None
        seeds = []
        for y in wanted:
            g = functions.zeros_like(bottom(y))
            g.requires_grad = True
            seeds.append(g)
        pulled = gradients(tuple(wanted), tuple(seeds), leaves, True, True)
        pairs = [(p, tangents[i]) for p, i in zip(pulled, places) if p is not None and (<Tensor>p).flags & REQUIRES_GRAD]
        if not pairs:
            return (None,) * len(results) if isinstance(out, tuple) else None
        # The result is recorded only if somebody outside may differentiate it again.
        watched = mode and any_tracked([*primals, *tangents])
        pushed = gradients(tuple([p for p, _ in pairs]), tuple([t for _, t in pairs]), seeds, True, watched)
    finally:
        set_grad_mode(mode)
    found = {id(y): t for y, t in zip(wanted, pushed)}
    tangents_out = tuple([found.get(id(y)) for y in results])
    return tangents_out if isinstance(out, tuple) else tangents_out[0]


cdef bint any_tracked(list operands) except -1:
    while operands:
        x = operands.pop()
        if not isinstance(x, Tensor):
            continue
        if (<Tensor>x).flags & DUAL:
            operands.extend((<Tensor>x).extra["dual"][1:])
        elif (<Tensor>x).flags & REQUIRES_GRAD:
            return True
    return False


def gradients(tuple outputs, tuple seeds, inputs, bint retain, bint create):
    """Gradients of the inputs as a list, None where there is none, through tensors that carry tangents: forward over reverse mode.

    The graph of a dual tensor is that of its primal, and its tangent was recorded, too.  So the gradient of the primal gives the
    primal of the gradient, and the gradient of the tangent gives its tangent: d/de grad f(x + e t) = grad (d/de f(x + e t)).
    """
    cdef int level = max(level_of(outputs), level_of(seeds))
    if not level:
        return engine.run_backward(outputs, seeds, [bottom(x) for x in inputs], retain, create)
    values, tangents = [], []
    for y, g in zip(outputs, seeds):
        y, y_tangent = unpack_dual(y, level)
        g, g_tangent = unpack_dual(g, level)
        if g is None and y_tangent is not None:
            g = functions.ones_like(bottom(y))
        if any_tracked([y]):
            values.append((y, g))
            if g_tangent is not None:
                tangents.append((y, g_tangent))
        if y_tangent is not None and any_tracked([y_tangent]):
            tangents.append((y_tangent, g))
    found, moved = [
        gradients(tuple([y for y, _ in pairs]), tuple([g for _, g in pairs]), inputs, keep, create) if pairs else [None] * len(inputs)
        for pairs, keep in ((values, retain or bool(tangents)), (tangents, retain))]
    out = []
    for g, t in zip(found, moved):
        if t is not None:
            g = make_dual(functions.zeros_like(bottom(t)) if g is None else g, t, level)
        out.append(g)
    return out


cdef object marked_call(Primitive p, tuple operands, tuple options):
    """A call inside a user's Op.forward on values computed from tracked inputs: the mark is passed on."""
    cdef list marked = []
    for operand in operands:
        if isinstance(operand, Tensor) and (<Tensor>operand).flags & DERIVED:
            (<Tensor>operand).flags &= ~<unsigned int>DERIVED
            marked.append(operand)
    try:
        out = apply.call(p, operands, options)
    finally:
        for operand in marked:
            (<Tensor>operand).flags |= DERIVED
    for value in (out if isinstance(out, tuple) else (out,)):
        if isinstance(value, Tensor) and inside_op() and KIND[(<Tensor>value).dtype_id] == KIND_FLOAT and p.kind != NONDIFF:
            (<Tensor>value).flags |= DERIVED
    return out


def fresh(Tensor x):
    """A tensor equal to x at a place of its own in the graph, to differentiate by: outer derivatives still pass through it."""
    cdef Tensor out
    if x.flags & DUAL:
        level, primal, tangent = x.extra["dual"]
        return make_dual(fresh(primal), tangent, level)
    if x.flags & REQUIRES_GRAD:
        mode = set_grad_mode(True)
        try:
            return functions.positive(x)
        finally:
            set_grad_mode(mode)
    out = alias_tensor(x)
    out.requires_grad = True
    return out


apply.set_slow_road(slow_road)
