# cython: embedsignature=True, embedsignature.format=clinic
"""Tensor: a view of a Storage (dtype, shape, signed strides, offset) with a link to the Node that made it.

Owns the layout of tensors, their Python protocol (len, bool, float, iteration, buffers, operators) and the plain makers and copies
declared in tensor.pxd.  It knows no operation: operators go through function pointers that apply.pyx sets, methods are hung on
by the layers above (`register_method`).  Everything here needs the GIL; `launch` releases it while long loops run.
Next: primitive.pyx, the entry of an operation.
"""
from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.object cimport PyObject, PyTypeObject, destructor, newfunc
from cpython.ref cimport Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from cgrad.core.dtype cimport ITEMSIZE, KIND, KIND_FLOAT, dtype_object
from cgrad.core.device import COUNTS
from cgrad.core.element cimport item_of, no_leaf, no_single_number, store_item
from cgrad.core.pool cimport Pool, give, init_pool, set_dealloc, take, set_pool_limit
from cgrad.core.storage cimport Storage, new_storage, note_writer, writer_here, written
from cgrad.core.tape cimport inside_op, note_number, set_grad_mode, strict_rule, tell_leaving, track, track_graph, untrack, watch_gradient
from cgrad.kernels.iterate cimport run_cast, run_elementwise
from cgrad.kernels.table cimport BFLOAT16, MAX_DIMS, loop_t

cdef extern from "Python.h":
    void PyType_Modified(PyTypeObject* type)
    void PyObject_ClearWeakRefs(PyObject* x)
    PyObject** weak_references "PyObject_GET_WEAKREFS_LISTPTR" (PyObject* x)

cdef extern from *:
    """
    /* Python code cannot make a Tensor without memory and layout. */
    static PyObject *cgrad_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
        (void)args; (void)kwargs;
        PyErr_Format(PyExc_TypeError, "%s: make tensors with cgrad.tensor(data), cgrad.zeros(shape) and the like", type->tp_name);
        return NULL;
    }
    static newfunc cgrad_forbid_new(PyTypeObject *type) {
        newfunc make = type->tp_new;
        type->tp_new = cgrad_no_new;
        type->tp_vectorcall = NULL;
        return make;
    }
    #if defined(__GNUC__)
    #define cgrad_mul_overflow(a, b, r) __builtin_mul_overflow(a, b, r)
    #else
    static int cgrad_mul_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *r) {
        if (a && b > PY_SSIZE_T_MAX / a) return 1;
        *r = a * b;
        return 0;
    }
    #endif
    """
    newfunc cgrad_forbid_new(PyTypeObject* type)
    bint cgrad_mul_overflow(Py_ssize_t a, Py_ssize_t b, Py_ssize_t* r) nogil

cdef enum:
    LONG_LOOP = 16384      # elements from which releasing the GIL (about 50 ns) is lost in the loop

cdef binary_operator_t binary_operator = NULL
cdef binary_operator_t inplace_operator = NULL
cdef unary_operator_t unary_operator = NULL
cdef object getitem = None, setitem = None, rows = None, text = None, view_refresher = None
cdef newfunc make = NULL               # what makes a blank tensor of a type
cdef tuple NO_ARGUMENTS = ()


cdef int set_operators(binary_operator_t binary, unary_operator_t unary) except -1:
    global binary_operator, unary_operator
    binary_operator = binary
    unary_operator = unary
    return 0


cdef int set_inplace_operator(binary_operator_t inplace) except -1:
    global inplace_operator
    inplace_operator = inplace
    return 0


def set_item_access(get, set, iterate):
    """Tell what ``x[key]``, ``x[key] = value`` and ``iter(x)`` call."""
    global getitem, setitem, rows
    getitem, setitem, rows = get, set, iterate


def set_view_refresher(function):
    """Tell how a view whose base was written in place takes its history anew."""
    global view_refresher
    view_refresher = function


cdef int refresh(Tensor x) except -1:
    mode = set_grad_mode(True)
    try:
        view_refresher(x)
    finally:
        set_grad_mode(mode)
    return 0


def set_printer(function):
    """Tell what ``repr(x)`` calls."""
    global text
    text = function


cpdef register_method(str name, object function):
    """Hang a function (or property) onto Tensor under a name."""
    cdef PyTypeObject* type = <PyTypeObject*>Tensor
    (<dict>(<object>type.tp_dict))[name] = function
    PyType_Modified(type)


