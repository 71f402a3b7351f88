"""Changing the dtype, and copying.

A cast is linear; the engine casts gradients back to the dtype of the input, so the rules only pass them on.  Next: inplace.py.
"""

from cgrad.core import dtype as dtypes
from cgrad.core.arguments import as_tensor
from cgrad.core.device import check_device
from cgrad.core.forward import copy as forward
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import zeros_like
from cgrad.ops.define import LINEAR, as_method, define, public

_cast = define("astype", forward=forward.cast, moves=True, inputs=("x",), options=("dtype",), vjp=lambda g: g, kind=LINEAR,
               batch=lambda x, dtype: _cast(x, dtype), public=False)
_clone = define("clone", forward=forward.clone, moves=True, inputs=("x",), vjp=lambda g: g, batch=lambda x: _clone(x), kind=LINEAR, public=False)
_contiguous = define("contiguous", forward=forward.contiguous, moves=True, inputs=("x",), vjp=lambda g: g, batch=lambda x: _contiguous(x), kind=LINEAR,
                     public=False)


@public
def astype(x, dtype, *, copy=True, device=None):
    """A tensor with another dtype.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.
    dtype : DType
        What the result has; NumPy dtypes, names and Python's bool, int, float are understood.
    copy : bool
        Whether `x` is copied even if it has the dtype already.
    device : {"cpu", None}
        Accepted for compatibility.

    Returns
    -------
    Tensor
        Of the same shape.

    Notes
    -----
    Floats become integers by cutting towards 0; NaN becomes 0, and what is out of range the nearest number in range.  To float16 and
    bfloat16 numbers are rounded half to even, once, also from float64.
    Gradient: ``g``, cast back; none through integers and bools.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.astype(cg.tensor([1.7, -1.7]), cg.int64)
    tensor([ 1, -1])
    """
    if device is not None:
        check_device("astype", device)
    dtype = dtypes.as_dtype(dtype)
    if x.dtype is dtype:
        return _clone(x) if copy else x
    return _cast(x, dtype)


@public
def clone(x):
    """A copy with memory of its own, in C order.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([1.0, 2.0])
    >>> cg.clone(x).data_ptr() == x.data_ptr()
    False
    """
    return _clone(x)


@public(method=False)
def real(x):
    """The real part: the tensor itself, since no dtype is complex.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.real(cg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return as_tensor("real", x)


@public(method=False)
def imag(x):
    """The imaginary part: zeros, since no dtype is complex.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor
        Of the same shape and dtype.

    Notes
    -----
    Gradient: none.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.imag(cg.tensor([1.0, 2.0]))
    tensor([0., 0.])
    """
    return zeros_like(as_tensor("imag", x))


@public
def conj(x):
    """The complex conjugate: the tensor itself, since no dtype is complex.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.conj(cg.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return as_tensor("conj", x)


@public
def contiguous(x):
    """The tensor itself if its elements lie in C order, else a copy where they do.

    Parameters
    ----------
    x : Tensor
        Of any shape and dtype.

    Returns
    -------
    Tensor

    Notes
    -----
    Gradient: ``g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.contiguous(cg.zeros(2, 3).T).is_contiguous()
    True
    """
    return x if x.is_contiguous() else _contiguous(x)


def _to(x, *args, dtype=None, device=None, non_blocking=False, copy=False):
    """The tensor with another dtype (``x.to(cg.float64)``) or that of another tensor (``x.to(other)``).

    Parameters
    ----------
    *args : DType, Tensor or "cpu"
        What to take the dtype from; the device ``"cpu"`` changes nothing.
    dtype : DType, optional
    device : {"cpu", None}
    non_blocking : bool
        Read for PyTorch's sake.
    copy : bool
        Whether to copy even if nothing changes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).to(cg.float64).dtype
    cgrad.float64
    """
    for value in args:
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda", "mps", "gpu", "xpu"):
            device = value
        elif not isinstance(value, bool):       # non_blocking, for PyTorch
            dtype = value
    check_device("to", device)
    return (clone(x) if copy else x) if dtype is None else astype(x, dtype, copy=copy)


as_method(_to, "to")


def _type_as(x, other):
    """The tensor with the dtype of `other`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones(2).type_as(cg.tensor([1, 2]))
    tensor([1, 1])
    """
    return astype(x, other.dtype, copy=False)


as_method(_type_as, "type_as")


def _type(x, dtype):
    """The tensor with another dtype: PyTorch's older word for ``x.to(dtype)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).type(cg.float64).dtype
    cgrad.float64
    """
    return astype(x, dtype, copy=False)


as_method(_type, "type")
for _name, _dtype in {"half": dtypes.float16, "bfloat16": dtypes.bfloat16, "float": dtypes.float32, "double": dtypes.float64, "long": dtypes.int64,
                      "int": dtypes.int32, "short": dtypes.int16, "char": dtypes.int8, "byte": dtypes.uint8,
                      "bool": dtypes.bool_}.items():
    def _method(x, dtype=_dtype):
        return astype(x, dtype, copy=False)
    _method.__name__ = _name
    _method.__doc__ = f"The tensor as {_dtype.name}.\n\nExamples\n--------\n>>> import cgrad as cg\n>>> cg.ones(1).{_name}().dtype\n{_dtype!r}\n"
    as_method(_method)
