"""Forward mode: dual tensors; and the slow road of a call that meets a level.

A dual tensor is an alias of its primal that carries (level, primal, tangent).  Each running jvp has a level of its own; a call
peels off the highest level among its inputs, computes the primal result as usual (which may meet lower levels), applies the
operation's forward rule with recorded functions, and wraps the pair again, so levels never confuse each other.  The rule follows
from the kind of the operation; where none fits, the vjp is transposed by differentiating it, which is always right.
A level may also be that of a vmap (batching.pyx).  Either way the graph knows only the tensors below all levels; `gradients` goes
through them.  Needs the GIL.  Next: batching.pyx; ops/define.py, where kinds are given.
"""
cimport cython
from cpython.object cimport PyObject, PyTypeObject
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.limits cimport INT_MAX
from libc.string cimport memcpy, memset

from cgrad.core.batching cimport any_map, batched_call, is_batch, level_of, wrap as wrap_batch
from cgrad.core.door cimport call_by_vector, vectorcall_t
from cgrad.core.dtype cimport KIND, KIND_FLOAT, dtype_object
from cgrad.core.primitive cimport (
    BILINEAR, ELEMENTWISE, LINEAR, NONDIFF, Primitive, Rule, call_rule, tuple_items,
)
from cgrad.core.tape cimport Node, inside_op, node_edge, set_grad_mode
from cgrad.core.tensor cimport (
    BATCHED, CONTIGUOUS, DERIVED, DUAL, LEVEL, REQUIRES_GRAD, SLOW, Tensor, alias_tensor, refresh, same_shape, set_extra, shape_of, shape_text, shape_tuple,
    stale,
)

from cgrad.core import apply, batching, graph, primitive
from cgrad.core.engine import run_backward

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t nargsf)
    object PyMethod_New(object function, object self)
    object PyObject_Vectorcall(object function, PyObject** args, size_t nargsf, PyObject* names)

cdef object functions = None


def set_forward_functions(namespace):
    """Tell the recorded functions that are needed here: add, broadcast_to, cast, permute, ones_like, positive, zeros_like."""
    global functions
    functions = namespace


def make_dual(Tensor primal not None, Tensor tangent not None, int level):
    """A tensor with the value of `primal` that carries `tangent` at a level."""
    cdef Tensor x
    if not same_shape(primal, tangent) or primal.dtype_id != tangent.dtype_id:
        raise ValueError(f"jvp: a tangent must have the shape {shape_text(primal.rank, primal.dims)} and dtype {dtype_object(primal.dtype_id).name} "
                         f"of its tensor, got {shape_text(tangent.rank, tangent.dims)} and {dtype_object(tangent.dtype_id).name}")
    if KIND[primal.dtype_id] != KIND_FLOAT:
        raise TypeError(f"jvp: only floating-point tensors have tangents, this one is {dtype_object(primal.dtype_id).name}")
    x = alias_tensor(primal)
    x.flags |= DUAL | (primal.flags & (REQUIRES_GRAD | DERIVED | BATCHED))
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


def inside(x):
    """What a tensor with a level carries: (primal, tangent), or the values of a batch; of any other nothing."""
    if isinstance(x, Tensor) and (<Tensor>x).flags & DUAL:
        return (<Tensor>x).extra["dual"][1:]
    if is_batch(x):
        return (<Tensor>x).extra["batch"][1:]
    return ()


def bottoms(tensors):
    """The tensors that the graph knows: without tangents and the tangents themselves, and the values of batches."""
    cdef list out = []
    cdef list stack = list(tensors)
    while stack:
        x = stack.pop()
        if (<Tensor?>x).flags & (DUAL | BATCHED):
            stack.extend(inside(x))
        else:
            out.append(x)
    return out


def rebuilt(Tensor x not None, function):
    """The tensor with `function` applied to what it carries; without a level, to itself."""
    if x.flags & DUAL:
        level, primal, tangent = x.extra["dual"]
        return make_dual(rebuilt(primal, function), rebuilt(tangent, function), level)
    if x.flags & BATCHED:
        level, values = x.extra["batch"]
        return wrap_batch(rebuilt(values, function), level)
    return function(x)