cdef str FORMATS = "?BHIQbhiqe fd"        # of the struct module, which has none for bfloat16


cdef class Tensor:
    """An n-dimensional array that remembers how it was made.

    Tensors come from `cgrad.tensor`, `cgrad.zeros` and the like, or as results of operations.

    Attributes
    ----------
    shape : tuple of int
    dtype : DType
    ndim, size : int
        Number of axes, number of elements.
    strides : tuple of int
        Steps between neighbours along each axis, in elements; may be negative or 0.
    requires_grad : bool
        Whether operations on the tensor are recorded.
    grad : Tensor or None
        The accumulated gradient of a leaf.
    grad_fn : Node or None
        The recorded operation that made the tensor; None for a leaf.
    is_leaf : bool
        Whether the tensor was made by the user rather than by a recorded operation.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> (x ** 2).sum().backward()
    >>> x.grad
    tensor([2., 4., 6.])
    """

    __array_priority__ = 1000

    def __dealloc__(self):               # of subclasses
        if self.dims != NULL and self.dims != self.inline_dims:
            free(self.dims)

    @staticmethod
    def _make_subclass(type cls, Tensor data, bint requires_grad=False):
        """A leaf of a subclass that shares the memory of `data`."""
        cdef Tensor x = <Tensor>make(cls, <PyObject*>NO_ARGUMENTS, NULL)      # not cls.__new__, which a subclass may write in Python
        share_layout(x, data)
        x.storage = data.storage
        x.data = data.data
        x.dtype_id = data.dtype_id
        x.flags = data.flags & CONTIGUOUS
        if requires_grad:
            x.requires_grad = True
        return x

    # ------------------------------------------------------------------ layout
    @property
    def shape(self):
        return shape_tuple(self.rank, self.dims)

    @property
    def strides(self):
        return shape_tuple(self.rank, self.dims + self.rank)

    @property
    def ndim(self):
        return self.rank

    @property
    def size(self):
        return COUNTS[shape_tuple(self.rank, self.dims)]

    @property
    def dtype(self):
        return dtype_object(self.dtype_id)

    @property
    def itemsize(self):
        return ITEMSIZE[self.dtype_id]

    @property
    def nbytes(self):
        return self.count * ITEMSIZE[self.dtype_id]

    @property
    def _version(self):
        """How often the memory was written in place."""
        return self.storage.version

    def dim(self):
        """The number of axes.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.zeros(2, 3).dim()
        2
        """
        return self.rank

    def numel(self):
        """The number of elements.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.zeros(2, 3).numel()
        6
        """
        return self.count

    def data_ptr(self):
        """The address of the first element.

        Examples
        --------
        >>> import cgrad as cg
        >>> x = cg.zeros(2, 3)
        >>> x[1].data_ptr() - x.data_ptr()
        12
        """
        return <size_t>self.data

    def is_contiguous(self):
        """Whether the elements lie in C order without gaps.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.zeros(2, 3).T.is_contiguous()
        False
        """
        return bool(self.flags & CONTIGUOUS)

    # ------------------------------------------------------------------ the tape's view of it
    @property
    def requires_grad(self):
        if stale(self):
            refresh(self)
        return bool(self.flags & REQUIRES_GRAD)

    @requires_grad.setter
    def requires_grad(self, value):
        if value not in (0, 1):
            raise TypeError(f"requires_grad: must be True or False, got {value!r}")
        no_leaf(self.flags & (BATCHED | REQUIRES_GRAD) == BATCHED and value, "requires_grad")
        if self.node is not None:
            if value:
                return
            raise RuntimeError(f"requires_grad: only leaf tensors can be told to stop; this one was made by {self.node!r}. Use x.detach() instead")
        if value and KIND[self.dtype_id] != KIND_FLOAT:
            raise RuntimeError(f"requires_grad: only floating-point tensors have gradients, this one is {self.dtype.name}; convert it first: x.float()")
        if value:
            self.flags = self.flags & ~<unsigned int>(LOST | NOTED) | REQUIRES_GRAD
        elif self.flags & REQUIRES_GRAD:
            leave_graph(self, FROZEN)

    def requires_grad_(self, requires_grad=True):
        """Set `requires_grad` in place and return the tensor.

        Parameters
        ----------
        requires_grad : bool
            Whether operations on the tensor are to be recorded.

        Raises
        ------
        RuntimeError
            For a tensor of integers or bools, or to switch off a tensor that is not a leaf.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.zeros(2).requires_grad_().requires_grad
        True
        """
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self):
        if stale(self):
            refresh(self)
        return self.node is None

    @property
    def grad_fn(self):
        if stale(self):
            refresh(self)
        return self.node

    @property
    def output_nr(self):
        """Which result of `grad_fn` this is."""
        return self.output_number

    @property
    def grad(self):
        if self.gradient is None and self.node is not None and not self.retains_grad:
            from cgrad.core.untracked import warn_of_result
            warn_of_result(self)
        return self.gradient

    @grad.setter
    def grad(self, value):
        cdef Tensor g
        if value is None:
            self.gradient = None
            return
        if not isinstance(value, Tensor):
            raise TypeError(f"grad: a gradient is a Tensor or None, got {type(value).__name__}")
        g = <Tensor>value
        if g is self:
            raise RuntimeError("grad: a tensor cannot be its own gradient")
        if g.dtype_id != self.dtype_id or not same_shape(self, g):
            raise RuntimeError(f"grad: the gradient must have shape {shape_text(self.rank, self.dims)} and dtype {dtype_object(self.dtype_id).name} "
                               f"like its tensor, got {shape_text(g.rank, g.dims)} and {dtype_object(g.dtype_id).name}")
        set_gradient(self, g)

    @grad.deleter
    def grad(self):
        self.gradient = None

    @property
    def retains_grad(self):
        """Whether `retain_grad` was called on this intermediate result."""
        return self.extra is not None and "retains" in self.extra

    def retain_grad(self):
        """Keep the gradient of an intermediate result in `grad` when backward passes it.

        Raises
        ------
        RuntimeError
            If the tensor does not require grad.

        Examples
        --------
        >>> import cgrad as cg
        >>> x = cg.tensor(2.0, requires_grad=True)
        >>> y = x * 5.0
        >>> y.retain_grad()
        >>> (y * 3.0).backward()
        >>> y.grad
        tensor(3.)
        """
        no_leaf(self.flags & BATCHED, "retain_grad")
        if stale(self):
            refresh(self)
        if not self.flags & REQUIRES_GRAD:
            from cgrad.core.untracked import untracked_text
            raise RuntimeError(f"retain_grad: no gradient will reach the tensor: {untracked_text(self)}")
        if self.node is None or self.retains_grad:
            return
        watch_gradient(self.node, self.output_number, self)
        set_extra(self, "retains", True)

    def detach(self):
        """A tensor that shares the memory but is outside the graph.

        Examples
        --------
        >>> import cgrad as cg
        >>> x = cg.tensor([1.0], requires_grad=True)
        >>> x.detach().requires_grad
        False
        """
        cdef Tensor x = alias_tensor(self)
        if self.flags & (REQUIRES_GRAD | DERIVED):
            leave_graph(x, DETACHED | CUT)
        if self.flags & DUAL:
            return (<Tensor>self.extra["dual"][1]).detach()
        if self.flags & BATCHED:
            x.flags |= BATCHED
            set_extra(x, "batch", (self.extra["batch"][0], self.extra["batch"][1].detach()))
        return x

    @property
    def data(self):
        """The same memory outside the graph.  Assigning a tensor to it makes a leaf take over that tensor's memory, shape and dtype."""
        return self.detach() if self.flags & (BATCHED | REQUIRES_GRAD) else alias_tensor(self)

    @data.setter
    def data(self, value):
        if not isinstance(value, Tensor):
            raise TypeError(f"data: expected a Tensor, got {type(value).__name__}")
        take_data(self, <Tensor>value)

    # ------------------------------------------------------------------ Python numbers
    def item(self, *index):
        """The only element, or the element at an index, as a Python number.

        Parameters
        ----------
        *index : int
            One int for each axis; may be left out if there is only one element.

        Raises
        ------
        ValueError
            If no index is given and there are none or several elements.
        IndexError
            If an index is out of range or there are too few or too many.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.tensor([[1, 2], [3, 4]]).item(1, 0)
        3
        """
        cdef Py_ssize_t offset = 0, i, k
        leaves_graph(self, "item")
        if not index:
            if self.count != 1:
                raise ValueError(f"item: only a tensor with one element can become a number, this one has shape {shape_text(self.rank, self.dims)}; "
                                 "give an index for each axis, or use tolist()")
            return item_of(self.dtype_id, self.data)
        if len(index) != self.rank:
            raise IndexError(f"item: {len(index)} indices given for a tensor with {self.rank} axes")
        for k in range(self.rank):
            try:
                i = index[k]
            except (TypeError, OverflowError):
                i = self.dims[k]
            if i < -self.dims[k] or i >= self.dims[k]:
                raise IndexError(f"item: index {index[k]!r} is out of bounds for axis {k} with size {self.dims[k]}; give an int for each axis")
            offset += (i + self.dims[k] if i < 0 else i) * self.dims[self.rank + k]
        return item_of(self.dtype_id, self.data + offset * ITEMSIZE[self.dtype_id])

    def __bool__(self):
        readable(self, "bool")
        if self.count != 1:
            raise ValueError(f"bool: the truth of a tensor of shape {shape_text(self.rank, self.dims)} is ambiguous; use any() or all()")
        return bool(item_of(self.dtype_id, self.data))

    def __float__(self):
        return float(only_item(self, "float"))

    def __int__(self):
        return int(only_item(self, "int"))

    def __complex__(self):
        return complex(only_item(self, "complex"))

    def __index__(self):
        readable(self, "an index")
        if KIND[self.dtype_id] == KIND_FLOAT or self.rank != 0:
            raise TypeError(f"index: only a 0-d tensor of integers can be an index, this one has shape {shape_text(self.rank, self.dims)} "
                            f"and dtype {dtype_object(self.dtype_id).name}")
        return int(item_of(self.dtype_id, self.data))

    def __round__(self, ndigits=None):
        return round(only_item(self, "round"), ndigits)

    # ------------------------------------------------------------------ containers
    def __len__(self):
        if self.rank == 0:
            raise TypeError("len: a 0-d tensor has no length")
        return self.dims[0]

    def __iter__(self):
        if self.rank == 0:
            raise TypeError("iter: a 0-d tensor cannot be iterated over")
        return rows(self)

    def __getitem__(self, key):
        return getitem(self, key)

    def __setitem__(self, key, value):
        setitem(self, key, value)

    def __delitem__(self, key):
        raise TypeError("del: elements of a tensor cannot be deleted")

    def __contains__(self, value):
        equal = self == value
        return equal is not False and bool(equal.any())          # False for what a tensor cannot be compared with

    def __hash__(self):
        return <Py_ssize_t>(<size_t><PyObject*>self >> 4)

    def __repr__(self):
        return text(self)

    def __format__(self, spec):
        if self.rank == 0 and spec:
            readable(self, "format")
            return format(item_of(self.dtype_id, self.data), spec)
        try:
            return format(text(self), spec)
        except ValueError:
            raise ValueError(f"format: {spec!r} is for one number, and the tensor has shape {self.shape}; use cgrad.set_printoptions") from None

    # ------------------------------------------------------------------ buffers
    def __getbuffer__(self, Py_buffer* buffer, int flags):
        # Read-only unless the caller insists: writes through a buffer cannot be seen by the version counter.
        cdef int i
        cdef Py_ssize_t size = ITEMSIZE[self.dtype_id]
        cdef Py_ssize_t* layout
        cdef bint want_writable = flags & PyBUF_WRITABLE == PyBUF_WRITABLE
        readable(self, "a buffer")
        if self.dtype_id == BFLOAT16:
            raise BufferError("buffer: there is no buffer format for bfloat16; take x.float()")
        if want_writable and (self.storage.readonly or self.flags & REQUIRES_GRAD):
            raise BufferError("buffer: the tensor's memory is read-only or part of a graph; take x.detach() for a writable buffer")
        if not self.flags & CONTIGUOUS and flags & PyBUF_STRIDES != PyBUF_STRIDES:
            raise BufferError("buffer: the tensor is not contiguous and the caller cannot handle strides; take x.contiguous()")
        layout = <Py_ssize_t*>malloc((2 * self.rank + 2) * sizeof(Py_ssize_t))
        if layout == NULL:
            raise MemoryError()
        for i in range(self.rank):
            layout[i] = self.dims[i]
            layout[self.rank + i] = self.dims[self.rank + i] * size
        (<char*>(layout + 2 * self.rank))[0] = <char>ord(FORMATS[self.dtype_id])
        (<char*>(layout + 2 * self.rank))[1] = 0
        buffer.buf = self.data
        buffer.obj = self
        buffer.len = self.count * size
        buffer.itemsize = size
        buffer.readonly = not want_writable
        buffer.ndim = self.rank
        buffer.format = <char*>(layout + 2 * self.rank) if flags & PyBUF_FORMAT else NULL
        buffer.shape = layout if flags & PyBUF_ND else NULL
        buffer.strides = layout + self.rank if flags & PyBUF_STRIDES == PyBUF_STRIDES else NULL
        buffer.suboffsets = NULL
        buffer.internal = layout
        # The tensor may take over other memory (`data`) while this one is looked at.
        (<PyObject**>(layout + 2 * self.rank + 1))[0] = <PyObject*>self.storage
        Py_INCREF(self.storage)

    def __releasebuffer__(self, Py_buffer* buffer):
        Py_XDECREF((<PyObject**>(<Py_ssize_t*>buffer.internal + 2 * buffer.ndim + 1))[0])
        free(buffer.internal)

    # ------------------------------------------------------------------ operators
    def __add__(self, other):
        return binary_operator(OP_ADD, self, other)

    def __radd__(self, other):
        return binary_operator(OP_ADD, other, self)

    def __iadd__(self, other):
        return inplace_operator(OP_ADD, self, other)

    def __sub__(self, other):
        return binary_operator(OP_SUBTRACT, self, other)

    def __rsub__(self, other):
        return binary_operator(OP_SUBTRACT, other, self)

    def __isub__(self, other):
        return inplace_operator(OP_SUBTRACT, self, other)

    def __mul__(self, other):
        return binary_operator(OP_MULTIPLY, self, other)

    def __rmul__(self, other):
        return binary_operator(OP_MULTIPLY, other, self)

    def __imul__(self, other):
        return inplace_operator(OP_MULTIPLY, self, other)

    def __truediv__(self, other):
        return binary_operator(OP_DIVIDE, self, other)

    def __rtruediv__(self, other):
        return binary_operator(OP_DIVIDE, other, self)

    def __itruediv__(self, other):
        return inplace_operator(OP_DIVIDE, self, other)

    def __floordiv__(self, other):
        return binary_operator(OP_FLOOR_DIVIDE, self, other)

    def __rfloordiv__(self, other):
        return binary_operator(OP_FLOOR_DIVIDE, other, self)

    def __ifloordiv__(self, other):
        return inplace_operator(OP_FLOOR_DIVIDE, self, other)

    def __mod__(self, other):
        return binary_operator(OP_REMAINDER, self, other)

    def __rmod__(self, other):
        return binary_operator(OP_REMAINDER, other, self)

    def __imod__(self, other):
        return inplace_operator(OP_REMAINDER, self, other)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pow__(self, other, modulo):
        if modulo is not None:
            return NotImplemented
        return binary_operator(OP_POWER, self, other)

    def __rpow__(self, other, modulo):
        if modulo is not None:
            return NotImplemented
        return binary_operator(OP_POWER, other, self)

    def __ipow__(self, other, modulo):
        return inplace_operator(OP_POWER, self, other)

    def __matmul__(self, other):
        return binary_operator(OP_MATMUL, self, other)

    def __rmatmul__(self, other):
        return binary_operator(OP_MATMUL, other, self)

    def __imatmul__(self, other):
        return inplace_operator(OP_MATMUL, self, other)

    def __and__(self, other):
        return binary_operator(OP_AND, self, other)

    def __rand__(self, other):
        return binary_operator(OP_AND, other, self)

    def __iand__(self, other):
        return inplace_operator(OP_AND, self, other)

    def __or__(self, other):
        return binary_operator(OP_OR, self, other)

    def __ror__(self, other):
        return binary_operator(OP_OR, other, self)

    def __ior__(self, other):
        return inplace_operator(OP_OR, self, other)

    def __xor__(self, other):
        return binary_operator(OP_XOR, self, other)

    def __rxor__(self, other):
        return binary_operator(OP_XOR, other, self)

    def __ixor__(self, other):
        return inplace_operator(OP_XOR, self, other)

    def __lshift__(self, other):
        return binary_operator(OP_LEFT_SHIFT, self, other)

    def __rlshift__(self, other):
        return binary_operator(OP_LEFT_SHIFT, other, self)

    def __ilshift__(self, other):
        return inplace_operator(OP_LEFT_SHIFT, self, other)

    def __rshift__(self, other):
        return binary_operator(OP_RIGHT_SHIFT, self, other)

    def __rrshift__(self, other):
        return binary_operator(OP_RIGHT_SHIFT, other, self)

    def __irshift__(self, other):
        return inplace_operator(OP_RIGHT_SHIFT, self, other)

    def __eq__(self, other):
        return binary_operator(OP_EQUAL, self, other)

    def __ne__(self, other):
        return binary_operator(OP_NOT_EQUAL, self, other)

    def __lt__(self, other):
        return binary_operator(OP_LESS, self, other)

    def __le__(self, other):
        return binary_operator(OP_LESS_EQUAL, self, other)

    def __gt__(self, other):
        return binary_operator(OP_GREATER, self, other)

    def __ge__(self, other):
        return binary_operator(OP_GREATER_EQUAL, self, other)

    def __neg__(self):
        return unary_operator(OP_NEGATIVE, self)

    def __pos__(self):
        return unary_operator(OP_POSITIVE, self)

    def __abs__(self):
        return unary_operator(OP_ABSOLUTE, self)

    def __invert__(self):
        return unary_operator(OP_INVERT, self)


