"""Indexing by integers and masks: read, write and accumulate elements at given places.

Owns the loops behind advanced indexing, gather and scatter.  No Python objects, nothing is allocated, nothing fails except the
bounds checks, which report and touch nothing.  Called by core/forward/index.pyx, which checks first and holds the memory alive; may
run without the GIL.  Reads are split over threads (each element is written once); writes are serial because their order is the
meaning.  Next to read: core/forward/index.pyx.
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t
from libc.string cimport memcpy

from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.dispatch cimport ITEMSIZE
from cgrad.kernels.table cimport FLOAT32, FLOAT64

# Copies move bits, so one integer type per element size serves all dtypes; unsigned integers add as signed ones do (both wrap).
ctypedef fused number:
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double


cdef inline bint advance(int rank, const Py_ssize_t* shape, Py_ssize_t* position) noexcept nogil:
    """Next position of an odometer over `rank` axes; False when it has gone round."""
    cdef int axis = rank - 1
    while axis >= 0:
        position[axis] += 1
        if position[axis] < shape[axis]:
            return True
        position[axis] = 0
        axis -= 1
    return False


cdef inline Py_ssize_t place(int rank, const Py_ssize_t* position, const Py_ssize_t* strides) noexcept nogil:
    cdef Py_ssize_t offset = 0
    cdef int axis
    for axis in range(rank):
        offset += position[axis] * strides[axis]
    return offset


cdef inline Py_ssize_t start(int rank, const Py_ssize_t* shape, Py_ssize_t* position) noexcept nogil:
    """Odometer at zero; returns the number of elements."""
    cdef Py_ssize_t n = 1
    cdef int axis
    for axis in range(rank):
        n *= shape[axis]
        position[axis] = 0
    return n


cdef inline void line(Mode mode, number* x, Py_ssize_t x_step, number* y, Py_ssize_t y_step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if mode == GET:
        if x_step == 1 and y_step == 1:
            memcpy(y, x, n * sizeof(number))
        else:
            for i in range(n):
                y[i * y_step] = x[i * x_step]
    elif mode == SET:
        if x_step == 1 and y_step == 1:
            memcpy(x, y, n * sizeof(number))
        else:
            for i in range(n):
                x[i * x_step] = y[i * y_step]
    elif x_step == 1 and y_step == 1:
        for i in range(n):
            x[i] += y[i]
    else:
        for i in range(n):
            x[i * x_step] += y[i * y_step]


cdef void block(Walk* walk, Mode mode, number* x, number* y) noexcept nogil:
    """All inner axes at one index: odometer over all but the last, `line` over that."""
    cdef Py_ssize_t position[MAX_DIMS]
    cdef int last = walk.inner - 1
    start(last, walk.inner_shape, position)
    while True:
        line(mode, x + place(last, position, walk.inner_x), walk.inner_x[last],
             y + place(last, position, walk.inner_y), walk.inner_y[last], walk.inner_shape[last])
        if not advance(last, walk.inner_shape, position):
            return


cdef void indices(Walk* walk, Mode mode, number* x, number* y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Indices begin..end-1 at one position of the outer axes."""
    cdef const Py_ssize_t* offsets = walk.offsets
    cdef Py_ssize_t j, step = walk.y_step
    if walk.inner == 0:
        if mode == GET:
            for j in range(begin, end):
                y[j * step] = x[offsets[j]]
        elif mode == SET:
            for j in range(begin, end):
                x[offsets[j]] = y[j * step]
        else:
            for j in range(begin, end):
                x[offsets[j]] += y[j * step]
    elif walk.inner == 1:
        for j in range(begin, end):
            line(mode, x + offsets[j], walk.inner_x[0], y + j * step, walk.inner_y[0], walk.inner_shape[0])
    else:
        for j in range(begin, end):
            block(walk, mode, x + offsets[j], y + j * step)