def without_graph(x):
    """What was computed, cut off from its graph; anything but a recorded tensor as it is."""
    if not isinstance(x, Tensor) or not (<Tensor>x).flags & (LEVEL | REQUIRES_GRAD):
        return x
    return rebuilt(x, without_graph) if (<Tensor>x).flags & LEVEL else alias_tensor(<Tensor>x)


def through(Tensor x not None, of_tangent, of_values):
    """A linear function through the highest level of a tensor: of both parts of a dual one, or of the values of a batch."""
    if x.flags & DUAL:
        level, primal, tangent = x.extra["dual"]
        return make_dual(of_tangent(primal), of_tangent(tangent), level)
    level, values = x.extra["batch"]
    return wrap_batch(of_values(values), level)


def is_dual(x):
    """Whether the tensor carries a tangent of any level."""
    while is_batch(x):
        x = (<Tensor>x).extra["batch"][1]
    return isinstance(x, Tensor) and bool((<Tensor>x).flags & DUAL)


def highest_level(operands):
    """The highest level among tensors; 0 if none has one."""
    cdef int level = 0
    for x in operands:
        level = max(level, level_of(x))
    return level


def slow_road(Primitive p, tuple operands, tuple options):
    """A call with an input that is dual or batched, or marked by a user's Op.forward."""
    cdef int level = 0, found
    cdef bint batch = False
    for x in operands:
        found = level_of(x)
        if found > level:
            level = found
            batch = is_batch(x)
    if level == 0:
        return marked_call(p, operands, options)
    if batch:
        return batched_call(p, operands, options, level)
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
        filled = tuple([x if not isinstance(x, Tensor) or p.joint is None and p.rules[i] is None else functions.zeros_like(x) if t is None else t
                        for i, (x, t) in enumerate(zip(primals, tangents))])
        return apply.call(p, filled, options)
    if p.kind == BILINEAR and not p.elementwise:
        total = None
        for i in range(n):
            if tangents[i] is not None:
                term = apply.call(p, primals[:i] + (tangents[i],) + primals[i + 1:], options)
                total = term if total is None else functions.add(total, term)
        return total
    if (p.elementwise or p.kind == ELEMENTWISE) and p.joint is None:
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
        leaves = [fresh(x) for x in in_common_batches(primals, places)]
        for i, x in zip(places, leaves):
            operands[i] = x
        out = function(*operands)
        results = list(out) if isinstance(out, tuple) else [out]
        wanted = [y for y in results if isinstance(y, Tensor) and (<Tensor>y).flags & REQUIRES_GRAD]
        if not wanted:
            return (None,) * len(results) if isinstance(out, tuple) else None
        seeds = [fresh(functions.zeros_like(y)) for y in wanted]
        pulled = gradients(tuple(wanted), tuple(seeds), leaves, True, True)
        pairs = [(p, tangents[i]) for p, i in zip(pulled, places) if p is not None and (<Tensor>p).flags & REQUIRES_GRAD]
        if not pairs:
            return (None,) * len(results) if isinstance(out, tuple) else None
        # The result is recorded only if somebody outside may differentiate it again.
        watched = mode and any_tracked([*primals, *tangents])
        pushed = gradients(tuple([p for p, _ in pairs]), tuple([t for _, t in pairs]), seeds, True, watched)
        close([*leaves, *seeds])
    finally:
        set_grad_mode(mode)
    found = {id(y): t for y, t in zip(wanted, pushed)}
    tangents_out = tuple([found.get(id(y)) for y in results])
    return tangents_out if isinstance(out, tuple) else tangents_out[0]


cdef list in_common_batches(tuple primals, list places):
    """The primals at these places, batched wherever a primal or a tangent below it is: else their gradients would be sums over examples."""
    batches = {}
    for x in primals:
        parts = [x]
        while parts:
            y = parts.pop()
            if is_batch(y):
                level, values = (<Tensor>y).extra["batch"]
                batches[level] = shape_of(<Tensor>values)[0]
            parts += inside(y)
    return [expanded(primals[i], sorted(batches.items())) for i in places]


cdef bint any_tracked(list operands) except -1:
    while operands:
        x = operands.pop()
        if not isinstance(x, Tensor):
            continue
        if (<Tensor>x).flags & (DUAL | BATCHED):
            operands.extend(inside(x))
        elif (<Tensor>x).flags & REQUIRES_GRAD:
            return True
    return False