make = cgrad_forbid_new(<PyTypeObject*>Tensor)


# ---------------------------------------------------------------------- makers
cdef Pool pool
cdef destructor free_object = NULL       # what Cython made: for subclasses


cdef void dealloc(PyObject* o) noexcept:
    if o.ob_type != <PyTypeObject*>Tensor:
        free_object(o)
        return
    untrack(o)
    if weak_references(o)[0] != NULL:
        PyObject_ClearWeakRefs(o)
    if (<Tensor>o).dims != (<Tensor>o).inline_dims:
        free((<Tensor>o).dims)
        (<Tensor>o).dims = (<Tensor>o).inline_dims
    (<Tensor>o).storage = None
    # Asking first is cheaper than counting None's references up and down.
    if (<Tensor>o).node is not None:
        (<Tensor>o).node = None
    if (<Tensor>o).base is not None:
        (<Tensor>o).base = None
    if (<Tensor>o).gradient is not None:
        (<Tensor>o).gradient = None
    if (<Tensor>o).extra is not None:
        (<Tensor>o).extra = None
    give(&pool, o)


init_pool(&pool, Tensor.__new__(Tensor))
free_object = set_dealloc(<PyTypeObject*>Tensor, dealloc)


def limit_pool(size_t nbytes):
    """Bound how many dead tensors are kept, by the bytes that the allocator may keep; the others are freed."""
    set_pool_limit(&pool, nbytes)


