"""Making tensors: from data, and filled with constants or ranges.

Sizes are ints or one tuple (``zeros(2, 3)``, ``zeros((2, 3))``, ``zeros(shape=(2, 3))``); every function takes `dtype` and
`requires_grad`.  Values are written in Cython (core/forward/fill.pyx), data is read by core/convert.pyx.  Next: random.py.
"""
import math
import operator

import numpy as np

from cgrad.core import batching, convert, forward_mode
from cgrad.core.dtype import as_dtype, get_default_dtype
from cgrad.core.forward import fill
from cgrad.core.tensor import Tensor
from cgrad.ops.define import LINEAR, define, public, publish

__all__ = [
    "tensor", "asarray", "as_tensor", "from_numpy", "from_dlpack", "frombuffer", "scalar_tensor", "zeros", "ones", "full", "empty",
    "arange", "linspace", "logspace", "geomspace", "eye", "tri", "zeros_like", "ones_like", "full_like", "empty_like", "tril", "triu", "meshgrid",
    "tril_indices", "triu_indices",
]


# ---------------------------------------------------------------------------------------------------------------- arguments
length, read_size = fill.length, fill.read_size


def check_device(name, device):
    """cgrad computes on the CPU; the keyword exists so that code written for other libraries runs."""
    if device is not None and not str(device).startswith("cpu"):
        raise ValueError(f"{name}: device must be 'cpu' or None, got {device!r}")


def finish(x, requires_grad):
    """`x`, tracked if wanted."""
    if requires_grad:
        x.requires_grad = True
    return x


def like(name, x):
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
    x = like("zeros_like", x)
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
    x = like("ones_like", x)
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
    x = like("full_like", x)
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
    x = like("empty_like", x)
    return finish(batching.like(x, lambda shape: fill.empty("empty_like", shape, x.dtype if dtype is None else dtype)), requires_grad)


# ---------------------------------------------------------------------------------------------------------------- ranges
def number(name, what, value):
    """A bound of a range as a Python int or float."""
    if isinstance(value, (Tensor, np.ndarray, np.generic)):
        if is_followed(value):
            raise TypeError(f"{name}: {what} would leave the graph here, for how many elements there are is no smooth function of it; "
                            f"take {what}.detach(), or compute with arange(n)")
        value = value.item()
    if isinstance(value, float):
        return value
    try:
        return operator.index(value)
    except TypeError:
        pass
    if isinstance(value, (complex, str)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name}: {what} must be a number, got {value!r}")
    return float(value)


