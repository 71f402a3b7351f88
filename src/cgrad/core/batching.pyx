"""Batching: tensors that stand for all examples of a batch, and calls that meet one.

Inside vmap a batched tensor looks like one example: its shape is that of the example.  It carries (level, values), where `values` holds
all examples along the first axis.  Each running vmap has a level of its own, numbered together with those of forward mode; a call
peels off the highest level among its inputs, computes on the values, and wraps the result again, so nested maps and derivatives
never confuse each other.  How the values are computed follows from the kind of the operation (elementwise: the ranks are aligned) or
from its batching rule; without one it goes example by example.  The graph of a batched tensor is that of its values.
Needs the GIL.  Next: forward_mode.pyx, where calls come from; ops/batching.py, the rules that operations share.
"""
from cpython.object cimport PyObject
from libc.string cimport memset

import threading

from cgrad.core.dtype cimport ITEMSIZE
from cgrad.core.primitive cimport FROM_TANGENT, Primitive, Rule, call_rule, tuple_items
from cgrad.core.tensor cimport (
    BATCHED, DERIVED, DUAL, REQUIRES_GRAD, Tensor, empty_tensor, set_extra, shape_of, shape_tuple, storage_tensor, strides_of,
)

from cgrad.core import apply
from cgrad.core.source import warn

cdef int last_level = 0
cdef Py_ssize_t n_running = 0          # vmaps that are running, in all threads
cdef object running = threading.local()
cdef object functions = None
cdef set warned = set()


def set_batch_functions(namespace):
    """Tell the recorded functions that batching needs: broadcast_to, reshape, stack, unstack."""
    global functions
    functions = namespace


# ---------------------------------------------------------------------- levels
def enter_level():
    """A level, higher than any before, so that threads and leaked tensors confuse nothing."""
    global last_level
    last_level += 1
    return last_level


def enter_map(Py_ssize_t size, randomness):
    """Start a vmap of this thread over `size` examples; returns its level."""
    global n_running
    level = enter_level()
    if not hasattr(running, "maps"):
        running.maps = []
    running.maps.append((level, size, randomness))
    n_running += 1
    return level


def leave_map():
    """End the innermost vmap of this thread."""
    global n_running
    running.maps.pop()
    n_running -= 1


cdef bint any_map() noexcept:
    return n_running > 0


def maps():
    """The vmaps that run in this thread, outermost first, as (level, size, randomness)."""
    return getattr(running, "maps", ()) if n_running else ()


def differing(name):
    """(level, size) of the vmaps, outermost first, whose examples are to have different random numbers; an error if one allows none."""
    if not n_running:
        return ()
    found = []
    for level, size, randomness in maps():
        if randomness == "error":
            raise RuntimeError(f'vmap: {name} inside vmap; say whether all examples get the "same" random numbers or "different" ones with '
                               "vmap(..., randomness=...)")
        if randomness == "different":
            found.append((level, size))
    return tuple(found)


cdef int level_of(object x) except -1:
    if not isinstance(x, Tensor) or not (<Tensor>x).flags & (DUAL | BATCHED):
        return 0
    return (<Tensor>x).extra["dual" if (<Tensor>x).flags & DUAL else "batch"][0]


# ---------------------------------------------------------------------- batched tensors
cdef Tensor wrap(Tensor values, int level):
    cdef Tensor x = storage_tensor(values.storage, values.data, values.dtype_id, values.rank - 1, shape_of(values) + 1, strides_of(values) + 1)
    x.flags |= BATCHED | (values.flags & (REQUIRES_GRAD | DERIVED))
    x.node = values.node
    x.output_number = values.output_number
    set_extra(x, "batch", (level, values))
    return x


def make_batched(Tensor values not None, int level):
    """A tensor that stands for the examples along the first axis of `values`, at a level."""
    return wrap(values, level)


def split_batched(x, int level):
    """The values of a tensor that is batched at a level, else None."""
    if is_batch(x):
        found, values = (<Tensor>x).extra["batch"]
        if found == level:
            return values
    return None


def size_of_batch(operands, int level):
    """How many examples the first tensor that is batched at a level stands for."""
    for x in operands:
        values = split_batched(x, level)
        if values is not None:
            return shape_of(<Tensor>values)[0]
    raise ValueError("grad: is_grads_batched=True needs at least one gradient in grad_outputs, with the batch along its first axis")


def unbatched(Tensor x not None, int level, Py_ssize_t size):
    """The values of a tensor that is batched at a level, those of any other repeated."""
    values = split_batched(x, level)
    return functions.broadcast_to(x, (size,) + shape_tuple(x.rank, shape_of(x))) if values is None else values


def is_batched(x):
    """Whether the tensor stands for a batch, at any level."""
    return isinstance(x, Tensor) and bool((<Tensor>x).flags & BATCHED)


def all_examples(Tensor x not None):
    """The numbers that a tensor stands for, without levels: those of all examples of all batches.  For checks that read them."""
    while x.flags & (DUAL | BATCHED):
        x = x.extra["dual" if x.flags & DUAL else "batch"][1]
    return x


def any_batched(key):
    """Whether a tensor that stands for a batch is among the parts of an index."""
    for part in (key if isinstance(key, tuple) else (key,)):
        if isinstance(part, Tensor) and (<Tensor>part).flags & BATCHED:
            return True
    return False


