"""Python objects into Tensors and back: numbers, nested lists, NumPy arrays, buffers, DLPack.

Owns every rule about what a foreign object becomes: its dtype, whether memory is copied or shared, and what is
refused.  Called by the creation functions (`ops/creation.py`), by the Tensor's methods (`item`, `tolist`, `numpy`)
and by indexing.  Everything here needs the GIL; NumPy's own copy and cast loops move the bulk of the data.
Results are plain tensors, never recorded.  Next to read: `tensor.pyx`.

Inference: bool -> bool, int -> int64, float -> the default float; NumPy arrays and scalars, and Tensors, keep their
dtype.  Python numbers next to NumPy scalars in one list are weak: they only raise the kind.
"""
cimport numpy as cnp
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from cpython.object cimport PyObject
from libc.string cimport memcpy

from cgrad.core.dtype cimport (
    DType, ITEMSIZE, KIND, KIND_BOOL, KIND_FLOAT, KIND_INT, promote, default_float, dtype_id, dtype_object)
from cgrad.core.element cimport item_of, store_item
from cgrad.core.elementwise cimport set_converter
from cgrad.core.storage cimport BORROWED, LENT, Storage, borrow_storage
from cgrad.core.tape cimport grad_enabled
from cgrad.core.tensor cimport (
    REQUIRES_GRAD, Tensor, leaves_graph, readable, alias_tensor, cast_tensor, copy_into, copy_tensor, empty_tensor, same_shape, shape_of, shape_text,
    storage_tensor, strides_of, view_tensor,
)
from cgrad.kernels.table cimport (
    BFLOAT16, BOOL, FLOAT32, FLOAT64, INT32, INT64, MAX_DIMS, N_DTYPES, UINT16, UINT32, UINT64)

import sys

import numpy as np

from cgrad.core.dtype import to_numpy_dtype

cnp.import_array()

# By dtype id, in the order of kernels/table.pxd.
cdef int[N_DTYPES] TYPENUM = [
    cnp.NPY_BOOL, cnp.NPY_UINT8, cnp.NPY_UINT16, cnp.NPY_UINT32, cnp.NPY_UINT64, cnp.NPY_INT8, cnp.NPY_INT16, cnp.NPY_INT32, cnp.NPY_INT64,
    cnp.NPY_FLOAT16, cnp.NPY_NOTYPE, cnp.NPY_FLOAT32, cnp.NPY_FLOAT64]        # NumPy has no bfloat16 of its own

_SUPPORTED = "bool, uint8 to uint64, int8 to int64, float16, bfloat16, float32 or float64"


cdef int id_of_array(cnp.ndarray array) except -2:
    """dtype id of an array's element type, whatever its byte order; -1 for a type cgrad does not have."""
    cdef int num = cnp.PyArray_TYPE(array)
    cdef int i
    for i in range(N_DTYPES):
        if TYPENUM[i] == num:
            return i
    # C has two names for one width: long and long long on Linux, int and long on Windows.
    if num in (cnp.NPY_INT, cnp.NPY_LONG, cnp.NPY_LONGLONG):
        return INT64 if cnp.PyArray_ITEMSIZE(array) == 8 else INT32
    if num in (cnp.NPY_UINT, cnp.NPY_ULONG, cnp.NPY_ULONGLONG):
        return UINT64 if cnp.PyArray_ITEMSIZE(array) == 8 else UINT32
    if array.dtype.name == "bfloat16":      # of the package ml_dtypes
        return BFLOAT16
    return -1


# ---------------------------------------------------------------------------------------------------- numbers

cdef int put_number(int dtype, char* target, object value) except -1:
    """Store one Python number.  An integer that the dtype cannot hold raises OverflowError with the value."""
    if KIND[dtype] == KIND_FLOAT:
        try:
            return store_item(dtype, target, value)
        except OverflowError:
            raise OverflowError(f"int {brief(value)} is too large for {dtype_object(dtype).name}") from None
    if dtype == BOOL:
        target[0] = 1 if value else 0
        return 0
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError(f"cannot convert {value} to {dtype_object(dtype).name}")
        value = int(value)
    low, high = dtype_object(dtype).limits
    if not low <= value <= high:
        raise OverflowError(f"int {brief(value)} does not fit {dtype_object(dtype).name}, which holds {low} to {high}")
    return store_item(dtype, target, value)