def arange(start, stop=None, step=1, *, end=None, dtype=None, device=None, requires_grad=False):
    """
    Numbers from `start` up to but not including `stop`, `step` apart.

    Parameters
    ----------
    start : number
        First number; with one argument, `stop` (and the first number is 0).
    stop : number, optional
        End of the range, not part of it.  `end` is another name.
    step : number, default 1
        Distance, may be negative.
    dtype : DType, optional
        int64 if all three are ints, else the default float.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d with ``ceil((stop - start) / step)`` elements (none if that is negative).

    Raises
    ------
    ValueError
        A step of 0, bounds that are not finite, or too many elements.
    OverflowError
        Numbers that the dtype cannot hold.

    Notes
    -----
    Ranges of ints are exact; others are computed as ``start + i * step`` in float64 and rounded once.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.arange(4)
    tensor([0, 1, 2, 3])
    >>> cg.arange(1.0, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if device is not None:
        check_device("arange", device)
    stop = end if stop is None else stop
    if stop is None:
        start, stop = 0, start
    if dtype is None and type(start) is int and type(stop) is int and step == 1 and -(1 << 62) < start <= stop < 1 << 62:
        return finish(fill.arange(start, 1, stop - start, "int64"), requires_grad)
    start, stop, step = number("arange", "start", start), number("arange", "stop", stop), number("arange", "step", step)
    if step == 0:
        raise ValueError("arange: step must not be 0")
    whole = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int)
    dtype = as_dtype(dtype) if dtype is not None else as_dtype("int64") if whole else get_default_dtype()
    if dtype.kind == "bool":
        raise TypeError("arange: dtype must not be bool")
    if whole:
        n = max(0, -((start - stop) // step))
    else:
        if not all(math.isfinite(value) for value in (start, stop, step)):
            raise ValueError(f"arange: start, stop and step must be finite, got {start}, {stop}, {step}")
        n = max(0, math.ceil((stop - start) / step))
        if not dtype.is_floating_point:
            if start != int(start) or step != int(step):
                raise ValueError(f"arange: start {start} and step {step} must be whole numbers for dtype {dtype.name}")
            start, step = int(start), int(step)
            whole = True
    if n >= 1 << 60:
        raise ValueError(f"arange: {n} elements are too many for this machine")
    if whole and n:
        last = start + (n - 1) * step
        low, high = dtype.limits or (-(1 << 63), (1 << 63) - 1)
        if low <= min(start, last) and max(start, last) <= high:
            start, step = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (start, step)]
        elif not dtype.is_floating_point:
            raise OverflowError(f"arange: numbers from {start} to {last} do not fit {dtype.name}, which holds {low} to {high}")
        else:
            start, step = float(start), float(step)
    elif whole:
        start, step = 0, 1
    return finish(fill.arange(start, step, n, dtype), requires_grad)


def steps(name, num, steps):
    """The number of points, under either of its names."""
    if steps is not None:
        num = steps
    if num is None:
        raise TypeError(f"{name}: num (the number of points) is missing")
    num = length(name, num)
    if num < 0:
        raise ValueError(f"{name}: num must not be negative, got {num}")
    return num


def spread(name, start, stop, num, endpoint, dtype, requires_grad, base=None):
    """linspace and logspace after their arguments are read."""
    if (isinstance(start, Tensor) or isinstance(stop, Tensor) or isinstance(base, Tensor)) and is_followed(start, stop, base):
        part = fill.linspace(name, 0.0, 1.0, num, bool(endpoint), "float64", None)
        for end in (start, stop, base):
            if isinstance(end, Tensor) and end.ndim:
                raise ValueError(f"{name}: the ends must be numbers, got a tensor of shape {end.shape}")
        out = start * (1 - part) + stop * part
        return finish((out if base is None else base ** out).astype(get_default_dtype() if dtype is None else dtype), requires_grad)
    start, stop = float(number(name, "start", start)), float(number(name, "stop", stop))
    dtype = get_default_dtype() if dtype is None else as_dtype(dtype)
    if num >= 1 << 60:
        raise ValueError(f"{name}: {num} elements are too many for this machine")
    return finish(fill.linspace(name, start, stop, num, bool(endpoint), dtype, base), requires_grad)


def linspace(start, stop=None, num=None, *, end=None, steps=None, endpoint=True, dtype=None, device=None, requires_grad=False):
    """
    Numbers at equal distances from `start` to `stop`.

    Parameters
    ----------
    start, stop : number or 0-d Tensor
        The ends; `end` is another name of `stop`.
    num : int
        How many; `steps` is another name.
    endpoint : bool, default True
        Whether `stop` is the last number.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d with `num` elements.

    Raises
    ------
    ValueError
        A negative or too large `num`.

    Notes
    -----
    Computed in float64, each half from its own end, so that both ends are exact.  Gradient: for ends that are tensors.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    if device is not None:
        check_device("linspace", device)
    stop = end if stop is None else stop
    return spread("linspace", start, stop, _steps("linspace", num, steps), endpoint, dtype, requires_grad)