cdef void part(Walk* walk, Mode mode, number* x, number* y, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    """Units begin..end-1, where a unit is one index at one position of the outer axes."""
    cdef Py_ssize_t outer, rest, first, last, shift_x, shift_y
    cdef int axis
    while begin < end:
        outer = begin // walk.n_index
        first = begin - outer * walk.n_index
        last = min(walk.n_index, first + end - begin)
        shift_x = shift_y = 0
        rest = outer
        for axis in range(walk.outer - 1, -1, -1):
            shift_x += rest % walk.outer_shape[axis] * walk.outer_x[axis]
            shift_y += rest % walk.outer_shape[axis] * walk.outer_y[axis]
            rest //= walk.outer_shape[axis]
        indices(walk, mode, x + shift_x, y + shift_y, first, last)
        begin += last - first


cdef struct Job:
    Walk* walk
    Mode mode
    int dtype


cdef void run_part(void* context, Py_ssize_t begin, Py_ssize_t end) noexcept nogil:
    cdef Job* job = <Job*> context
    cdef Walk* walk = job.walk
    cdef int dtype = job.dtype
    if job.mode == ADD and dtype == FLOAT32:
        part[float](walk, ADD, <float*> walk.x, <float*> walk.y, begin, end)
    elif job.mode == ADD and dtype == FLOAT64:
        part[double](walk, ADD, <double*> walk.x, <double*> walk.y, begin, end)
    elif ITEMSIZE[dtype] == 1:
        part[int8_t](walk, job.mode, <int8_t*> walk.x, <int8_t*> walk.y, begin, end)
    elif ITEMSIZE[dtype] == 2:
        part[int16_t](walk, job.mode, <int16_t*> walk.x, <int16_t*> walk.y, begin, end)
    elif ITEMSIZE[dtype] == 4:
        part[int32_t](walk, job.mode, <int32_t*> walk.x, <int32_t*> walk.y, begin, end)
    else:
        part[int64_t](walk, job.mode, <int64_t*> walk.x, <int64_t*> walk.y, begin, end)


cdef int collapse(int rank, Py_ssize_t* shape, Py_ssize_t* x, Py_ssize_t* y) noexcept nogil:
    """Drop axes of length 1 and join neighbours that both operands walk as one; returns the new number of axes."""
    cdef int axis, n = 0
    for axis in range(rank):
        if shape[axis] == 1:
            continue
        if n and x[n - 1] == x[axis] * shape[axis] and y[n - 1] == y[axis] * shape[axis]:
            shape[n - 1] *= shape[axis]
            x[n - 1] = x[axis]
            y[n - 1] = y[axis]
        else:
            shape[n] = shape[axis]
            x[n] = x[axis]
            y[n] = y[axis]
            n += 1
    return n


cdef void run_walk(Walk* walk, Mode mode, int dtype) noexcept nogil:
    cdef Py_ssize_t units = walk.n_index, size = 1
    cdef int axis
    cdef Job job
    for axis in range(walk.outer):
        units *= walk.outer_shape[axis]
    for axis in range(walk.inner):
        size *= walk.inner_shape[axis]
    if units == 0 or size == 0:
        return
    walk.outer = collapse(walk.outer, walk.outer_shape, walk.outer_x, walk.outer_y)
    walk.inner = collapse(walk.inner, walk.inner_shape, walk.inner_x, walk.inner_y)
    job.walk = walk
    job.mode = mode
    job.dtype = dtype
    if mode == GET:
        # A chunk is about 16k elements; a random read costs about two additions.
        parallel_for(run_part, &job, units, max(1, 16384 // size), 2.0 * units * size)
    else:
        run_part(&job, 0, units)


# ------------------------------------------------------------------------------------------- offsets

cdef bint index_offsets(const int64_t* index, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t size,
                        Py_ssize_t step, Py_ssize_t* offsets, bint add, int64_t* bad) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, inner_step = 0, length = 1
    cdef int last = max(rank - 1, 0)
    cdef const int64_t* row
    cdef int64_t k
    if start(rank, shape, position) == 0:
        return True
    if rank:
        length = shape[last]
        inner_step = strides[last]
    while True:
        row = index + place(last, position, strides)
        for i in range(length):
            k = row[i * inner_step]
            if k < 0:
                k += size
            if k < 0 or k >= size:
                bad[0] = row[i * inner_step]
                return False
            if add:
                offsets[i] += k * step
            else:
                offsets[i] = k * step
        offsets += length
        if not advance(last, shape, position):
            return True


cdef bint check_indices(const int64_t* index, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t size,
                        int64_t* bad) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, inner_step = 0, length = 1
    cdef int last = max(rank - 1, 0)
    cdef const int64_t* row
    if start(rank, shape, position) == 0:
        return True
    if rank:
        length = shape[last]
        inner_step = strides[last]
    while True:
        row = index + place(last, position, strides)
        for i in range(length):
            if row[i * inner_step] < -size or row[i * inner_step] >= size:
                bad[0] = row[i * inner_step]
                return False
        if not advance(last, shape, position):
            return True


cdef Py_ssize_t count_true(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, inner_step = 0, length = 1, total = 0
    cdef int last = max(rank - 1, 0)
    cdef const char* row
    if start(rank, shape, position) == 0:
        return 0
    if rank:
        length = shape[last]
        inner_step = strides[last]
    while True:
        row = mask + place(last, position, strides)
        if inner_step == 1:                  # the compiler vectorises this one
            for i in range(length):
                total += row[i] != 0
        else:
            for i in range(length):
                total += row[i * inner_step] != 0
        if not advance(last, shape, position):
            return total


cdef void mask_offsets(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, const Py_ssize_t* steps,
                       Py_ssize_t* offsets) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, base, inner_step = 0, step = 0, length = 1
    cdef int last = max(rank - 1, 0)
    cdef const char* row
    if start(rank, shape, position) == 0:
        return
    if rank:
        length = shape[last]
        inner_step = strides[last]
        step = steps[last]
    while True:
        row = mask + place(last, position, strides)
        base = place(last, position, steps)
        for i in range(length):
            if row[i * inner_step]:
                offsets[0] = base + i * step
                offsets += 1
        if not advance(last, shape, position):
            return


cdef void mask_coordinates(const char* mask, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, int64_t* out) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, inner_step = 0, length = 1
    cdef int axis, last = max(rank - 1, 0)
    cdef const char* row
    if start(rank, shape, position) == 0:
        return
    if rank:
        length = shape[last]
        inner_step = strides[last]
    while True:
        row = mask + place(last, position, strides)
        for i in range(length):
            if row[i * inner_step]:
                for axis in range(last):
                    out[axis] = position[axis]
                if rank:
                    out[last] = i
                out += rank
        if not advance(last, shape, position):
            return


# ------------------------------------------------------------------------------------------- one index per place

cdef inline void join(Mode mode, number* x, number y) noexcept nogil:
    """x = y, x + y, x * y, or the larger or smaller of both."""
    if mode == SET:
        x[0] = y
    elif mode == ADD:
        x[0] += y
    elif mode == MULTIPLY:
        x[0] *= y
    elif number is float or number is double:
        if y != y or (y > x[0] if mode == LARGEST else y < x[0]):
            x[0] = y
    elif y > x[0] if mode == LARGEST else y < x[0]:
        x[0] = y


cdef void along(Mode mode, number* x, const Py_ssize_t* x_strides, Py_ssize_t size, Py_ssize_t step,
                const int64_t* index, const Py_ssize_t* index_strides, number* y, const Py_ssize_t* y_strides,
                int rank, const Py_ssize_t* shape) noexcept nogil:
    cdef Py_ssize_t position[MAX_DIMS]
    cdef Py_ssize_t i, length = 1, x_step = 0, index_step = 0, y_step = 0
    cdef int last = max(rank - 1, 0)
    cdef number* x_row
    cdef number* y_row
    cdef const int64_t* row
    cdef int64_t k
    if start(rank, shape, position) == 0:
        return
    if rank:
        length = shape[last]
        x_step = x_strides[last]
        index_step = index_strides[last]
        y_step = y_strides[last]
    while True:
        x_row = x + place(last, position, x_strides)
        y_row = y + place(last, position, y_strides)
        row = index + place(last, position, index_strides)
        for i in range(length):
            k = row[i * index_step]
            if k < 0:
                k += size
            if mode == GET:
                y_row[i * y_step] = x_row[i * x_step + k * step]
            else:
                join(mode, x_row + i * x_step + k * step, y_row[i * y_step])
        if not advance(last, shape, position):
            return


cdef void run_along_axis(Mode mode, int dtype, char* x, const Py_ssize_t* x_strides, Py_ssize_t size, Py_ssize_t step,
                         const int64_t* index, const Py_ssize_t* index_strides, char* y, const Py_ssize_t* y_strides,
                         int rank, const Py_ssize_t* shape) noexcept nogil:
    if mode >= ADD and dtype == FLOAT32:
        along[float](mode, <float*> x, x_strides, size, step, index, index_strides, <float*> y, y_strides, rank, shape)
    elif mode >= ADD and dtype == FLOAT64:
        along[double](mode, <double*> x, x_strides, size, step, index, index_strides, <double*> y, y_strides, rank, shape)
    elif ITEMSIZE[dtype] == 1:
        along[int8_t](mode, <int8_t*> x, x_strides, size, step, index, index_strides, <int8_t*> y, y_strides, rank, shape)
    elif ITEMSIZE[dtype] == 2:
        along[int16_t](mode, <int16_t*> x, x_strides, size, step, index, index_strides, <int16_t*> y, y_strides, rank, shape)
    elif ITEMSIZE[dtype] == 4:
        along[int32_t](mode, <int32_t*> x, x_strides, size, step, index, index_strides, <int32_t*> y, y_strides, rank, shape)
    else:
        along[int64_t](mode, <int64_t*> x, x_strides, size, step, index, index_strides, <int64_t*> y, y_strides, rank, shape)