cdef inline Tensor blank():
    """A tensor without layout, unseen by the cyclic collector: it refers to storage, earlier nodes and its base only (see tape.pyx)."""
    cdef Tensor x = <Tensor>take(&pool)
    x.output_number = 0
    return x


cdef inline int set_rank(Tensor x, int rank) except -1:
    x.rank = rank
    if rank <= INLINE_DIMS:
        x.dims = x.inline_dims
        return 0
    if rank > MAX_DIMS:
        raise ValueError(f"a tensor can have at most {MAX_DIMS} axes, not {rank}")
    x.dims = <Py_ssize_t*>malloc(2 * rank * sizeof(Py_ssize_t))
    if x.dims == NULL:
        raise MemoryError()
    return 0


cdef inline int share_layout(Tensor x, Tensor source) except -1:
    cdef int i
    set_rank(x, source.rank)
    for i in range(2 * source.rank):
        x.dims[i] = source.dims[i]
    x.count = source.count
    return 0


cdef int take_data(Tensor x, Tensor source) except -1:
    readable(source, "data")
    if x.node is not None or x.base is not None:
        raise RuntimeError("data: only a leaf that is no view can take over another tensor's memory; write into it with copy_ instead")
    if x.flags & REQUIRES_GRAD and KIND[source.dtype_id] != KIND_FLOAT:
        raise RuntimeError(f"data: a tensor that requires grad must stay floating-point, got {dtype_object(source.dtype_id).name}")
    if x is source:
        return 0
    if source.storage is not x.storage and source.storage.version <= x.storage.version:
        note_writer(source.storage, writer_here("assigning to .data"))
        source.storage.version = x.storage.version + 1      # or a graph that saved x would take the new values for the old ones
    if x.dims != x.inline_dims:
        free(x.dims)
        x.dims = x.inline_dims
        x.rank = 0
    share_layout(x, source)
    x.storage = source.storage
    x.data = source.data
    x.dtype_id = source.dtype_id
    x.flags = (x.flags & ~<unsigned int>CONTIGUOUS) | (source.flags & CONTIGUOUS)
    return 0


