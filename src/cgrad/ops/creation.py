"""Making tensors: from data, and filled with one number.

Sizes are ints or one tuple (``zeros(2, 3)``, ``zeros((2, 3))``, ``zeros(shape=(2, 3))``); every function takes `dtype` and
`requires_grad`.  Values are written in Cython (core/forward/fill.pyx), data is read by core/convert.pyx.  Next: ranges.py.
"""
import numpy as np

from cgrad.core import batching, convert, forward_mode
from cgrad.core.device import check_device
from cgrad.core.dtype import as_dtype, get_default_dtype
from cgrad.core.forward import fill
from cgrad.core.tensor import Tensor
from cgrad.ops.define import publish

__all__ = [
    "tensor", "asarray", "as_tensor", "from_numpy", "from_dlpack", "frombuffer", "scalar_tensor", "zeros", "ones", "full", "empty",
    "zeros_like", "ones_like", "full_like", "empty_like",
]


# ---------------------------------------------------------------------------------------------------------------- arguments
length, read_size = fill.length, fill.read_size


def finish(x, requires_grad):
    """`x`, tracked if wanted."""
    if requires_grad:
        x.requires_grad = True
    return x


def like(x):
    """`x` as a Tensor whose shape and dtype are to be imitated."""
    return x if isinstance(x, Tensor) else convert.tensor_from(x, None, None)


# ---------------------------------------------------------------------------------------------------------------- from data
def tensor(data, *, dtype=None, device=None, requires_grad=False):
    """
    Tensor with a copy of some data.

    Parameters
    ----------
    data : number, nested list or tuple, Tensor, NumPy array or scalar, or any object with a buffer
        Lists may hold numbers, NumPy scalars, arrays and Tensors (which are stacked).
    dtype : DType, optional
        By default bools give bool, ints int64, floats the default float (float32 unless `set_default_dtype` changed it); NumPy
        arrays and scalars and Tensors keep theirs.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        A leaf: data that was part of a graph is copied out of it.

    Raises
    ------
    ValueError
        Ragged lists.
    TypeError
        Data that are not real numbers, or a NumPy dtype without counterpart.
    OverflowError
        An integer that the dtype cannot hold.

    See Also
    --------
    asarray : shares memory where it can.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([[1.0, 2.0], [3.0, 4.0]])
    tensor([[1., 2.],
            [3., 4.]])
    """
    if device is not None:
        check_device("tensor", device)
    x = convert.tensor_from(data, dtype, True)
    if requires_grad:
        x.requires_grad = True
    return x


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False):
    """
    Tensor of some data, without a copy where that is possible.

    Parameters
    ----------
    obj : object
        As for `tensor`.  A Tensor is returned as it is, still connected to its graph.
    dtype : DType, optional
        Of the result.
    device : {"cpu", None}
        Accepted for compatibility.
    copy : bool, optional
        True: copy.  False: ValueError where memory cannot be shared.  None: share if possible.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        Shares the memory of NumPy arrays and other buffers of native byte order.

    Raises
    ------
    ValueError
        Ragged lists, or ``copy=False`` where a copy is needed.
    TypeError, OverflowError
        As for `tensor`.

    Examples
    --------
    >>> import numpy as np, cgrad as cg
    >>> a = np.zeros(3)
    >>> x = cg.asarray(a)
    >>> a[0] = 5
    >>> x
    tensor([5., 0., 0.], dtype=cgrad.float64)
    """
    if device is not None:
        check_device("asarray", device)
    if isinstance(obj, Tensor) and not requires_grad:
        if dtype is None or as_dtype(dtype) is obj.dtype:
            return obj.clone() if copy else obj
        if copy is False:
            raise ValueError(f"asarray: copy=False, but a tensor of {obj.dtype.name} must be converted to {as_dtype(dtype).name}")
        return obj.astype(dtype)
    return finish(convert.tensor_from(obj, dtype, copy), requires_grad)


as_tensor = asarray