# ---------------------------------------------------------------------- reverse mode through levels
def gradients(tuple outputs, tuple seeds, inputs, bint retain, bint create, int below=INT_MAX, bint stop=False):
    """Gradients of the inputs as a list, None where there is none, through tensors that carry tangents or stand for a batch.

    The graph of a dual tensor is that of its primal, and its tangent was recorded, too.  So the gradient of the primal gives the
    primal of the gradient, and the gradient of the tangent gives its tangent: d/de grad f(x + e t) = grad (d/de f(x + e t)).
    The graph of a batched tensor is that of its values, whose gradients are those of all examples.  Levels are taken off from the
    highest down.  A seed alone may keep the level of a batch (`below` it nothing else does): the engine hands it through the graph as it is.
    `stop`: see `run_backward`.
    """
    cdef int level = 0
    cdef bint batch = False
    if knows_no_level(outputs, seeds, inputs):
        return run_backward(outputs, seeds, inputs, retain, create, stop)
    for x in (*outputs, *seeds, *inputs):
        while level_of(x) >= below:
            x = (<Tensor>x).extra["batch"][1]
        if level_of(x) > level:
            level = level_of(x)
            batch = is_batch(x)
    if batch:
        return gradients_of_batch(outputs, seeds, inputs, retain, create, level, stop)
    values, tangents = [], []
    for y, g in zip(outputs, seeds):
        y, y_tangent = unpack_dual(y, level)
        g, g_tangent = (None, None) if g is None else beneath(level, lambda depth, g: unpack_dual(g, level), (g,))
        if g is None and y_tangent is not None:
            g = functions.ones_like(y)
        if any_tracked([y]):
            values.append((y, g))
            if g_tangent is not None:
                tangents.append((y, g_tangent))
        if y_tangent is not None and any_tracked([y_tangent]):
            tangents.append((y_tangent, g))
    inputs = [unpack_dual(x, level)[0] for x in inputs]
    found, moved = [
        gradients(tuple([y for y, _ in pairs]), tuple([g for _, g in pairs]), inputs, keep, create, level, stop) if pairs else [None] * len(inputs)
        for pairs, keep in ((values, retain or bool(tangents)), (tangents, retain))]
    out = []
    for g, t in zip(found, moved):
        if t is not None:
            g = functions.zeros_like(t) if g is None else g
            g = beneath(level, lambda depth, g, t: make_dual(g, t, level), (g, t))
        out.append(g)
    return out


cdef bint knows_no_level(tuple outputs, tuple seeds, inputs) except -1:
    """Whether nothing carries a level, but seeds perhaps that of a batch."""
    for x in outputs:
        if (<Tensor?>x).flags & (DUAL | BATCHED):
            return False
    for x in inputs:
        if (<Tensor?>x).flags & (DUAL | BATCHED):
            return False
    for x in seeds:
        if is_dual(x):
            return False
    return True


def gradients_of_batch(tuple outputs, tuple seeds, inputs, bint retain, bint create, int level, bint stop):
    """The same where the highest level is that of a vmap."""
    cdef list values = [batching.split_batched(x, level) for x in (*outputs, *inputs)]
    cdef Py_ssize_t size = next((shape_of(<Tensor>x)[0] for x in values if x is not None), 0)
    plain_outputs, plain_seeds, plain_inputs, out = [], [], [], []
    for y, g, y_values in zip(outputs, seeds, values):
        if y_values is not None:
            g = functions.ones_like(y_values) if g is None else beneath(level, lambda depth, g: shown(g, level, size, depth), (g,))
        plain_outputs.append(y if y_values is None else y_values)
        plain_seeds.append(g)
    for i, x in enumerate(inputs):
        x_values = values[len(outputs) + i]
        if x_values is None and any([v is not None for v in values[:len(outputs)]]):
            raise RuntimeError(f"grad: inside vmap, the gradient of a batch with respect to a tensor of shape {shape_text((<Tensor>x).rank, shape_of(x))} from "
                               "outside would be a sum over the examples; use cgrad.func.grad or vjp inside vmap, or backward()")
        plain_inputs.append(x if x_values is None else x_values)
    found = gradients(tuple(plain_outputs), tuple(plain_seeds), plain_inputs, retain, create, level, stop)
    for i, g in enumerate(found):
        if g is not None and values[len(outputs) + i] is not None:
            g = beneath(level, lambda depth, g: hidden(g, level, depth), (g,))
        out.append(g)
    return out