cdef int too_large(int rank, const Py_ssize_t* shape, int dtype) except -1:
    raise ValueError(f"a tensor of shape {shape_text(rank, shape)} and dtype {dtype_object(dtype).name} has more bytes than can be addressed")


cdef Tensor empty_tensor(int dtype, int rank, const Py_ssize_t* shape):
    cdef Tensor x = blank()
    cdef Py_ssize_t count = 1, nbytes, occupied = 1
    cdef int i
    set_rank(x, rank)
    for i in range(rank - 1, -1, -1):
        x.dims[i] = shape[i]
        x.dims[rank + i] = occupied
        count *= shape[i]
        if cgrad_mul_overflow(occupied, shape[i] if shape[i] > 0 else 1, &occupied):
            too_large(rank, shape, dtype)
    if cgrad_mul_overflow(occupied, ITEMSIZE[dtype], &nbytes):
        too_large(rank, shape, dtype)
    x.count = count
    x.dtype_id = dtype
    x.flags = CONTIGUOUS
    x.storage = new_storage(count * ITEMSIZE[dtype])
    x.data = x.storage.data
    return x


cdef Tensor empty_like(Tensor x, int dtype):
    cdef Tensor out
    if not x.flags & CONTIGUOUS:
        return empty_tensor(dtype, x.rank, x.dims)
    out = blank()
    share_layout(out, x)
    out.dtype_id = dtype
    out.flags = CONTIGUOUS
    out.storage = new_storage(x.count * ITEMSIZE[dtype])
    out.data = out.storage.data
    return out


