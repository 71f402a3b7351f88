"""Foreign code: C functions applied to tensors, and the C-level interface for Cython code of others.

A C function of numbers is called for each element by a loop like any other, so layouts, broadcasts and threads come from the kernels
layer; it travels through that loop as one more operand, whose strides are 0.  Everything computes without the GIL and unrecorded.
Next: ops/foreign.py, which tells what a pointer points to and gives it derivatives.
"""
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetName, PyCapsule_GetPointer

from cgrad.core.dtype cimport ITEMSIZE, dtype_id, dtype_object
from cgrad.core.tensor cimport (
    REQUIRES_GRAD, Tensor, cast_tensor, contiguous_tensor, empty_tensor, leaves_graph, shape_text, view_tensor, writable,
)
from cgrad.kernels.iterate cimport run_converted, run_elementwise
from cgrad.kernels.table cimport FLOAT32, FLOAT64, MAX_DIMS, MAX_OPERANDS, N_DTYPES, UINT8, loop_t

cdef extern from "limits.h":
    int INT_MAX

ctypedef fused real:
    float
    double

cdef struct Call:
    void* function
    int n_inputs
    bint with_int               # of numbers: an int follows them, the way a cpdef function is told not to look for an override; of arrays: n is an int


cdef void call_each(char** data, const Py_ssize_t* s, Py_ssize_t n, real kind) noexcept nogil:
    """The loop: out[i] = f(x[i], ...); operand 1 says what f is."""
    cdef Call* call = <Call*>data[1]
    cdef void* f = call.function
    cdef real* out = <real*>data[0]
    cdef const real* x = <const real*>data[2]
    cdef const real* y = <const real*>data[3] if call.n_inputs > 1 else NULL
    cdef const real* z = <const real*>data[4] if call.n_inputs > 2 else NULL
    cdef const real* w = <const real*>data[5] if call.n_inputs > 3 else NULL
    cdef Py_ssize_t i
    if call.with_int:
        for i in range(n):
            if y == NULL:
                out[i * s[0]] = (<real (*)(real, int) noexcept nogil>f)(x[i * s[2]], 0)
            elif z == NULL:
                out[i * s[0]] = (<real (*)(real, real, int) noexcept nogil>f)(x[i * s[2]], y[i * s[3]], 0)
            elif w == NULL:
                out[i * s[0]] = (<real (*)(real, real, real, int) noexcept nogil>f)(x[i * s[2]], y[i * s[3]], z[i * s[4]], 0)
            else:
                out[i * s[0]] = (<real (*)(real, real, real, real, int) noexcept nogil>f)(x[i * s[2]], y[i * s[3]], z[i * s[4]], w[i * s[5]], 0)
    else:
        for i in range(n):
            if y == NULL:
                out[i * s[0]] = (<real (*)(real) noexcept nogil>f)(x[i * s[2]])
            elif z == NULL:
                out[i * s[0]] = (<real (*)(real, real) noexcept nogil>f)(x[i * s[2]], y[i * s[3]])
            elif w == NULL:
                out[i * s[0]] = (<real (*)(real, real, real) noexcept nogil>f)(x[i * s[2]], y[i * s[3]], z[i * s[4]])
            else:
                out[i * s[0]] = (<real (*)(real, real, real, real) noexcept nogil>f)(x[i * s[2]], y[i * s[3]], z[i * s[4]], w[i * s[5]])


