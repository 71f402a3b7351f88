"""Python doors to the elementwise kernels, for tests, and to the incomplete gamma functions.

Owns: the checks that make a call on arrays safe; the package itself calls run_elementwise with pointers.  Rules: the GIL is released while
kernels run.  Read next: dispatch.pyx.
"""
from cpython.buffer cimport (PyBUF_FORMAT, PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer)

from cgrad.kernels.dispatch cimport kernel_in, kernel_table, table_of
from cgrad.kernels.iterate cimport run_cast, run_converted, run_elementwise
from cgrad.kernels.table cimport (BOOL, FLOAT16, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, MAX_DIMS, MAX_OPERANDS, UINT16, UINT32, UINT64, UINT8,
                                  ElementwiseKernel, KernelTable, computing_dtype, loop_t)

cdef tuple NAMES = ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
cdef tuple COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or",
                          "logical_xor", "logical_not", "isnan", "isinf", "isfinite", "signbit")


cdef class Operand:
    """One buffer with its strides in elements."""
    cdef Py_buffer view
    cdef int dtype
    cdef bint held
    cdef Py_ssize_t strides[MAX_DIMS]

    def __init__(self, array, bint writable, int ndim, shape):
        PyObject_GetBuffer(array, &self.view, PyBUF_FORMAT | PyBUF_STRIDES | (PyBUF_WRITABLE if writable else 0))
        self.held = True
        cdef bytes code = self.view.format if self.view.format != NULL else b"B"
        cdef int axis
        self.dtype = {b"?": BOOL, b"B": UINT8, b"H": UINT16, b"I": UINT32, b"L": UINT64, b"Q": UINT64, b"b": INT8, b"h": INT16, b"i": INT32,
                      b"l": INT64, b"q": INT64, b"e": FLOAT16, b"f": FLOAT32, b"d": FLOAT64}.get(code, -1)
        if self.dtype < 0:
            raise TypeError(f"kernels have no dtype for buffers of format {code.decode()!r}")
        if self.view.ndim != ndim or ndim > MAX_DIMS or any(self.view.shape[axis] != shape[axis] for axis in range(ndim)):
            raise ValueError(f"all operands must have the shape of the result, {tuple(shape)}")
        for axis in range(ndim):
            if self.view.strides[axis] % self.view.itemsize:
                raise ValueError("strides must be whole elements")
            self.strides[axis] = self.view.strides[axis] // self.view.itemsize

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef run(loop_t loop, int weight, list operands, shape, int computing=-1):
    """Run a loop; with `computing` it is one of that dtype, and operands that are no bools are converted for it."""
    cdef char* data[MAX_OPERANDS]
    cdef int itemsize[MAX_OPERANDS]
    cdef const Py_ssize_t* strides[MAX_OPERANDS]
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef int held[MAX_OPERANDS]
    cdef int seen[MAX_OPERANDS]
    cdef int k, nop = len(operands), ndim = len(shape)
    cdef Operand operand
    for k in range(nop):
        operand = operands[k]
        data[k] = <char*>operand.view.buf
        itemsize[k] = <int>operand.view.itemsize
        held[k] = operand.dtype
        seen[k] = BOOL if operand.dtype == BOOL else computing
        strides[k] = operand.strides
    for k in range(ndim):
        dims[k] = shape[k]
    with nogil:
        if computing < 0:
            run_elementwise(loop, nop, data, itemsize, ndim, dims, strides, weight)
        else:
            run_converted(loop, nop, data, held, seen, ndim, dims, strides, weight)


def apply(str name, out, *inputs, str isa=None):
    """Run the elementwise kernel `name` on arrays of one shape (any strides) and one dtype; `isa` picks a shell.

    Comparisons and tests write bool; the first input of "where" is bool.  Raises KeyError for an unknown name, TypeError
    for a dtype the kernel does not have, ValueError for shapes that differ.
    """
    cdef const ElementwiseKernel* kernel = kernel_in(kernel_table() if isa is None else table_of(isa), name)
    cdef list operands
    cdef Operand operand
    cdef int native
    shape = out.shape
    if len(inputs) != kernel.n_inputs:
        raise TypeError(f"{name} takes {kernel.n_inputs} inputs, got {len(inputs)}")
    operands = [Operand(array, array is out, len(shape), shape) for array in (out, *inputs)]
    dtypes = [(<Operand>o).dtype for o in operands]
    wanted = [dtypes[kernel.n_inputs]] * len(dtypes)
    if name in COMPARISONS:
        wanted[0] = BOOL
    if name == "where":
        wanted[1] = BOOL
    if dtypes != wanted:
        raise TypeError(f"{name} needs dtypes {[NAMES[d] for d in wanted]} (result first), got {[NAMES[d] for d in dtypes]}")
    operand = operands[kernel.n_inputs]
    native = operand.dtype if kernel.loops[operand.dtype] != NULL else computing_dtype(operand.dtype)
    if kernel.loops[native] == NULL:
        raise TypeError(f"{name} has no loop for {NAMES[operand.dtype]}")
    run(kernel.loops[native], kernel.weight, operands, shape, -1 if native == operand.dtype else native)
    return out


def cast(out, x, str isa=None):
    """Convert x into the dtype of `out`."""
    cdef const KernelTable* table = kernel_table() if isa is None else table_of(isa)
    cdef Operand target = Operand(out, True, len(out.shape), out.shape), source = Operand(x, False, len(out.shape), out.shape)
    if table.casts[source.dtype][target.dtype] == NULL:
        cast_by_steps(target, source, out.shape)
    else:
        run(table.casts[source.dtype][target.dtype], 1, [target, source], out.shape)
    return out


cdef cast_by_steps(Operand target, Operand source, shape):
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef char* data[2]
    cdef const Py_ssize_t* strides[2]
    data[0], data[1] = <char*>target.view.buf, <char*>source.view.buf
    strides[0], strides[1] = target.strides, source.strides
    for axis in range(len(shape)):
        dims[axis] = shape[axis]
    with nogil:
        run_cast(source.dtype, target.dtype, data, <int>target.view.ndim, dims, strides)


def dtypes_of(str name):
    """Names of the dtypes that the kernel takes and buffers have a format for (all but bfloat16)."""
    cdef const ElementwiseKernel* kernel = kernel_in(kernel_table(), name)
    cdef int d
    return [NAMES[d] for d in range(len(NAMES))
            if NAMES[d] != "bfloat16" and (kernel.loops[d] != NULL or kernel.loops[computing_dtype(d)] != NULL)]


def inputs_of(str name):
    """How many inputs the kernel takes."""
    return kernel_in(kernel_table(), name).n_inputs


include "gammainc.pxi"


def gammainc(const double[::1] a, const double[::1] x, double[::1] out, bint upper):
    """out = P(a, x), or Q(a, x) if `upper`, elementwise; all of one length."""
    cdef Py_ssize_t i, n = out.shape[0]
    if a.shape[0] != n or x.shape[0] != n:
        raise ValueError(f"gammainc: the arrays differ in length: {a.shape[0]}, {x.shape[0]} and {n}")
    with nogil:
        for i in range(n):
            out[i] = incomplete_gamma(a[i], x[i], upper)