cdef object beneath(int level, function, tuple tensors, int depth=0):
    """`function` of what lies below all batches of higher levels, `depth` of them, whose axes come first."""
    cdef int top = highest_level(tensors)
    if top <= level:
        return function(depth, *tensors)
    parts = [batching.split_batched(x, top) for x in tensors]
    size = next((shape_of(<Tensor>x)[0] for x in parts if x is not None))
    out = beneath(level, function, tuple([batched_at_front(x, size) if part is None else part for x, part in zip(tensors, parts)]), depth + 1)
    if isinstance(out, tuple):
        return tuple([None if x is None else wrap_batch(x, top) for x in out])
    return wrap_batch(out, top)


cdef object batched_at_front(Tensor x, Py_ssize_t size):
    return functions.broadcast_to(x, (size,) + shape_tuple(x.rank, shape_of(x)))


cdef object moved(Tensor x, int start, int end):
    """One axis at another place."""
    if start == end:
        return x
    order = [k for k in range(x.rank) if k != start]
    order.insert(end, start)
    return functions.permute(x, tuple(order))


cdef object shown(Tensor x, int level, Py_ssize_t size, int depth):
    """A tensor with its batch as an axis like any other, after `depth` axes."""
    values = batching.split_batched(x, level)
    return moved(batched_at_front(x, size) if values is None else values, 0, depth)


cdef object hidden(Tensor x, int level, int depth):
    """The reverse of `shown`."""
    return wrap_batch(moved(x, depth, 0), level)


def send_backward(tuple outputs, tuple seeds, bint retain, bint create):
    """Add the gradients of all leaves to their `.grad`; a batch adds those of all its examples."""
    plain_outputs, plain_seeds = [], []
    for y, g in zip(outputs, seeds):
        level = level_of(y)
        while level:
            values = batching.split_batched(y, level)
            if values is None:
                y = unpack_dual(y, level)[0]
            else:
                g = functions.ones_like(values) if g is None else shown(g, level, shape_of(<Tensor>values)[0], 0)
                y = values
            level = level_of(y)
        plain_outputs.append(y)
        plain_seeds.append(g)
    if any([batching.is_batched(g) for g in plain_seeds]):
        raise RuntimeError("backward: a batched gradient for a result from outside vmap would leave a batch in .grad; use cgrad.func.vjp")
    run_backward(tuple(plain_outputs), tuple(plain_seeds), None, retain, create)


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


def fresh(Tensor x not None):
    """A tensor equal to x at a place of its own in the graph, to differentiate by: outer derivatives still pass through it."""
    cdef Tensor out
    if x.flags & DUAL:
        level, primal, tangent = x.extra["dual"]
        return make_dual(fresh(primal), tangent, level)
    if x.flags & BATCHED:
        level, values = x.extra["batch"]
        return wrap_batch(fresh(values), level)
    if stale(x):
        refresh(x)
    if x.flags & REQUIRES_GRAD:
        mode = set_grad_mode(True)
        try:
            return functions.positive(x)
        finally:
            set_grad_mode(mode)
    out = alias_tensor(x)
    out.requires_grad = True
    return out


def fresh_input(Tensor x not None):
    """`fresh` for an input of a derivative: inside vmap each example has its own gradient, even of an input that they share."""
    return fresh(expanded(x, [(level, size) for level, size, _ in batching.maps()]) if any_map() else x)


def close(inputs):
    """Mark the leaves that `fresh` made: the derivative by them is done, and nobody outside, where results of it may go, wants another."""
    cdef Tensor x
    for x in inputs:
        while x.flags & (DUAL | BATCHED):
            x = x.extra["dual" if x.flags & DUAL else "batch"][1]
        if x.node is None:
            set_extra(x, "closed", True)


# ---------------------------------------------------------------------- the gradient of a number, where nothing else is tracked
cdef enum:
    NEAR = 512                 # how far back in the order of recording the walk looks, in bytes of 8 nodes
    DEPTH = 256                # nodes that may wait in it
    MANY = 16                  # arguments of a call that takes the short way