cdef void call_each_float(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil:
    call_each[float](data, strides, n, 0)


cdef void call_each_double(char** data, const Py_ssize_t* strides, Py_ssize_t n) noexcept nogil:
    call_each[double](data, strides, n, 0)


cdef void call_whole(void* f, bint short_length, int n_inputs, char** p, Py_ssize_t n) noexcept nogil:
    """f(x, ..., n, out) on contiguous elements; p[0] is out.  Pointers are alike for the caller, whatever they point to."""
    if n_inputs == 1:
        if short_length:
            (<void (*)(void*, int, void*) noexcept nogil>f)(p[1], <int>n, p[0])
        else:
            (<void (*)(void*, Py_ssize_t, void*) noexcept nogil>f)(p[1], n, p[0])
    elif n_inputs == 2:
        if short_length:
            (<void (*)(void*, void*, int, void*) noexcept nogil>f)(p[1], p[2], <int>n, p[0])
        else:
            (<void (*)(void*, void*, Py_ssize_t, void*) noexcept nogil>f)(p[1], p[2], n, p[0])
    elif short_length:
        (<void (*)(void*, void*, void*, int, void*) noexcept nogil>f)(p[1], p[2], p[3], <int>n, p[0])
    else:
        (<void (*)(void*, void*, void*, Py_ssize_t, void*) noexcept nogil>f)(p[1], p[2], p[3], n, p[0])


cdef class CFunction:
    """A C function that tensors can be given to: of numbers (EACH), of whole arrays (WHOLE), or a loop over strided elements (LOOP).

    `owner` is kept alive with it.
    """

    cdef Call call
    cdef readonly str form
    cdef readonly int n_inputs
    cdef readonly object dtype
    cdef int dtype_id, weight
    cdef object owner

    def __init__(self, str form, size_t address, int n_inputs, dtype, bint with_int=False, int weight=1, owner=None):
        if not address:
            raise ValueError("foreign_op: the function's address is NULL")
        self.call.function, self.call.n_inputs, self.call.with_int = <void*>address, n_inputs, with_int
        self.form, self.n_inputs, self.weight, self.owner = form, n_inputs, weight, owner
        self.dtype_id = dtype_id(dtype)
        self.dtype = dtype_object(self.dtype_id)

    def __call__(self, str name, tuple inputs, out_dtype):
        """The result for tensors that broadcast, in `out_dtype`, which is not wider than the function's own; `name` is for errors."""
        cdef int d = dtype_id(out_dtype), i, rank, first = 1
        cdef Py_ssize_t shape[MAX_DIMS]
        cdef int held[MAX_OPERANDS]
        cdef int seen[MAX_OPERANDS]
        cdef int itemsize[MAX_OPERANDS]
        cdef char* p[MAX_OPERANDS]
        cdef const Py_ssize_t* steps[MAX_OPERANDS]
        cdef Py_ssize_t none[MAX_DIMS]
        cdef Tensor x, out
        cdef loop_t loop
        cdef list operands = []
        cdef bint as_held = self.form != "whole" and self.dtype_id == FLOAT64, mixed = False
        common_shape(name, inputs, &rank, shape)
        # What has no conversion of its own inside the loop is brought to the function's dtype before, and back afterwards.
        for value in inputs:
            x = <Tensor>value
            if x.dtype_id != self.dtype_id and not (as_held and x.dtype_id == FLOAT32):
                x = cast_tensor(x, self.dtype_id)
            x = expanded(x, rank, shape)
            operands.append(contiguous_tensor(x) if self.form == "whole" else x)
        out = empty_tensor(d if as_held and d == FLOAT32 else self.dtype_id, rank, shape)
        p[0], steps[0], held[0] = out.data, out.dims + out.rank, out.dtype_id
        if self.form == "each":
            for i in range(out.rank):
                none[i] = 0
            p[1], steps[1], held[1] = <char*>&self.call, none, UINT8
            first = 2
        for i in range(self.n_inputs):
            x = <Tensor>operands[i]
            p[first + i], steps[first + i], held[first + i] = x.data, x.dims + x.rank, x.dtype_id
        if self.form == "whole":
            if self.call.with_int and out.count > INT_MAX:
                raise ValueError(f"{name}: the function takes the number of elements as an int, and {out.count} are too many")
            if out.count:
                with nogil:
                    call_whole(self.call.function, self.call.with_int, self.n_inputs, p, out.count)
            return cast_tensor(out, d)
        loop = <loop_t>self.call.function if self.form == "loop" else call_each_float if self.dtype_id == FLOAT32 else call_each_double
        for i in range(first + self.n_inputs):
            seen[i] = UINT8 if first == 2 and i == 1 else self.dtype_id
            itemsize[i] = ITEMSIZE[held[i]]
            mixed = mixed or held[i] != seen[i]
        if mixed:
            with nogil:
                run_converted(loop, first + self.n_inputs, p, held, seen, out.rank, out.dims, steps, self.weight)
        else:
            with nogil:
                run_elementwise(loop, first + self.n_inputs, p, itemsize, out.rank, out.dims, steps, self.weight)
        return cast_tensor(out, d)


cdef int common_shape(str name, tuple tensors, int* rank, Py_ssize_t* shape) except -1:
    cdef Tensor x
    cdef int k, lead
    rank[0] = max([(<Tensor?>value).rank for value in tensors])
    for k in range(rank[0]):
        shape[k] = 1
    for value in tensors:
        x = <Tensor>value
        lead = rank[0] - x.rank
        for k in range(x.rank):
            if shape[lead + k] == 1:
                shape[lead + k] = x.dims[k]
            elif x.dims[k] != 1 and x.dims[k] != shape[lead + k]:
                shapes = ", ".join([shape_text((<Tensor>t).rank, (<Tensor>t).dims) for t in tensors])
                raise ValueError(f"{name}: shapes {shapes} do not broadcast; axes must match from the right or be 1")
    return 0


cdef Tensor expanded(Tensor x, int rank, const Py_ssize_t* shape):
    """x in a shape that it broadcasts to, without a copy."""
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int k, lead = rank - x.rank
    for k in range(rank):
        strides[k] = 0 if k < lead or x.dims[k - lead] != shape[k] else x.dims[x.rank + k - lead]
    return view_tensor(x, rank, shape, strides, 0)


def capsule(object x):
    """(name, address) of a PyCapsule; None of anything else."""
    if not PyCapsule_CheckExact(x):
        return None
    cdef const char* name = PyCapsule_GetName(x)
    return None if name == NULL else name.decode(), <size_t>PyCapsule_GetPointer(x, name)


# ---------------------------------------------------------------------- the interface for Cython
cdef Tensor tensor_of(object x, str function):
    if not isinstance(x, Tensor):
        raise TypeError(f"cgrad.{function}: expected a Tensor, got {type(x).__name__}")
    return <Tensor>x


cdef int known_dtype(int dtype, str function) except -1:
    if not 0 <= dtype < N_DTYPES:
        raise ValueError(f"cgrad.{function}: {dtype} is no dtype; take one of the names BOOL ... FLOAT64")
    return dtype


cdef int ndim(object x) except -1:
    return tensor_of(x, "ndim").rank


cdef const Py_ssize_t* shape(object x) except NULL:
    return tensor_of(x, "shape").dims


cdef const Py_ssize_t* strides(object x) except NULL:
    return tensor_of(x, "strides").dims + (<Tensor>x).rank


cdef int dtype(object x) except -1:
    return tensor_of(x, "dtype").dtype_id


cdef const void* data(object x) except? NULL:
    leaves_graph(tensor_of(x, "data"), "cgrad.data")
    return (<Tensor>x).data


cdef void* mutable_data(object x) except? NULL:
    cdef Tensor t = tensor_of(x, "mutable_data")
    if t.flags & REQUIRES_GRAD:
        raise RuntimeError("cgrad.mutable_data: the tensor requires grad, and a write that is not recorded would make its gradient wrong")
    leaves_graph(t, "cgrad.mutable_data")
    writable(t, "cgrad.mutable_data")
    t.storage.version += 1
    return t.data


cdef object empty(int ndim, const Py_ssize_t* shape, int dtype):
    cdef int i
    if not 0 <= ndim <= MAX_DIMS:
        raise ValueError(f"cgrad.empty: a tensor has 0 to {MAX_DIMS} axes, not {ndim}")
    for i in range(ndim):
        if shape[i] < 0:
            raise ValueError(f"cgrad.empty: the shape {shape_text(ndim, shape)} has a negative length")
    return empty_tensor(known_dtype(dtype, "empty"), ndim, shape)


cdef object contiguous(object x, int dtype):
    leaves_graph(tensor_of(x, "contiguous"), "cgrad.contiguous")
    return contiguous_tensor(cast_tensor(<Tensor>x, known_dtype(dtype, "contiguous")))


cdef object elementwise(elementwise_loop loop, tuple inputs, int dtype, int weight):
    for x in inputs:
        leaves_graph(tensor_of(x, "elementwise"), "cgrad.elementwise")
    return loop_function(loop, len(inputs), dtype, weight)("cgrad.elementwise", inputs, dtype_object(dtype))


cdef object loop_function(elementwise_loop loop, int n_inputs, int dtype, int weight):
    if not 1 <= n_inputs < MAX_OPERANDS or weight < 1:
        raise ValueError(f"cgrad.loop_function: a loop takes 1 to {MAX_OPERANDS - 1} inputs and has a weight from 1 on, got {n_inputs} and {weight}")
    return CFunction("loop", <size_t>loop, n_inputs, dtype_object(known_dtype(dtype, "loop_function")), False, weight)
