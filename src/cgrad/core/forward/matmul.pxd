"""What products of batches share."""

# Element offset of each of `count` problems in the memory of an operand, whose batch axes are its first `own_rank`; axes that are missing or
# of extent 1 are broadcast to those of `batch`.
cdef void batch_offsets(int rank, const Py_ssize_t* batch, int own_rank, const Py_ssize_t* own_shape, const Py_ssize_t* own_strides,
                        Py_ssize_t count, Py_ssize_t* offsets) noexcept
