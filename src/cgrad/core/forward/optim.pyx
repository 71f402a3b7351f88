"""Optimizer steps on lists of tensors, in place and unrecorded.

Owns the checks and the way around odd layouts; the arithmetic is in kernels/optim.pyx.  Called by optim/sgd.py and optim/adam.py.
Every argument is checked before the first element is written.  Parameters that are not contiguous go through a copy, and those of
float16 and bfloat16 through float32, in which their state is kept; gradients are copied if they are not contiguous or have another
dtype.  Storage versions of parameters and state are raised, so that a backward pass that still needs the old values says so.  Needs
the GIL, which it lets go while long loops run.
Next: kernels/optim.pyx.
"""
from cgrad.core.dtype cimport dtype_object
from cgrad.core.storage cimport note_writer, writer_here, written
from cgrad.core.tensor cimport (
    CONTIGUOUS, Tensor, cast_tensor, contiguous_tensor, copy_into, empty_like, same_shape, shape_of, shape_text, writable,
)
from cgrad.kernels.optim cimport run_adam, run_sgd
from cgrad.kernels.table cimport FLOAT32, computing_dtype

cdef enum:
    LONG_LOOP = 8192       # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef int check_state(str op, str what, Tensor p, object state) except -1:
    cdef Tensor s
    if not isinstance(state, Tensor):
        raise TypeError(f"{op}: {what} must be a Tensor, got {type(state).__name__}")
    s = state
    if not same_shape(p, s) or s.dtype_id != computing_dtype(p.dtype_id):
        raise ValueError(f"{op}: {what} must be like its parameter, {dtype_object(computing_dtype(p.dtype_id)).name} of shape "
                         f"{shape_text(p.rank, shape_of(p))}; got {dtype_object(s.dtype_id).name} of shape "
                         f"{shape_text(s.rank, shape_of(s))}")
    if not s.flags & CONTIGUOUS:
        raise ValueError(f"{op}: {what} must be contiguous; store x.contiguous()")
    return writable(s, op)


cdef int check_pair(str op, object parameter, object gradient) except -1:
    cdef Tensor p, g
    if not isinstance(parameter, Tensor) or not isinstance(gradient, Tensor):
        raise TypeError(f"{op}: parameters and gradients must be Tensors, got {type(parameter).__name__} and {type(gradient).__name__}")
    p = parameter
    g = gradient
    if computing_dtype(p.dtype_id) < FLOAT32:
        raise TypeError(f"{op}: parameters must be floating-point, got {dtype_object(p.dtype_id).name}")
    if not same_shape(p, g):
        raise ValueError(f"{op}: a gradient must have the shape of its parameter; got {shape_text(g.rank, shape_of(g))} "
                         f"and {shape_text(p.rank, shape_of(p))}")
    return writable(p, op)


cdef int check_lengths(str op, tuple lists) except -1:
    lengths = [len(values) for values in lists if values is not None]
    if len(set(lengths)) > 1:
        raise ValueError(f"{op}: every list must have an entry for each parameter; got lengths {lengths}")
    return 0


cdef Tensor gradient_for(Tensor p, object gradient):
    return contiguous_tensor(cast_tensor(<Tensor> gradient, p.dtype_id))


cdef Tensor work_on(Tensor p):
    """The parameter itself, or a copy that is contiguous and of a dtype that kernels compute with."""
    return contiguous_tensor(cast_tensor(p, computing_dtype(p.dtype_id)))


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


def sgd_step(list params not None, list grads not None, list buffers, double lr, double momentum, double dampening,
             bint nesterov, double weight_decay, bint maximize):
    """One step of gradient descent; a gradient of None skips its parameter.

    `buffers` (None without momentum) holds a momentum tensor for each parameter, or None where there is none yet: that entry is
    set to a new tensor, which starts as the gradient.
    """
    cdef Py_ssize_t i
    cdef Tensor p, g, buffer
    cdef tuple writer = None
    cdef char* momentum_data
    cdef bint first
    check_lengths("sgd_step", (params, grads, buffers))
    if momentum != 0 and buffers is None:
        raise ValueError("sgd_step: momentum needs a list of buffers")
    for i in range(len(params)):
        if grads[i] is not None:
            check_pair("sgd_step", params[i], grads[i])
            if momentum != 0 and buffers[i] is not None:
                check_state("sgd_step", "a momentum buffer", params[i], buffers[i])
    for i in range(len(params)):
        if grads[i] is None:
            continue
        p = work_on(params[i])
        g = gradient_for(p, grads[i])
        momentum_data = NULL
        first = False
        if momentum != 0:
            first = buffers[i] is None
            if first:
                buffers[i] = empty_like(p, p.dtype_id)
            buffer = buffers[i]
            momentum_data = buffer.data
            written(buffer.storage, "sgd_step")
        if p.count < LONG_LOOP:
            run_sgd(p.dtype_id, p.count, p.data, g.data, momentum_data, first, lr, momentum, dampening, nesterov, weight_decay, maximize)
        else:
            with nogil:
                run_sgd(p.dtype_id, p.count, p.data, g.data, momentum_data, first, lr, momentum, dampening, nesterov, weight_decay, maximize)
        writer = finish("sgd_step", params[i], p, writer)


def adam_step(list params not None, list grads not None, list exp_avgs not None, list exp_avg_sqs not None, list max_exp_avg_sqs,
              list steps not None, double lr, double beta1, double beta2, double eps, double weight_decay, bint maximize, bint decoupled):
    """One step of Adam (AdamW if `decoupled`); a gradient of None skips its parameter.

    `steps` are the numbers of this step, 1 for the first.  `max_exp_avg_sqs` is None without amsgrad.
    """
    cdef Py_ssize_t i
    cdef Tensor p, g, m, v, largest
    cdef tuple writer = None
    cdef char* largest_data
    cdef double step
    check_lengths("adam_step", (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps))
    for i in range(len(params)):
        if grads[i] is not None:
            check_pair("adam_step", params[i], grads[i])
            check_state("adam_step", "exp_avg", params[i], exp_avgs[i])
            check_state("adam_step", "exp_avg_sq", params[i], exp_avg_sqs[i])
            if max_exp_avg_sqs is not None:
                check_state("adam_step", "max_exp_avg_sq", params[i], max_exp_avg_sqs[i])
            if not steps[i] >= 1:
                raise ValueError(f"adam_step: steps count from 1, got {steps[i]}")
    for i in range(len(params)):
        if grads[i] is None:
            continue
        p = work_on(params[i])
        g = gradient_for(p, grads[i])
        m = exp_avgs[i]
        v = exp_avg_sqs[i]
        written(m.storage, "adam_step")
        written(v.storage, "adam_step")
        largest_data = NULL
        if max_exp_avg_sqs is not None:
            largest = max_exp_avg_sqs[i]
            largest_data = largest.data
            written(largest.storage, "adam_step")
        step = steps[i]
        if p.count < LONG_LOOP:
            run_adam(p.dtype_id, p.count, p.data, g.data, m.data, v.data, largest_data, step, lr, beta1, beta2, eps, weight_decay,
                     decoupled, maximize)
        else:
            with nogil:
                run_adam(p.dtype_id, p.count, p.data, g.data, m.data, v.data, largest_data, step, lr, beta1, beta2, eps, weight_decay,
                         decoupled, maximize)
        writer = finish("adam_step", params[i], p, writer)
