"""The contract of the kernels layer: dtype ids, loop signatures, and the table of loops an ISA shell fills.

A loop walks ONE axis of several operands.  data[0] is the result, data[1:] the inputs; strides are in ELEMENTS of each
operand's own dtype (0 = broadcast, negative allowed).  A result may coincide exactly with an input (in-place) but never
overlap it otherwise.  Loops never allocate, never fail, never take the GIL.
"""
from libc.stdint cimport int64_t

cdef enum:
    N_DTYPES = 13
    MAX_DIMS = 64
    MAX_OPERANDS = 8
    MAX_KERNELS = 192

# Ids in the order in which promotion climbs inside a kind.  From FLOAT32 on are the floats that kernels compute with.
cdef enum DTypeId:
    BOOL = 0
    UINT8 = 1
    UINT16 = 2
    UINT32 = 3
    UINT64 = 4
    INT8 = 5
    INT16 = 6
    INT32 = 7
    INT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12


cdef inline int computing_dtype(int dtype) noexcept nogil:
    """Where a kernel has no loop for a dtype: the dtype that holds all its numbers and in which loops run, block by block."""
    if dtype == FLOAT16 or dtype == BFLOAT16:
        return FLOAT32
    if dtype == UINT16:
        return INT32
    if dtype == UINT32:
        return INT64
    return dtype


