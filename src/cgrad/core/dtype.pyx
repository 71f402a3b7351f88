# cython: embedsignature=True, embedsignature.format=clinic
"""dtype objects and the promotion table.

Owns the dtypes, their ids (the contract with the kernels is kernels/table.pxd), how two of them promote, and the
process-wide default for Python floats.  Everybody above the kernels may call it; the tables are constant after import and
are read without the GIL.  Next: storage.pyx, the bytes that a dtype describes.
"""
import numpy as np

from cgrad.kernels.table cimport (
    BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, N_DTYPES, UINT8, UINT16, UINT32, UINT64,
)


cdef class DType:
    """The type of a tensor's elements.

    Attributes
    ----------
    name : str
        NumPy's name of the type.
    itemsize : int
        Size of one element in bytes.
    kind : str
        ``"bool"``, ``"unsigned integer"``, ``"integer"`` or ``"floating"``.
    is_floating_point : bool
        Whether tensors of this type can require a gradient.
    limits : tuple of int
        The smallest and the largest integer that it holds; empty for floats, see `cgrad.finfo`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.float32.itemsize
    4
    """

    def __init__(self, *args, **kwargs):
        raise TypeError("DType: dtypes are not made, they are cgrad.float32, cgrad.int64 and so on")

    @property
    def is_complex(self):
        """Whether elements are complex numbers; no dtype is, for now."""
        return False

    @property
    def is_signed(self):
        """Whether the type holds negative numbers."""
        return self.id > UINT64

    @property
    def dtype(self):
        """The same as a NumPy dtype; NumPy looks for it where a dtype is asked for."""
        return np.dtype(self.name)

    def __repr__(self):
        return "cgrad." + self.name

    def __reduce__(self):
        return _by_name, (self.name,)

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        if isinstance(other, DType):
            return self is other
        if isinstance(other, str):
            return self.name == other      # without a look-up in BY_KEY, which compares with us
        if isinstance(other, (type, np.dtype)):
            try:
                return self.id == dtype_id(other)
            except TypeError:
                return False
        return NotImplemented


cdef list ALL = []
cdef dict BY_KEY = {}


cdef DType _make(int id, str name, int itemsize, str kind, int kind_id, type scalar):
    cdef DType dtype = DType.__new__(DType)
    cdef int bits = 1 if kind_id == KIND_BOOL else 8 * itemsize
    dtype.limits = ()
    dtype.id = id
    dtype.name = name
    dtype.itemsize = itemsize
    dtype.kind = kind
    dtype.is_floating_point = kind_id == KIND_FLOAT
    if kind_id != KIND_FLOAT:
        least = -(<object>1 << bits - 1) if id >= INT8 else 0
        dtype.limits = (least, least + (<object>1 << bits) - 1)
    ITEMSIZE[id] = itemsize
    KIND[id] = kind_id
    ALL.append(dtype)
    BY_KEY[dtype] = BY_KEY[name] = dtype
    if scalar is not None:
        BY_KEY[scalar] = dtype
    return dtype


bool_ = _make(BOOL, "bool", 1, "bool", KIND_BOOL, np.bool_)
uint8 = _make(UINT8, "uint8", 1, "unsigned integer", KIND_INT, np.uint8)
uint16 = _make(UINT16, "uint16", 2, "unsigned integer", KIND_INT, np.uint16)
uint32 = _make(UINT32, "uint32", 4, "unsigned integer", KIND_INT, np.uint32)
uint64 = _make(UINT64, "uint64", 8, "unsigned integer", KIND_INT, np.uint64)
int8 = _make(INT8, "int8", 1, "integer", KIND_INT, np.int8)
int16 = _make(INT16, "int16", 2, "integer", KIND_INT, np.int16)
int32 = _make(INT32, "int32", 4, "integer", KIND_INT, np.int32)
int64 = _make(INT64, "int64", 8, "integer", KIND_INT, np.int64)
float16 = _make(FLOAT16, "float16", 2, "floating", KIND_FLOAT, np.float16)
bfloat16 = _make(BFLOAT16, "bfloat16", 2, "floating", KIND_FLOAT, None)
float32 = _make(FLOAT32, "float32", 4, "floating", KIND_FLOAT, np.float32)
float64 = _make(FLOAT64, "float64", 8, "floating", KIND_FLOAT, np.float64)
BY_KEY[bool] = BY_KEY["bool_"] = bool_
BY_KEY[int] = int64
BY_KEY["double"] = float64
BY_KEY["float"] = float32
BY_KEY["half"] = float16
BY_KEY["long"] = int64