def brief(value):
    """Text of an integer for an error message; the middle of a very long one is left out."""
    if abs(value).bit_length() > 200:
        return f"of {abs(value).bit_length()} bits"
    return str(value)


cdef int id_of_kind(int kind) noexcept:
    if kind == KIND_FLOAT:
        return default_float()
    return INT64 if kind == KIND_INT else BOOL


cdef int kind_of_number(object value) except -2:
    """KIND of a Python number (subclasses too), -1 for anything else."""
    if isinstance(value, bool):
        return KIND_BOOL
    if isinstance(value, int):
        return KIND_INT
    if isinstance(value, float):
        return KIND_FLOAT
    return -1


cdef Tensor from_number(object value, int kind, int target):
    cdef int dtype = target if target >= 0 else id_of_kind(kind)
    cdef Tensor out = empty_tensor(dtype, 0, NULL)
    put_number(dtype, out.data, value)
    return out


# ---------------------------------------------------------------------------------------------------- nested lists

cdef str place_of(list shape, int depth, Py_ssize_t flat):
    """`data[1][0]`: the position of element number `flat` among those at nesting level `depth`."""
    cdef int axis
    text = ""
    for axis in range(depth - 1, -1, -1):
        text = f"[{flat % shape[axis]}]{text}"
        flat //= shape[axis]
    return "data" + text


cdef str describe(object item):
    if isinstance(item, (list, tuple)):
        return f"is a sequence of length {len(item)}"
    if isinstance(item, Tensor):
        return f"is a tensor of shape {shape_text((<Tensor> item).rank, shape_of(item))}"
    if isinstance(item, np.ndarray):
        return f"is an array of shape {item.shape}"
    return f"is a number ({type(item).__name__})"


cdef object ragged(list shape, int depth, Py_ssize_t flat, object item, object first):
    return ValueError(f"ragged nested sequence: {place_of(shape, depth, flat)} {describe(item)}, "
                      f"but {place_of(shape, depth, 0)} {describe(first)}")


cdef Tensor from_nested(object data, int target):
    """A nested list or tuple; flattened level by level, so depth costs no C stack."""
    cdef list shape = []
    cdef list flat, deeper
    cdef int depth
    cdef Py_ssize_t k, n
    item = data
    # The chain of first elements gives the shape.  A list that holds itself ends here, at 64 levels, before anything is copied.
    while isinstance(item, (list, tuple)):
        if len(shape) == MAX_DIMS:
            raise ValueError(f"nested sequence is more than {MAX_DIMS} levels deep")
        shape.append(len(item))
        if not item:
            break
        item = item[0]
    flat = list(data)
    for depth in range(1, <int> len(shape)):
        n = shape[depth]
        deeper = []
        for k in range(len(flat)):
            item = flat[k]
            if not isinstance(item, (list, tuple)) or len(item) != n:
                raise ragged(shape, depth, k, item, flat[0])
            deeper.extend(item)
        flat = deeper
    return from_leaves(flat, shape, target)


