"""What the Array API standard asks of a library: what its dtypes can hold, how they meet, and what it can do.

The module `cgrad` is itself the namespace: where the standard gives a function a meaning, the function of that name has it.  The
standard is that of 2024.12, without complex dtypes.  Next: numpy_protocol.py, the other door for array code.
"""
import sys
from typing import NamedTuple

import numpy as np

from cgrad.core import dtype as dtypes
from cgrad.core.device import check_device
from cgrad.core.dtype import DType, as_dtype, get_default_dtype, promote_types
from cgrad.core.tensor import Tensor

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
DTYPES = {name: as_dtype(name) for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32", "float64")}
KINDS = {
    "bool": ("bool",), "signed integer": ("integer",), "unsigned integer": ("unsigned integer",), "integral": ("integer", "unsigned integer"),
    "real floating": ("floating",), "complex floating": (), "numeric": ("integer", "unsigned integer", "floating"),
}
WEAK = {bool: 0, int: 1, float: 2}       # Python numbers count by their kind alone
RANK = {"bool": 0, "unsigned integer": 1, "integer": 1, "floating": 2}


class FloatInfo(NamedTuple):
    """The limits of a floating dtype, as Python numbers."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntInfo(NamedTuple):
    """The limits of an integer dtype, as Python numbers."""

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(x):
    return x.dtype if isinstance(x, Tensor) else as_dtype(x.dtype if isinstance(x, (np.ndarray, np.generic)) else x)


def finfo(type):
    """The limits of a floating dtype.

    Parameters
    ----------
    type : DType or Tensor
        The dtype, or a tensor that has it.

    Returns
    -------
    FloatInfo
        With `bits`, `eps` (from 1 to the next larger number), `max`, `min`, `smallest_normal` and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is no floating one.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.finfo(cg.float32).eps
    1.1920928955078125e-07
    """
    dtype = _dtype_of(type)
    if not dtype.is_floating_point:
        raise TypeError(f"finfo: {dtype.name} is not a floating dtype; use iinfo for integers")
    if dtype is dtypes.bfloat16:             # which NumPy does not know: float32 without the lower half
        return FloatInfo(16, 2.0**-7, (2 - 2.0**-7) * 2.0**127, -(2 - 2.0**-7) * 2.0**127, 2.0**-126, dtype)
    info = np.finfo(dtype.name)
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), dtype)


def iinfo(type):
    """The limits of an integer dtype.

    Parameters
    ----------
    type : DType or Tensor
        The dtype, or a tensor that has it.

    Returns
    -------
    IntInfo
        With `bits`, `max`, `min` and `dtype`.

    Raises
    ------
    TypeError
        If the dtype is no integer one.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.iinfo(cg.int8).min, cg.iinfo(cg.int8).max
    (-128, 127)
    """
    dtype = _dtype_of(type)
    if dtype.kind not in KINDS["integral"]:
        raise TypeError(f"iinfo: {dtype.name} is not an integer dtype" + "; use finfo for floats" * dtype.is_floating_point)
    return IntInfo(8 * dtype.itemsize, dtype.limits[1], dtype.limits[0], dtype)


def isdtype(dtype, kind):
    """Whether a dtype is of a kind.

    Parameters
    ----------
    dtype : DType
    kind : DType, str or tuple of these
        A dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``, ``"complex floating"`` (no
        dtype is, for now) or ``"numeric"``; a tuple for any of them.

    Raises
    ------
    TypeError, ValueError
        If there is no such dtype or kind.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.isdtype(cg.uint8, "integral"), cg.isdtype(cg.uint8, (cg.int8, "real floating"))
    (True, False)
    """
    dtype = as_dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str):
            if one not in KINDS:
                raise ValueError(f"isdtype: there is no kind {one!r}; use one of {', '.join(map(repr, KINDS))}")
            if dtype.kind in KINDS[one]:
                return True
        elif as_dtype(one) is dtype:
            return True
    return False


def can_cast(from_, to):
    """Whether a dtype becomes another by promotion alone.

    Parameters
    ----------
    from_ : DType or Tensor
    to : DType

    Notes
    -----
    True where an operation on both dtypes has a result of dtype `to`; so int64 can be cast to float32, as in every sum of the two,
    but uint8 not to int8.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.can_cast(cg.int32, cg.int64), cg.can_cast(cg.float64, cg.float32)
    (True, False)
    """
    from_, to = _dtype_of(from_), as_dtype(to)
    try:
        return promote_types(from_, to) is to
    except TypeError:                        # uint64 and a signed type
        return False


def result_type(*arrays_and_dtypes):
    """The dtype of what an operation on all of these would give.

    Parameters
    ----------
    *arrays_and_dtypes : Tensor, array, DType or Python number
        Python numbers are weak: they matter only if they are of a higher kind than all others.

    Raises
    ------
    ValueError
        If nothing is given.
    TypeError
        If uint64 meets a signed integer dtype: no integer type holds both.

    Notes
    -----
    As in the Array API standard; across kinds the higher one wins with its own dtype, so int64 and float16 give float16.  float16 and
    bfloat16 give float32.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.result_type(cg.int8, cg.uint8), cg.result_type(cg.float64, 1), cg.result_type(cg.int32, 1.5)
    (cgrad.int16, cgrad.float64, cgrad.float32)
    """
    if not arrays_and_dtypes:
        raise ValueError("result_type: give at least one tensor, dtype or number")
    found, weak = None, -1
    for x in arrays_and_dtypes:
        rank = WEAK.get(type(x))
        if rank is None:
            found = _dtype_of(x) if found is None else promote_types(found, _dtype_of(x))
        else:
            weak = max(weak, rank)
    if found is None or weak > RANK[found.kind]:
        found = (dtypes.bool_, dtypes.int64, get_default_dtype())[weak]
    return found


class NamespaceInfo:
    """What cgrad can do, in the words of the Array API standard (``cgrad.__array_namespace_info__()``).

    Examples
    --------
    >>> import cgrad as cg
    >>> info = cg.__array_namespace_info__()
    >>> info.default_dtypes()["real floating"], info.devices()
    (cgrad.float32, ['cpu'])
    """

    def capabilities(self):
        """Whether shapes may depend on values (boolean indexing, unique), and how many axes a tensor can have."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self):
        """Where tensors are made."""
        return "cpu"

    def devices(self):
        """All devices there are."""
        return ["cpu"]

    def default_dtypes(self, *, device=None):
        """The dtypes that Python numbers and indices take."""
        check_device("default_dtypes", device)
        return {"real floating": get_default_dtype(), "complex floating": None, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes of a kind (see `cgrad.isdtype`), or all of them, by name; float16 and bfloat16 are not among them."""
        check_device("dtypes", device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}


def array_namespace(x, *, api_version=None):
    """The module `cgrad`, whose functions have the meaning that the Array API standard gives their names.

    Parameters
    ----------
    api_version : str, optional
        From "2021.12" to "2024.12".

    Raises
    ------
    ValueError
        If the version is another one.
    """
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(f"__array_namespace__: there is no version {api_version!r} of the standard here; use one of {', '.join(VERSIONS)}")
    return sys.modules["cgrad"]


def to_device(x, device, *, stream=None):
    """The tensor itself: there is only the device "cpu".

    Raises
    ------
    ValueError
        If another device, or a stream, is named.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    check_device("to_device", device)
    if stream is not None:
        raise ValueError(f"to_device: there are no streams on the CPU, got {stream!r}")
    return x
