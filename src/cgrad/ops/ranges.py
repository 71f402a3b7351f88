"""Evenly and geometrically spaced numbers, and grids of them.

Ends that are tracked tensors get their gradients.  Next: triangles.py.
"""
import math
import operator

import numpy as np

from cgrad.core import batching
from cgrad.core.device import check_device
from cgrad.core.dtype import as_dtype, get_default_dtype
from cgrad.core.forward import fill
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import asarray, finish, is_followed, length, tensor
from cgrad.ops.define import publish

__all__ = [
    "arange", "linspace", "logspace", "geomspace", "meshgrid",
]


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
    publish(_name, globals()[_name], method=False)
