"""float16 and bfloat16: 16 bits in memory, computed as float32 and rounded once, half to even.

Owns: the conversions, as cast loops to and from float32 (and from float64, rounded once).  But for what only moves bits there are no other
loops for the two types: iterate.pyx converts their elements block by block for the loops of float32.  Included by the ISA shells after scalar.pxi.
Rules: those of scalar.pxi; NaN keeps its sign and the upper bits of its payload.  Next: integers.pxi, which goes the same way.
"""
from cgrad.kernels.table cimport BFLOAT16, FLOAT16, FLOAT32, FLOAT64, KernelTable

cdef inline float from_float16(uint16_t h) noexcept nogil:
    """Exact.  The exponent is rebased by an integer addition and a product; what is subnormal, by a subtraction (M. Dukhan's FP16)."""
    cdef uint32_t w = <uint32_t>h << 16, twice = w + w
    cdef float normal = bits_float((twice >> 4) + (<uint32_t>0xe0 << 23)) * <float>1.9259299443872359e-34        # 2**-112
    cdef float small = bits_float((twice >> 17) | (<uint32_t>126 << 23)) - <float>0.5
    return bits_float((w & <uint32_t>0x80000000) | (float_bits(small) if twice < (<uint32_t>1 << 27) else float_bits(normal)))


cdef inline uint16_t to_float16(float x) noexcept nogil:
    """The addition of a power of two with the right exponent rounds; two products before it make infinity of what is too large."""
    cdef uint32_t w = float_bits(x), twice = w + w, bias = twice & <uint32_t>0xff000000, bits
    cdef float base = libm.fabsf(x) * <float>5.192296858534828e33 * <float>7.703719777548943e-34                # 2**112, 2**-110
    bias = <uint32_t>0x71000000 if bias < <uint32_t>0x71000000 else bias
    bits = float_bits(bits_float((bias >> 1) + <uint32_t>0x07800000) + base)
    bits = ((bits >> 13) & 0x7c00) + (bits & 0x0fff)
    bits = 0x7e00 | ((w >> 13) & 0x1ff) if twice > <uint32_t>0xff000000 else bits
    return <uint16_t>((w >> 16) & 0x8000 | bits)


cdef inline float from_bfloat16(uint16_t h) noexcept nogil:
    return bits_float(<uint32_t>h << 16)


cdef inline uint16_t to_bfloat16(float x) noexcept nogil:
    cdef uint32_t w = float_bits(x)
    return <uint16_t>((w >> 16) | 0x40) if x != x else <uint16_t>((w + 0x7fff + ((w >> 16) & 1)) >> 16)


cdef inline float to_odd(double x) noexcept nogil:
    """float32 cut towards 0, its last bit set where that lost something: rounded again to fewer bits it is what x itself rounds to."""
    cdef float near = <float>x
    cdef uint32_t bits = float_bits(near) - (libm.fabs(<double>near) > libm.fabs(x))
    return bits_float(bits | (<double>near != x))


cdef inline void load_map(float (*f)(uint16_t) noexcept nogil, float* out, const uint16_t* x, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if s[0] == 1 and s[1] == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * s[0]] = f(x[i * s[1]])


cdef inline void store_map(uint16_t (*f)(float) noexcept nogil, uint16_t* out, const float* x, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if s[0] == 1 and s[1] == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * s[0]] = f(x[i * s[1]])


cdef inline void store_double_map(uint16_t (*f)(float) noexcept nogil, uint16_t* out, const double* x, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        out[i * s[0]] = f(to_odd(x[i * s[1]]))


cdef void load_float16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    load_map(from_float16, <float*>p[0], <const uint16_t*>p[1], s, n)

cdef void load_bfloat16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    load_map(from_bfloat16, <float*>p[0], <const uint16_t*>p[1], s, n)

cdef void store_float16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    store_map(to_float16, <uint16_t*>p[0], <const float*>p[1], s, n)

cdef void store_bfloat16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    store_map(to_bfloat16, <uint16_t*>p[0], <const float*>p[1], s, n)

cdef void store_double_float16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    store_double_map(to_float16, <uint16_t*>p[0], <const double*>p[1], s, n)

cdef void store_double_bfloat16_loop(char** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    store_double_map(to_bfloat16, <uint16_t*>p[0], <const double*>p[1], s, n)


cdef void register_half(KernelTable* table) noexcept:
    table.casts[<int>FLOAT16][<int>FLOAT32] = load_float16_loop
    table.casts[<int>BFLOAT16][<int>FLOAT32] = load_bfloat16_loop
    table.casts[<int>FLOAT32][<int>FLOAT16] = store_float16_loop
    table.casts[<int>FLOAT64][<int>FLOAT16] = store_double_float16_loop
    table.casts[<int>FLOAT32][<int>BFLOAT16] = store_bfloat16_loop
    table.casts[<int>FLOAT64][<int>BFLOAT16] = store_double_bfloat16_loop