cdef Tensor from_leaves(list flat, list shape, int target):
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t k, n = len(flat)
    cdef int kind = -1, strong = -1, this, depth = <int> len(shape)
    cdef PyObject* leaf
    cdef Tensor part, out
    for k in range(n):
        leaf = PyList_GET_ITEM_PTR(flat, k)
        if PyFloat_CheckExact(<object> leaf):
            kind = KIND_FLOAT
        elif PyLong_CheckExact(<object> leaf):
            if kind < KIND_INT:
                kind = KIND_INT
        elif <object> leaf is True or <object> leaf is False:
            if kind < KIND_BOOL:
                kind = KIND_BOOL
        else:
            item = flat[k]
            if isinstance(item, (list, tuple)):
                raise ragged(shape, depth, k, item, flat[0])
            if isinstance(item, np.generic) or not isinstance(item, (int, float)):
                try:
                    part = convert(item, -1, None)
                except TypeError as error:
                    raise TypeError(f"{place_of(shape, depth, k)}: {error}") from None
                if part.rank > 0:
                    return from_parts(flat, shape, target)
                this = part.dtype_id
                strong = this if strong < 0 else promote(strong, this)
                flat[k] = item_of(this, part.data)
            else:
                this = kind_of_number(item)
                if kind < this:
                    kind = this
    cdef int dtype = target
    if dtype < 0:
        if strong < 0:
            dtype = id_of_kind(kind) if kind >= 0 else default_float()      # an empty list is a float, as in NumPy
        elif kind > KIND[strong]:
            dtype = id_of_kind(kind)
        else:
            dtype = strong
    for k in range(depth):
        dims[k] = shape[k]
    out = empty_tensor(dtype, depth, dims)
    if out.count != n:      # only by a list that changed under our hands
        raise ValueError("nested sequence changed while it was read")
    fill_leaves(dtype, out.data, flat, shape, depth)
    return out


cdef extern from "Python.h":
    PyObject* PyList_GET_ITEM_PTR "PyList_GET_ITEM"(object, Py_ssize_t)


cdef int fill_leaves(int dtype, char* target, list flat, list shape, int depth) except -1:
    cdef Py_ssize_t k = 0, n = len(flat)
    cdef int itemsize = ITEMSIZE[dtype]
    cdef PyObject* leaf
    try:
        for k in range(n):
            leaf = PyList_GET_ITEM_PTR(flat, k)
            if dtype == FLOAT32 and PyFloat_CheckExact(<object> leaf):
                (<float*> target)[k] = <float> PyFloat_AS_DOUBLE(<object> leaf)
            elif dtype == FLOAT64 and PyFloat_CheckExact(<object> leaf):
                (<double*> target)[k] = PyFloat_AS_DOUBLE(<object> leaf)
            else:
                put_number(dtype, target + k * itemsize, <object> leaf)
    except (OverflowError, ValueError) as error:
        raise type(error)(f"{place_of(shape, depth, k)}: {error}") from None
    return 0


cdef Tensor from_parts(list flat, list shape, int target):
    """A nested list whose leaves are Tensors or arrays of one shape: they are stacked."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t k
    cdef int axis, depth = <int> len(shape), dtype = -1, kind = -1, this
    cdef Tensor part, first = None, out
    cdef list parts = []
    for k in range(len(flat)):
        item = flat[k]
        this = kind_of_number(item)
        if this >= 0 and not isinstance(item, np.generic):
            kind = max(kind, this)
            part = from_number(item, this, -1)
        else:
            part = convert(item, -1, None)
            dtype = part.dtype_id if dtype < 0 else promote(dtype, part.dtype_id)
        if first is None:
            first = part
        if not same_shape(first, part):
            raise ragged(shape, depth, k, item, flat[0])
        parts.append(part)
    if kind > KIND[dtype]:
        dtype = id_of_kind(kind)
    if target >= 0:
        dtype = target
    if depth + first.rank > MAX_DIMS:
        raise ValueError(f"nested sequence is more than {MAX_DIMS} levels deep")
    for axis in range(depth):
        dims[axis] = shape[axis]
    for axis in range(first.rank):
        dims[depth + axis] = shape_of(first)[axis]
    out = empty_tensor(dtype, depth + first.rank, dims)
    for axis in range(first.rank):
        strides[axis] = strides_of(out)[depth + axis]
    for k in range(len(parts)):
        copy_into(view_tensor(out, first.rank, dims + depth, strides, k * first.count), parts[k])
    return out


# ---------------------------------------------------------------------------------------------------- NumPy arrays

cdef int known_array(cnp.ndarray array) except -1:
    """The dtype of an array; TypeError for those that no tensor has."""
    cdef int dtype = id_of_array(array)
    if dtype >= 0:
        if cnp.PyArray_CheckExact(array):
            return dtype
        masked = sys.modules.get("numpy.ma")
        if masked is not None and isinstance(array, masked.MaskedArray):
            raise TypeError("masked arrays are not supported: the mask would be lost; use array.filled(value)")
        return dtype
    if array.dtype.kind == "O":
        raise TypeError("arrays of dtype object are not supported; convert with array.astype(float) or a list of numbers")
    raise TypeError(f"arrays of dtype {array.dtype} are not supported; "
                    + ("convert with array.astype('float64')" if array.dtype.kind == "f" else f"a tensor holds {_SUPPORTED}"))


cdef bint shareable(cnp.ndarray array, const char** reason) noexcept:
    """Whether a Tensor can address the array's memory as it is."""
    cdef int axis
    if not cnp.PyArray_ISNOTSWAPPED(array):
        reason[0] = "its bytes are not in native order"
        return False
    if not (cnp.PyArray_FLAGS(array) & cnp.NPY_ARRAY_ALIGNED):
        reason[0] = "its elements are not aligned"
        return False
    for axis in range(cnp.PyArray_NDIM(array)):
        if cnp.PyArray_STRIDES(array)[axis] % cnp.PyArray_ITEMSIZE(array):
            reason[0] = "its strides are not multiples of the element size"
            return False
    return True


