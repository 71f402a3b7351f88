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
    BILINEAR, ELEMENTWISE, LINEAR, NONDIFF, OTHER, Primitive, Rule, call_rule,
)
from cgrad.core.tape cimport inside_op, set_grad_mode
from cgrad.core.tensor cimport (
    DERIVED, DUAL, REQUIRES_GRAD, Tensor, alias_tensor, empty_tensor, same_shape, set_extra, shape_text, shape_tuple,
)

from cgrad.core import engine, primitive

cdef extern from *:
    """
    #define CGRAD_TUPLE_ITEMS(t) (((PyTupleObject*)(t))->ob_item)
    """
    PyObject** PyTuple_items "CGRAD_TUPLE_ITEMS" (PyObject* t)

cdef int running = 0
cdef object functions = None


def set_forward_functions(namespace):
    """Tell the recorded functions that forward rules need: add, broadcast_to, cast, zeros_like."""
    global functions
    functions = namespace


def enter_level():
    """Start a forward derivative; returns its level."""
    global running
    running += 1
    return running


def exit_level(int level):
    """End the forward derivative of this level."""
    global running
    running = level - 1


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
    out = primitive.call(p, primals, options)
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
        return call_rule(p.jvp, None, PyTuple_items(<PyObject*>primals), n, out, extended, n_options, None, tangents)
    if p.kind == LINEAR and not p.elementwise:
        filled = tuple([x if not isinstance(x, Tensor) else functions.zeros_like(x) if t is None else t for x, t in zip(primals, tangents)])
        return primitive.call(p, filled, options)
    if p.kind == BILINEAR and not p.elementwise:
        total = None
        for i in range(n):
            if tangents[i] is not None:
                term = primitive.call(p, primals[:i] + (tangents[i],) + primals[i + 1:], options)
                total = term if total is None else functions.add(total, term)
        return total
    if p.elementwise and p.joint is None:
        extended = options + primitive.facts(primals)
        total = None
        for i in range(n):
            rule = <Rule>p.rules[i]
            if tangents[i] is None or rule is None:
                continue
            term = call_rule(rule, tangents[i], PyTuple_items(<PyObject*>primals), n, out, extended, n_options, None, None)
            total = term if total is None else functions.add(total, term)
        return total
    return transposed(lambda *xs: primitive.call(p, xs, options), primals, tangents)


def transposed(function, tuple primals, list tangents):
    """The tangent of function(*primals) from its vjp: g -> vjp(g) is linear, and its own vjp at the tangents is the jvp."""
    cdef Tensor x
    cdef bint mode
    cdef bint again
    places = [i for i, t in enumerate(tangents) if t is not None]
    mode = set_grad_mode(True)
    again = mode and any([isinstance(x, Tensor) and (<Tensor>x).flags & (REQUIRES_GRAD | DUAL) for x in primals + tuple(tangents)])
    try:
        leaves = []
        operands = list(primals)
        for i in places:
            x = alias_tensor(<Tensor>primals[i]) if not (<Tensor>primals[i]).flags & (REQUIRES_GRAD | DUAL) else functions.positive(primals[i])
            if not x.flags & REQUIRES_GRAD:
                x.requires_grad = True
            operands[i] = x
            leaves.append(x)
        out = function(*operands)
        results = list(out) if isinstance(out, tuple) else [out]
        wanted = [y for y in results if isinstance(y, Tensor) and (<Tensor>y).flags & REQUIRES_GRAD]
        if not wanted:
            return (None,) * len(results) if isinstance(out, tuple) else None
        seeds = []
        for y in wanted:
            g = functions.zeros_like(y)
            g.requires_grad = True
            seeds.append(g)
        pulled = engine.run_backward(tuple(wanted), tuple(seeds), leaves, True, True)
        pairs = [(p, tangents[i]) for p, i in zip(pulled, places) if p is not None and (<Tensor>p).flags & REQUIRES_GRAD]
        if not pairs:
            return (None,) * len(results) if isinstance(out, tuple) else None
        pushed = engine.run_backward(tuple([p for p, _ in pairs]), tuple([t for _, t in pairs]), seeds, True, again)
    finally:
        set_grad_mode(mode)
    found = {id(y): t for y, t in zip(wanted, pushed)}
    tangents_out = tuple([found.get(id(y)) for y in results])
    return tangents_out if isinstance(out, tuple) else tangents_out[0]


cdef object marked_call(Primitive p, tuple operands, tuple options):
    """A call inside a user's Op.forward on values computed from tracked inputs: the mark is passed on."""
    cdef Tensor x
    cdef list marked = []
    for operand in operands:
        if isinstance(operand, Tensor) and (<Tensor>operand).flags & DERIVED:
            (<Tensor>operand).flags &= ~<unsigned int>DERIVED
            marked.append(operand)
    try:
        out = primitive.call(p, operands, options)
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


primitive.set_slow_road(slow_road)