def from_numpy(array):
    """
    Tensor over the memory of a NumPy array: each sees the other's changes.

    Parameters
    ----------
    array : numpy.ndarray
        Of a dtype that cgrad has, in native byte order.  Any strides will do, negative ones, too.

    Returns
    -------
    Tensor
        A leaf; read-only if the array is.

    Raises
    ------
    TypeError
        Not an array, or of a dtype that cgrad does not have.
    ValueError
        Memory that cannot be addressed as it is (foreign byte order, unaligned).

    Examples
    --------
    >>> import numpy as np, cgrad as cg
    >>> a = np.arange(3)
    >>> x = cg.from_numpy(a[::-1])
    >>> x[0] = 7
    >>> a
    array([0, 1, 7])
    """
    return convert.share_array(array)


def from_dlpack(x, *, device=None, copy=None):
    """
    Tensor over the memory of any object with `__dlpack__` (NumPy, PyTorch, JAX, ... on the CPU).

    Parameters
    ----------
    x : object
        With methods `__dlpack__` and `__dlpack_device__`, or a capsule that such a `__dlpack__` gave.
    device : {"cpu", None}
        Accepted for compatibility.
    copy : bool, optional
        True copies; otherwise memory is shared.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        The object has no `__dlpack__`, or its dtype has no counterpart.
    BufferError
        The CPU cannot reach the memory.

    Examples
    --------
    >>> import numpy as np, cgrad as cg
    >>> cg.from_dlpack(np.arange(3))
    tensor([0, 1, 2])
    """
    if device is not None:
        check_device("from_dlpack", device)
    return convert.tensor_from_dlpack(_Capsule(x) if type(x).__name__ == "PyCapsule" else x, copy)


class _Capsule:
    """A DLPack capsule, as the object it came from; NumPy looks into it for the device."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def frombuffer(buffer, *, dtype=None, count=-1, offset=0, requires_grad=False):
    """
    One-dimensional Tensor over the bytes of a buffer (bytes, bytearray, mmap, array.array, ...).

    Parameters
    ----------
    buffer : object
        With the buffer protocol.  The Tensor is read-only if the buffer is.
    dtype : DType, optional
        How to read the bytes; the default float if left out.
    count : int, default -1
        How many elements; -1 for all.
    offset : int, default 0
        Bytes to skip.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        The bytes do not divide into elements, or there are too few.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.frombuffer(bytearray([1, 2, 3]), dtype=cg.uint8)
    tensor([1, 2, 3], dtype=cgrad.uint8)
    """
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    try:
        array = np.frombuffer(buffer, dtype=dtype.name.replace("bfloat16", "uint16"), count=count, offset=offset)
    except (ValueError, TypeError) as error:
        raise type(error)(f"frombuffer: {error}") from None
    out = convert.tensor_from(array, None, None)
    return finish(out if out.dtype is dtype else convert.retyped(out, dtype), requires_grad)


def scalar_tensor(value, *, dtype=None, requires_grad=False):
    """
    0-d Tensor of one number.

    Parameters
    ----------
    value : number
    dtype : DType, optional
        The default float if left out.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.scalar_tensor(3)
    tensor(3.)
    """
    x = convert.tensor_from(value, get_default_dtype() if dtype is None else dtype)
    if x.ndim:
        raise ValueError(f"scalar_tensor: expected one number, got data of shape {x.shape}")
    return finish(x, requires_grad)


# ---------------------------------------------------------------------------------------------------------------- constants
def zeros(shape=None, *more, size=None, dtype=None, device=None, requires_grad=False):
    """
    Tensor of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        ``zeros(2, 3)`` works, too; `size` is another name.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.
    MemoryError
        No room for the elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if device is not None:
        check_device("zeros", device)
    lengths = read_size("zeros", (shape, *more) if more else () if shape is None else (shape,), None, size)
    return finish(fill.zeros("zeros", lengths, dtype), requires_grad)


def ones(shape=None, *more, size=None, dtype=None, device=None, requires_grad=False):
    """
    Tensor of ones.

    Parameters
    ----------
    shape : int or tuple of int
        ``ones(2, 3)`` works, too; `size` is another name.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.
    MemoryError
        No room for the elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones(2)
    tensor([1., 1.])
    """
    if device is not None:
        check_device("ones", device)
    lengths = read_size("ones", (shape, *more) if more else () if shape is None else (shape,), None, size)
    return finish(fill.full("ones", lengths, 1.0, dtype), requires_grad)


