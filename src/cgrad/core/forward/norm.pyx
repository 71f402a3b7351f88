"""layer_norm, rms_norm and the norms of channels (batch_norm, group_norm, instance_norm) of tensors, and their gradients.

Owns result shapes, dtypes and layouts; the numbers come from kernels/norm.pyx.  Called by ops/norm.py, which is called with a weight
and bias of the shape of the last `n_axes` axes of x, or of its second axis, the channels.  Needs the GIL, which it lets go while long
loops run.  Next: kernels/norm.pyx.
"""
from libc.math cimport NAN
from libc.string cimport memset

from cgrad.core.dtype cimport ITEMSIZE, dtype_object, promote
from cgrad.core.tensor cimport Tensor, cast_tensor, contiguous_tensor, empty_like, empty_tensor, shape_of, shape_text
from cgrad.kernels.norm cimport norm_scratch, run_channel_norm, run_channel_norm_backward, run_norm, run_norm_backward
from cgrad.kernels.table cimport FLOAT32, FLOAT64

cdef enum:
    LONG_LOOP = 4096       # elements from which releasing the GIL (about 50 ns) is lost in the loop


cdef Py_ssize_t row_length(str name, Tensor x, int n_axes, Tensor parameter) except -1:
    """Elements of a row; ValueError if the weight or bias has another shape than a row."""
    cdef Py_ssize_t n = 1
    cdef int i
    cdef bint fits = 0 < n_axes <= x.rank and (parameter is None or parameter.rank == n_axes)
    for i in range(n_axes if fits else 0):
        n *= shape_of(x)[x.rank - n_axes + i]
        fits = fits and (parameter is None or shape_of(parameter)[i] == shape_of(x)[x.rank - n_axes + i])
    if not fits:
        raise ValueError(f"{name}: weight and bias must have the shape of the last {n_axes} axes of the input, got "
                         f"{'none' if parameter is None else shape_text(parameter.rank, shape_of(parameter))} and input "
                         f"{shape_text(x.rank, shape_of(x))}")
    return n


cdef Tensor row_of(Tensor parameter, int dtype, Py_ssize_t n, double neutral):
    """The weight or bias as a contiguous row of n elements; in place of None a row that changes nothing."""
    cdef Py_ssize_t i
    if parameter is not None:
        return contiguous_tensor(cast_tensor(parameter, dtype))
    parameter = empty_tensor(dtype, 1, &n)
    for i in range(n):
        if dtype == FLOAT32:
            (<float*> parameter.data)[i] = <float> neutral
        else:
            (<double*> parameter.data)[i] = neutral
    return parameter