def like(Tensor x not None, make):
    """make(shape), batched like x: what is made in the likeness of a batch can be written into, example by example."""
    if x.flags & DUAL:
        return like((<Tensor>x).extra["dual"][1], make)
    if x.flags & BATCHED:
        level, values = x.extra["batch"]
        return wrap(like(values, make), level)
    return make(shape_tuple(x.rank, shape_of(x)))


# ---------------------------------------------------------------------- calls
cdef object batched_call(Primitive p, tuple operands, tuple options, int level):
    """A call whose highest level is that of a vmap: on the values of all examples."""
    cdef list batched = []
    cdef list values = []
    cdef Py_ssize_t size = -1
    for x in operands:
        found = split_batched(x, level)
        batched.append(found is not None)
        values.append(x if found is None else found)
        if found is not None:
            size = shape_of(<Tensor>found)[0]
    if p.elementwise:
        out = apply.call(p, aligned(values, batched), options)
    elif p.batch is None:
        out = one_by_one(p, values, batched, options)
    else:
        out = by_rule(p, values, batched, options, size)
    if isinstance(out, tuple):
        return tuple([wrap(<Tensor>y, level) if isinstance(y, Tensor) else y for y in out])
    return wrap(<Tensor>out, level) if isinstance(out, Tensor) else out


cdef tuple aligned(list values, list batched):
    """Operands of an elementwise operation with the axis of the batch in one place, before all axes that any of them has."""
    cdef int rank = 0, k
    for k in range(len(values)):
        if isinstance(values[k], Tensor):
            rank = max(rank, (<Tensor>values[k]).rank - <bint>batched[k])
    for k in range(len(values)):
        if batched[k] and (<Tensor>values[k]).rank <= rank:
            values[k] = with_rank(<Tensor>values[k], rank)
    return tuple(values)


cdef object with_rank(Tensor values, int rank):
    """The values with axes of length 1 after the first one, so that each example has `rank` axes."""
    cdef tuple shape = shape_tuple(values.rank, shape_of(values))
    return functions.reshape(values, shape[:1] + (1,) * (rank + 1 - values.rank) + shape[1:])


cdef object by_rule(Primitive p, list values, list batched, tuple options, Py_ssize_t size):
    cdef Rule rule = p.batch
    cdef int k
    for k in range(rule.n_arguments):
        if rule.source[k] == FROM_TANGENT and rule.index[k] == 1:
            break
    else:
        for k in range(len(values)):            # the rule does not ask which operands are batched: then all are
            if isinstance(values[k], Tensor) and not batched[k]:
                values[k] = functions.broadcast_to(values[k], (size,) + shape_tuple((<Tensor>values[k]).rank, shape_of(<Tensor>values[k])))
    operands = tuple(values)
    return call_rule(rule, None, tuple_items(<PyObject*>operands), <int>len(operands), None, options, <int>len(options), None,
                     [size, tuple(batched)], None)


def one_by_one(Primitive p, list values, list batched, tuple options):
    """Any operation: a loop over the examples."""
    return each(p.name, lambda *operands: apply.call(p, operands, options), values, batched)


def each(name, function, list values, list batched):
    """function(*operands) for each example of those operands that are batched, and all results along a new first axis."""
    cdef Py_ssize_t size = min([shape_of(<Tensor>x)[0] for x, b in zip(values, batched) if b])
    if name not in warned:
        warn(f"vmap: {name} has no rule for batches and is computed example by example ({size} of them), which is right but slow; "
             "an operation of your own can have one (its method batch; cgrad.op takes batch=)", RuntimeWarning)
        warned.add(name)
    # Where there are no examples, one of zeros tells the shape of the result.
    examples = [(functions.unstack(x, 0) if size else [zero_example(<Tensor>x)]) if b else None for x, b in zip(values, batched)]
    results = [function(*[x if e is None else e[i] for x, e in zip(values, examples)]) for i in range(max(size, 1))]
    if isinstance(results[0], tuple):
        return tuple([stacked(name, [out[k] for out in results], size) for k in range(len(results[0]))])
    return stacked(name, results, size)


cdef Tensor zero_example(Tensor values):
    cdef Tensor x = empty_tensor(values.dtype_id, values.rank - 1, shape_of(values) + 1)
    memset(x.data, 0, x.count * ITEMSIZE[x.dtype_id])
    return x


def each_example(name, function, args, int level):
    """function(*args) for each example of those arguments that are batched at a level, and the results batched again."""
    cdef list values = [split_batched(x, level) for x in args]
    out = each(name, function, [x if v is None else v for x, v in zip(args, values)], [v is not None for v in values])
    return tuple([wrap(y, level) for y in out]) if isinstance(out, tuple) else wrap(out, level)


def stacked(name, list results, Py_ssize_t size):
    """The results of `size` examples along a new first axis; of no example, one result shows what they would be."""
    if not isinstance(results[0], Tensor):
        return results[0]
    for y in results:
        if y.shape != results[0].shape:
            raise ValueError(f"vmap: {name} gives results of different shapes for different examples ({results[0].shape} and {y.shape}), "
                             "which cannot be one tensor; use an operation whose shape does not depend on values, such as cgrad.where")
    out = functions.stack(results, 0)
    return out if size else out[:0]
