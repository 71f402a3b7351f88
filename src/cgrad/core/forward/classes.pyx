"""Picking one class of each row, as the losses of classification do, and its adjoint.

Owns the checks of class indices.  Called by ops/loss.py.  x is (outer..., classes, inner...), the indices have its shape without
the axis of classes; an index equal to `ignored` picks 0.  Needs the GIL.  Next: ops/loss.py.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset

from cgrad.core.dtype cimport ITEMSIZE, dtype_object
from cgrad.core.forward.ordered cimport as_index
from cgrad.core.tensor cimport Tensor, contiguous_tensor, empty_tensor, shape_of, shape_text
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT64, MAX_DIMS, UINT8

from cgrad.core.batching import all_examples

ctypedef fused real:
    float
    double


cdef Tensor indices_of(str name, Tensor target):
    if target.dtype_id < UINT8 or target.dtype_id > INT64:
        raise TypeError(f"{name}: class indices must be integers, got {dtype_object(target.dtype_id).name}")
    return contiguous_tensor(as_index(target))


def count_ignored(str name, Tensor target not None, Py_ssize_t n_classes, int64_t ignored):
    """How many class indices (of a batch: of all its examples) are `ignored`; IndexError if another one is not in [0, n_classes)."""
    cdef Py_ssize_t i, count = 0
    cdef const int64_t* t
    target = indices_of(name, all_examples(target))
    t = <const int64_t*>target.data
    for i in range(target.count):
        if t[i] == ignored:
            count += 1
        elif t[i] < 0 or t[i] >= n_classes:
            raise IndexError(f"{name}: class indices must lie in [0, {n_classes}) or be ignore_index={ignored}, got {t[i]}")
    return count


cdef void pick_rows(const real* x, const int64_t* t, real* out, Py_ssize_t outer, Py_ssize_t classes, Py_ssize_t inner, int64_t ignored) noexcept:
    cdef Py_ssize_t o, i
    for o in range(outer):
        for i in range(inner):
            out[o * inner + i] = 0 if t[o * inner + i] == ignored else x[(o * classes + t[o * inner + i]) * inner + i]


cdef void spread_rows(const real* g, const int64_t* t, real* out, Py_ssize_t outer, Py_ssize_t classes, Py_ssize_t inner, int64_t ignored) noexcept:
    cdef Py_ssize_t o, i
    for o in range(outer):
        for i in range(inner):
            if t[o * inner + i] != ignored:
                out[(o * classes + t[o * inner + i]) * inner + i] = g[o * inner + i]


cdef Py_ssize_t extent(Tensor x, int start, int stop) noexcept:
    cdef Py_ssize_t n = 1
    cdef int i
    for i in range(start, stop):
        n *= shape_of(x)[i]
    return n


def pick(Tensor x not None, Tensor target not None, int axis, int64_t ignored):
    """The element of each row of x that its class index names."""
    cdef Tensor out
    cdef int i
    cdef bint fits = 0 <= axis < x.rank and target.rank == x.rank - 1
    for i in range(target.rank):
        fits = fits and shape_of(target)[i] == shape_of(x)[i if i < axis else i + 1]
    if not fits:
        raise ValueError(f"cross_entropy: class indices of shape {shape_text(target.rank, shape_of(target))} do not fit an input of shape "
                         f"{shape_text(x.rank, shape_of(x))} with classes along axis {axis}")
    if x.dtype_id < FLOAT32:
        raise TypeError(f"cross_entropy: the input must be floating point, got {dtype_object(x.dtype_id).name}")
    count_ignored("cross_entropy", target, shape_of(x)[axis], ignored)
    target = indices_of("cross_entropy", target)
    x = contiguous_tensor(x)
    out = empty_tensor(x.dtype_id, target.rank, shape_of(target))
    if x.dtype_id == FLOAT64:
        pick_rows[double](<double*>x.data, <int64_t*>target.data, <double*>out.data, extent(x, 0, axis), shape_of(x)[axis],
                          extent(x, axis + 1, x.rank), ignored)
    else:
        pick_rows[float](<float*>x.data, <int64_t*>target.data, <float*>out.data, extent(x, 0, axis), shape_of(x)[axis],
                         extent(x, axis + 1, x.rank), ignored)
    return out


def spread(Tensor g not None, Tensor target not None, int axis, int64_t ignored, Py_ssize_t n_classes):
    """Zeros with g at the class that each index names; the adjoint of `pick`."""
    cdef Py_ssize_t[MAX_DIMS] shape
    cdef Tensor out
    cdef int i
    cdef bint fits = 0 <= axis <= g.rank and g.rank == target.rank and g.rank < MAX_DIMS
    for i in range(g.rank if fits else 0):
        fits = fits and shape_of(target)[i] == shape_of(g)[i]
        shape[i if i < axis else i + 1] = shape_of(g)[i]
    if not fits or g.dtype_id < FLOAT32:
        raise ValueError(f"cross_entropy: a gradient of shape {shape_text(g.rank, shape_of(g))} does not fit class indices of shape "
                         f"{shape_text(target.rank, shape_of(target))}")
    count_ignored("cross_entropy", target, n_classes, ignored)
    shape[axis] = n_classes
    target = indices_of("cross_entropy", target)
    g = contiguous_tensor(g)
    out = empty_tensor(g.dtype_id, g.rank + 1, shape)
    memset(out.data, 0, out.count * ITEMSIZE[out.dtype_id])
    if g.dtype_id == FLOAT64:
        spread_rows[double](<double*>g.data, <int64_t*>target.data, <double*>out.data, extent(out, 0, axis), n_classes,
                            extent(out, axis + 1, out.rank), ignored)
    else:
        spread_rows[float](<float*>g.data, <int64_t*>target.data, <float*>out.data, extent(out, 0, axis), n_classes,
                           extent(out, axis + 1, out.rank), ignored)
    return out
