"""Maps: one formula over one axis, of any strides.

Owns: three families.  The plain maps are for formulas of an instruction or two: a loop for each usual pattern of strides.  The
staged maps are for long formulas, whose loops would be kilobytes for each pattern, each width of vector and each rest: they have
one loop, always over whole vectors of adjacent elements; what lies otherwise is first copied to a block on the stack.
The branching maps are for formulas that no compiler vectorises.
Included by the ISA shells after the formulas.  Rules: no GIL, no allocation; a result may coincide with an input.
Read next: elementwise.pxi, which applies them.
"""
from libc.string cimport memcpy

cdef extern from *:
    """
    #if defined(__AVX512F__)
    #define CGRAD_VECTOR 64
    #elif defined(__AVX2__)
    #define CGRAD_VECTOR 32
    #else
    #define CGRAD_VECTOR 16
    #endif
    /* n rounded up to whole vectors, said so that compilers see the multiple and leave out the loops for a rest */
    #define CGRAD_WHOLE(n, lanes) (((n) + (lanes) - 1) & ~(Py_ssize_t)((lanes) - 1))
    #define CGRAD_LANES(x) ((Py_ssize_t)(CGRAD_VECTOR / sizeof(*(x))))
    /* Results lie on their own element's inputs or apart from all: no need of a second loop for the case that they overlap. */
    #if defined(__clang__)
    #define CGRAD_VECTORS _Pragma("clang loop vectorize(assume_safety)")
    #elif defined(__GNUC__)
    #define CGRAD_VECTORS _Pragma("GCC ivdep")
    #else
    #define CGRAD_VECTORS
    #endif
    #define CGRAD_MAP1(f, out, n, x) do { CGRAD_VECTORS for (Py_ssize_t i = 0; i < (n); i++) (out)[i] = f((x)[i]); } while (0)
    #define CGRAD_MAP2(f, out, n, x, y) do { CGRAD_VECTORS for (Py_ssize_t i = 0; i < (n); i++) (out)[i] = f((x)[i], (y)[i]); } while (0)
    #define CGRAD_MAP3(f, out, n, x, y, z) do { CGRAD_VECTORS for (Py_ssize_t i = 0; i < (n); i++) (out)[i] = f((x)[i], (y)[i], (z)[i]); } while (0)
    """
    Py_ssize_t whole_vectors "CGRAD_WHOLE" (Py_ssize_t n, Py_ssize_t lanes) noexcept nogil
    Py_ssize_t lanes_of "CGRAD_LANES" (...) noexcept nogil          # elements of a vector
    void map1 "CGRAD_MAP1" (...) noexcept nogil
    void map2 "CGRAD_MAP2" (...) noexcept nogil
    void map3 "CGRAD_MAP3" (...) noexcept nogil

ctypedef fused result:           # the other operand type of a map between two types
    bool_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double


# ---- plain: unit strides and a repeated scalar (stride 0) come first: those loops vectorise ----

cdef inline void unary_map(number (*f)(number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1]
    cdef number* out = p[0]
    cdef const number* x = p[1]
    if t0 == 1 and t1 == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1])


cdef inline void convert_map(result (*f)(number) noexcept nogil, result* out, const number* x, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1]
    if t0 == 1 and t1 == 1:
        for i in range(n):
            out[i] = f(x[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1])


cdef inline void binary_map(number (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1], t2 = s[2]
    cdef number* out = p[0]
    cdef const number* x = p[1]
    cdef const number* y = p[2]
    cdef number a
    if t0 == 1 and t1 == 1 and t2 == 1:
        for i in range(n):
            out[i] = f(x[i], y[i])
    elif t0 == 1 and t1 == 1 and t2 == 0:
        a = y[0]
        for i in range(n):
            out[i] = f(x[i], a)
    elif t0 == 1 and t1 == 0 and t2 == 1:
        a = x[0]
        for i in range(n):
            out[i] = f(a, y[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1], y[i * t2])


cdef inline void compare_map(bool_t (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1], t2 = s[2]
    cdef bool_t* out = <bool_t*>p[0]
    cdef const number* x = p[1]
    cdef const number* y = p[2]
    cdef number a
    if t0 == 1 and t1 == 1 and t2 == 1:
        for i in range(n):
            out[i] = f(x[i], y[i])
    elif t0 == 1 and t1 == 1 and t2 == 0:
        a = y[0]
        for i in range(n):
            out[i] = f(x[i], a)
    elif t0 == 1 and t1 == 0 and t2 == 1:
        a = x[0]
        for i in range(n):
            out[i] = f(a, y[i])
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1], y[i * t2])