cdef Tensor borrow_array(cnp.ndarray array, int dtype):
    """A Tensor over the array's own memory; the array lives as long as the Tensor's storage."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef Py_ssize_t strides[MAX_DIMS]
    cdef Py_ssize_t low = 0, high = 0, reach
    cdef int axis, rank = cnp.PyArray_NDIM(array)
    cdef int itemsize = ITEMSIZE[dtype]
    cdef char* data = <char*> cnp.PyArray_DATA(array)
    for axis in range(rank):
        dims[axis] = cnp.PyArray_DIMS(array)[axis]
        strides[axis] = cnp.PyArray_STRIDES(array)[axis] // itemsize
        reach = (dims[axis] - 1) * strides[axis] * itemsize
        if reach < 0:
            low += reach
        else:
            high += reach
    if cnp.PyArray_SIZE(array) == 0:
        low = high = 0
        itemsize = 0
    cdef bint readonly = not (cnp.PyArray_FLAGS(array) & cnp.NPY_ARRAY_WRITEABLE)
    cdef Storage storage = borrow_storage(data + low, high - low + itemsize, array, readonly)
    return storage_tensor(storage, data, dtype, rank, dims, strides)


cdef Tensor copy_array(cnp.ndarray array, int dtype):
    """A fresh C-contiguous Tensor with the array's values; `dtype` is the array's own."""
    cdef Py_ssize_t dims[MAX_DIMS]
    cdef int axis, rank = cnp.PyArray_NDIM(array)
    for axis in range(rank):
        dims[axis] = cnp.PyArray_DIMS(array)[axis]
    cdef Tensor out = empty_tensor(dtype, rank, dims)
    if cnp.PyArray_IS_C_CONTIGUOUS(array) and cnp.PyArray_ISNOTSWAPPED(array):
        memcpy(out.data, cnp.PyArray_DATA(array), out.count * ITEMSIZE[dtype])
    elif out.count:
        cnp.PyArray_CopyInto(numpy(out), array)
    return out


cdef Tensor from_array(cnp.ndarray array, int target, object copy):
    cdef int source = known_array(array)
    cdef const char* reason = NULL
    cdef bint shared = shareable(array, &reason)
    if target < 0:
        target = source
    if copy is not None and not copy and source != target:
        raise ValueError(f"copy=False, but an array of dtype {array.dtype} must be converted to "
                         f"{dtype_object(target).name}")
    if copy is not None and not copy and not shared:
        raise ValueError(f"copy=False, but the array's memory cannot be shared: {reason.decode()}")
    if shared and (source != target or not copy):
        return cast_tensor(borrow_array(array, source), target)
    return cast_tensor(copy_array(array, source), target)


def share_array(object array):
    """
    Tensor over a NumPy array's memory, for `from_numpy`.

    Parameters
    ----------
    array : numpy.ndarray
        Any strides that are multiples of the element size, native byte order, a dtype that cgrad has.

    Returns
    -------
    Tensor
        Shares the memory and keeps the array alive; flagged read-only if the array is.

    Raises
    ------
    TypeError
        Not an array, or of a dtype cgrad does not have.
    ValueError
        The memory cannot be addressed as it is (byte order, alignment, strides).
    """
    cdef const char* reason = NULL
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy: expected a numpy.ndarray, got {type(array).__name__}; use cgrad.tensor to convert")
    cdef int source = known_array(array)
    if not shareable(array, &reason):
        raise ValueError(f"from_numpy: the array's memory cannot be shared: {reason.decode()}; "
                         f"use cgrad.tensor, which copies")
    return borrow_array(array, source)


# ---------------------------------------------------------------------------------------------------- anything

cdef Tensor from_tensor(Tensor x, int target, object copy):
    readable(x, "making a tensor of its numbers (clone() and stack() do it recorded)")
    if x.flags & REQUIRES_GRAD and grad_enabled():
        from cgrad.core.untracked import warn_of_copy
        warn_of_copy(x)
    if target < 0:
        target = x.dtype_id
    if copy is True:
        return copy_tensor(x) if target == x.dtype_id else cast_tensor(x, target)
    if target == x.dtype_id:
        return alias_tensor(x)
    if copy is not None and not copy:
        raise ValueError(f"copy=False, but a tensor of dtype {dtype_object(x.dtype_id).name} must be converted to "
                         f"{dtype_object(target).name}")
    return cast_tensor(x, target)


cdef Tensor convert(object data, int target, object copy):
    cdef int kind
    if isinstance(data, Tensor):
        return from_tensor(data, target, copy)
    if isinstance(data, np.ndarray):
        return from_array(data, target, copy)
    if isinstance(data, np.generic):
        return from_array(np.asarray(data), target, True)
    kind = kind_of_number(data)
    if kind >= 0:
        return from_number(data, kind, target)
    if isinstance(data, (list, tuple)):
        return from_nested(data, target)
    if isinstance(data, range):
        return from_nested(list(data), target)
    if isinstance(data, str) or data is None or isinstance(data, (complex, dict, set, frozenset)):
        raise TypeError(f"cannot make a tensor from {type(data).__name__}; expected numbers, nested lists of numbers, or arrays")
    if hasattr(data, "__array__"):
        array = np.asarray(data)
    elif hasattr(data, "__dlpack__"):
        return from_tensor(tensor_from_dlpack(data), target, copy)
    elif PyObject_CheckBuffer(data):
        array = np.asarray(memoryview(data))
    elif hasattr(data, "__array_interface__") or hasattr(data, "__array_struct__"):
        array = np.asarray(data)
    elif hasattr(data, "__index__"):
        return from_number(data.__index__(), KIND_INT, target)
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        return from_nested(list(data), target)
    else:
        raise TypeError(f"cannot make a tensor from {type(data).__name__}; expected numbers, nested lists of numbers, or arrays")
    return from_array(array, target, copy)


cdef Tensor operand(object data):
    """An array or NumPy scalar beside a tensor, read where it lies."""
    cdef Tensor x = convert(data, -1, None)
    if x.storage.source == BORROWED:
        x.storage.source = LENT
    return x


set_converter(operand)


def tensor_from(object data, object dtype=None, object copy=True):
    """
    Tensor from any Python object that holds numbers.

    Parameters
    ----------
    data : object
        Number, nested list or tuple (of numbers, Tensors, NumPy scalars or arrays of one shape), Tensor, NumPy array or
        scalar, or an object with `__array__`, `__dlpack__` or the buffer protocol.
    dtype : dtype, optional
        Of the result; by default inferred from `data`.
    copy : bool or None, default True
        True copies, False shares or raises, None shares where it can.

    Returns
    -------
    Tensor
        A leaf, not recorded.

    Raises
    ------
    ValueError
        Ragged lists (with the place and the lengths), or ``copy=False`` where memory cannot be shared.
    TypeError
        Not numbers (strings, complex, dates, objects), or a NumPy dtype that cgrad lacks.
    OverflowError
        An integer that the dtype cannot hold.

    Examples
    --------
    >>> from cgrad.core.convert import tensor_from, tolist
    >>> tolist(tensor_from([[1, 2], [3, 4]]))
    [[1, 2], [3, 4]]
    """
    return convert(data, -1 if dtype is None else dtype_id(dtype), copy)


# ---------------------------------------------------------------------------------------------------- out again

def numpy(Tensor x not None, bint readonly=False):
    """
    NumPy array over the Tensor's own memory, which lives as long as the array does.

    Parameters
    ----------
    x : Tensor
    readonly : bool, default False
        Clear the array's WRITEABLE flag.  It is also clear if the Tensor's memory is read-only.

    Returns
    -------
    numpy.ndarray
        With the Tensor's shape, strides and dtype; nothing is copied.

    Raises
    ------
    TypeError
        For bfloat16, which NumPy lacks, unless the package ml_dtypes is there to lend its own.

    Examples
    --------
    >>> from cgrad.core.convert import numpy, tensor_from
    >>> numpy(tensor_from([1, 2, 3]))
    array([1, 2, 3])
    """
    cdef cnp.npy_intp dims[MAX_DIMS]
    cdef cnp.npy_intp strides[MAX_DIMS]
    readable(x, "numpy")
    cdef int axis, itemsize = ITEMSIZE[x.dtype_id]
    cdef int flags = 0 if readonly or x.storage.readonly else cnp.NPY_ARRAY_WRITEABLE
    for axis in range(x.rank):
        dims[axis] = shape_of(x)[axis]
        strides[axis] = strides_of(x)[axis] * itemsize
    cdef bint lent = x.dtype_id == BFLOAT16
    cdef object dtype = to_numpy_dtype(dtype_object(BFLOAT16)) if lent else None
    cdef cnp.ndarray array = cnp.PyArray_New(
        np.ndarray, x.rank, dims, cnp.NPY_UINT16 if lent else TYPENUM[x.dtype_id], strides, x.data, 0, flags, None)
    cdef bint of_array = x.storage.source in (BORROWED, LENT) and isinstance(<object>x.storage.owner, np.ndarray)
    cnp.set_array_base(array, <object>x.storage.owner if of_array else x.storage)        # so whoever looks for the file of a memory map finds it
    return array.view(dtype) if lent else array


def writable_or_copied(Tensor x not None):
    """The Tensor, or where its memory is read-only, as that which processes share, a copy."""
    return x.detach().clone() if x.storage.readonly else x


def check_leaves_graph(Tensor x not None, str how):
    """Refuse to let values leave the graph where a user's Op must not let them (see tape.strict_rule)."""
    leaves_graph(x, how)