def logspace(start, stop=None, num=None, base=10.0, *, end=None, steps=None, endpoint=True, dtype=None, device=None,
             requires_grad=False):
    """
    Powers of a base at equal distances of the exponent.

    Parameters
    ----------
    start, stop : number or 0-d Tensor
        First and last exponent; `end` is another name of `stop`.
    num : int
        How many; `steps` is another name.
    base : number, default 10
    endpoint : bool, default True
        Whether ``base ** stop`` is the last number.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d with `num` elements.

    Raises
    ------
    ValueError
        A negative or too large `num`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    if device is not None:
        check_device("logspace", device)
    stop = end if stop is None else stop
    base = base if is_followed(base) else float(number("logspace", "base", base))
    return spread("logspace", start, stop, _steps("logspace", num, steps), endpoint, dtype, requires_grad, base)


def geomspace(start, stop=None, num=None, *, end=None, steps=None, endpoint=True, dtype=None, device=None, requires_grad=False):
    """
    Numbers from `start` to `stop` with equal quotients of neighbours.

    Parameters
    ----------
    start, stop : number or 0-d Tensor
        The ends, of one sign and not 0; `end` is another name of `stop`.
    num : int
        How many; `steps` is another name.
    endpoint : bool, default True
        Whether `stop` is the last number.
    dtype : DType, optional
        The default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d with `num` elements.

    Raises
    ------
    ValueError
        A negative or too large `num`, or ends that are 0 or of unlike signs.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.geomspace(1, 1000, 4)
    tensor([   1.,   10.,  100., 1000.])
    """
    if device is not None:
        check_device("geomspace", device)
    stop, num = end if stop is None else stop, _steps("geomspace", num, steps)
    product = start * stop
    if not (bool((batching.all_examples(product) > 0).all()) if isinstance(product, Tensor) else product > 0):
        raise ValueError(f"geomspace: start and stop must have one sign and not be 0, got {start} and {stop}")
    if is_followed(start, stop):
        part = spread("geomspace", 0, 1, num, endpoint, "float64", False)
        return finish((start * (stop / start) ** part).astype(get_default_dtype() if dtype is None else dtype), requires_grad)
    start, stop = float(number("geomspace", "start", start)), float(number("geomspace", "stop", stop))
    return tensor(np.geomspace(start, stop, num, endpoint), dtype=get_default_dtype() if dtype is None else dtype, requires_grad=requires_grad)


_steps = steps


def eye(n_rows, n_cols=None, *, k=0, dtype=None, device=None, requires_grad=False):
    """
    Matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        Which diagonal: positive above the main one, negative below.
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
        A negative length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if device is not None:
        check_device("eye", device)
    rows = length("eye", n_rows)
    columns = rows if n_cols is None else length("eye", n_cols)
    if min(rows, columns) < 0 or max(rows, columns) >= 1 << 60:
        raise ValueError(f"eye: {rows} x {columns} is not a possible size")
    k = max(-rows, min(columns, length("eye", k)))
    return finish(fill.eye(rows, columns, k, dtype), requires_grad)


# ---------------------------------------------------------------------------------------------------------------- triangles, grids
_triangle = define("triangle", forward=fill.triangle, moves=True, inputs=("x",), options=("k", "lower"),
                   vjp=lambda g, k, lower: _triangle(g, k, lower), batch=lambda x, k, lower: _triangle(x, k, lower),
                   kind=LINEAR, public=False)


def diagonal_number(k):
    return max(-(1 << 60), min(1 << 60, length("diagonal", k)))


