"""Recurrent networks of float32 or float64: all steps of one layer in one direction, forward and backward; all operands contiguous."""
from libc.stdint cimport int64_t

cdef enum Cell:
    TANH_CELL = 0
    RELU_CELL = 1
    LSTM_CELL = 2
    GRU_CELL = 3

# Step t has rows 0 <= i < sizes[t] of a batch, which lie one after the other from row starts[t] on; sizes never rise.  K columns are the parts
# of all gates, each `hidden` wide: i, f, g, o or r, z, n, one for the plain cells.
cdef struct Recurrence:
    int dtype, cell
    Py_ssize_t n_steps, n_batch, hidden, columns        # columns: K
    const int64_t* sizes               # n_steps of them
    const int64_t* starts
    bint reverse                       # the last step comes first
    const char* x                      # (rows, K): what the inputs give to the gates
    const char* h                      # (n_batch, hidden), the first state
    const char* c                      # likewise, LSTM
    const char* w                      # (K, hidden)
    const char* b                      # (K,) of GRU
    char* packed                       # scratch of the size of w
    char* out                          # (rows, hidden), the state after each step
    char* last_h                       # (n_batch, hidden), of each row after its last step
    char* last_c
    char* gates                        # LSTM (rows, 4 hidden): i, f, g, o; GRU likewise: r, z, w_n h + b_n, n
    char* cells                        # LSTM (rows, hidden)
    const char* g_out                  # gradients of out, last_h and last_c, or NULL
    const char* g_last_h
    const char* g_last_c
    char* dx                           # (rows, K)
    char* dr                           # GRU (rows, K): the gradient of w h + b; of others it is dx
    char* dh                           # (n_batch, hidden)
    char* dc
    char* before                       # (rows, hidden): the states before each step, or NULL

cdef void run_recurrence(Recurrence* r) noexcept nogil
cdef void run_recurrence_backward(Recurrence* r) noexcept nogil