cdef bint is_source(Tensor x, list leaves) noexcept:
    for leaf in leaves:
        if leaf is x:
            return True
    return False


cdef bint comes_only_from(Tensor value, list leaves) except -1:
    """Whether these leaves are all that a result was computed from.  As `graph.sources` does it, for a small graph in a fraction of the time."""
    cdef unsigned char seen[NEAR]
    cdef PyObject* stack[DEPTH]
    cdef int i, count = 1
    cdef unsigned long long distance
    cdef Node node
    if value.node is None:
        return is_source(value, leaves)
    memset(seen, 0, sizeof(seen))
    stack[0] = <PyObject*>value.node
    while count:
        count -= 1
        node = <Node>stack[count]
        for i in range(node.n_inputs):
            edge = node_edge(node, i)
            if edge is None:
                continue
            if isinstance(edge, Tensor):
                if len(leaves) > 16 or not is_source(<Tensor>edge, leaves):
                    return len(leaves) > 16 and not graph.sources((value,), leaves, 0, True)[0]
                continue
            distance = value.node.sequence - (<Node>edge).sequence
            if distance >= 8 * NEAR or count == DEPTH:
                return not graph.sources((value,), leaves, 0, True)[0]
            if not seen[distance >> 3] & (1 << (distance & 7)):
                seen[distance >> 3] |= 1 << (distance & 7)
                stack[count] = <PyObject*>edge
                count += 1
    return True


def leaf_gradients(value, list leaves):
    """The gradients of a number by new leaves; or None if this needs `gradients`.

    That is where it carries a level, is no recorded floating-point number, or depends on something else that is tracked.
    """
    cdef Tensor y, x
    cdef list found = []
    if not isinstance(value, Tensor):
        return None
    y = <Tensor>value
    if y.flags & SLOW or not y.flags & REQUIRES_GRAD or y.count != 1 or stale(y):
        return None
    for leaf in leaves:
        x = <Tensor?>leaf
        if x.flags & SLOW or x.node is not None or x.gradient is not None:
            return None
    if not comes_only_from(y, leaves):
        return None
    run_backward((y,), (None,), None, False, False)
    for leaf in leaves:
        x = <Tensor>leaf
        found.append(functions.zeros_like(alias_tensor(x)) if x.gradient is None else x.gradient)
    return found


cdef object with_leaves(object tree, list leaves, int depth):
    """A copy of a tree with new leaves in the place of its tensors; NotImplemented if there is more to it than plain tensors and branches."""
    cdef Tensor leaf
    if type(tree) is Tensor:
        if (<Tensor>tree).flags & ~<unsigned int>CONTIGUOUS or KIND[(<Tensor>tree).dtype_id] != KIND_FLOAT:
            return NotImplemented
        leaf = alias_tensor(<Tensor>tree)
        leaf.flags |= REQUIRES_GRAD
        leaves.append(leaf)
        return leaf
    if tree is None:
        return None
    if type(tree) not in (dict, list, tuple) or depth == DEPTH:
        return NotImplemented
    parts = [with_leaves(part, leaves, depth + 1) for part in (tree.values() if type(tree) is dict else tree)]
    for part in parts:
        if part is NotImplemented:
            return NotImplemented
    return dict(zip(tree, parts)) if type(tree) is dict else parts if type(tree) is list else tuple(parts)


cdef object with_values(object tree, values):
    """The same tree with the next values of an iterator in the place of its tensors."""
    if type(tree) is dict:
        return {key: with_values(part, values) for key, part in tree.items()}
    if type(tree) is list:
        return [with_values(part, values) for part in tree]
    if type(tree) is tuple:
        return tuple([with_values(part, values) for part in tree])
    return None if tree is None else next(values)


