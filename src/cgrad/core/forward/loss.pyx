"""Cross-entropy of logits (rows, classes) with classes given by index, connectionist temporal classification, and their gradients.

Owns the checks of class indices and the reduction over rows; rows and sequences are computed in kernels/loss.pyx.  Called by ops/loss.py.  Needs
the GIL, which it lets go while long loops run.  Next: kernels/loss.pyx.
"""
from libc.stdint cimport int64_t

from cgrad.core.dtype cimport dtype_object
from cgrad.core.forward.ordered cimport as_index
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_like, empty_tensor, shape_of, shape_text, strides_of
from cgrad.kernels.loss cimport CTC_ROWS, CtcPlan, run_class_gradients, run_class_losses, run_ctc, run_ctc_gradient
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT64, UINT8

cdef enum:
    LONG_LOOP = 4096       # elements from which releasing the GIL (about 50 ns) is lost in the loop

cdef enum:                 # how a loss is reduced
    NONE = 0
    SUM = 1
    MEAN = 2


cdef Tensor checked_classes(Tensor x, Tensor target, Tensor w, int64_t ignored, double* share):
    """Class indices as contiguous int64, and the sum of the weights of those that are not ignored."""
    cdef const int64_t* t
    cdef Py_ssize_t i, n
    if x.rank != 2 or x.dtype_id < FLOAT32 or target.rank != 1 or shape_of(target)[0] != shape_of(x)[0]:
        raise ValueError(f"cross_entropy: class indices of shape {shape_text(target.rank, shape_of(target))} do not fit logits of shape "
                         f"{shape_text(x.rank, shape_of(x))} and dtype {dtype_object(x.dtype_id).name}")
    if target.dtype_id < UINT8 or target.dtype_id > INT64:
        raise TypeError(f"cross_entropy: class indices must be integers, got {dtype_object(target.dtype_id).name}")
    n = shape_of(x)[1]
    if w is not None and (w.rank != 1 or shape_of(w)[0] != n or w.dtype_id != x.dtype_id):
        raise ValueError(f"cross_entropy: a weight of shape {shape_text(w.rank, shape_of(w))} does not fit {n} classes")
    target = contiguous_tensor(as_index(target))
    t = <const int64_t*> target.data
    share[0] = 0
    for i in range(target.count):
        if t[i] == ignored:
            continue
        if t[i] < 0 or t[i] >= n:
            raise IndexError(f"cross_entropy: class indices must lie in [0, {n}) or be ignore_index={ignored}, got {t[i]}")
        if w is None:
            share[0] += 1
        elif w.dtype_id == FLOAT32:
            share[0] += (<float*> w.data)[t[i]]
        else:
            share[0] += (<double*> w.data)[t[i]]
    return target


cdef Tensor reduced(Tensor losses, double divisor):
    """The sum of the losses over a divisor."""
    cdef Tensor out = empty_tensor(losses.dtype_id, 0, NULL)
    cdef double total = 0
    cdef Py_ssize_t i
    for i in range(losses.count):
        total += (<float*> losses.data)[i] if losses.dtype_id == FLOAT32 else (<double*> losses.data)[i]
    if losses.dtype_id == FLOAT32:
        (<float*> out.data)[0] = <float> (total / divisor)
    else:
        (<double*> out.data)[0] = total / divisor
    return out


def class_loss(Tensor x not None, Tensor target not None, Tensor w, int64_t ignored, double smoothing, int reduction):
    """(loss, what backward needs of each row): the mean is over the weights of all targets but the ignored ones, NaN of nothing."""
    cdef Py_ssize_t[2] shape
    cdef double share
    cdef const char* w_data = NULL
    cdef Tensor losses, state
    if w is not None:
        w = contiguous_tensor(w)
        w_data = w.data
    target = checked_classes(x, target, w, ignored, &share)
    x = contiguous_tensor(x)
    shape[0] = shape_of(x)[0]
    shape[1] = 2
    losses = empty_tensor(x.dtype_id, 1, shape)
    state = empty_tensor(x.dtype_id, 2, shape)
    if x.count < LONG_LOOP:
        run_class_losses(x.dtype_id, losses.count, shape_of(x)[1], x.data, <const int64_t*> target.data, w_data, smoothing, ignored,
                         losses.data, state.data)
    else:
        with nogil:
            run_class_losses(x.dtype_id, losses.count, x.dims[1], x.data, <const int64_t*> target.data, w_data, smoothing, ignored,
                             losses.data, state.data)
    return losses if reduction == NONE else reduced(losses, share if reduction == MEAN else 1.0), state


def class_loss_gradient(tuple g not None, Tensor x not None, Tensor target not None, Tensor w, tuple out not None, int64_t ignored, double smoothing,
                        int reduction):
    """The gradient of x for that of the loss, with the results of `class_loss`."""
    cdef Tensor own = <Tensor?> g[0], state = <Tensor?> out[1], dx
    cdef double share
    cdef const char* w_data = NULL
    cdef Py_ssize_t step = strides_of(own)[0] if reduction == NONE else 0
    if w is not None:
        w = contiguous_tensor(w)
        w_data = w.data
    target = checked_classes(x, target, w, ignored, &share)
    if reduction != MEAN:
        share = 1.0
    x = contiguous_tensor(x)
    dx = empty_like(x, x.dtype_id)
    if x.count < LONG_LOOP:
        run_class_gradients(x.dtype_id, shape_of(x)[0], shape_of(x)[1], own.data, step, 1.0 / share, x.data, <const int64_t*> target.data, w_data,
                            smoothing, ignored, state.data, dx.data)
    else:
        with nogil:
            run_class_gradients(x.dtype_id, x.dims[0], x.dims[1], own.data, step, 1.0 / share, x.data, <const int64_t*> target.data, w_data,
                                smoothing, ignored, state.data, dx.data)
    return dx, None, None


