"""Scaled dot-product attention of float32 or float64, block by block."""

# A batch of problems.  Problem b: softmax(scale * q @ k.T + mask) @ v with q (n_queries, width), k (n_keys, width), v (n_keys, out_width);
# a mask is (n_queries, n_keys): bool (False is left out), or of the dtype and added.  Causal: query i sees keys j <= i.  A query that sees no
# key gives 0.  Rows and columns of an operand lie `row` and `column` elements apart (any, also 0 and negative), problem b `offsets[b]` elements
# from the start; q, k and v have width >= 1, v columns that lie side by side.
cdef struct Operand:
    char* data
    const Py_ssize_t* offsets
    Py_ssize_t row, column

cdef struct Attention:
    int dtype
    Py_ssize_t n_batch, n_queries, n_keys, width, out_width
    double scale
    bint causal, bool_mask
    Operand q, k, v, mask, g           # mask.data NULL: none; g, the gradient of the result, for backward only
    char* out                          # (n_batch, n_queries, out_width), contiguous
    char* lse                          # (n_batch, n_queries): log(sum(exp(scores))) of each query, +inf where it sees no key
    char* dq                           # contiguous gradients; NULL: not wanted
    char* dk
    char* dv

# 0, or -1 if there is no memory for scratch.  Columns of q, k, v and g lie side by side.
cdef int run_attention(const Attention* a) noexcept nogil
cdef int run_attention_backward(const Attention* a) noexcept nogil