cdef Tensor normalize(str name, Tensor x, Tensor w, Tensor b, int n_axes, double eps, bint centred):
    cdef Py_ssize_t n = row_length(name, x, n_axes, w)
    cdef int dtype = x.dtype_id
    cdef Tensor out
    row_length(name, x, n_axes, b)
    if x.dtype_id < FLOAT32:
        raise TypeError(f"{name}: the input must be floating point, got {dtype_object(x.dtype_id).name}; convert it first")
    if w is not None:
        dtype = promote(dtype, w.dtype_id)
    if b is not None:
        dtype = promote(dtype, b.dtype_id)
    out = empty_like(x, dtype)
    if x.count == 0:
        return out
    x = contiguous_tensor(cast_tensor(x, dtype))
    w = row_of(w, dtype, n, 1.0)
    b = row_of(b, dtype, n, -0.0)              # y + -0.0 is y for every y, -0.0 included
    if x.count < LONG_LOOP:
        run_norm(dtype, x.count // n, n, x.data, w.data, b.data, eps, centred, out.data)
    else:
        with nogil:
            run_norm(dtype, x.count // n, n, x.data, w.data, b.data, eps, centred, out.data)
    return out


cdef tuple gradients(str name, Tensor g, Tensor x, Tensor w, int n_axes, double eps, bint centred, tuple needs):
    """(dx, dw, db), None for those that are not needed."""
    cdef Py_ssize_t* row = shape_of(x) + x.rank - n_axes
    cdef Py_ssize_t n = row_length(name, x, n_axes, w), rows, size
    cdef int dtype = g.dtype_id
    cdef char* dx_data = NULL
    cdef char* dw_data = NULL
    cdef char* db_data = NULL
    cdef double* sums = NULL
    cdef Tensor dx = None, dw = None, db = None, scratch
    if needs[0]:
        dx = empty_like(x, dtype)
        dx_data = dx.data
    if needs[1]:
        dw = empty_tensor(dtype, n_axes, row)
        dw_data = dw.data
    if needs[2]:
        db = empty_tensor(dtype, n_axes, row)
        db_data = db.data
    if n == 0:
        return dx, dw, db
    rows = x.count // n
    if needs[1] or needs[2]:
        size = norm_scratch(rows, n)
        scratch = empty_tensor(FLOAT64, 1, &size)
        sums = <double*> scratch.data
    x = contiguous_tensor(cast_tensor(x, dtype))
    g = contiguous_tensor(g)
    w = row_of(w, dtype, n, 1.0)
    if x.count < LONG_LOOP:
        run_norm_backward(dtype, rows, n, g.data, x.data, w.data, eps, centred, dx_data, dw_data, db_data, sums)
    else:
        with nogil:
            run_norm_backward(dtype, rows, n, g.data, x.data, w.data, eps, centred, dx_data, dw_data, db_data, sums)
    return dx, dw, db


def layer_norm(Tensor x not None, Tensor w, Tensor b, int n_axes, double eps):
    """(x - mean) / sqrt(variance + eps) * w + b over the last axes; w and b may be None."""
    return normalize("layer_norm", x, w, b, n_axes, eps, True)


def layer_norm_gradients(Tensor g not None, Tensor x not None, Tensor w, int n_axes, double eps, tuple needs):
    """Gradients of x, w and b, None where `needs` says so."""
    return gradients("layer_norm", g, x, w, n_axes, eps, True, needs)


def rms_norm(Tensor x not None, Tensor w, int n_axes, double eps):
    """x / sqrt(mean square + eps) * w over the last axes; w may be None."""
    return normalize("rms_norm", x, w, None, n_axes, eps, False)


def rms_norm_gradients(Tensor g not None, Tensor x not None, Tensor w, int n_axes, double eps, tuple needs):
    """Gradients of x and w, None where `needs` says so."""
    return gradients("rms_norm", g, x, w, n_axes, eps, False, (*needs, False))[:2]


# ---- channels ----------------------------------------------------------------------------------------------------------------------------

cdef const char* of_channels(Tensor parameter) noexcept:
    return NULL if parameter is None else parameter.data


cdef Py_ssize_t channel_extent(Tensor x) noexcept:
    """Elements of a channel in one sample."""
    cdef Py_ssize_t n = 1
    cdef int i
    for i in range(2, x.rank):
        n *= shape_of(x)[i]
    return n


cdef Tensor channel_values(Tensor x, Tensor parameter, int dtype):
    if parameter is None:
        return None
    if parameter.rank != 1 or shape_of(parameter)[0] != shape_of(x)[1]:
        raise ValueError(f"norm: weight, bias and moments must have one number for each channel of the input {shape_text(x.rank, shape_of(x))}, "
                         f"got {shape_text(parameter.rank, shape_of(parameter))}")
    return contiguous_tensor(cast_tensor(parameter, dtype))


def channel_norm(Tensor x not None, Tensor w, Tensor b, Tensor mean, Tensor variance, Py_ssize_t groups, double eps):
    """(out, moments): (x - mean) / sqrt(variance + eps) * w + b of (samples, channels, ...); w and b may be None.

    The moments are those given (groups 0), else they are computed: of each channel (groups 0), or of each of `groups` groups in each
    sample.  They come back as float64 pairs.
    """
    cdef Py_ssize_t[2] shape
    cdef Py_ssize_t samples, channels, extent, i
    cdef int dtype = x.dtype_id
    cdef bint given = mean is not None
    cdef const char* w_data
    cdef const char* b_data
    cdef Tensor out, moments
    cdef double* pairs
    if x.rank < 2 or x.dtype_id < FLOAT32 or (groups and shape_of(x)[1] % groups) or (given and (groups or variance is None)):
        raise ValueError(f"norm: cannot normalise an input of shape {shape_text(x.rank, shape_of(x))} and dtype {dtype_object(x.dtype_id).name} "
                         f"in {groups} groups")
    samples, channels, extent = shape_of(x)[0], shape_of(x)[1], channel_extent(x)
    for parameter in (w, b):
        if parameter is not None:
            dtype = promote(dtype, (<Tensor>parameter).dtype_id)
    w, b = channel_values(x, w, dtype), channel_values(x, b, dtype)
    shape[0], shape[1] = samples * groups if groups else channels, 2
    moments = empty_tensor(FLOAT64, 2, shape)
    pairs = <double*> moments.data
    if given:
        mean, variance = channel_values(x, mean, FLOAT64), channel_values(x, variance, FLOAT64)
        for i in range(channels):
            pairs[2 * i] = (<double*> mean.data)[i]
            pairs[2 * i + 1] = (<double*> variance.data)[i]
    out = empty_like(x, dtype)
    if x.count == 0:
        for i in range(0 if given else moments.count):
            pairs[i] = NAN
        return out, moments
    x = contiguous_tensor(cast_tensor(x, dtype))
    w_data, b_data = of_channels(w), of_channels(b)
    if x.count < LONG_LOOP:
        run_channel_norm(dtype, samples, channels, extent, groups, x.data, w_data, b_data, eps, given, pairs, out.data)
    else:
        with nogil:
            run_channel_norm(dtype, samples, channels, extent, groups, x.data, w_data, b_data, eps, given, pairs, out.data)
    return out, moments


def channel_norm_gradients(tuple g not None, Tensor x not None, Tensor w, tuple out not None, Py_ssize_t groups, double eps, bint given,
                           tuple needs):
    """Gradients of x, w, b, mean and variance (None: constants) for that of the result; None where `needs` says so."""
    cdef Tensor own = <Tensor?> g[0], moments = <Tensor?> out[1], dx = None, dw = None, db = None, scratch
    cdef Py_ssize_t samples = shape_of(x)[0], channels = shape_of(x)[1], extent = channel_extent(x), size
    cdef int dtype = own.dtype_id
    cdef const char* w_data
    cdef char* dx_data = NULL
    cdef char* dw_data = NULL
    cdef char* db_data = NULL
    if needs[0]:
        dx = empty_like(x, dtype)
        dx_data = dx.data
    if needs[1]:
        dw = empty_tensor(dtype, 1, &channels)
        dw_data = dw.data
    if needs[2]:
        db = empty_tensor(dtype, 1, &channels)
        db_data = db.data
    if x.count == 0:
        for parameter in (dw, db):
            if parameter is not None:
                memset((<Tensor>parameter).data, 0, channels * ITEMSIZE[dtype])
        return dx, dw, db, None, None
    size = 2 * samples * channels
    scratch = empty_tensor(FLOAT64, 1, &size)
    x = contiguous_tensor(cast_tensor(x, dtype))
    own = contiguous_tensor(own)
    w = channel_values(x, w, dtype)
    w_data = of_channels(w)
    if x.count < LONG_LOOP:
        run_channel_norm_backward(dtype, samples, channels, extent, groups, own.data, x.data, w_data, eps, given, <double*> moments.data,
                                  <double*> scratch.data, dx_data, dw_data, db_data)
    else:
        with nogil:
            run_channel_norm_backward(dtype, samples, channels, extent, groups, own.data, x.data, w_data, eps, given, <double*> moments.data,
                                      <double*> scratch.data, dx_data, dw_data, db_data)
    return dx, dw, db, None, None