cdef int _promote(int a, int b) noexcept:
    # Array API inside a kind; across kinds the higher kind wins with its own type (no int makes a float wider), as in PyTorch.
    if KIND[a] != KIND[b]:
        return a if KIND[a] > KIND[b] else b
    if a == b:
        return a
    if a > b:
        a, b = b, a
    if a == FLOAT16 and b == BFLOAT16:
        return FLOAT32
    if a <= UINT64 < b < FLOAT16:              # the signed type of twice the width, or b
        return -1 if a == UINT64 else max(a + INT16 - UINT8, b)
    return b


cdef int _promoted[N_DTYPES][N_DTYPES]
cdef int _a, _b
for _a in range(N_DTYPES):
    for _b in range(N_DTYPES):
        _promoted[_a][_b] = _promote(_a, _b)


cdef int promote(int a, int b) except -1:
    if _promoted[a][b] < 0:
        raise TypeError(f"{dtype_object(a).name} and {dtype_object(b).name} have no integer type in common; convert one of them first, "
                        "for instance with x.to(cgrad.int64)")
    return _promoted[a][b]


cdef int _default = FLOAT32


cdef DType dtype_object(int id):
    return <DType>ALL[id]


cdef int dtype_id(object dtype) except -1:
    if isinstance(dtype, DType):
        return (<DType>dtype).id
    if dtype is float:
        return _default
    try:
        found = BY_KEY.get(dtype)
        if found is None and dtype is not None and not isinstance(dtype, str):          # NumPy takes None for float64
            dtype = np.dtype(dtype)
            found = bfloat16 if dtype.name == "bfloat16" else BY_KEY.get(dtype.type)
    except TypeError:
        found = None
    if found is None:
        raise TypeError(f"dtype: {dtype!r} is not a type that tensors can have; use one of "
                        + ", ".join(d.name for d in ALL))
    return (<DType>found).id


cdef int default_float() noexcept nogil:
    return _default


def _by_name(name):
    return BY_KEY[name]


def as_dtype(dtype):
    """The DType for a DType, a NumPy dtype or type, a name, or Python's bool, int or float."""
    return dtype_object(dtype_id(dtype))


def to_numpy_dtype(dtype):
    """The NumPy dtype of the same name; bfloat16 is lent by ml_dtypes, TypeError without it."""
    name = dtype_object(dtype_id(dtype)).name
    if name == "bfloat16":
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            raise TypeError("NumPy has no bfloat16; take x.float().numpy(), or install ml_dtypes, whose type is then used") from None
        return np.dtype(bfloat16)
    return np.dtype(name)


def promote_types(a, b):
    """The dtype of the result when tensors of dtypes `a` and `b` meet.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.promote_types(cg.float32, cg.int64), cg.promote_types(cg.uint8, cg.int8)
    (cgrad.float32, cgrad.int16)
    """
    return dtype_object(promote(dtype_id(a), dtype_id(b)))


def get_default_dtype():
    """The dtype that Python floats take.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.get_default_dtype()
    cgrad.float32
    """
    return dtype_object(_default)


def set_default_dtype(dtype):
    """Set the dtype that Python floats, and functions of integer tensors, take.

    Parameters
    ----------
    dtype : DType
        A floating one; with `float16` or `bfloat16`, Python floats lose all but 3 or 2 decimal digits.

    Raises
    ------
    TypeError
        If the dtype is not a floating one.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.set_default_dtype(cg.float64)
    >>> cg.tensor(1.0).dtype
    cgrad.float64
    >>> cg.set_default_dtype(cg.float32)
    """
    global _default
    cdef int id = dtype_id(dtype)
    if KIND[id] != KIND_FLOAT:
        raise TypeError(f"set_default_dtype: the default must be a floating dtype, got {dtype_object(id).name}")
    _default = id
