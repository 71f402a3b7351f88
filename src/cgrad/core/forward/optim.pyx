"""Optimizer steps on lists of tensors, in place and unrecorded; and what optimizers know of gradients.

Owns the checks and the way around odd layouts; the arithmetic is in kernels/optim.pyx.  Called by optim/ and nn/utils.py.
Every argument is checked before the first element is written.  Parameters that are not contiguous go through a copy, and those of
float16 and bfloat16 through float32, in which their state is kept; gradients are copied if they are not contiguous or have another
dtype.  Storage versions of parameters and state are raised, so that a backward pass that still needs the old values says so.  Needs
the GIL, which it lets go while long loops run.
Next: kernels/optim.pyx.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItem
from cpython.object cimport PyObject
from libc.math cimport sqrt

from cgrad.core.dtype cimport dtype_object
from cgrad.core.storage cimport note_writer, writer_here, written
from cgrad.core.tensor cimport (
    CONTIGUOUS, OVERDUE, SPENT, VIEW, Tensor, cast_tensor, contiguous_tensor, copy_into, same_shape, shape_of, shape_text,
    shape_tuple, writable,
)
from cgrad.kernels.optim cimport (
    ADADELTA, ADAGRAD, ADAM, ADAMAX, ASGD, CLAMP, MOMENTUM, N_STATES, NADAM, RADAM, RMSPROP, RPROP, SCALE, SGD, Row,
    count_sums, run_optimizer, run_square_sum,
)
from cgrad.kernels.table cimport FLOAT32, computing_dtype

from cgrad.core.forward.fill import full

cdef enum:
    LONG_LOOP = 8192       # elements from which releasing the GIL (about 50 ns) is lost in the loop

# Number, states that must be there, coefficients, what errors call it.
cdef dict RULES = {
    "SGD": (SGD, 0, 3, "SGD.step"), "momentum": (MOMENTUM, 1, 6, "SGD.step"), "Adam": (ADAM, 2, 9, "Adam.step"), "NAdam": (NADAM, 2, 10, "NAdam.step"),
    "RAdam": (RADAM, 2, 10, "RAdam.step"), "Adamax": (ADAMAX, 2, 6, "Adamax.step"), "Adagrad": (ADAGRAD, 1, 4, "Adagrad.step"),
    "Adadelta": (ADADELTA, 2, 6, "Adadelta.step"), "RMSprop": (RMSPROP, 1, 7, "RMSprop.step"), "Rprop": (RPROP, 2, 6, "Rprop.step"),
    "ASGD": (ASGD, 1, 5, "ASGD.step"),
}


cdef int check_state(str op, Tensor p, object state) except -1:
    cdef Tensor s
    if not isinstance(state, Tensor):
        raise TypeError(f"{op}: the state of a parameter must be a Tensor, got {type(state).__name__}")
    s = state
    if not same_shape(p, s) or s.dtype_id != computing_dtype(p.dtype_id):
        raise ValueError(f"{op}: the state must be like its parameter, {dtype_object(computing_dtype(p.dtype_id)).name} of shape "
                         f"{shape_text(p.rank, shape_of(p))}; got {dtype_object(s.dtype_id).name} of shape "
                         f"{shape_text(s.rank, shape_of(s))}")
    if not s.flags & CONTIGUOUS:
        raise ValueError(f"{op}: the state must be contiguous; store x.contiguous()")
    return writable(s, op)


cdef int check_pair(str op, Tensor p, Tensor g) except -1:
    if computing_dtype(p.dtype_id) < FLOAT32:
        raise TypeError(f"{op}: parameters must be floating-point, got {dtype_object(p.dtype_id).name}")
    if not same_shape(p, g):
        raise ValueError(f"{op}: a gradient must have the shape of its parameter; got {shape_text(g.rank, shape_of(g))} "
                         f"and {shape_text(p.rank, shape_of(p))}")
    return writable(p, op)


cdef bytes make_rows(list tensors, list works, Py_ssize_t* total):
    """A row for each tensor, whose numbers are in `works`: itself, or a copy where its layout or dtype is none to compute with."""
    cdef bytes memory = PyBytes_FromStringAndSize(NULL, len(tensors) * sizeof(Row))
    cdef Row* row = <Row*> PyBytes_AS_STRING(memory)
    cdef Tensor x
    cdef int j
    total[0] = 0
    for tensor in tensors:
        x = tensor
        x = contiguous_tensor(cast_tensor(x, computing_dtype(x.dtype_id)))
        works.append(x)
        row.dtype, row.start, row.n, row.p, row.g = x.dtype_id, total[0], x.count, x.data, x.data
        for j in range(N_STATES):
            row.states[j] = NULL
        total[0] += x.count
        row += 1
    return memory


cdef int run(int rule, bytes memory, Py_ssize_t total) except -1:
    cdef const Row* rows = <const Row*> PyBytes_AS_STRING(memory)
    cdef Py_ssize_t n = len(memory) // <Py_ssize_t> sizeof(Row)
    if total < LONG_LOOP:
        run_optimizer(rule, rows, n)
    else:
        with nogil:
            run_optimizer(rule, rows, n)
    return 0


cdef tuple finish(str op, Tensor p, Tensor work, tuple writer):
    """The parameter has its new values in `work`, which is itself or a copy; returns who wrote, found once for all parameters."""
    if p.storage.kept:
        if writer is None:
            writer = writer_here(op)
        note_writer(p.storage, writer)
    if work is p:
        written(p.storage, op)
    else:
        copy_into(p, work, op)
    return writer


def fused_step(str name, params, state not None, dict start not None, dict scalars not None, plan):
    """One step of a rule for all parameters that have a gradient, in one pass; nothing is changed before all is checked.

    `state` holds a dict for each parameter: tensors (float32 for parameters of 16 bits) by the names in `start`, which gives the value
    that they start from, or None where the rule does without; and numbers by the names in `scalars`, which gives their start likewise.
    ``plan(first, *numbers)`` returns the numbers after the step and the coefficients: the sign of the gradient, the weight decay that
    is added to it, then the rule's own (kernels/optim.pxd). `first`: a tensor starts with this step.
    """
    cdef int rule, needed, n_coefficients
    cdef Py_ssize_t i, j, n, total = 0, n_states = len(start)
    cdef Tensor p, g, s
    cdef bytes memory
    cdef Row* rows
    cdef bint first
    cdef dict entry, plans = {}
    cdef list owners = [], works = [], grads = [], entries = [], helds = [], planned = [], held, then
    cdef str op
    cdef tuple writer = None
    cdef tuple names = tuple(start), values = tuple(start.values()), counted = tuple(scalars), begun = tuple(scalars.values()), key, made, numbers
    cdef bint keeps = bool(names) or bool(scalars)
    cdef PyObject* found
    rule, needed, n_coefficients, op = <tuple> RULES[name]
    if not needed <= n_states <= N_STATES or not isinstance(state, dict):
        raise ValueError(f"{op}: wrong states {start}")
    for parameter in params:
        p = parameter
        if p.gradient is None:
            continue
        g = p.gradient
        check_pair(op, p, g)
        owners.append(p)
        grads.append(g)
        if not keeps:
            continue
        found = PyDict_GetItem(state, p)
        entry = {} if found == NULL else <dict?> <object> found
        first = False
        held = []
        for j in range(n_states):
            value = None
            if values[j] is not None:
                value = entry.get(names[j])
                if value is None:
                    first = True
                    value = full(op, shape_tuple(p.rank, shape_of(p)), values[j], dtype_object(computing_dtype(p.dtype_id)))
                else:
                    check_state(op, p, value)
            held.append(value)
        then = [first]
        for j in range(len(counted)):
            then.append(entry.get(counted[j], begun[j]))
        key = tuple(then)
        made = plans.get(key)
        if made is None:                    # most parameters have taken the same number of steps
            plans[key] = made = plan(*key)
        entries.append(entry)
        helds.append(held)
        planned.append(made)
    n = len(owners)
    if n == 0:
        return
    if not keeps:
        plans[()] = made = plan(True)
    for made in plans.values():
        if len(<tuple> made[1]) != n_coefficients:
            raise ValueError(f"{op}: expected {n_coefficients} coefficients, got {len(<tuple> made[1])}")
    memory = make_rows(owners, works, &total)
    rows = <Row*> PyBytes_AS_STRING(memory)
    for i in range(n):
        p = works[i]
        g = contiguous_tensor(cast_tensor(<Tensor> grads[i], p.dtype_id))
        grads[i] = g                        # a copy must live
        rows[i].g = g.data
        if keeps:
            held = helds[i]
            for j in range(n_states):
                if held[j] is not None:
                    s = held[j]
                    rows[i].states[j] = s.data
                    written(s.storage, op)
            made = planned[i]
        numbers = made[1]
        for j in range(n_coefficients):
            rows[i].c[j] = numbers[j]
    run(rule, memory, total)
    for i in range(n):
        p = owners[i]
        writer = finish(op, p, <Tensor> works[i], writer)
        if not keeps:
            continue
        held = helds[i]
        entry = entries[i]
        for j in range(n_states):
            if held[j] is not None:
                entry[names[j]] = held[j]
        numbers = (<tuple> planned[i])[0]
        for j in range(len(counted)):
            entry[counted[j]] = numbers[j]
        state[p] = entry


# ---- gradients ---------------------------------------------------------------------------------------------------------------------

def forget(params):
    """Set all gradients to None."""
    cdef Tensor p
    for parameter in params:
        p = parameter
        p.gradient = None


def spend(params):
    """Mark the gradients as used by a step; whether backward had added to one that an earlier step had used.

    Backward looks for the mark when it adds to a gradient that is there already (`note_addition` in leaves.pyx). So long as nobody else
    writes to it, `view_history` follows its version: a gradient that was zeroed or set by hand is a new one.
    """
    cdef Tensor p, g
    cdef bint overdue = False
    for parameter in params:
        p = parameter
        if p.gradient is not None:
            g = p.gradient
            if g.flags & VIEW:
                continue
            overdue |= g.flags & OVERDUE and g.storage.version == g.view_history
            g.flags = (g.flags | SPENT) & ~<unsigned int> OVERDUE
            g.view_history = g.storage.version
    return overdue


def total_norm(list gradients not None):
    """The Euclidean norm of all gradients together, computed in float64."""
    cdef list works = []
    cdef Py_ssize_t total, n = len(gradients)
    cdef bytes memory = make_rows(gradients, works, &total)
    cdef bytes sums = PyBytes_FromStringAndSize(NULL, count_sums(total) * sizeof(double))
    cdef const Row* rows = <const Row*> PyBytes_AS_STRING(memory)
    cdef double* room = <double*> PyBytes_AS_STRING(sums)
    cdef double result
    with nogil:
        result = run_square_sum(rows, n, room)
    return sqrt(result)


def limit(str op, list gradients not None, double low, high=None):
    """Cut gradients to [low, high], or without `high` multiply them by `low`, in place; marks of `spend` stay."""
    cdef list works = []
    cdef Py_ssize_t total, i
    cdef bytes memory
    cdef Row* rows
    cdef Tensor g
    cdef bint marked
    for gradient in gradients:
        writable(<Tensor?> gradient, op)
    memory = make_rows(gradients, works, &total)
    rows = <Row*> PyBytes_AS_STRING(memory)
    for i in range(len(gradients)):
        rows[i].c[0], rows[i].c[1], rows[i].c[2], rows[i].c[3] = 1, 0, low, 0 if high is None else high
    run(SCALE if high is None else CLAMP, memory, total)
    for i in range(len(gradients)):
        g = gradients[i]
        marked = g.flags & (SPENT | VIEW) == SPENT and g.storage.version == g.view_history
        finish(op, g, <Tensor> works[i], None)
        if marked:
            g.view_history = g.storage.version