@public(method=True)
def tril(x, k=0):
    """
    Lower triangle: zeros above a diagonal.

    Parameters
    ----------
    x : Tensor
        Shape (..., m, n).
    k : int, default 0
        The last diagonal that stays: positive above the main one, negative below.  `diagonal` is another name.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Fewer than 2 axes.

    Notes
    -----
    Gradient: the same triangle of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tril(cg.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return _triangle(like("tril", x), diagonal_number(k), True)


@public(method=True)
def triu(x, k=0):
    """
    Upper triangle: zeros below a diagonal.

    Parameters
    ----------
    x : Tensor
        Shape (..., m, n).
    k : int, default 0
        The first diagonal that stays: positive above the main one, negative below.  `diagonal` is another name.

    Returns
    -------
    Tensor
        A copy in the shape of `x`.

    Raises
    ------
    ValueError
        Fewer than 2 axes.

    Notes
    -----
    Gradient: the same triangle of ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.triu(cg.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return _triangle(like("triu", x), diagonal_number(k), False)


def tri(n_rows, n_cols=None, k=0, *, dtype=None, device=None, requires_grad=False):
    """
    Matrix with ones on and below a diagonal and zeros above.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The last diagonal with ones: positive above the main one, negative below.
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
        A negative length.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tri(2)
    tensor([[1., 0.],
            [1., 1.]])
    """
    if device is not None:
        check_device("tri", device)
    ones = fill.full("tri", (length("tri", n_rows), length("tri", n_rows if n_cols is None else n_cols)), 1, get_default_dtype() if dtype is None else dtype)
    return finish(fill.triangle(ones, diagonal_number(k), True), requires_grad)


def tril_indices(n_rows, n_cols=None, k=0, *, dtype=None, device=None):
    """
    Rows and columns of the elements of a lower triangle.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The last diagonal that belongs to it.
    dtype : DType, optional
        int64 if left out.
    device : {"cpu", None}
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Shape (2, n): a row of row numbers and a row of column numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tril_indices(2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return triangle_indices("tril_indices", np.tril_indices, n_rows, n_cols, k, dtype, device)


def triu_indices(n_rows, n_cols=None, k=0, *, dtype=None, device=None):
    """
    Rows and columns of the elements of an upper triangle.

    Parameters
    ----------
    n_rows : int
    n_cols : int, optional
        As many as rows if left out.
    k : int, default 0
        The first diagonal that belongs to it.
    dtype : DType, optional
        int64 if left out.
    device : {"cpu", None}
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Shape (2, n): a row of row numbers and a row of column numbers.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.triu_indices(2)
    tensor([[0, 0, 1],
            [0, 1, 1]])
    """
    return triangle_indices("triu_indices", np.triu_indices, n_rows, n_cols, k, dtype, device)


def triangle_indices(name, function, n_rows, n_cols, k, dtype, device):
    check_device(name, device)
    rows = length(name, n_rows)
    columns = rows if n_cols is None else length(name, n_cols)
    if min(rows, columns) < 0:
        raise ValueError(f"{name}: {rows} x {columns} is not a possible size")
    return convert.tensor_from(np.stack(function(rows, length(name, k), columns)), "int64" if dtype is None else dtype, None)


def meshgrid(*xs, indexing="xy"):
    """
    Coordinate matrices from coordinate vectors.

    Parameters
    ----------
    *xs : Tensor
        1-d (or 0-d) tensors, or one list of them.
    indexing : {"xy", "ij"}, default "xy"
        "xy": the first two axes of the results are swapped, as for plots; "ij": result axis i runs along ``xs[i]``.

    Returns
    -------
    list of Tensor
        Views, as many as inputs, all of one shape.

    Raises
    ------
    ValueError
        An input with more than one axis, or another `indexing`.

    Notes
    -----
    Gradient: ``g`` summed over the axes along which a vector was repeated.

    Examples
    --------
    >>> import cgrad as cg
    >>> a, b = cg.meshgrid(cg.arange(2), cg.arange(3), indexing="ij")
    >>> b
    tensor([[0, 1, 2],
            [0, 1, 2]])
    """
    from cgrad.ops.shape import broadcast_to, reshape  # shape.py needs asarray
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    if len(xs) == 1 and isinstance(xs[0], (list, tuple)):
        xs = tuple(xs[0])
    xs = [asarray(x) for x in xs]
    for x in xs:
        if x.ndim > 1:
            raise ValueError(f"meshgrid: inputs must be vectors, got one of shape {x.shape}")
    n = len(xs)
    order = list(range(n))
    if indexing == "xy" and n > 1:
        order[0], order[1] = 1, 0
    shape = [1] * n
    for x, axis in zip(xs, order):
        shape[axis] = x.size
    grids = []
    for x, axis in zip(xs, order):
        one = [1] * n
        one[axis] = x.size
        grids.append(broadcast_to(reshape(x, tuple(one)), tuple(shape)))
    return grids


for _name in __all__:
    if _name not in ("tril", "triu"):
        publish(_name, globals()[_name], method=False)
