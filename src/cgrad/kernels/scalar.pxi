"""Scalar formulas, one inline function each, branch-free so that the loops over them vectorise.

Owns: the mathematics of every elementwise kernel.  Included by the three ISA shells; never compiled alone.
Rules: `noexcept nogil`, no memory, no global state.  A formula sees one element and returns one.
Read next: elementwise.pxi (the loops), then dispatch.pyx (which shell is used).
"""
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc cimport math as libm

cdef extern from *:
    """
    /* The formulas reach the loops through function pointers known at compile time: only forced inlining turns them into vector code. */
    #if defined(__GNUC__)
    #undef CYTHON_INLINE
    #define CYTHON_INLINE inline __attribute__((always_inline, unused))
    #endif
    """

ctypedef uint8_t bool_t

ctypedef fused real:
    float
    double

ctypedef fused integer:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t

ctypedef fused number:
    uint8_t
    int8_t
    int16_t
    int32_t
    int64_t
    float
    double


cdef inline number add_(number x, number y) noexcept nogil:
    return <number>(x + y)


cdef inline number multiply_(number x, number y) noexcept nogil:
    return <number>(x * y)


cdef inline real exp_(real x) noexcept nogil:
    return <real>libm.exp(x)