ctypedef void (*loop_t)(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil


cdef struct ElementwiseKernel:
    const char* name
    int n_inputs
    int weight                  # cost of an element relative to an addition, for the thread split
    loop_t loops[N_DTYPES]      # by dtype of the computed inputs; NULL where there is none


cdef enum Reduction:
    SUM = 0
    PROD = 1
    MAX = 2
    MIN = 3
    ANY = 4
    ALL = 5
    ARGMAX = 6
    ARGMIN = 7
    N_FOLDS = 6             # those before ARGMAX fold into an accumulator; the other two carry an index along

# Accumulators: float64 for sum/prod of floats, unsigned 64 bits for sum/prod of integers, a byte for any/all, else the element.
# row: total[0] joined with x[0], x[stride], ...      columns: total[j] joined with x[i * row + j * column] for all i < rows.
ctypedef void (*fold_row_t)(const char* x, Py_ssize_t stride, Py_ssize_t n, char* total) noexcept nogil
ctypedef void (*fold_columns_t)(const char* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n, char* total) noexcept nogil
ctypedef void (*fold_join_t)(char* total, const char* other, Py_ssize_t n) noexcept nogil
ctypedef void (*fold_start_t)(char* total, Py_ssize_t n) noexcept nogil
ctypedef void (*fold_finish_t)(const char* total, char* out, Py_ssize_t stride, Py_ssize_t n) noexcept nogil

# The same with an index: element i of the call has index first + i; where[j] < 0 means that nothing was seen yet.
ctypedef void (*arg_row_t)(const char* x, Py_ssize_t stride, Py_ssize_t n, int64_t first, char* best, int64_t* where) noexcept nogil
ctypedef void (*arg_columns_t)(const char* x, Py_ssize_t row, Py_ssize_t column, Py_ssize_t rows, Py_ssize_t n, int64_t first,
                               char* best, int64_t* where) noexcept nogil
ctypedef void (*arg_join_t)(char* best, int64_t* where, const char* other, const int64_t* other_where) noexcept nogil


cdef struct FoldLoops:
    fold_row_t row
    fold_columns_t columns
    fold_join_t join
    fold_start_t start
    fold_finish_t finish
    int size                # bytes of an accumulator


cdef struct ArgLoops:
    arg_row_t row
    arg_columns_t columns
    arg_join_t join


cdef struct ReduceTable:
    FoldLoops folds[N_FOLDS][N_DTYPES]
    ArgLoops args[2][N_DTYPES]


# Products in one of the two floating dtypes; strides in BYTES, any; rows of out are contiguous.  No extent is 0.  `more` adds to out.
ctypedef void (*small_product_t)(Py_ssize_t m, Py_ssize_t n, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                                 const char* y, Py_ssize_t y_row, Py_ssize_t y_column, char* out, Py_ssize_t out_row,
                                 bint more) noexcept nogil
ctypedef void (*matrix_vector_t)(Py_ssize_t m, Py_ssize_t k, const char* x, Py_ssize_t x_row, Py_ssize_t x_column,
                                 const char* y, char* out) noexcept nogil         # y contiguous


cdef struct MatmulTable:
    small_product_t small[2]    # float32, float64
    matrix_vector_t vector[2]


cdef enum RowMap:
    SOFTMAX = 0                 # of x
    LOG_SOFTMAX = 1
    SOFTMAX_BACKWARD = 2        # of the incoming gradient and the result
    LOG_SOFTMAX_BACKWARD = 3
    N_ROW_MAPS = 4

# One contiguous row of n >= 1 elements; y is NULL where there is no second input; out overlaps neither.
ctypedef void (*row_map_t)(const char* x, const char* y, char* out, Py_ssize_t n) noexcept nogil
ctypedef void (*row_fold_t)(const char* x, Py_ssize_t n, char* out) noexcept nogil
# out = exp(x * scale - shift) and its sum; out may be x.
ctypedef double (*row_exp_t)(const char* x, char* out, Py_ssize_t n, double scale, double shift) noexcept nogil

# The sum of n rows of `width` >= 1 elements, times factors unless that is NULL: rows index[i], `stride` bytes apart, but where that is
# `skipped`.  The first `known` >= n indices may be read, of rows to fetch ahead.
ctypedef void (*row_bag_t)(const char* table, Py_ssize_t stride, const int64_t* index, Py_ssize_t n, Py_ssize_t known, Py_ssize_t width,
                           const char* factor, int64_t skipped, char* out) noexcept nogil


cdef struct RowTable:
    row_map_t maps[N_ROW_MAPS][2]       # float32, float64
    row_fold_t logsumexp[2]
    row_exp_t exp[2]
    row_bag_t bag[2]


# Blocks of contiguous rows of n >= 1 elements, each set to a mean square of 1, after its mean was taken off if `centred`; w and b hold
# n elements.  The gradients of w and b, n float64 each, are added to `sums`.  dx may be NULL, or sums.
ctypedef void (*norm_forward_t)(const char* x, const char* w, const char* b, char* out, Py_ssize_t rows, Py_ssize_t n, double eps,
                                bint centred) noexcept nogil
ctypedef void (*norm_backward_t)(const char* g, const char* x, const char* w, char* dx, double* sums, Py_ssize_t rows, Py_ssize_t n,
                                 double eps, bint centred) noexcept nogil

cdef enum:
    MAX_COLUMNS = 64                    # that the functions of columns take at a time

# Parts of normalising channels: a run of n >= 1 contiguous elements of one channel, or `rows` rows of n columns, each with numbers of its
# own, `row` elements from one row to the next.  The mean and sum((x - mean)**2); (x - mean) * scale + shift; sum(g) and
# sum(g * (x - mean)); (g * weight - (x - mean) * scale * along - shift) * scale.
ctypedef double (*run_spread_t)(const char* x, Py_ssize_t n, double* mean) noexcept nogil
ctypedef void (*run_apply_t)(const char* x, char* out, Py_ssize_t n, double mean, double scale, double shift) noexcept nogil
ctypedef void (*run_products_t)(const char* g, const char* x, Py_ssize_t n, double mean, double* total, double* product) noexcept nogil
ctypedef void (*run_slope_t)(const char* g, const char* x, char* dx, Py_ssize_t n, double mean, double scale, double weight,
                             double along, double shift) noexcept nogil
ctypedef void (*column_spread_t)(const char* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, double* mean, double* square) noexcept nogil
ctypedef void (*column_apply_t)(const char* x, char* out, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean,
                                const double* scale, const double* shift) noexcept nogil
ctypedef void (*column_products_t)(const char* g, const char* x, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean,
                                   double* total, double* product) noexcept nogil
ctypedef void (*column_slope_t)(const char* g, const char* x, char* dx, Py_ssize_t row, Py_ssize_t rows, Py_ssize_t n, const double* mean,
                                const double* scale, const double* weight, const double* along, const double* shift) noexcept nogil


cdef struct NormTable:
    norm_forward_t forward[2]           # float32, float64
    norm_backward_t backward[2]
    run_spread_t spread[2]
    run_apply_t apply[2]
    run_products_t products[2]
    run_slope_t slope[2]
    column_spread_t column_spread[2]
    column_apply_t column_apply[2]
    column_products_t column_products[2]
    column_slope_t column_slope[2]


# Blocks of contiguous rows of n >= 1 logits, each with a class in [0, n) or `ignored`; w holds n weights or is NULL.  `state`, two numbers
# a row, is what forward leaves for backward.  The gradient of row i is g[i * g_step] * factor.
ctypedef void (*class_losses_t)(const char* x, const int64_t* target, const char* w, char* loss, char* state, Py_ssize_t rows, Py_ssize_t n,
                                double smoothing, int64_t ignored) noexcept nogil
ctypedef void (*class_gradients_t)(const char* g, Py_ssize_t g_step, double factor, const char* x, const int64_t* target, const char* w,
                                   const char* state, char* dx, Py_ssize_t rows, Py_ssize_t n, double smoothing,
                                   int64_t ignored) noexcept nogil


cdef struct LossTable:
    class_losses_t forward[2]           # float32, float64
    class_gradients_t backward[2]


# Rows of n >= 1 elements of recurrent cells.  Gates come side by side, n wide each: of an LSTM i, f, g, o; of a GRU r, z, the states' part
# of n, n (of x, b and gradients the first three).  Forward makes gates of what the products with the states left in them and of the inputs'
# parts x; backward makes the gradients dx of x, dr of the products, and takes dh and dc to the step before as far as that goes without them.
ctypedef void (*lstm_forward_t)(Py_ssize_t rows, Py_ssize_t n, const char* x, char* gates, const char* before, char* cells, char* out) noexcept nogil
ctypedef void (*lstm_backward_t)(Py_ssize_t rows, Py_ssize_t n, const char* gates, const char* before, const char* cells, const char* dh, char* dc,
                                 char* dx) noexcept nogil
ctypedef void (*gru_forward_t)(Py_ssize_t rows, Py_ssize_t n, const char* x, char* gates, const char* b, const char* before, char* out) noexcept nogil
ctypedef void (*gru_backward_t)(Py_ssize_t rows, Py_ssize_t n, const char* gates, const char* before, char* dh, char* dx, char* dr) noexcept nogil


cdef struct GateTable:
    lstm_forward_t lstm[2]              # float32, float64
    lstm_backward_t lstm_back[2]
    gru_forward_t gru[2]
    gru_backward_t gru_back[2]


# What one ISA shell hands over.  Each .pxi fills its own part: register_elementwise(&table), register_reduce(&table), ...
cdef struct KernelTable:
    const char* isa             # "baseline", "avx2", "avx512"
    int n_elementwise
    ElementwiseKernel elementwise[MAX_KERNELS]
    loop_t casts[N_DTYPES][N_DTYPES]            # [source][target]
    ReduceTable reduce
    MatmulTable matmul
    RowTable rows
    NormTable norm
    LossTable loss
    GateTable gates
