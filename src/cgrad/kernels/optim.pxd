"""One pass over all parameters for an optimizer's step: float32 or float64, everything contiguous."""

cdef enum:
    N_STATES = 3                   # tensors that a rule remembers for a parameter
    N_COEFFICIENTS = 10

# What a rule takes, in order: its states (? may be NULL) and its coefficients, after the sign of the gradient and the weight decay that
# is added to it.  shrink is a factor on the parameter.
cdef enum Rule:
    SGD                            # -                                lr
    MOMENTUM                       # buffer                           lr, momentum, 1 - dampening, nesterov
    ADAM                           # exp_avg exp_avg_sq largest?      shrink, 1 - beta1, beta2, 1 - beta2, step size, root's correction, eps
    NADAM                          # exp_avg exp_avg_sq               shrink, 1 - beta1, beta2, 1 - beta2, gradient's and mean's step, correction, eps
    RADAM                          # exp_avg exp_avg_sq               shrink, 1 - beta1, beta2, 1 - beta2, mean's correction, lr, numerator or 0, eps
    ADAMAX                         # exp_avg exp_inf                  1 - beta1, beta2, step size, eps
    ADAGRAD                        # sum                              lr, eps
    ADADELTA                       # square_avg acc_delta             lr, rho, 1 - rho, eps
    RMSPROP                        # square_avg grad_avg? buffer?     lr, alpha, 1 - alpha, eps, momentum
    RPROP                          # prev step_size                   eta minus, eta plus, smallest and largest step
    ASGD                           # ax                               shrink, eta, mu
    SCALE                          # -                                factor              (these two: of the gradient itself, which is p)
    CLAMP                          # -                                smallest, largest

cdef struct Row:
    int dtype
    Py_ssize_t start               # elements in the rows before
    Py_ssize_t n
    char* p
    const char* g
    char* states[N_STATES]
    double c[N_COEFFICIENTS]

cdef void run_optimizer(int rule, const Row* rows, Py_ssize_t n_rows) noexcept nogil

# The sum of all squares, in float64.  `sums` has room for count_sums(n) numbers, n elements in all rows.
cdef Py_ssize_t count_sums(Py_ssize_t n) noexcept nogil
cdef double run_square_sum(const Row* rows, Py_ssize_t n_rows, double* sums) noexcept nogil
