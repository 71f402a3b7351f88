"""Random numbers: the distributions, written over a bit generator of NumPy.

Owns the step from 64 random bits to numbers, so that a seed gives the same numbers with every version of NumPy, which only supplies
the bits (PCG64, through its C interface).  Called by ops/random.py.  Each draw holds the bit generator's lock; long draws
release the GIL.  Serial on purpose: the stream is the definition of the result.  Next to read: ops/random.py.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport exp, log, log1p, nextafter, nextafterf, sqrt
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from cgrad.core.dtype cimport dtype_object
from cgrad.core.element cimport item_of, store_item
from cgrad.core.storage cimport written
from cgrad.core.tensor cimport CONTIGUOUS, Tensor, cast_tensor, contiguous_tensor, copy_into, empty_tensor, shape_of
from cgrad.kernels.table cimport FLOAT32, FLOAT64, INT64, computing_dtype

from cgrad.core import random_count

cdef extern from "numpy/random/bitgen.h":
    ctypedef struct bitgen_t:
        void* state
        uint64_t (*next_uint64)(void* state) noexcept nogil
        uint32_t (*next_uint32)(void* state) noexcept nogil
        double (*next_double)(void* state) noexcept nogil
        uint64_t (*next_raw)(void* state) noexcept nogil

cdef enum:
    LONG_DRAW = 4096       # numbers from which releasing the GIL (about 50 ns) is lost in the draw
    LAYERS = 256

# Ziggurat after Marsaglia and Tsang (2000), 256 layers, with 52-bit positions: a number costs one draw in 99 % of cases.
cdef double ZIGGURAT_R = 3.6541528853610087963519472518
cdef double ZIGGURAT_V = 0.0049286732339746519
cdef uint64_t edge[LAYERS]
cdef double width[LAYERS]
cdef double height[LAYERS]


cdef void build_ziggurat() noexcept:
    cdef double scale = 4503599627370496.0       # 2**52
    cdef double x = ZIGGURAT_R, before = ZIGGURAT_R
    cdef double base = ZIGGURAT_V / exp(-0.5 * x * x)
    cdef int i
    edge[0] = <uint64_t> (x / base * scale)
    edge[1] = 0
    width[0] = base / scale
    width[LAYERS - 1] = x / scale
    height[0] = 1.0
    height[LAYERS - 1] = exp(-0.5 * x * x)
    for i in range(LAYERS - 2, 0, -1):
        x = sqrt(-2.0 * log(ZIGGURAT_V / x + exp(-0.5 * x * x)))
        edge[i + 1] = <uint64_t> (x / before * scale)
        before = x
        height[i] = exp(-0.5 * x * x)
        width[i] = x / scale


build_ziggurat()


cdef inline double unit(bitgen_t* bits) noexcept nogil:
    """Uniform in [0, 1), a multiple of 2**-53."""
    return (bits.next_uint64(bits.state) >> 11) * (1.0 / 9007199254740992.0)


cdef double standard_normal(bitgen_t* bits) noexcept nogil:
    cdef uint64_t r, position
    cdef int layer
    cdef double x, tail, y
    while True:
        r = bits.next_uint64(bits.state)
        layer = r & 0xff
        position = (r >> 9) & 0x000fffffffffffffULL
        x = position * width[layer]
        if (r >> 8) & 1:
            x = -x
        if position < edge[layer]:
            return x
        if layer == 0:
            while True:
                tail = -log1p(-unit(bits)) / ZIGGURAT_R
                y = -log1p(-unit(bits))
                if y + y > tail * tail:
                    return -(ZIGGURAT_R + tail) if (r >> 8) & 1 else ZIGGURAT_R + tail
        elif height[layer] + (height[layer - 1] - height[layer]) * unit(bits) < exp(-0.5 * x * x):
            return x


cdef inline uint64_t below(bitgen_t* bits, uint64_t limit) noexcept nogil:
    """Uniform in 0..limit (included), by rejection under a mask: fewer than 2 draws on average."""
    cdef uint64_t mask = limit, value
    if limit == 0:
        return 0
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    mask |= mask >> 16
    mask |= mask >> 32
    while True:
        # the high bits are the better ones; for small ranges take from them
        value = (bits.next_uint64(bits.state) >> 32 if mask <= 0xffffffffULL else bits.next_uint64(bits.state)) & mask
        if value <= limit:
            return value


cdef void uniform_f32(bitgen_t* bits, float* out, Py_ssize_t n, double low, double high) noexcept nogil:
    cdef Py_ssize_t i
    cdef uint64_t r = 0
    cdef float value, top = nextafterf(<float> high, <float> low)
    cdef bint plain = low == 0.0 and high == 1.0
    for i in range(n):
        # Two numbers of 24 bits from each draw.
        if i & 1:
            r = r << 32
        else:
            r = bits.next_uint64(bits.state)
        value = (r >> 40) * <float> (1.0 / 16777216.0)
        if not plain:
            value = <float> (low + (high - low) * value)
            if value >= high and high > low:      # rounding may reach the open end
                value = top
        out[i] = value


cdef void uniform_f64(bitgen_t* bits, double* out, Py_ssize_t n, double low, double high) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i] = low + (high - low) * unit(bits)
        if out[i] >= high and high > low:
            out[i] = nextafter(high, low)


cdef uint16_t step_down(uint16_t bits) noexcept:
    """The next smaller number of float16 or bfloat16, by its bits."""
    return bits + 1 if bits & 0x8000 else bits - 1 if bits else 0x8001


cdef double rounded_below(double high, int dtype) except? -1:
    """The end of the numbers that float16 or bfloat16 rounds to less than `high`."""
    cdef uint16_t bits
    store_item(dtype, <char*> &bits, high)
    cdef double above = item_of(dtype, <char*> &bits)
    if above < high:                               # its neighbour is not below
        return high
    bits = step_down(bits)
    return min(high, (above + <double> item_of(dtype, <char*> &bits)) / 2)


cdef class Stream:
    """A bit generator with the distributions; every method fills a whole Tensor.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
    """
    cdef object generator
    cdef object lock
    cdef bitgen_t* bits

    def __cinit__(self, bit_generator):
        self.generator = bit_generator
        self.lock = bit_generator.lock
        self.bits = <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")

    cdef Tensor target(self, Tensor out, int dtype):
        """Contiguous memory of a dtype to fill: `out` itself or a tensor to be copied into it."""
        random_count.bump()
        return out if out.flags & CONTIGUOUS and out.dtype_id == dtype else empty_tensor(dtype, out.rank, shape_of(out))

    cdef int done(self, Tensor out, Tensor filled) except -1:
        if filled is not out:
            copy_into(out, filled, "random numbers")
        else:
            written(out.storage, "random numbers")
        return 0

    def uniform(self, Tensor out not None, double low, double high):
        """Numbers in [low, high)."""
        cdef Tensor x = self.target(out, computing_dtype(out.dtype_id))
        if x.dtype_id not in (FLOAT32, FLOAT64):
            raise TypeError(f"uniform: dtype must be a floating one, got {dtype_object(out.dtype_id).name}")
        if x.dtype_id != out.dtype_id:
            high = rounded_below(high, out.dtype_id) if low < high else high
        with self.lock:
            if x.count < LONG_DRAW:
                if x.dtype_id == FLOAT32:
                    uniform_f32(self.bits, <float*> x.data, x.count, low, high)
                else:
                    uniform_f64(self.bits, <double*> x.data, x.count, low, high)
            else:
                with nogil:
                    if x.dtype_id == FLOAT32:
                        uniform_f32(self.bits, <float*> x.data, x.count, low, high)
                    else:
                        uniform_f64(self.bits, <double*> x.data, x.count, low, high)
        self.done(out, x)

    def normal(self, Tensor out not None, double mean, double std):
        """Normally distributed numbers."""
        cdef Tensor x = self.target(out, computing_dtype(out.dtype_id))
        cdef Py_ssize_t i
        cdef float* single = <float*> x.data
        cdef double* double_ = <double*> x.data
        if x.dtype_id not in (FLOAT32, FLOAT64):
            raise TypeError(f"normal: dtype must be a floating one, got {dtype_object(out.dtype_id).name}")
        with self.lock, nogil:
            if x.dtype_id == FLOAT32:
                for i in range(x.count):
                    single[i] = <float> (mean + std * standard_normal(self.bits))
            else:
                for i in range(x.count):
                    double_[i] = mean + std * standard_normal(self.bits)
        self.done(out, x)

    def exponential(self, Tensor out not None, double rate):
        """Exponentially distributed numbers with mean 1 / rate."""
        cdef Tensor x = self.target(out, computing_dtype(out.dtype_id))
        cdef Py_ssize_t i
        if x.dtype_id not in (FLOAT32, FLOAT64):
            raise TypeError(f"exponential: dtype must be a floating one, got {dtype_object(out.dtype_id).name}")
        with self.lock, nogil:
            for i in range(x.count):
                if x.dtype_id == FLOAT32:
                    (<float*> x.data)[i] = <float> (-log1p(-unit(self.bits)) / rate)
                else:
                    (<double*> x.data)[i] = -log1p(-unit(self.bits)) / rate
        self.done(out, x)

    def integers(self, Tensor out not None, uint64_t low, uint64_t last):
        """Integers in low..last (included), which are given modulo 2**64."""
        cdef Tensor x = self.target(out, INT64)
        cdef uint64_t limit = last - low
        cdef Py_ssize_t i
        with self.lock, nogil:
            for i in range(x.count):
                (<uint64_t*> x.data)[i] = low + below(self.bits, limit)
        self.done(out, x)

    def permutation(self, Tensor out not None):
        """0 .. n-1 in random order, into a contiguous int64 vector."""
        cdef int64_t* x = <int64_t*> out.data
        cdef int64_t k, swap
        cdef Py_ssize_t i
        if out.dtype_id != INT64 or not out.flags & CONTIGUOUS:
            raise TypeError("permutation: expected a contiguous int64 vector")
        random_count.bump()
        with self.lock, nogil:
            for i in range(out.count):
                x[i] = i
            for i in range(out.count - 1, 0, -1):
                k = <int64_t> below(self.bits, i)
                swap = x[i]
                x[i] = x[k]
                x[k] = swap

    def bernoulli(self, Tensor out not None, Tensor p not None):
        """1 with probability p, else 0; `p` holds one number or as many as `out`."""
        cdef Tensor x = empty_tensor(FLOAT64, out.rank, shape_of(out))
        cdef Tensor chances = contiguous_tensor(cast_tensor(p, FLOAT64))
        cdef double* chance = <double*> chances.data
        cdef double* value = <double*> x.data
        cdef Py_ssize_t i, step = 0 if p.count == 1 else 1
        if p.count != 1 and p.count != out.count:
            raise ValueError(f"bernoulli: {p.count} probabilities for {out.count} numbers")
        for i in range(p.count):
            if not 0.0 <= chance[i] <= 1.0:
                raise ValueError(f"bernoulli: probabilities must be in [0, 1], got {chance[i]}")
        random_count.bump()
        with self.lock, nogil:
            for i in range(x.count):
                value[i] = 1.0 if unit(self.bits) < chance[i * step] else 0.0
        copy_into(out, x)

    def multinomial(self, Tensor out not None, Tensor weights not None, bint replacement):
        """
        Row by row, indices drawn with chances proportional to a row of weights.

        `out` is (rows, n), contiguous int64; `weights` (rows, m).  Without replacement: the n smallest of m exponential waiting
        times (Efraimidis and Spirakis, 2006).
        """
        cdef Tensor w = contiguous_tensor(cast_tensor(weights, FLOAT64))
        cdef Py_ssize_t rows = shape_of(w)[0], m = shape_of(w)[1], n = shape_of(out)[1]
        cdef Py_ssize_t row, i, k, low, high, middle, positive
        cdef double* weight
        cdef double* work
        cdef int64_t* target
        cdef double total, u
        for row in range(rows):
            weight = <double*> w.data + row * m
            total = 0.0
            positive = 0
            for i in range(m):
                if not 0.0 <= weight[i] <= 1.7976931348623157e308:
                    raise ValueError(f"multinomial: weights must be finite and not negative, got {weight[i]}")
                total += weight[i]
                positive += weight[i] > 0
            if n and (total <= 0.0 or total > 1.7976931348623157e308):
                raise ValueError("multinomial: the weights of a row must have a positive, finite sum")
            if not replacement and positive < n:
                raise ValueError(f"multinomial: cannot draw {n} without replacement from {positive} categories with positive weight")
        random_count.bump()
        work = <double*> malloc((m or 1) * sizeof(double))
        if work == NULL:
            raise MemoryError()
        with self.lock, nogil:
            for row in range(rows):
                weight = <double*> w.data + row * m
                target = <int64_t*> out.data + row * n
                if replacement:
                    total = 0.0
                    for i in range(m):
                        total += weight[i]
                        work[i] = total
                    for k in range(n):
                        u = unit(self.bits) * total
                        low = 0
                        high = m - 1
                        while low < high:            # the first sum above u
                            middle = (low + high) // 2
                            if work[middle] > u:
                                high = middle
                            else:
                                low = middle + 1
                        while low > 0 and weight[low] == 0.0:      # u rounded up to the total
                            low -= 1
                        target[k] = low
                else:
                    for i in range(m):
                        work[i] = -log1p(-unit(self.bits)) / weight[i] if weight[i] > 0.0 else -1.0
                    for k in range(n):               # n selections of the minimum
                        low = -1
                        for i in range(m):
                            if work[i] >= 0.0 and (low < 0 or work[i] < work[low]):
                                low = i
                        target[k] = low
                        work[low] = -1.0
        free(work)