cdef bint c_contiguous(int rank, const Py_ssize_t* shape, const Py_ssize_t* strides) noexcept:
    cdef Py_ssize_t expected = 1
    cdef int i
    for i in range(rank):
        if shape[i] == 0:
            return True
    for i in range(rank - 1, -1, -1):
        if shape[i] != 1:
            if strides[i] != expected:
                return False
            expected *= shape[i]
    return True


cdef Tensor storage_tensor(Storage storage, char* data, int dtype, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides):
    cdef Tensor x = blank()
    cdef int i
    set_rank(x, rank)
    x.count = 1
    for i in range(rank):
        x.dims[i] = shape[i]
        x.dims[rank + i] = strides[i]
        x.count *= shape[i]
    x.dtype_id = dtype
    x.flags = CONTIGUOUS if c_contiguous(rank, shape, strides) else 0
    x.storage = storage
    x.data = data
    return x


cdef Tensor view_tensor(Tensor base, int rank, const Py_ssize_t* shape, const Py_ssize_t* strides, Py_ssize_t offset):
    cdef Tensor x = storage_tensor(base.storage, base.data + offset * ITEMSIZE[base.dtype_id], base.dtype_id, rank, shape, strides)
    become_view(x, base)
    return x


cdef void become_view(Tensor x, Tensor base) noexcept:
    x.base = base if base.base is None else base.base
    x.flags |= VIEW
    x.view_history = base.view_history if base.flags & VIEW else x.storage.history