def item(Tensor x not None):
    """
    The only element of a Tensor as a Python number.

    Raises
    ------
    ValueError
        The Tensor has more or fewer elements than one.

    Examples
    --------
    >>> from cgrad.core.convert import item, tensor_from
    >>> item(tensor_from([[2.5]]))
    2.5
    """
    if x.count != 1:
        raise ValueError(f"item: only a tensor with one element is a Python number; this one has shape {shape_text(x.rank, shape_of(x))}; "
                         f"index it, or use tolist()")
    return item_of(x.dtype_id, x.data)


cdef object nested(int dtype, const char* data, int axis, int rank, const Py_ssize_t* dims, const Py_ssize_t* strides):
    if axis == rank:
        return item_of(dtype, data)
    cdef list out = []
    cdef Py_ssize_t k
    cdef Py_ssize_t step = strides[axis] * ITEMSIZE[dtype]
    for k in range(dims[axis]):
        out.append(nested(dtype, data + k * step, axis + 1, rank, dims, strides))
    return out


def tolist(Tensor x not None):
    """
    The elements as nested lists of Python numbers; a plain number for a 0-d Tensor.

    Examples
    --------
    >>> from cgrad.core.convert import tensor_from, tolist
    >>> tolist(tensor_from([[True, False]]))
    [[True, False]]
    """
    return nested(x.dtype_id, x.data, 0, x.rank, shape_of(x), strides_of(x))