@cython.final
cdef class GradientCall:
    """The function that `func.grad` or `func.value_and_grad` makes of another, `name` being that of the transformation.

    Plain tensors, in plain trees, take a short way; ``general(name, function, argnums, has_aux, args, kwargs)`` takes all other calls, and
    ``finish(name, recording, leaves, result)`` a result that is no plain number; both give the value and the gradient, `finish` a flat one.
    """
    cdef vectorcall_t vectorcall
    cdef readonly object __wrapped__, argnums
    cdef str name
    cdef tuple numbers            # argnums, if the short way may be taken
    cdef bint has_aux, with_value
    cdef dict __dict__

    def __call__(self, *args, **kwargs):
        return self.general(args, kwargs)        # what `callable` looks for; calls take the vector way, set below

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __name__(self):
        return f"{self.name}({getattr(self.__wrapped__, '__name__', 'function')})"

    @property
    def __qualname__(self):
        return self.__name__

    @property
    def __doc__(self):
        return self.__wrapped__.__doc__

    def __repr__(self):
        return f"<function {self.__name__}>"

    cdef object general(self, tuple args, dict kwargs):
        value, gradient = general_gradient(self.name, self.__wrapped__, self.argnums, self.has_aux, args, kwargs)
        return (value, gradient) if self.with_value else (gradient, value[1]) if self.has_aux else gradient


cdef object general_gradient = None
cdef object finish_gradient = None


def set_gradient_functions(general, finish):
    """Tell what takes the calls that the short way below does not, and the results."""
    global general_gradient, finish_gradient
    general_gradient = general
    finish_gradient = finish


def gradient_call(str name, function, argnums, bint has_aux, bint with_value):
    """The function that gives the gradient of another, with its value if wanted."""
    cdef GradientCall call = GradientCall.__new__(GradientCall)
    call.vectorcall = gradient_by_vector
    call.name = name
    call.__wrapped__ = function
    call.argnums = argnums
    call.numbers = (argnums,) if type(argnums) is int else argnums if type(argnums) is tuple and not has_aux else None
    call.has_aux = has_aux
    call.with_value = with_value
    return call


cdef object gradient_by_vector(object self, PyObject** args, size_t nargsf, PyObject* names):
    cdef GradientCall call = <GradientCall>self
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(nargsf), total = n + (0 if names == NULL else PyTuple_GET_SIZE(<object>names))
    cdef PyObject* changed[MANY]
    cdef list leaves = [], held = []
    cdef bint recording, trees = False, short = call.numbers is not None and not call.has_aux and total <= MANY and not any_map()
    if short:
        memcpy(changed, args, total * sizeof(PyObject*))
        for number in call.numbers:
            k = number if type(number) is int and 0 <= number < n else -1
            part = NotImplemented if k < 0 or changed[k] != args[k] else with_leaves(<object>args[k], leaves, 0)
            if part is NotImplemented:
                short = False
                break
            trees |= type(part) is not Tensor
            held.append(part)
            changed[k] = <PyObject*>part
    if not short:
        options = {} if names == NULL else {name: <object>args[n + k] for k, name in enumerate(<tuple>names)}
        return call.general(tuple([<object>args[k] for k in range(n)]), options)
    recording = set_grad_mode(True)
    try:
        result = PyObject_Vectorcall(call.__wrapped__, changed, n, names)
        found = leaf_gradients(result, leaves)
        if found is None:
            result, found = finish_gradient(call.name, recording, leaves, result)
        elif call.with_value:
            result = alias_tensor(<Tensor>result)
    finally:
        set_grad_mode(recording)
    if trees:
        values = iter(found)
        found = [with_values(part, values) for part in held]
    gradient = found[0] if type(call.argnums) is int else tuple(found)
    return (result, gradient) if call.with_value else gradient


cdef GradientCall first_call = gradient_call("grad", len, 0, False, False)
call_by_vector(<PyTypeObject*>GradientCall, <char*>&first_call.vectorcall - <char*><PyObject*>first_call)


cdef object expanded(Tensor x, list batches):
    """The tensor batched at all these (level, size), lowest first; what it is not yet is a repetition without memory."""
    for level, size in batches:
        x = expanded_at(x, level, size)
    return x


cdef object expanded_at(Tensor x, int level, Py_ssize_t size):
    cdef int top = level_of(x)
    if top < level:
        return wrap_batch(batched_at_front(x, size), level)
    if top == level:
        return x
    if x.flags & DUAL:
        _, primal, tangent = x.extra["dual"]
        return make_dual(expanded_at(primal, level, size), tangent, top)
    return wrap_batch(expanded_at(x.extra["batch"][1], level, size), top)


apply.set_slow_road(slow_road)