cdef Tensor alias_tensor(Tensor x):
    cdef Tensor out = blank()
    share_layout(out, x)
    out.dtype_id = x.dtype_id
    out.flags = x.flags & CONTIGUOUS
    out.storage = x.storage
    out.data = x.data
    return out


cdef Tensor contiguous_tensor(Tensor x):
    return x if x.flags & CONTIGUOUS else copy_tensor(x)


cdef Tensor cast_tensor(Tensor x, int dtype):
    cdef Tensor out
    if x.dtype_id == dtype:
        return x
    out = empty_like(x, dtype)
    fill_from(out, x, strides_of(x))
    return out


cdef Tensor copy_tensor(Tensor x):
    cdef Tensor out = empty_like(x, x.dtype_id)
    fill_from(out, x, strides_of(x))
    return out


cdef void fill_from(Tensor target, Tensor source, const Py_ssize_t* source_strides) noexcept:
    cdef char* data[2]
    cdef const Py_ssize_t* strides[2]
    if target.dtype_id == source.dtype_id and target.flags & source.flags & CONTIGUOUS and target.count == source.count:
        memcpy(target.data, source.data, target.count * ITEMSIZE[target.dtype_id])
        return
    data[0], data[1] = target.data, source.data
    strides[0], strides[1] = strides_of(target), source_strides
    if target.count >= LONG_LOOP:
        with nogil:
            run_cast(source.dtype_id, target.dtype_id, data, target.rank, target.dims, strides)
    else:
        run_cast(source.dtype_id, target.dtype_id, data, target.rank, target.dims, strides)