# ---------------------------------------------------------------------------------------------------- DLPack

cdef struct DLTensor:                  # of dlpack.h, as far as it is needed here
    void* data
    int device_type
    int device_id
    int ndim
    unsigned char code
    unsigned char bits
    unsigned short lanes


cdef struct VersionedDLTensor:
    unsigned int major
    unsigned int minor
    void* context
    void* deleter
    unsigned long long flags
    DLTensor tensor


cdef enum:
    DL_UINT = 1
    DL_BFLOAT = 4


cdef DLTensor* inside(object capsule) except NULL:
    """What a capsule of DLPack that nobody has taken yet describes."""
    if PyCapsule_IsValid(capsule, b"dltensor_versioned"):
        return &(<VersionedDLTensor*> PyCapsule_GetPointer(capsule, b"dltensor_versioned")).tensor
    return <DLTensor*> PyCapsule_GetPointer(capsule, b"dltensor")


class _SixteenBits:
    """Another library's bfloat16 tensor as NumPy can read it: as uint16."""

    def __init__(self, source):
        self.source = source
        self.renamed = False

    def __dlpack_device__(self):
        return self.source.__dlpack_device__()

    def __dlpack__(self, **options):
        capsule = self.source.__dlpack__(**options)
        if inside(capsule).code == DL_BFLOAT:
            inside(capsule).code = DL_UINT
            self.renamed = True
        return capsule


