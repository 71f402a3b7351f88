"""One pass over a parameter for each optimizer step: float32 or float64, everything contiguous, n elements."""

# buffer: momentum, or NULL without momentum; first: the buffer starts as the gradient.
cdef void run_sgd(int dtype, Py_ssize_t n, char* p, const char* g, char* buffer, bint first, double lr, double momentum,
                  double dampening, bint nesterov, double weight_decay, bint maximize) noexcept nogil

# m, v: first and second moment; largest: greatest second moment so far (amsgrad) or NULL; step counts from 1.
# decoupled: weight decay shrinks the parameter (AdamW) instead of adding to the gradient.
cdef void run_adam(int dtype, Py_ssize_t n, char* p, const char* g, char* m, char* v, char* largest, double step, double lr,
                   double beta1, double beta2, double eps, double weight_decay, bint decoupled, bint maximize) noexcept nogil
