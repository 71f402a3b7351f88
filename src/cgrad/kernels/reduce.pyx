"""Reductions over any set of axes of a strided operand: the walk, the reduction tree and the split over threads.

Owns run_reduce (contract in reduce.pxd); core/forward/reduce.pyx calls it.  The loops are in reduce.pxi, compiled once per
instruction set.  Nothing here takes the GIL or touches Python objects, except the door functions at the end, which tests use.

How it goes: axes of extent 1 fall away, kept and folded axes are sorted by stride and merged where memory allows.  If the fastest
axis is folded, every result reads rows (`row` loops); if it is kept, rows are folded into a tile of accumulators (`columns` loops),
so that memory is always read in its own order.  Either way the folded index range is halved down to leaves and partial results are
joined pairwise: the rounding error grows with log n, and since the tree depends on the shape alone, the upper levels of it may be
computed by any number of threads with the same bits.

Read next: reduce.pxi.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

from cgrad.kernels.dispatch cimport ITEMSIZE, kernel_table
from cgrad.kernels.parallel cimport parallel_for
from cgrad.kernels.table cimport MAX_DIMS, N_FOLDS, ArgLoops, DTypeId, FoldLoops, Reduction

cdef enum:
    ROW_LEAF = 4096          # folded elements that one accumulator row takes in one go
    COLUMN_LEAF = 128        # folded rows that a tile takes in one go
    ROW_TILE = 64            # results per work item when rows are read
    COLUMN_TILE = 512        # accumulators of a tile: 4 kB of float64, in L1 together with the rows it takes
    FOLDED_COLUMNS = 128     # narrow matrices are read as if several of their rows were one row of about this width
    MAX_PIECES = 16          # parts of a tree that may go to different threads
    PIECE_WORK = 1 << 16     # elements below which a part is not worth a thread
    ARG_PIECE = 1 << 16      # elements of a part of a flattened argmax

cdef dict REDUCTIONS = {"sum": Reduction.SUM, "prod": Reduction.PROD, "max": Reduction.MAX, "min": Reduction.MIN,
                        "any": Reduction.ANY, "all": Reduction.ALL, "argmax": Reduction.ARGMAX, "argmin": Reduction.ARGMIN}


cdef int reduce_id(str name) except -1:
    if name not in REDUCTIONS:
        raise KeyError(f"no reduction is called {name!r}; there are {', '.join(REDUCTIONS)}")
    return REDUCTIONS[name]


cdef int reduce_result_dtype(int reduction, int dtype) noexcept nogil:
    if reduction == Reduction.ANY or reduction == Reduction.ALL:
        return DTypeId.BOOL
    if reduction == Reduction.ARGMAX or reduction == Reduction.ARGMIN:
        return DTypeId.INT64
    if (reduction == Reduction.SUM or reduction == Reduction.PROD) and dtype < DTypeId.FLOAT16:
        return DTypeId.UINT64 if DTypeId.UINT8 <= dtype <= DTypeId.UINT64 else DTypeId.INT64
    return dtype


cdef struct Plan:
    const FoldLoops* loops
    const ArgLoops* arg_loops
    const char* x
    char* out
    char* scratch                         # accumulators of all pieces, or NULL if there is one piece a group
    Py_ssize_t itemsize, out_itemsize
    bint by_columns
    int n_kept, n_folded                  # at least one each, sorted from the slowest to the fastest axis
    Py_ssize_t kept[MAX_DIMS + 1]         # extents, element strides in x, element strides in out
    Py_ssize_t kept_x[MAX_DIMS + 1]
    Py_ssize_t kept_out[MAX_DIMS + 1]
    Py_ssize_t folded[MAX_DIMS + 1]
    Py_ssize_t folded_x[MAX_DIMS + 1]
    Py_ssize_t total                      # product of the folded extents
    Py_ssize_t leaf
    Py_ssize_t rows_at_once               # > 1: a narrow matrix read as if that many of its rows were one
    Py_ssize_t tile, tiles                # results per group, groups along the fastest kept axis
    Py_ssize_t groups
    Py_ssize_t pieces                     # parts of each group's tree: a power of two


# ---- planning ------------------------------------------------------------------------------------------------------------------

cdef inline Py_ssize_t magnitude(Py_ssize_t n) noexcept nogil:
    return -n if n < 0 else n


cdef void plan_axes(Plan* plan, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides, unsigned long long axes,
                    bint keep_order) noexcept nogil:
    """Split, sort and merge the axes.  keep_order: the folded axes stay as they are (an index counts along them)."""
    cdef int i, j, n
    cdef Py_ssize_t out_stride = 1, extent, step
    plan.n_kept = plan.n_folded = 0
    # From the fastest axis on, so that equal strides keep their order below.
    for i in range(ndim - 1, -1, -1):
        extent = shape[i]
        step = strides[i]
        if axes >> i & 1:
            if extent == 1:
                continue
            if step < 0 and not keep_order:         # the order of a fold is free: read forwards
                plan.x += (extent - 1) * step * plan.itemsize
                step = -step
            j = plan.n_folded
            while j > 0 and not keep_order and magnitude(plan.folded_x[j - 1]) > step:
                plan.folded[j] = plan.folded[j - 1]
                plan.folded_x[j] = plan.folded_x[j - 1]
                j -= 1
            plan.folded[j] = extent
            plan.folded_x[j] = step
            plan.n_folded += 1
        else:
            if extent != 1:
                j = plan.n_kept
                while j > 0 and magnitude(plan.kept_x[j - 1]) > magnitude(step):
                    plan.kept[j] = plan.kept[j - 1]
                    plan.kept_x[j] = plan.kept_x[j - 1]
                    plan.kept_out[j] = plan.kept_out[j - 1]
                    j -= 1
                plan.kept[j] = extent
                plan.kept_x[j] = step
                plan.kept_out[j] = out_stride
                plan.n_kept += 1
            out_stride *= extent
    # The lists run from fast to slow here: merge neighbours, then turn them round.
    n = 0
    for i in range(1, plan.n_folded):
        if plan.folded_x[i] == plan.folded[n] * plan.folded_x[n]:
            plan.folded[n] *= plan.folded[i]
        else:
            n += 1
            plan.folded[n] = plan.folded[i]
            plan.folded_x[n] = plan.folded_x[i]
    if plan.n_folded:
        plan.n_folded = n + 1
    else:
        plan.n_folded = 1
        plan.folded[0] = 1
        plan.folded_x[0] = 0
    n = 0
    for i in range(1, plan.n_kept):
        if (plan.kept_x[i] == plan.kept[n] * plan.kept_x[n] and plan.kept_out[i] == plan.kept[n] * plan.kept_out[n]):
            plan.kept[n] *= plan.kept[i]
        else:
            n += 1
            plan.kept[n] = plan.kept[i]
            plan.kept_x[n] = plan.kept_x[i]
            plan.kept_out[n] = plan.kept_out[i]
    if plan.n_kept:
        plan.n_kept = n + 1
    else:
        plan.n_kept = 1
        plan.kept[0] = 1
        plan.kept_x[0] = plan.kept_out[0] = 0
    turn_round(plan.folded, plan.n_folded)
    turn_round(plan.folded_x, plan.n_folded)
    turn_round(plan.kept, plan.n_kept)
    turn_round(plan.kept_x, plan.n_kept)
    turn_round(plan.kept_out, plan.n_kept)


cdef void turn_round(Py_ssize_t* values, int n) noexcept nogil:
    cdef int i
    for i in range(n // 2):
        values[i], values[n - 1 - i] = values[n - 1 - i], values[i]


cdef void plan_groups(Plan* plan) noexcept nogil:
    """Rows or columns, and what a work item is.  Nothing here may depend on the number of threads."""
    cdef int i, last_kept = plan.n_kept - 1, last_folded = plan.n_folded - 1
    cdef Py_ssize_t width = plan.kept[last_kept], run = plan.folded[last_folded], tile
    cdef bint kept_is_faster = magnitude(plan.kept_x[last_kept]) < magnitude(plan.folded_x[last_folded])
    plan.total = 1
    for i in range(plan.n_folded):
        plan.total *= plan.folded[i]
    plan.rows_at_once = 1
    if kept_is_faster:
        # A few columns far apart are better read one by one, unless they lie side by side.
        plan.by_columns = width >= 4 or (plan.kept_x[last_kept] == 1 and plan.folded_x[last_folded] == width)
    else:
        # Very short rows: strided columns save a call for each result.
        plan.by_columns = run < 16 and plan.total == run and width >= 16
    if plan.by_columns:
        plan.leaf = COLUMN_LEAF
        if (plan.arg_loops == NULL and width * 4 <= FOLDED_COLUMNS and plan.kept_x[last_kept] == 1
                and plan.folded_x[last_folded] == width and run >= 2 * (FOLDED_COLUMNS // width)):
            plan.rows_at_once = FOLDED_COLUMNS // width
            plan.leaf = COLUMN_LEAF * plan.rows_at_once
    else:
        plan.leaf = ROW_LEAF
    tile = COLUMN_TILE if plan.by_columns else ROW_TILE
    # A row item should be worth a few microseconds, but one row is the least there is.
    plan.tile = min(width, tile)
    plan.tiles = (width + plan.tile - 1) // plan.tile
    plan.groups = plan.tiles
    for i in range(last_kept):
        plan.groups *= plan.kept[i]
    plan.pieces = 1
    if plan.groups < MAX_PIECES:
        while plan.pieces < MAX_PIECES and plan.total > 2 * plan.pieces * plan.leaf and plan.total * plan.tile > 2 * plan.pieces * PIECE_WORK:
            plan.pieces *= 2


# ---- the tree ------------------------------------------------------------------------------------------------------------------

cdef inline Py_ssize_t middle(Py_ssize_t start, Py_ssize_t stop, Py_ssize_t leaf) noexcept nogil:
    """Where a range longer than a leaf is halved: at a multiple of the leaf from its start."""
    return start + ((stop - start + 1) // 2 + leaf - 1) // leaf * leaf


cdef void fold_run(const Plan* plan, const char* x, Py_ssize_t rows, Py_ssize_t n, char* total) noexcept nogil:
    """`rows` steps along the fastest folded axis."""
    cdef Py_ssize_t step = plan.folded_x[plan.n_folded - 1], column, wide, j
    cdef char[FOLDED_COLUMNS * 8] tile
    if not plan.by_columns:
        plan.loops.row(x, step, rows, total)
        return
    column = plan.kept_x[plan.n_kept - 1]
    wide = rows // plan.rows_at_once
    if plan.rows_at_once > 1 and wide:
        plan.loops.start(tile, n * plan.rows_at_once)
        plan.loops.columns(x, step * plan.rows_at_once, 1, wide, n * plan.rows_at_once, tile)
        for j in range(plan.rows_at_once):
            plan.loops.join(total, tile + j * n * plan.loops.size, n)
        wide *= plan.rows_at_once
        x += wide * step * plan.itemsize
        rows -= wide
    if rows:
        plan.loops.columns(x, step, column, rows, n, total)


cdef void fold_leaf(const Plan* plan, const char* x, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n, char* total) noexcept nogil:
    """Fold the indices start <= i < stop of the flattened folded axes, in order, into n accumulators."""
    cdef int axis, last = plan.n_folded - 1
    cdef Py_ssize_t inner = plan.folded[last], position, rest, run
    cdef Py_ssize_t[MAX_DIMS] index
    if last == 0:
        fold_run(plan, x + start * plan.folded_x[0] * plan.itemsize, stop - start, n, total)
        return
    position = start % inner
    rest = start // inner
    for axis in range(last - 1, -1, -1):
        index[axis] = rest % plan.folded[axis]
        rest //= plan.folded[axis]
        x += index[axis] * plan.folded_x[axis] * plan.itemsize
    while start < stop:
        run = min(inner - position, stop - start)
        fold_run(plan, x + position * plan.folded_x[last] * plan.itemsize, run, n, total)
        start += run
        position = 0
        for axis in range(last - 1, -1, -1):
            index[axis] += 1
            x += plan.folded_x[axis] * plan.itemsize
            if index[axis] < plan.folded[axis]:
                break
            x -= index[axis] * plan.folded_x[axis] * plan.itemsize
            index[axis] = 0


cdef void fold_one(const Plan* plan, const char* x, Py_ssize_t start, Py_ssize_t stop, char* total) noexcept nogil:
    """fold_tile for a single accumulator: 8 bytes a level instead of a tile."""
    cdef char[8] other
    cdef Py_ssize_t mid
    if stop - start <= plan.leaf:
        fold_leaf(plan, x, start, stop, 1, total)
        return
    mid = middle(start, stop, plan.leaf)
    fold_one(plan, x, start, mid, total)
    plan.loops.start(other, 1)
    fold_one(plan, x, mid, stop, other)
    plan.loops.join(total, other, 1)


cdef void fold_tile(const Plan* plan, const char* x, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n, char* total) noexcept nogil:
    """Halve [start, stop) down to leaves.  The depth is log2(rows / 128): 17 levels of 4 kB for 10^7 rows."""
    cdef char[COLUMN_TILE * 8] other
    cdef Py_ssize_t mid
    if stop - start <= plan.leaf:
        fold_leaf(plan, x, start, stop, n, total)
        return
    mid = middle(start, stop, plan.leaf)
    fold_tile(plan, x, start, mid, n, total)
    plan.loops.start(other, n)
    fold_tile(plan, x, mid, stop, n, other)
    plan.loops.join(total, other, n)


cdef Py_ssize_t locate(const Plan* plan, Py_ssize_t group, const char** x, char** out) noexcept nogil:
    """First result of a group in x and out; returns how many results it has (all along the fastest kept axis)."""
    cdef int axis, last = plan.n_kept - 1
    cdef Py_ssize_t rest = group // plan.tiles, first = group % plan.tiles * plan.tile, index
    x[0] = plan.x + first * plan.kept_x[last] * plan.itemsize
    out[0] = plan.out + first * plan.kept_out[last] * plan.out_itemsize
    for axis in range(last - 1, -1, -1):
        index = rest % plan.kept[axis]
        rest //= plan.kept[axis]
        x[0] += index * plan.kept_x[axis] * plan.itemsize
        out[0] += index * plan.kept_out[axis] * plan.out_itemsize
    return min(plan.tile, plan.kept[last] - first)


cdef void fold_items(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Work items first <= item < last; item = group * pieces + piece."""
    cdef const Plan* plan = <const Plan*> context
    cdef char[COLUMN_TILE * 8] tile
    cdef char* total = tile
    cdef const char* x
    cdef char* out
    cdef Py_ssize_t item, n, j, start, stop, half, mid, piece, size = plan.loops.size
    for item in range(first, last):
        n = locate(plan, item // plan.pieces, &x, &out)
        start = 0
        stop = plan.total
        if plan.pieces > 1:
            total = plan.scratch + item * plan.tile * size
            piece = item % plan.pieces
            half = plan.pieces // 2
            while half:                       # go down to the piece's node of the tree
                mid = middle(start, stop, plan.leaf)
                if piece & half:
                    start = mid
                else:
                    stop = mid
                half //= 2
        plan.loops.start(total, n)
        if plan.by_columns:
            fold_tile(plan, x, start, stop, n, total)
        else:
            for j in range(n):
                fold_one(plan, x + j * plan.kept_x[plan.n_kept - 1] * plan.itemsize, start, stop, total + j * size)
        if plan.pieces == 1:
            plan.loops.finish(total, out, plan.kept_out[plan.n_kept - 1], n)


cdef int run_fold(Plan* plan) noexcept nogil:
    cdef Py_ssize_t group, step, piece, n, bytes_per_piece, chunk
    cdef const char* x
    cdef char* out
    cdef char* base
    plan_groups(plan)
    bytes_per_piece = plan.tile * plan.loops.size
    plan.scratch = NULL
    if plan.pieces > 1:
        plan.scratch = <char*> malloc(plan.groups * plan.pieces * bytes_per_piece)
        if plan.scratch == NULL:
            return -1
    chunk = max(1, PIECE_WORK // 4 // (plan.tile * plan.total)) if plan.pieces == 1 else 1
    parallel_for(fold_items, plan, plan.groups * plan.pieces, chunk, <double> plan.groups * plan.tile * plan.total)
    if plan.pieces > 1:
        for group in range(plan.groups):
            n = locate(plan, group, &x, &out)
            base = plan.scratch + group * plan.pieces * bytes_per_piece
            step = 1
            while step < plan.pieces:         # the lower levels of the recursion, from the bottom
                piece = 0
                while piece < plan.pieces:
                    plan.loops.join(base + piece * bytes_per_piece, base + (piece + step) * bytes_per_piece, n)
                    piece += 2 * step
                step *= 2
            plan.loops.finish(base, out, plan.kept_out[plan.n_kept - 1], n)
        free(plan.scratch)
    return 0


# ---- argmax and argmin -----------------------------------------------------------------------------------------------------------

cdef void arg_leaf(const Plan* plan, Py_ssize_t start, Py_ssize_t stop, char* best, int64_t* where) noexcept nogil:
    """The flattened folded axes from start to stop, for the only result there is."""
    cdef int axis, last = plan.n_folded - 1
    cdef Py_ssize_t inner = plan.folded[last], position = start % inner, rest = start // inner, run
    cdef Py_ssize_t[MAX_DIMS] index
    cdef const char* x = plan.x
    for axis in range(last - 1, -1, -1):
        index[axis] = rest % plan.folded[axis]
        rest //= plan.folded[axis]
        x += index[axis] * plan.folded_x[axis] * plan.itemsize
    while start < stop:
        run = min(inner - position, stop - start)
        plan.arg_loops.row(x + position * plan.folded_x[last] * plan.itemsize, plan.folded_x[last], run, start, best, where)
        start += run
        position = 0
        for axis in range(last - 1, -1, -1):
            index[axis] += 1
            x += plan.folded_x[axis] * plan.itemsize
            if index[axis] < plan.folded[axis]:
                break
            x -= index[axis] * plan.folded_x[axis] * plan.itemsize
            index[axis] = 0


cdef void arg_pieces(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Plan* plan = <const Plan*> context
    cdef Py_ssize_t piece, size = (plan.total + plan.pieces - 1) // plan.pieces
    cdef int64_t* where
    for piece in range(first, last):
        where = <int64_t*> (plan.scratch + piece * 16)
        where[0] = -1
        if piece * size < plan.total:
            arg_leaf(plan, piece * size, min(plan.total, (piece + 1) * size), plan.scratch + piece * 16 + 8, where)


cdef void run_flat_arg(Plan* plan) noexcept nogil:
    cdef char[MAX_PIECES * 16] states
    cdef Py_ssize_t piece
    cdef int64_t* where = <int64_t*> states
    cdef int64_t* other
    plan.pieces = max(1, min(<Py_ssize_t> MAX_PIECES, plan.total // ARG_PIECE))
    plan.scratch = states
    parallel_for(arg_pieces, plan, plan.pieces, 1, <double> plan.total)
    for piece in range(1, plan.pieces):
        other = <int64_t*> (states + piece * 16)
        if other[0] >= 0:
            plan.arg_loops.join(states + 8, where, states + piece * 16 + 8, other)
    (<int64_t*> plan.out)[0] = where[0]


cdef void arg_items(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Plan* plan = <const Plan*> context
    cdef char[COLUMN_TILE * 8] best
    cdef int64_t[COLUMN_TILE] where
    cdef const char* x
    cdef char* out
    cdef Py_ssize_t item, n, j, step = plan.folded_x[0], column = plan.kept_x[plan.n_kept - 1]
    cdef Py_ssize_t out_step = plan.kept_out[plan.n_kept - 1]
    for item in range(first, last):
        n = locate(plan, item, &x, &out)
        memset(where, 255, n * sizeof(int64_t))
        if plan.by_columns:
            plan.arg_loops.columns(x, step, column, plan.folded[0], n, 0, best, where)
        else:
            for j in range(n):
                plan.arg_loops.row(x + j * column * plan.itemsize, step, plan.folded[0], 0, best, where + j)
        for j in range(n):
            (<int64_t*> out)[j * out_step] = where[j]


cdef void run_arg(Plan* plan) noexcept nogil:
    plan_groups(plan)
    if plan.groups * plan.tile == 1 or plan.n_folded > 1:
        run_flat_arg(plan)
        return
    parallel_for(arg_items, plan, plan.groups, max(1, PIECE_WORK // 4 // (plan.tile * plan.total)),
                 <double> plan.groups * plan.tile * plan.total)


# ---- the contract ----------------------------------------------------------------------------------------------------------------

cdef int run_reduce(int reduction, int dtype, const char* x, int ndim, const Py_ssize_t* shape, const Py_ssize_t* strides,
                    unsigned long long axes, char* out) noexcept nogil:
    cdef Plan plan
    cdef int i
    cdef Py_ssize_t count = 1, results = 1, out_itemsize = ITEMSIZE[reduce_result_dtype(reduction, dtype)]
    cdef bint contiguous = True
    cdef const FoldLoops* loops
    cdef char[8] total
    for i in range(ndim - 1, -1, -1):
        if strides[i] != count and shape[i] != 1:
            contiguous = False
        count *= shape[i]
        if not axes >> i & 1:
            results *= shape[i]
    if results == 0:
        return 0
    if reduction < N_FOLDS:
        loops = &kernel_table().reduce.folds[reduction][dtype]
        if count == 0:
            fill_empty(reduction, results, out, out_itemsize, loops)
            return 0
        if results == 1 and contiguous and count <= ROW_LEAF:      # small and common: skip the planning
            loops.start(total, 1)
            loops.row(x, 1, count, total)
            loops.finish(total, out, 1, 1)
            return 0
        plan.loops = loops
        plan.arg_loops = NULL
    else:
        plan.loops = NULL
        plan.arg_loops = &kernel_table().reduce.args[reduction - N_FOLDS][dtype]
    plan.x = x
    plan.out = out
    plan.itemsize = ITEMSIZE[dtype]
    plan.out_itemsize = out_itemsize
    plan_axes(&plan, ndim, shape, strides, axes, reduction >= N_FOLDS)
    if reduction < N_FOLDS:
        return run_fold(&plan)
    run_arg(&plan)
    return 0


cdef void fill_empty(int reduction, Py_ssize_t results, char* out, Py_ssize_t out_itemsize, const FoldLoops* loops) noexcept nogil:
    """What a fold over nothing gives: 0, 1, False, True (and the identity of max and min, which callers refuse before)."""
    cdef Py_ssize_t i
    cdef char[8] total
    if reduction == Reduction.SUM or reduction == Reduction.ANY:
        memset(out, 0, results * out_itemsize)
        return
    loops.start(total, 1)
    for i in range(results):
        loops.finish(total, out + i * out_itemsize, 1, 1)


# ---- doors for tests ---------------------------------------------------------------------------------------------------------------

cdef dict FORMATS = {"?": DTypeId.BOOL, "B": DTypeId.UINT8, "b": DTypeId.INT8, "h": DTypeId.INT16, "i": DTypeId.INT32,
                     "l": DTypeId.INT64, "q": DTypeId.INT64, "L": DTypeId.UINT64, "Q": DTypeId.UINT64, "f": DTypeId.FLOAT32, "d": DTypeId.FLOAT64}


def reduce_into(str name, object x, tuple axes, object out):
    """Reduce the axes of a buffer (any strides) into a C-contiguous buffer of the right dtype and number of elements."""
    cdef Py_buffer source, target
    cdef int reduction = reduce_id(name), dtype, i, failed
    cdef Py_ssize_t[MAX_DIMS] strides
    cdef Py_ssize_t results = 1
    cdef unsigned long long mask = 0
    for axis in axes:
        mask |= 1ULL << <int> axis
    PyObject_GetBuffer(x, &source, PyBUF_STRIDES | PyBUF_FORMAT)
    try:
        PyObject_GetBuffer(out, &target, PyBUF_STRIDES | PyBUF_FORMAT | PyBUF_WRITABLE)
        try:
            dtype = FORMATS[source.format.decode()]
            if FORMATS[target.format.decode()] != reduce_result_dtype(reduction, dtype):
                raise TypeError(f"{name}: out has format {target.format.decode()!r}")
            for i in range(source.ndim):
                strides[i] = source.strides[i] // source.itemsize
                if not mask >> i & 1:
                    results *= source.shape[i]
            if target.len != results * target.itemsize:
                raise ValueError(f"{name}: out must have {results} elements")
            with nogil:
                failed = run_reduce(reduction, dtype, <const char*> source.buf, source.ndim, source.shape, strides, mask,
                                    <char*> target.buf)
            if failed:
                raise MemoryError
        finally:
            PyBuffer_Release(&target)
    finally:
        PyBuffer_Release(&source)