def dlpack(Tensor x not None, object stream=None, object max_version=None, object dl_device=None, object copy=None):
    """
    DLPack capsule over the Tensor's memory (Python array API `__dlpack__`); nothing is copied unless ``copy=True``.

    NumPy builds the capsule from an array that shares the Tensor's memory; one of bfloat16 is built for uint16 and then renamed.

    Examples
    --------
    >>> import numpy as np, cgrad as cg
    >>> np.from_dlpack(cg.tensor([1, 2, 3]))
    array([1, 2, 3])
    """
    cdef bint renamed = x.dtype_id == BFLOAT16
    array = numpy(retyped(x, dtype_object(UINT16)) if renamed else x)
    if stream is not None:
        raise BufferError(f"__dlpack__: stream must be None on the CPU, got {stream!r}")
    if dl_device is not None and dl_device != (1, 0):
        raise BufferError(f"__dlpack__: the memory is the CPU's, device (1, 0); device {dl_device!r} cannot have it")
    if max_version is None and dl_device is None and copy is None:
        capsule = array.__dlpack__()
    else:
        capsule = array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
    if renamed:
        inside(capsule).code = DL_BFLOAT
    return capsule


def retyped(Tensor x not None, DType dtype not None):
    """A tensor of the same memory, read as another dtype of the same size."""
    cdef Tensor out
    readable(x, "numpy")
    out = alias_tensor(x)
    out.dtype_id = dtype.id
    return out


def tensor_from_dlpack(object source, object copy=None):
    """
    Tensor over the memory of any object with `__dlpack__` on the CPU.

    Parameters
    ----------
    source : object
        Tensor or array of any library.
    copy : bool or None
        True copies; False and None share.

    Raises
    ------
    TypeError
        No `__dlpack__`, or a dtype that cgrad lacks.
    BufferError
        The memory is not reachable from the CPU.
    """
    cdef Tensor out
    if isinstance(source, Tensor):
        out = alias_tensor(source)
    elif not hasattr(source, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(source).__name__} has no __dlpack__ method")
    else:
        reader = _SixteenBits(source)
        out = share_array(np.from_dlpack(reader))
        if reader.renamed:
            out.dtype_id = BFLOAT16
    return copy_tensor(out) if copy else out
