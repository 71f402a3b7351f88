"""Convolutions tile by tile: unfold a piece of the images into a buffer that stays in cache, and multiply it.

Owns run_conv, run_conv_transpose and run_conv_weight (contracts in conv.pxd), called by core/forward/conv.pyx.  A tile is a matrix
of up to ROWS x WIDTH_BYTES: its columns are places of the result, its rows pairs of a channel and a tap of the kernel.  The convolution is
filters @ tile, its adjoint in the image folds filters.T @ y back, its adjoint in the filters is tile @ y.T; strides, dilations and
paddings concern the unfolding alone.  Products are the register kernel of matmul.pxi: it was as fast as BLAS here, does not need the
GIL and starts no threads of its own inside ours.

Each result belongs to one task and is summed in an order that the shape gives, so the bits never depend on the threads.  A task takes
its buffers from malloc, up to 600 KiB; the sums of run_conv_weight, which the caller provides, come to MAX_SUMS or the size of the filters.

Read next: matmul.pxi.
"""
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from cgrad.kernels.dispatch cimport kernel_table
from cgrad.kernels.parallel cimport body_t, parallel_for
from cgrad.kernels.table cimport DTypeId, small_product_t

cdef enum:
    WIDTH_BYTES = 960       # of a row of a tile: whole strips of every vector width, and an odd number of cache lines
    MAX_WIDTH = 240         # in elements of float32
    ROWS = 128              # of a tile: a strip of three vectors then takes half of a first-level cache
    BLOCK = 256             # filters that a task multiplies a tile with
    ENOUGH_TASKS = 8        # below which blocks are made smaller
    FEW_FILTERS = 4         # whose products are dots along the places
    MAX_SUMS = 1 << 21      # bytes of partial sums, if the filters are not larger
    TASK = 1 << 20          # multiplications that a thread takes at a time, at least
    UNFOLDING = 8           # multiplications that take as long as an element of a tile takes to get there
    PIECE = 4               # elements that are copied at once
    LINE = 64

ctypedef fused real:
    float
    double


cdef struct Plan:
    ConvShape s
    small_product_t product
    bint double_precision
    Py_ssize_t size                     # bytes of an element
    Py_ssize_t width                    # columns of a tile
    Py_ssize_t taps, rows               # of a filter: taps of each channel, elements
    Py_ssize_t channel_step, tap_step   # rows of a tile: channels, and taps of each
    Py_ssize_t row_blocks               # how many tiles one above the other have all rows
    Py_ssize_t group_step, group_blocks  # groups that share a tile, with all their rows and filters, and how many such blocks there are
    Py_ssize_t image, places            # elements of one channel of x and of y
    Py_ssize_t together                 # images whose places share a tile
    Py_ssize_t sets, tiles              # sets of so many images, tiles of a set
    Py_ssize_t block, blocks            # filters (channels, in the transposed one) of a task, and how many such blocks there are
    Py_ssize_t chunk, chunks            # tiles whose products are summed one after another, and how many such sums there are
    Py_ssize_t sums_row                 # elements of a row of sums
    const char* x
    const char* y
    const char* w
    const char* b
    char* out
    bint no_memory


cdef struct Rows:                       # of a tile: some taps of some channels, all taps if there are several channels
    Py_ssize_t channel, n_channels, tap, n_taps         # the channel among those of all groups
    Py_ssize_t first, n                 # of one group: among the elements of its filters


cdef struct Run:                        # places side by side along the last axis
    Py_ssize_t column, length           # where in the tile
    Py_ssize_t image
    Py_ssize_t[CONV_AXES] at            # the element of the image that the first tap meets at the first place


cdef struct Tile:
    Py_ssize_t first_image, n_images
    Py_ssize_t first_place, n_places    # of each image
    Py_ssize_t width
    Py_ssize_t n_runs
    Run[MAX_WIDTH] runs


# ---- plans -----------------------------------------------------------------------------------------------------------------------