cdef inline void swapped(void (*loop)(number**, const Py_ssize_t*, Py_ssize_t) noexcept nogil, number** p, const Py_ssize_t* s,
                         Py_ssize_t n) noexcept nogil:
    """loop(y, x), one loop for two kernels."""
    cdef number* q[3]
    cdef Py_ssize_t[3] t
    q[0], q[1], q[2] = p[0], p[2], p[1]
    t[0], t[1], t[2] = s[0], s[2], s[1]
    loop(q, t, n)


cdef inline void ternary_map(number (*f)(number, number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i, t0 = s[0], t1 = s[1], t2 = s[2], t3 = s[3]
    cdef number* out = p[0]
    cdef const number* x = p[1]
    cdef const number* y = p[2]
    cdef const number* z = p[3]
    cdef number a, b
    if t0 == 1 and t1 == 1 and t2 == 1 and t3 == 1:
        for i in range(n):
            out[i] = f(x[i], y[i], z[i])
    elif t0 == 1 and t1 == 1 and t2 == 1 and t3 == 0:
        b = z[0]
        for i in range(n):
            out[i] = f(x[i], y[i], b)
    elif t0 == 1 and t1 == 1 and t2 == 0 and t3 == 0:
        a = y[0]
        b = z[0]
        for i in range(n):
            out[i] = f(x[i], a, b)
    else:
        for i in range(n):
            out[i * t0] = f(x[i * t1], y[i * t2], z[i * t3])


# ---- staged ----

cdef enum:
    BLOCK = 512


cdef inline Py_ssize_t piece(Py_ssize_t left, Py_ssize_t lanes) noexcept nogil:
    """Elements to do next: whole vectors while there are any, then the rest."""
    return min(left - left % lanes, <Py_ssize_t>BLOCK) if left >= lanes else left


cdef inline Py_ssize_t lead(Py_ssize_t start, Py_ssize_t n, Py_ssize_t lanes) noexcept nogil:
    """Elements before `start` that make a rest of n a whole vector; their results are thrown away."""
    return lanes - n if n < lanes and start > 0 else 0


cdef const number* adjacent(const number* x, Py_ssize_t stride, Py_ssize_t n, Py_ssize_t before, number* block) noexcept nogil:
    """Whole vectors that hold x[0], x[stride], ... from place `before` on: x's own memory if possible, else block."""
    cdef Py_ssize_t i, lanes = lanes_of(x)
    if stride == 1 and n + before >= lanes:
        return x - before
    if n < lanes:
        for i in range(lanes):
            block[i] = x[0]              # a benign value for the places that are left
    for i in range(n):
        block[before + i] = x[i * stride]
    return block


cdef inline void spread(const number* block, number* out, Py_ssize_t stride, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    if block == out:
        return
    if stride == 1:
        memcpy(out, block, n * sizeof(number))
    else:
        for i in range(n):
            out[i * stride] = block[i]


cdef inline void staged_unary_map(number (*f)(number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    guarded_map(f, NULL, NULL, p, s, n)


cdef inline void staged_binary_map(number (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    guarded_binary_map(f, NULL, NULL, p, s, n)


cdef inline void guarded_map(number (*f)(number) noexcept nogil, number (*careful)(number) noexcept nogil, bint (*far)(number) noexcept nogil,
                             number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    """Staged; if a block holds elements that are `far`, these get `careful` afterwards."""
    cdef Py_ssize_t start = 0, i, m, before, whole
    cdef const number* x
    cdef number xs[BLOCK]
    cdef number* out
    cdef number block[BLOCK]
    cdef int found
    if n == 1:
        p[0][0] = careful(p[1][0]) if far != NULL and far(p[1][0]) else f(p[1][0])
        return
    while start < n:
        m = piece(n - start, lanes_of(p[1]))
        before = lead(start, m, lanes_of(p[1]))
        whole = whole_vectors(before + m, lanes_of(p[1]))
        x = adjacent(p[1] + start * s[1], s[1], m, before, xs)
        found = 0
        if far != NULL:
            for i in range(whole):
                found |= far(x[i])
        out = p[0] + start if s[0] == 1 and m == whole and not found else block      # x is still needed if anything was found
        map1(f, out, whole, x)
        if found:
            for i in range(before, before + m):
                if far(x[i]):
                    out[i] = careful(x[i])
        spread(out + before, p[0] + start * s[0], s[0], m)
        start += m


cdef inline void guarded_binary_map(number (*f)(number, number) noexcept nogil, number (*careful)(number, number) noexcept nogil,
                                    bint (*far)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, i, m, before, whole
    cdef const number* x
    cdef const number* y
    cdef number xs[BLOCK]
    cdef number ys[BLOCK]
    cdef number* out
    cdef number block[BLOCK]
    cdef int found
    if n == 1:
        p[0][0] = careful(p[1][0], p[2][0]) if far != NULL and far(p[1][0], p[2][0]) else f(p[1][0], p[2][0])
        return
    while start < n:
        m = piece(n - start, lanes_of(p[1]))
        before = lead(start, m, lanes_of(p[1]))
        whole = whole_vectors(before + m, lanes_of(p[1]))
        x = adjacent(p[1] + start * s[1], s[1], m, before, xs)
        y = adjacent(p[2] + start * s[2], s[2], m, before, ys)
        found = 0
        if far != NULL:
            for i in range(whole):
                found |= far(x[i], y[i])
        out = p[0] + start if s[0] == 1 and m == whole and not found else block
        map2(f, out, whole, x, y)
        if found:
            for i in range(before, before + m):
                if far(x[i], y[i]):
                    out[i] = careful(x[i], y[i])
        spread(out + before, p[0] + start * s[0], s[0], m)
        start += m


cdef inline void staged_compare_map(bool_t (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, m, before, whole
    cdef const number* x
    cdef const number* y
    cdef number xs[BLOCK]
    cdef number ys[BLOCK]
    cdef bool_t* out
    cdef bool_t block[BLOCK]
    if n == 1:
        (<bool_t*>p[0])[0] = f(p[1][0], p[2][0])
        return
    while start < n:
        m = piece(n - start, lanes_of(p[1]))
        before = lead(start, m, lanes_of(p[1]))
        whole = whole_vectors(before + m, lanes_of(p[1]))
        x = adjacent(p[1] + start * s[1], s[1], m, before, xs)
        y = adjacent(p[2] + start * s[2], s[2], m, before, ys)
        out = <bool_t*>p[0] + start if s[0] == 1 and m == whole else block
        map2(f, out, whole, x, y)
        spread(out + before, <bool_t*>p[0] + start * s[0], s[0], m)
        start += m


cdef inline void staged_ternary_map(number (*f)(number, number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t start = 0, m, before, whole
    cdef const number* x
    cdef const number* y
    cdef const number* z
    cdef number xs[BLOCK]
    cdef number ys[BLOCK]
    cdef number zs[BLOCK]
    cdef number* out
    cdef number block[BLOCK]
    while start < n:
        m = piece(n - start, lanes_of(p[1]))
        before = lead(start, m, lanes_of(p[1]))
        whole = whole_vectors(before + m, lanes_of(p[1]))
        x = adjacent(p[1] + start * s[1], s[1], m, before, xs)
        y = adjacent(p[2] + start * s[2], s[2], m, before, ys)
        z = adjacent(p[3] + start * s[3], s[3], m, before, zs)
        out = p[0] + start if s[0] == 1 and m == whole else block
        map3(f, out, whole, x, y, z)
        spread(out + before, p[0] + start * s[0], s[0], m)
        start += m


# ---- branching ----

cdef inline void branching_unary_map(number (*f)(number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        p[0][i * s[0]] = f(p[1][i * s[1]])


cdef inline void branching_binary_map(number (*f)(number, number) noexcept nogil, number** p, const Py_ssize_t* s, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        p[0][i * s[0]] = f(p[1][i * s[1]], p[2][i * s[2]])