def full(shape=None, fill_value=None, *, size=None, dtype=None, device=None, requires_grad=False):
    """
    Tensor with one number everywhere.

    Parameters
    ----------
    shape : int or tuple of int
    fill_value : number or 0-d Tensor
        A tensor gets the sum of the gradients.
    size : int or tuple of int, optional
        Another name for `shape`.
    dtype : DType, optional
        That of `fill_value` if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.
    OverflowError
        The dtype cannot hold `fill_value`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if device is not None:
        check_device("full", device)
    if fill_value is None:
        raise TypeError("full: fill_value is missing")
    lengths = read_size("full", (), shape, size)
    return finish(filled("full", lengths, fill_value, dtype), requires_grad)


def is_followed(*values):
    """Whether a derivative, or a batch, follows one of the values."""
    return any(isinstance(v, Tensor) and (v.requires_grad or forward_mode.highest_level((v,))) for v in values)


def filled(name, shape, value, dtype):
    """`fill.full` for a Python number, a NumPy scalar or a 0-d Tensor, whose gradient is the sum of ``g``."""
    if not isinstance(value, (int, float)) or isinstance(value, np.generic):
        if is_followed(value) and value.ndim == 0:
            return (value if dtype is None else value.astype(dtype)).broadcast_to(shape).clone()
        value = convert.tensor_from(value)
        if value.ndim:
            raise ValueError(f"{name}: fill_value must be one number, got data of shape {value.shape}")
    return fill.full(name, shape, value, dtype)


def empty(shape=None, *more, size=None, dtype=None, device=None, requires_grad=False):
    """
    Tensor whose elements are not set: whatever is in memory.

    Parameters
    ----------
    shape : int or tuple of int
        ``empty(2, 3)`` works, too; `size` is another name.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.
    MemoryError
        No room for the elements.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.empty(2, 3).shape
    (2, 3)
    """
    if device is not None:
        check_device("empty", device)
    lengths = read_size("empty", (shape, *more) if more else () if shape is None else (shape,), None, size)
    return finish(fill.empty("empty", lengths, dtype), requires_grad)


def zeros_like(x, *, dtype=None, device=None, requires_grad=False):
    """
    Zeros in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    dtype : DType, optional
        Instead of that of `x`.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros_like(cg.tensor([1, 2]))
    tensor([0, 0])
    """
    if device is not None:
        check_device("zeros_like", device)
    x = like(x)
    return finish(batching.like(x, lambda shape: fill.zeros("zeros_like", shape, x.dtype if dtype is None else dtype)), requires_grad)


def ones_like(x, *, dtype=None, device=None, requires_grad=False):
    """
    Ones in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    dtype : DType, optional
        Instead of that of `x`.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones_like(cg.tensor([1, 2]))
    tensor([1, 1])
    """
    if device is not None:
        check_device("ones_like", device)
    x = like(x)
    return finish(batching.like(x, lambda shape: fill.full("ones_like", shape, 1, x.dtype if dtype is None else dtype)), requires_grad)


def full_like(x, fill_value, *, dtype=None, device=None, requires_grad=False):
    """
    One number everywhere, in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    fill_value : number or 0-d Tensor
    dtype : DType, optional
        Instead of that of `x`.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.full_like(cg.zeros(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    if device is not None:
        check_device("full_like", device)
    x = like(x)
    return finish(batching.like(x, lambda shape: filled("full_like", shape, fill_value, x.dtype if dtype is None else dtype)), requires_grad)


def empty_like(x, *, dtype=None, device=None, requires_grad=False):
    """
    Unset elements in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    dtype : DType, optional
        Instead of that of `x`.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.empty_like(cg.zeros(2, 3)).shape
    (2, 3)
    """
    if device is not None:
        check_device("empty_like", device)
    x = like(x)
    return finish(batching.like(x, lambda shape: fill.empty("empty_like", shape, x.dtype if dtype is None else dtype)), requires_grad)


for _name in __all__:
    publish(_name, globals()[_name], method=False)
