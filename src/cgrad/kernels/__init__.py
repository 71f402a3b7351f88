"""Numbers only: kernels over pointers, lengths and strides; no Tensor, no derivative."""