cdef void merge_axes(ConvShape* s) noexcept nogil:
    """Join a last axis that the kernel does not touch with the one before, so that rows of a tile are long runs."""
    cdef int _
    for _ in range(CONV_AXES - 1):
        if s.kernel[2] != 1 or s.stride[2] != 1 or s.padding[2] != 0 or s.image[2] != s.places[2] or s.stride[1] != 1:
            return
        s.padding[2] = s.padding[1] * s.image[2]
        s.dilation[2] = s.dilation[1] * s.image[2]
        s.kernel[2] = s.kernel[1]
        s.image[2] *= s.image[1]
        s.places[2] *= s.places[1]
        s.image[1], s.places[1], s.kernel[1] = s.image[0], s.places[0], s.kernel[0]
        s.stride[1], s.padding[1], s.dilation[1] = s.stride[0], s.padding[0], s.dilation[0]
        s.image[0] = s.places[0] = s.kernel[0] = s.stride[0] = s.dilation[0] = 1
        s.padding[0] = 0


cdef inline Py_ssize_t parts(Py_ssize_t n, Py_ssize_t size) noexcept nogil:
    return (n + size - 1) // size


cdef inline Py_ssize_t even_step(Py_ssize_t n, Py_ssize_t step) noexcept nogil:
    """The step of at most `step` that divides n into parts of about the same size."""
    return max(1, parts(n, max(1, parts(n, max(1, step)))))


