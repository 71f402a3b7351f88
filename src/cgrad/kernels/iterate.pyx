"""The walk over n-d strided operands.

Owns: the order in which elements are visited.  Axes of length 1 are dropped, the others sorted by the result's strides and
merged where every operand allows it, so that most calls end as one flat loop.  What is left is a grid of tiles: `columns` run
along the axis that the one-axis loop walks, `rows` along a second one, all other axes outside.
Callers: core's primitives and forward functions.  Rules: no GIL needed, no allocation; work above the break-even is split
over threads in whole tiles, and tiles depend on shape and strides alone.  Operands that a loop takes in another dtype than memory
holds (float16 as float32) are converted block by block, on the stack.
Read next: elementwise.pxi, the loops that are called here.
"""
from cgrad.kernels.dispatch cimport ITEMSIZE, cast_loop
from cgrad.kernels.parallel cimport BREAK_EVEN, parallel_for
from cgrad.kernels.table cimport FLOAT16, FLOAT32, FLOAT64, MAX_DIMS, MAX_OPERANDS, computing_dtype, loop_t

cdef enum:
    CACHE_LINE = 64
    TILE_WORK = 8192            # cost (in float additions) of the pieces that threads take: about half a microsecond
    SHORT_ROW = 8               # below this length the call of a loop costs more than its work
    LONG_COLUMN = 256           # elements of a column walked at a time where rows are short; stays in the L1 cache
    TRANSPOSE = 32              # edge of a tile where some operand runs across the result
    BLOCK = 512                 # elements converted at a time: 4 KB for each operand

cdef struct Conversions:
    loop_t casts[MAX_OPERANDS]      # of the result into memory, of the others out of it; NULL: as it is

cdef struct Walk:
    loop_t loop
    const Conversions* conversions                  # NULL where the loop takes all operands as they are
    const int* itemsize
    int nop
    int n_outer
    Py_ssize_t outer[MAX_DIMS]                      # lengths of the outer axes
    Py_ssize_t outer_step[MAX_DIMS][MAX_OPERANDS]   # all steps in bytes
    Py_ssize_t rows, columns
    Py_ssize_t row_step[MAX_OPERANDS]
    Py_ssize_t column_step[MAX_OPERANDS]
    Py_ssize_t column_stride[MAX_OPERANDS]          # in elements, as loops want it
    Py_ssize_t tile_rows, tile_columns
    Py_ssize_t row_tiles, column_tiles
    char* data[MAX_OPERANDS]


cdef void run_loop(const Walk* w, char** p, const Py_ssize_t* stride, Py_ssize_t n) noexcept nogil:
    if w.conversions == NULL:
        w.loop(p, stride, n)
    else:
        run_blocks(w, p, stride, n)


cdef void run_blocks(const Walk* w, char** p, const Py_ssize_t* stride, Py_ssize_t n) noexcept nogil:
    """The loop over converted blocks: what is cast is read into, and the result written from, blocks on the stack."""
    cdef double blocks[MAX_OPERANDS][BLOCK]
    cdef char* origin[MAX_OPERANDS]
    cdef char* data[MAX_OPERANDS]
    cdef char* pair[2]
    cdef Py_ssize_t stride_seen[MAX_OPERANDS]
    cdef Py_ssize_t steps[2]
    cdef Py_ssize_t start = 0, m
    cdef int k
    for k in range(w.nop):
        origin[k] = p[k]
        stride_seen[k] = stride[k]
        if w.conversions.casts[k] != NULL:
            stride_seen[k] = 1 if k == 0 or stride[k] else 0
    while start < n:
        m = min(n - start, BLOCK)
        for k in range(w.nop):
            data[k] = origin[k] + start * stride[k] * w.itemsize[k]
            if w.conversions.casts[k] != NULL:
                pair[0], pair[1] = <char*>blocks[k], data[k]
                steps[0], steps[1] = 1, stride[k]
                if k and (stride[k] or start == 0):
                    w.conversions.casts[k](pair, steps, m if stride[k] else 1)
                data[k] = <char*>blocks[k]
        w.loop(data, stride_seen, m)
        if w.conversions.casts[0] != NULL:
            pair[0], pair[1] = origin[0] + start * stride[0] * w.itemsize[0], <char*>blocks[0]
            steps[0], steps[1] = stride[0], 1
            w.conversions.casts[0](pair, steps, m)
        start += m


