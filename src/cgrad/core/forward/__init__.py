"""What operations compute, without derivatives: each module takes Tensors, allocates the result and calls kernels."""