cdef void fill_plan(Plan* plan, int dtype, const ConvShape* shape) noexcept nogil:
    cdef ConvShape* s = &plan.s
    plan.s = shape[0]
    merge_axes(s)
    plan.double_precision = dtype == DTypeId.FLOAT64
    plan.product = kernel_table().matmul.small[dtype - <int> DTypeId.FLOAT32]
    plan.size = 8 if plan.double_precision else 4
    plan.width = WIDTH_BYTES // plan.size
    plan.taps = s.kernel[0] * s.kernel[1] * s.kernel[2]
    plan.rows = s.channels * plan.taps
    plan.tap_step = even_step(plan.taps, ROWS)
    plan.channel_step = even_step(s.channels, ROWS // max(1, plan.taps))
    plan.row_blocks = parts(s.channels, plan.channel_step) * parts(plan.taps, plan.tap_step)
    plan.sums_row = s.filters if s.filters <= FEW_FILTERS else parts(s.filters, LINE // plan.size) * (LINE // plan.size)
    plan.group_step = 1
    if plan.row_blocks == 1:
        plan.group_step = even_step(s.groups, min(ROWS // plan.rows, BLOCK // max(1, plan.sums_row)))
    plan.group_blocks = parts(s.groups, plan.group_step)
    plan.image = s.image[0] * s.image[1] * s.image[2]
    plan.places = s.places[0] * s.places[1] * s.places[2]
    plan.together = max(1, min(s.n_images, plan.width // max(1, plan.places)))
    plan.sets = parts(s.n_images, plan.together)
    plan.tiles = parts(plan.places, plan.width)
    plan.no_memory = False


cdef void run_tasks(Plan* plan, body_t body, Py_ssize_t n_tasks) noexcept nogil:
    cdef double work = <double> plan.s.n_images * plan.s.groups * plan.places * plan.rows * (plan.s.filters + UNFOLDING)
    parallel_for(body, plan, n_tasks, <Py_ssize_t> max(1.0, TASK * n_tasks / max(1.0, work)), work / 8)


cdef void find_rows(const Plan* plan, Py_ssize_t group, Py_ssize_t n_groups, Py_ssize_t number, Rows* rows) noexcept nogil:
    cdef Py_ssize_t tap_blocks = parts(plan.taps, plan.tap_step)
    cdef Py_ssize_t channel = number // tap_blocks * plan.channel_step, n_channels = min(plan.channel_step, plan.s.channels - channel)
    rows.channel = group * plan.s.channels + channel
    rows.n_channels = n_groups * n_channels
    rows.tap = number % tap_blocks * plan.tap_step
    rows.n_taps = min(plan.tap_step, plan.taps - rows.tap)
    rows.first = channel * plan.taps + rows.tap
    rows.n = n_channels * rows.n_taps


cdef void find_tile(const Plan* plan, Py_ssize_t set, Py_ssize_t number, Tile* tile) noexcept nogil:
    cdef const ConvShape* s = &plan.s
    cdef Py_ssize_t image, place, stop, row, plane
    cdef Run* run
    tile.first_image = set * plan.together
    tile.n_images = min(plan.together, s.n_images - tile.first_image)
    tile.first_place = number * plan.width
    tile.n_places = min(plan.width, plan.places - tile.first_place)
    tile.width = tile.n_images * tile.n_places
    tile.n_runs = 0
    stop = tile.first_place + tile.n_places
    for image in range(tile.n_images):
        place = tile.first_place
        while place < stop:
            run = &tile.runs[tile.n_runs]
            run.image = tile.first_image + image
            run.column = image * tile.n_places + place - tile.first_place
            row = place // s.places[2]
            plane = row // s.places[1]
            run.length = min((row + 1) * s.places[2], stop) - place
            run.at[0] = plane * s.stride[0] - s.padding[0]
            run.at[1] = (row - plane * s.places[1]) * s.stride[1] - s.padding[1]
            run.at[2] = (place - row * s.places[2]) * s.stride[2] - s.padding[2]
            place += run.length
            tile.n_runs += 1


# ---- between images and tiles ----------------------------------------------------------------------------------------------------

cdef inline void copy_run(real* target, const real* source, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    """Runs are short: in pieces of a constant size, the last of which overlaps the one before, it takes half as long as memcpy."""
    cdef Py_ssize_t i = 0
    if step == 1 and n >= PIECE:
        while i < n - PIECE:
            memcpy(target + i, source + i, PIECE * sizeof(real))
            i += PIECE
        memcpy(target + n - PIECE, source + n - PIECE, PIECE * sizeof(real))
    else:
        for i in range(n):
            target[i] = source[i * step]


cdef inline void add_run(real* target, const real* source, Py_ssize_t step, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if step == 1:
        for i in range(n):
            target[i] += source[i]
    else:
        for i in range(n):
            target[i * step] += source[i]


cdef inline void move(const Plan* plan, const Tile* tile, const Rows* rows, real* images, real* buffer, bint fold) noexcept nogil:
    """Rows of a tile from the images; fold: added back to them."""
    cdef const ConvShape* s = &plan.s
    cdef const Run* run
    cdef Py_ssize_t step = s.stride[2], next_row = rows.n_taps * plan.width
    cdef Py_ssize_t _, i, j, l, r, tap = -1, at_0, at_1, start, lead, stop, q
    cdef real* image
    cdef real* row
    for i in range(s.kernel[0]):
        for j in range(s.kernel[1]):
            for l in range(s.kernel[2]):
                tap += 1
                if tap < rows.tap or tap >= rows.tap + rows.n_taps:
                    continue
                for r in range(tile.n_runs):
                    run = &tile.runs[r]
                    at_0 = run.at[0] + i * s.dilation[0]
                    at_1 = run.at[1] + j * s.dilation[1]
                    start = run.at[2] + l * s.dilation[2]
                    lead = 0
                    stop = run.length
                    if at_0 < 0 or at_0 >= s.image[0] or at_1 < 0 or at_1 >= s.image[1]:
                        stop = 0                            # all of the run lies in the padding
                    elif step == 1:
                        lead = min(stop, max(0, -start))
                        stop = max(lead, min(stop, s.image[2] - start))
                    else:
                        if start < 0:
                            lead = min(stop, parts(-start, step))
                        stop = max(lead, min(stop, parts(s.image[2] - start, step))) if start < s.image[2] else lead
                    image = images + (run.image * s.groups * s.channels + rows.channel) * plan.image
                    image += (at_0 * s.image[1] + at_1) * s.image[2] + start + lead * step
                    row = buffer + (tap - rows.tap) * plan.width + run.column
                    for _ in range(rows.n_channels):
                        if fold:
                            add_run(image, row + lead, step, stop - lead)
                        else:
                            for q in range(lead):
                                row[q] = 0
                            copy_run(row + lead, image, step, stop - lead)
                            for q in range(stop, run.length):
                                row[q] = 0
                        image += plan.image
                        row += next_row


cdef void unfold(const Plan* plan, const Tile* tile, const Rows* rows, const char* images, char* buffer) noexcept nogil:
    if plan.double_precision:
        move(plan, tile, rows, <double*> images, <double*> buffer, False)
    else:
        move(plan, tile, rows, <float*> images, <float*> buffer, False)


cdef void fold(const Plan* plan, const Tile* tile, const Rows* rows, char* images, const char* buffer) noexcept nogil:
    if plan.double_precision:
        move(plan, tile, rows, <double*> images, <double*> buffer, True)
    else:
        move(plan, tile, rows, <float*> images, <float*> buffer, True)


cdef void pack_rows(const Plan* plan, const Tile* tile, const char* y, Py_ssize_t n, char* rows, Py_ssize_t row, bint back) noexcept nogil:
    """The places of a tile in n channels of y, which start with y for image 0: a row of the tile each; or back from there."""
    cdef Py_ssize_t image, f, nbytes = tile.n_places * plan.size
    cdef char* part
    for image in range(tile.n_images):
        for f in range(n):
            part = <char*> y + (((tile.first_image + image) * plan.s.groups * plan.s.filters + f) * plan.places + tile.first_place) * plan.size
            if back:
                memcpy(part, rows + f * row + image * nbytes, nbytes)
            else:
                memcpy(rows + f * row + image * nbytes, part, nbytes)


cdef inline void transpose(const real* rows, Py_ssize_t row, Py_ssize_t n, Py_ssize_t width, real* columns, Py_ssize_t column) noexcept nogil:
    """columns[p, f] = rows[f, p], with zeros for n <= f < column."""
    cdef Py_ssize_t f, p
    for p in range(width):
        for f in range(n):
            columns[p * column + f] = rows[f * row + p]
        for f in range(n, column):
            columns[p * column + f] = 0


cdef inline void fill_row(real* row, Py_ssize_t n, real value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        row[i] = value


cdef void fill_rows(const Plan* plan, Py_ssize_t first, Py_ssize_t n, Py_ssize_t width, char* out, Py_ssize_t row) noexcept nogil:
    """n rows of the bias of each, from channel `first` on, or of 0."""
    cdef Py_ssize_t k
    for k in range(n):
        if plan.b == NULL:
            memset(out + k * row, 0, width * plan.size)
        elif plan.double_precision:
            fill_row(<double*> (out + k * row), width, (<const double*> plan.b)[first + k])
        else:
            fill_row(<float*> (out + k * row), width, (<const float*> plan.b)[first + k])


cdef inline char* aligned(char* memory) noexcept nogil:
    return memory + (LINE - <size_t> memory % LINE)


cdef char* take_buffer(Plan* plan, Py_ssize_t nbytes) noexcept nogil:
    """Memory for a task, to be freed; None of it makes the whole call fail."""
    cdef char* memory = <char*> malloc(nbytes + LINE)
    if memory == NULL:
        plan.no_memory = True
    return memory


# ---- y = conv(x, w) + b ----------------------------------------------------------------------------------------------------------

cdef void conv_tasks(void* context, Py_ssize_t first_task, Py_ssize_t last_task) noexcept nogil:
    """Tasks (set of images, block of groups, tile, block of filters), the last running fastest."""
    cdef Plan* plan = <Plan*> context
    cdef const ConvShape* s = &plan.s
    cdef Py_ssize_t task, group, n_groups, f, n, number, k, row, size = plan.size
    cdef bint more
    cdef Tile tile
    cdef Rows rows
    cdef const char* w
    cdef char* y
    cdef char* out
    cdef char* memory = take_buffer(plan, (ROWS + plan.group_step * plan.block) * WIDTH_BYTES)
    cdef char* buffer = aligned(memory)
    if memory == NULL:
        return
    for task in range(first_task, last_task):
        f = task % plan.blocks * plan.block
        n = min(plan.block, s.filters - f)
        group = task // (plan.blocks * plan.tiles) % plan.group_blocks * plan.group_step
        n_groups = min(plan.group_step, s.groups - group)
        find_tile(plan, task // (plan.blocks * plan.tiles * plan.group_blocks), task // plan.blocks % plan.tiles, &tile)
        f += group * s.filters
        w = plan.w + f * plan.rows * size
        y = plan.out + f * plan.places * size
        if tile.n_images == 1:                              # a row of the product is a piece of y
            out = y + (tile.first_image * s.groups * s.filters * plan.places + tile.first_place) * size
            row = plan.places * size
        else:
            out = buffer + ROWS * WIDTH_BYTES
            row = WIDTH_BYTES
        more = plan.b != NULL or plan.rows == 0
        if more:
            fill_rows(plan, f, n_groups * n, tile.width, out, row)
        for number in range(plan.row_blocks):
            find_rows(plan, group, n_groups, number, &rows)
            unfold(plan, &tile, &rows, plan.x, buffer)
            for k in range(n_groups):
                plan.product(n, tile.width, rows.n, w + (k * n * plan.rows + rows.first) * size, plan.rows * size, size,
                             buffer + k * rows.n * WIDTH_BYTES, WIDTH_BYTES, size, out + k * n * row, row, more)
            more = True
        if tile.n_images > 1:
            pack_rows(plan, &tile, y, n_groups * n, out, row, True)
    free(memory)


cdef int run_conv(int dtype, const ConvShape* shape, const char* x, const char* w, const char* b, char* y) noexcept nogil:
    cdef Plan plan
    fill_plan(&plan, dtype, shape)
    plan.x, plan.w, plan.b, plan.out = x, w, b, y
    plan.block = BLOCK
    plan.blocks = parts(plan.s.filters, plan.block)
    while plan.block > 64 and plan.group_step == 1 and plan.sets * plan.s.groups * plan.tiles * plan.blocks < ENOUGH_TASKS:
        plan.block //= 2
        plan.blocks = parts(plan.s.filters, plan.block)
    plan.block = even_step(plan.s.filters, plan.block)
    run_tasks(&plan, conv_tasks, plan.sets * plan.group_blocks * plan.tiles * plan.blocks)
    return -1 if plan.no_memory else 0


# ---- x = the adjoint of conv in x, of y, + b -------------------------------------------------------------------------------------

cdef void transpose_tasks(void* context, Py_ssize_t first_task, Py_ssize_t last_task) noexcept nogil:
    """Tasks (set of images, block of groups, block of channels), the last running fastest."""
    cdef Plan* plan = <Plan*> context
    cdef const ConvShape* s = &plan.s
    cdef Py_ssize_t task, set, group, n_groups, channel, t, b, f, n, k, image, number, size = plan.size
    cdef Tile tile
    cdef Rows rows
    cdef const char* w
    cdef const char* y
    cdef char* memory = take_buffer(plan, (ROWS + plan.group_step * min(s.filters, <Py_ssize_t> BLOCK)) * WIDTH_BYTES)
    cdef char* buffer = aligned(memory)
    cdef char* packed = buffer + ROWS * WIDTH_BYTES
    if memory == NULL:
        return
    for task in range(first_task, last_task):
        channel = task % plan.blocks * plan.block
        group = task // plan.blocks % plan.group_blocks * plan.group_step
        n_groups = min(plan.group_step, s.groups - group)
        set = task // (plan.blocks * plan.group_blocks)
        rows.channel = group * s.channels + channel
        rows.n_channels = n_groups * min(plan.block, s.channels - channel)
        y = plan.y + group * s.filters * plan.places * size
        w = plan.w + (group * s.filters * plan.rows + channel * plan.taps) * size
        for image in range(set * plan.together, min((set + 1) * plan.together, s.n_images)):
            fill_rows(plan, rows.channel, rows.n_channels, plan.image,
                      plan.out + (image * s.groups * s.channels + rows.channel) * plan.image * size, plan.image * size)
        for number in range(plan.tiles if s.filters else 0):
            find_tile(plan, set, number, &tile)
            for t in range(parts(plan.taps, plan.tap_step)):
                rows.tap = t * plan.tap_step
                rows.n_taps = min(plan.tap_step, plan.taps - rows.tap)
                rows.n = rows.n_channels // n_groups * rows.n_taps
                for b in range(parts(s.filters, BLOCK)):
                    f = b * BLOCK
                    n = min(s.filters - f, <Py_ssize_t> BLOCK)
                    pack_rows(plan, &tile, y + f * plan.places * size, n_groups * n, packed, WIDTH_BYTES, False)
                    for k in range(n_groups):
                        plan.product(rows.n, tile.width, n, w + ((k * s.filters + f) * plan.rows + rows.tap) * size, size, plan.rows * size,
                                     packed + k * n * WIDTH_BYTES, WIDTH_BYTES, size, buffer + k * rows.n * WIDTH_BYTES, WIDTH_BYTES, f > 0)
                fold(plan, &tile, &rows, plan.out, buffer)
    free(memory)


cdef int run_conv_transpose(int dtype, const ConvShape* shape, const char* y, const char* w, const char* b, char* x) noexcept nogil:
    cdef Plan plan
    fill_plan(&plan, dtype, shape)
    plan.y, plan.w, plan.b, plan.out = y, w, b, x
    plan.block = plan.channel_step
    while plan.block > 1 and plan.group_step == 1 and plan.sets * plan.s.groups * parts(plan.s.channels, plan.block) < ENOUGH_TASKS:
        plan.block = parts(plan.block, 2)
    plan.blocks = parts(plan.s.channels, plan.block)
    run_tasks(&plan, transpose_tasks, plan.sets * plan.group_blocks * plan.blocks)
    return -1 if plan.no_memory else 0


# ---- w = the adjoint of conv in w, of y and x --------------------------------------------------------------------------------------

cdef void weight_tasks(void* context, Py_ssize_t first_task, Py_ssize_t last_task) noexcept nogil:
    """Tasks (chunk of tiles, block of groups, block of filters), the last running fastest.  Sums are the transpose of w."""
    cdef Plan* plan = <Plan*> context
    cdef const ConvShape* s = &plan.s
    cdef Py_ssize_t task, chunk, group, n_groups, f, n, columns, number, block, k, size = plan.size
    cdef bint few = plan.s.filters <= FEW_FILTERS
    cdef Tile tile
    cdef Rows rows
    cdef const char* y
    cdef char* sums
    cdef char* memory = take_buffer(plan, (ROWS + 2 * plan.group_step * plan.block) * WIDTH_BYTES)
    cdef char* buffer = aligned(memory)
    cdef char* packed = buffer + ROWS * WIDTH_BYTES
    cdef char* columns_of_y = packed + plan.group_step * plan.block * WIDTH_BYTES
    if memory == NULL:
        return
    for task in range(first_task, last_task):
        f = task % plan.blocks * plan.block
        n = min(plan.block, s.filters - f)
        group = task // plan.blocks % plan.group_blocks * plan.group_step
        n_groups = min(plan.group_step, s.groups - group)
        chunk = task // (plan.blocks * plan.group_blocks)
        columns = min(plan.block, plan.sums_row - f)
        y = plan.y + (group * s.filters + f) * plan.places * size
        sums = plan.out + ((chunk * s.groups + group) * plan.rows * plan.sums_row + f) * size
        for number in range(chunk * plan.chunk, min((chunk + 1) * plan.chunk, plan.sets * plan.tiles)):
            find_tile(plan, number // plan.tiles, number % plan.tiles, &tile)
            pack_rows(plan, &tile, y, n_groups * n, packed, WIDTH_BYTES, False)
            for k in range(0 if few else n_groups):
                if plan.double_precision:
                    transpose(<double*> (packed + k * n * WIDTH_BYTES), plan.width, n, tile.width,
                              <double*> (columns_of_y + k * columns * WIDTH_BYTES), columns)
                else:
                    transpose(<float*> (packed + k * n * WIDTH_BYTES), plan.width, n, tile.width,
                              <float*> (columns_of_y + k * columns * WIDTH_BYTES), columns)
            for block in range(plan.row_blocks):
                find_rows(plan, group, n_groups, block, &rows)
                unfold(plan, &tile, &rows, plan.x, buffer)
                for k in range(n_groups):
                    plan.product(rows.n, columns, tile.width, buffer + k * rows.n * WIDTH_BYTES, WIDTH_BYTES, size,
                                 packed + k * n * WIDTH_BYTES if few else columns_of_y + k * columns * WIDTH_BYTES,
                                 size if few else columns * size, <Py_ssize_t> WIDTH_BYTES if few else size,
                                 sums + (k * plan.rows + rows.first) * plan.sums_row * size, plan.sums_row * size, number > chunk * plan.chunk)
    free(memory)


cdef inline void add_sums(const Plan* plan, real* sums, Py_ssize_t first, Py_ssize_t last, real* w) noexcept nogil:
    """Rows [first, last) of all groups: the chunks in their order, transposed."""
    cdef Py_ssize_t k, chunk, f, n = plan.sums_row, next_chunk = plan.s.groups * plan.rows * n
    cdef real* total
    for k in range(first, last):
        total = sums + k * n
        for chunk in range(1, plan.chunks):
            for f in range(n):
                total[f] += total[chunk * next_chunk + f]
        for f in range(plan.s.filters):
            w[(k // plan.rows * plan.s.filters + f) * plan.rows + k % plan.rows] = total[f] if plan.chunks else 0


cdef void sum_tasks(void* context, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    cdef const Plan* plan = <const Plan*> context
    if plan.double_precision:
        add_sums(plan, <double*> plan.out, first, last, <double*> plan.w)
    else:
        add_sums(plan, <float*> plan.out, first, last, <float*> plan.w)


cdef Py_ssize_t plan_sums(Plan* plan) noexcept nogil:
    """Choose block and chunks; returns the bytes of all sums."""
    cdef Py_ssize_t tiles = plan.sets * plan.tiles, nbytes = plan.s.groups * plan.rows * plan.sums_row * plan.size
    plan.chunk = parts(max(1, tiles), max(1, min(MAX_SUMS // max(1, nbytes), 2 * ENOUGH_TASKS)))
    plan.chunks = parts(tiles, plan.chunk)
    plan.block = BLOCK
    while plan.block > 64 and plan.group_step == 1 and plan.chunks * plan.s.groups * parts(plan.s.filters, plan.block) < ENOUGH_TASKS:
        plan.block //= 2
    plan.block = min(plan.block, plan.sums_row)
    plan.blocks = parts(plan.s.filters, max(1, plan.block))
    return plan.chunks * nbytes


cdef Py_ssize_t conv_weight_scratch(int dtype, const ConvShape* shape) noexcept nogil:
    cdef Plan plan
    fill_plan(&plan, dtype, shape)
    return plan_sums(&plan)


cdef int run_conv_weight(int dtype, const ConvShape* shape, const char* y, const char* x, char* w, char* scratch) noexcept nogil:
    cdef Plan plan
    fill_plan(&plan, dtype, shape)
    plan_sums(&plan)
    plan.x, plan.y, plan.w, plan.out = x, y, w, scratch
    run_tasks(&plan, weight_tasks, plan.chunks * plan.group_blocks * plan.blocks)
    parallel_for(sum_tasks, &plan, plan.s.groups * plan.rows, max(1, TASK // 64 // max(1, plan.s.filters * plan.chunks)),
                 <double> plan.s.groups * plan.s.filters * plan.rows * plan.chunks)
    return -1 if plan.no_memory else 0