cdef void walk_tiles(void* context, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Do the tiles [start, stop) in the order columns, rows, outer axes (the last one fastest)."""
    cdef Walk* w = <Walk*>context
    cdef Py_ssize_t index[MAX_DIMS]
    cdef char* origin[MAX_OPERANDS]
    cdef char* p[MAX_OPERANDS]
    cdef int k, axis, nop = w.nop
    cdef Py_ssize_t column = start % w.column_tiles, left = start // w.column_tiles
    cdef Py_ssize_t row = left % w.row_tiles, _, n, m, first_row, first_column
    left //= w.row_tiles
    for k in range(nop):
        origin[k] = w.data[k]
    axis = w.n_outer - 1
    while axis >= 0:
        index[axis] = left % w.outer[axis]
        left //= w.outer[axis]
        for k in range(nop):
            origin[k] += index[axis] * w.outer_step[axis][k]
        axis -= 1
    while True:
        first_row = row * w.tile_rows
        first_column = column * w.tile_columns
        m = min(w.tile_rows, w.rows - first_row)
        n = min(w.tile_columns, w.columns - first_column)
        for k in range(nop):
            p[k] = origin[k] + first_row * w.row_step[k] + first_column * w.column_step[k]
        for _ in range(m):
            run_loop(w, p, w.column_stride, n)
            for k in range(nop):
                p[k] += w.row_step[k]
        start += 1
        if start >= stop:
            return
        column += 1
        if column < w.column_tiles:
            continue
        column = 0
        row += 1
        if row < w.row_tiles:
            continue
        row = 0
        axis = w.n_outer - 1
        while True:
            index[axis] += 1
            if index[axis] < w.outer[axis]:
                for k in range(nop):
                    origin[k] += w.outer_step[axis][k]
                break
            for k in range(nop):
                origin[k] -= (w.outer[axis] - 1) * w.outer_step[axis][k]
            index[axis] = 0
            axis -= 1


cdef inline Py_ssize_t magnitude(Py_ssize_t x) noexcept nogil:
    return -x if x < 0 else x


cdef inline bint outside(const Py_ssize_t* a, const Py_ssize_t* b, int nop) noexcept nogil:
    """Whether the axis with the steps a belongs outside the one with the steps b: result first, inputs break ties."""
    cdef int k
    for k in range(nop):
        if magnitude(a[k]) != magnitude(b[k]):
            return magnitude(a[k]) > magnitude(b[k])
    return False


cdef void run_elementwise(loop_t loop, int nop, char** data, const int* itemsize, int ndim, const Py_ssize_t* shape,
                          const Py_ssize_t** strides, int weight) noexcept nogil:
    cdef Py_ssize_t flat[MAX_OPERANDS]
    cdef int k
    if ndim == 0:
        for k in range(nop):
            flat[k] = 0
        loop(data, flat, 1)
    elif ndim == 1 and <double>shape[0] * weight < BREAK_EVEN:
        if shape[0] > 0:
            for k in range(nop):
                flat[k] = strides[k][0]
            loop(data, flat, shape[0])
    else:
        run_walk(loop, NULL, nop, data, itemsize, ndim, shape, strides, weight)


cdef void run_converted(loop_t loop, int nop, char** data, const int* held, const int* seen, int ndim, const Py_ssize_t* shape,
                        const Py_ssize_t** strides, int weight) noexcept nogil:
    cdef Conversions conversions
    cdef int itemsize[MAX_OPERANDS]
    cdef int k
    for k in range(nop):
        itemsize[k] = ITEMSIZE[held[k]]
        conversions.casts[k] = NULL if held[k] == seen[k] else cast_loop(held[k], seen[k]) if k else cast_loop(seen[k], held[k])
    run_walk(loop, &conversions, nop, data, itemsize, ndim, shape, strides, weight)


cdef void run_cast(int source, int target, char** data, int ndim, const Py_ssize_t* shape, const Py_ssize_t** strides) noexcept nogil:
    cdef loop_t loop = cast_loop(source, target)
    cdef int held[2]
    cdef int seen[2]
    held[0], held[1] = target, source
    seen[0], seen[1] = target, source
    if loop == NULL:
        # Out of float16 by float32, out of uint16 by int32; into float16 by float64, which rounds once.
        seen[1] = computing_dtype(source)
        if FLOAT16 <= target < FLOAT32 and seen[1] != FLOAT32:
            seen[0] = FLOAT64
        loop = cast_loop(seen[1], seen[0])
        run_converted(loop, 2, data, held, seen, ndim, shape, strides, 1)
        return
    held[0], held[1] = ITEMSIZE[target], ITEMSIZE[source]
    run_elementwise(loop, 2, data, held, ndim, shape, strides, 1)


cdef void run_walk(loop_t loop, const Conversions* conversions, int nop, char** data, const int* itemsize, int ndim, const Py_ssize_t* shape,
                   const Py_ssize_t** strides, int weight) noexcept nogil:
    cdef Walk w
    cdef Py_ssize_t lengths[MAX_DIMS]
    cdef Py_ssize_t steps[MAX_DIMS][MAX_OPERANDS]
    cdef Py_ssize_t step[MAX_OPERANDS]
    cdef Py_ssize_t length, work, chunk
    cdef double total = weight
    cdef int k, axis, place, n = 0, row_axis, column_axis
    w.loop = loop
    w.conversions = conversions
    w.itemsize = itemsize
    w.nop = nop
    for k in range(nop):
        w.data[k] = data[k]

    # Steps in bytes, result's steps positive, outermost axis first.
    for axis in range(ndim):
        length = shape[axis]
        if length == 0:
            return
        if length == 1:
            continue
        total *= length
        for k in range(nop):
            step[k] = strides[k][axis] * itemsize[k]
        if step[0] < 0:
            for k in range(nop):
                w.data[k] += (length - 1) * step[k]
                step[k] = -step[k]
        place = n
        while place > 0 and outside(step, steps[place - 1], nop):
            lengths[place] = lengths[place - 1]
            for k in range(nop):
                steps[place][k] = steps[place - 1][k]
            place -= 1
        lengths[place] = length
        for k in range(nop):
            steps[place][k] = step[k]
        n += 1
    if n == 0:
        for k in range(nop):
            step[k] = 0
        run_loop(&w, w.data, step, 1)
        return

    # Merge an axis into the next inner one where one step outside equals a whole run inside.
    ndim = n
    n = 0
    for axis in range(1, ndim):
        for k in range(nop):
            if steps[n][k] != steps[axis][k] * lengths[axis]:
                break
        else:
            lengths[n] *= lengths[axis]
            for k in range(nop):
                steps[n][k] = steps[axis][k]
            continue
        n += 1
        lengths[n] = lengths[axis]
        for k in range(nop):
            steps[n][k] = steps[axis][k]
    ndim = n + 1

    column_axis = ndim - 1
    if ndim == 1 and total < BREAK_EVEN:
        for k in range(nop):
            step[k] = steps[0][k] // itemsize[k]
        run_loop(&w, w.data, step, lengths[0])
        return

    # Which two axes make the tiles, and how large these are.
    work = max(<Py_ssize_t>(TILE_WORK // weight), CACHE_LINE)
    row_axis = ndim - 2
    if ndim == 1:
        w.rows, w.columns = 1, lengths[0]
        w.tile_rows, w.tile_columns = 1, work
    else:
        w.tile_columns = 0
        if lengths[column_axis] < SHORT_ROW and lengths[row_axis] > lengths[column_axis]:
            column_axis, row_axis = row_axis, column_axis
            w.tile_rows, w.tile_columns = lengths[row_axis], LONG_COLUMN
        else:
            for k in range(1, nop):
                if magnitude(steps[column_axis][k]) < CACHE_LINE:
                    continue
                axis = narrowest(steps, lengths, ndim, k)
                if axis != column_axis and magnitude(steps[axis][k]) < CACHE_LINE:
                    row_axis = axis
                    w.tile_rows, w.tile_columns = TRANSPOSE, TRANSPOSE
                    break
        w.rows, w.columns = lengths[row_axis], lengths[column_axis]
        if w.tile_columns == 0:
            w.tile_columns = min(w.columns, work)
            w.tile_rows = max(work // w.columns, 1)
    w.tile_rows = min(w.tile_rows, w.rows)
    w.tile_columns = min(w.tile_columns, w.columns)
    w.row_tiles = (w.rows - 1) // w.tile_rows + 1
    w.column_tiles = (w.columns - 1) // w.tile_columns + 1
    w.n_outer = 0
    for k in range(nop):
        w.row_step[k] = steps[row_axis][k] if ndim > 1 else 0
        w.column_step[k] = steps[column_axis][k]
        w.column_stride[k] = steps[column_axis][k] // itemsize[k]
    length = w.row_tiles * w.column_tiles
    for axis in range(ndim):
        if axis != column_axis and axis != row_axis:
            w.outer[w.n_outer] = lengths[axis]
            length *= lengths[axis]
            for k in range(nop):
                w.outer_step[w.n_outer][k] = steps[axis][k]
            w.n_outer += 1
    if total < BREAK_EVEN:
        walk_tiles(&w, 0, length)
    else:
        chunk = max(work // (w.tile_rows * w.tile_columns), 1)
        parallel_for(walk_tiles, &w, length, chunk, total)


cdef inline int narrowest(Py_ssize_t[MAX_OPERANDS]* steps, const Py_ssize_t* lengths, int ndim, int k) noexcept nogil:
    """The axis along which operand k moves least (but does move)."""
    cdef int axis, best = ndim - 1
    for axis in range(ndim):
        if steps[axis][k] != 0 and magnitude(steps[axis][k]) < magnitude(steps[best][k]) and lengths[axis] >= SHORT_ROW:
            best = axis
    return best