cdef int copy_into(Tensor target, Tensor source, str name="copy_") except -1:
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef int lead = target.rank - source.rank
    cdef int i
    writable(target, "copy_")
    # Leading axes of length 1 that the target lacks are dropped, as NumPy does on assignment.
    for i in range(-lead):
        if source.dims[i] != 1:
            cannot_broadcast(target, source)
    for i in range(target.rank):
        if i < lead:
            strides[i] = 0
        elif source.dims[i - lead] == target.dims[i]:
            strides[i] = source.dims[source.rank + i - lead]
        elif source.dims[i - lead] == 1:
            strides[i] = 0
        else:
            cannot_broadcast(target, source)
    if source.storage is target.storage and source is not target:
        source = copy_tensor(source)      # reading what was already written would be wrong; C-contiguous from here
        for i in range(target.rank):
            if i >= lead and strides[i] != 0:
                strides[i] = source.dims[source.rank + i - lead]
    fill_from(target, source, strides)
    written(target.storage, name)
    return 0


cdef int cannot_broadcast(Tensor target, Tensor source) except -1:
    raise ValueError(f"copy_: a value of shape {shape_text(source.rank, source.dims)} cannot be broadcast to shape {shape_text(target.rank, target.dims)}")


cdef Tensor scalar_tensor(object value, int dtype):
    cdef Tensor x = empty_tensor(dtype, 0, NULL)
    store_item(dtype, x.data, value)
    return x


# ---------------------------------------------------------------------- helpers
cdef void launch(loop_t loop, int nop, char** data, const int* itemsize, int rank, const Py_ssize_t* shape,
                 const Py_ssize_t** strides, int weight, Py_ssize_t count) noexcept:
    if count >= LONG_LOOP:
        with nogil:
            run_elementwise(loop, nop, data, itemsize, rank, shape, strides, weight)
    else:
        run_elementwise(loop, nop, data, itemsize, rank, shape, strides, weight)


cdef bint same_shape(Tensor x, Tensor y) noexcept:
    cdef int i
    if x.rank != y.rank:
        return False
    for i in range(x.rank):
        if x.dims[i] != y.dims[i]:
            return False
    return True


cdef int set_gradient(Tensor x, Tensor g) except -1:
    x.gradient = g
    if g.node is not None:
        track_graph(g.node)          # x.grad -> its node -> ... -> x may be a cycle
        track(x)
        track(g)
    return 0


cdef int set_extra(Tensor x, str key, object value) except -1:
    if x.extra is None:
        x.extra = {}
    (<dict>x.extra)[key] = value
    track(x)
    return 0


cdef int leave_graph(Tensor x, unsigned int how) except -1:
    x.flags = x.flags & ~<unsigned int>REQUIRES_GRAD | how
    return tell_leaving(x)


cdef int writable(Tensor x, str op) except -1:
    if x.storage.readonly:
        raise ValueError(f"{op}: the tensor's memory is read-only (it was borrowed from a read-only array); take x.clone() first")
    return 0


cdef int readable(Tensor x, str how) except -1:
    if x.flags & BATCHED:
        no_single_number(how, shape_tuple(x.rank, x.dims))
    if x.flags & (REQUIRES_GRAD | DERIVED | DETACHED):
        note_number()
    return 0


cdef int leaves_graph(Tensor x, str how) except -1:
    readable(x, how)
    if x.flags & REQUIRES_GRAD:
        name = None if inside_op() else strict_rule()       # an Op that the rule calls is recorded as such
        if name is not None:
            raise RuntimeError(f"{name}: its rule takes a number out of the graph with {how}() while a derivative of the derivative is wanted "
                               "(create_graph); write the rule with tensor operations, such as cgrad.exp instead of math.exp")
    return 0


cdef object only_item(Tensor x, str how):
    leaves_graph(x, how)
    if x.count != 1:
        raise TypeError(f"{how}: only a tensor with one element can become a number, this one has shape {shape_text(x.rank, x.dims)}")
    return item_of(x.dtype_id, x.data)


cdef tuple shape_tuple(int rank, const Py_ssize_t* shape):
    cdef tuple out = PyTuple_New(rank)
    cdef object n
    cdef int i
    for i in range(rank):
        n = shape[i]
        Py_INCREF(n)
        PyTuple_SET_ITEM(out, i, n)
    return out


cdef str shape_text(int rank, const Py_ssize_t* shape):
    return str(shape_tuple(rank, shape))