# ---------------------------------------------------------------------------------------------- connectionist temporal classification
cdef Tensor int_row(tuple numbers):
    cdef Py_ssize_t n = len(numbers), i
    cdef Tensor out = empty_tensor(INT64, 1, &n)
    for i in range(n):
        (<int64_t*> out.data)[i] = numbers[i]
    return out


cdef int fill_plan(CtcPlan* plan, Tensor x, Tensor target, Tensor input_lengths, Tensor target_lengths, int64_t blank) except -1:
    """The plan of a call with contiguous operands; x (times, samples, classes), target (samples, width), a length for each sample."""
    cdef Py_ssize_t n = shape_of(x)[1]
    if x.rank != 3 or x.dtype_id < FLOAT32 or target.rank != 2 or shape_of(target)[0] != n or input_lengths.count != n or target_lengths.count != n:
        raise ValueError(f"ctc_loss: targets of shape {shape_text(target.rank, shape_of(target))}, {input_lengths.count} input lengths and "
                         f"{target_lengths.count} target lengths do not fit log-probabilities of shape {shape_text(x.rank, shape_of(x))}")
    plan.dtype, plan.blank = x.dtype_id, blank
    plan.times, plan.samples, plan.classes, plan.width = shape_of(x)[0], n, shape_of(x)[2], shape_of(target)[1]
    plan.x, plan.target = x.data, <const int64_t*> target.data
    plan.input_lengths, plan.target_lengths = <const int64_t*> input_lengths.data, <const int64_t*> target_lengths.data
    return 0


cdef int check_plan(const CtcPlan* plan) except -1:
    cdef Py_ssize_t i, k
    cdef int64_t c
    if not 0 <= plan.blank < plan.classes:
        raise IndexError(f"ctc_loss: blank must lie in [0, {plan.classes}), got {plan.blank}")
    for i in range(plan.samples):
        if not 0 <= plan.input_lengths[i] <= plan.times:
            raise ValueError(f"ctc_loss: input lengths must lie in [0, {plan.times}], got {plan.input_lengths[i]} for sample {i}")
        if not 0 <= plan.target_lengths[i] <= plan.width:
            raise ValueError(f"ctc_loss: target lengths must lie in [0, {plan.width}], got {plan.target_lengths[i]} for sample {i}")
        for k in range(plan.target_lengths[i]):
            c = plan.target[i * plan.width + k]
            if not 0 <= c < plan.classes or c == plan.blank:
                raise IndexError(f"ctc_loss: labels must lie in [0, {plan.classes}) and differ from blank={plan.blank}, got {c} for sample {i}")
    return 0


def ctc_loss(Tensor x not None, Tensor target not None, tuple input_lengths not None, tuple target_lengths not None, int64_t blank):
    """(loss of each sample, what backward needs)."""
    cdef CtcPlan plan
    cdef Py_ssize_t[3] shape
    cdef Tensor inputs = int_row(input_lengths), labels = int_row(target_lengths), losses, alpha, scratch
    x, target = contiguous_tensor(x), contiguous_tensor(as_index(target))
    fill_plan(&plan, x, target, inputs, labels, blank)
    check_plan(&plan)
    shape[0], shape[1], shape[2] = plan.samples, plan.times, 2 * plan.width + 3
    losses, alpha = empty_tensor(x.dtype_id, 1, shape), empty_tensor(FLOAT64, 3, shape)
    shape[1] = CTC_ROWS
    scratch = empty_tensor(FLOAT64, 3, shape)
    plan.loss, plan.alpha, plan.scratch = losses.data, <double*> alpha.data, <double*> scratch.data
    with nogil:
        run_ctc(&plan)
    return losses, alpha


def ctc_gradient(Tensor dx not None, Tensor g not None, Tensor x not None, Tensor target not None, Tensor losses not None, Tensor alpha not None,
                 tuple input_lengths not None, tuple target_lengths not None, int64_t blank):
    """The gradient of x, written over dx = exp(x)."""
    cdef CtcPlan plan
    cdef Py_ssize_t[3] shape
    cdef Tensor inputs = int_row(input_lengths), labels = int_row(target_lengths), scratch
    x, target, dx = contiguous_tensor(x), contiguous_tensor(as_index(target)), contiguous_tensor(dx)
    fill_plan(&plan, x, target, inputs, labels, blank)
    check_plan(&plan)
    shape[0], shape[1], shape[2] = plan.samples, CTC_ROWS, 2 * plan.width + 3
    scratch = empty_tensor(FLOAT64, 3, shape)
    plan.loss, plan.alpha, plan.scratch = losses.data, <double*> alpha.data, <double*> scratch.data
    plan.g, plan.g_step, plan.dx = g.data, strides_of(g)[0], dx.data
    with nogil:
        run_ctc_gradient(&plan)
    return dx
