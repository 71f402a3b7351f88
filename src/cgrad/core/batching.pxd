"""Batching: tensors that stand for all examples of a batch, and calls that meet one."""
from cgrad.core.primitive cimport Primitive
from cgrad.core.tensor cimport BATCHED, DUAL, Tensor

cdef inline bint is_batch(object x) noexcept:              # batched at its own highest level
    return isinstance(x, Tensor) and (<Tensor>x).flags & (BATCHED | DUAL) == BATCHED
cdef int level_of(object x) except -1                      # the highest level of a tensor, of either kind; 0 for any other object
cdef Tensor wrap(Tensor values, int level)                 # the examples along the first axis as one batched tensor
cdef object batched_call(Primitive p, tuple operands, tuple options, int level)
cdef bint any_map() noexcept                               # whether a vmap is running, in any thread
