"""What of Fourier transforms has real numbers in and out: frequencies, and shifts of the zero frequency.

The transforms themselves give complex numbers, and complex dtypes do not exist yet; asking for one says so.
"""
from cgrad.core.arguments import as_tensor, several_axes, whole_number
from cgrad.core.device import check_device
from cgrad.ops.creation import finish
from cgrad.ops.ranges import arange
from cgrad.ops.define import door, open_doors
from cgrad.ops.joining import concat
from cgrad.ops.repeating import roll

__all__ = ["fftfreq", "fftshift", "ifftshift", "rfftfreq"]

_COMPLEX = {kind + "fft" + axes for kind in ("", "i", "r", "ir", "h", "ih") for axes in ("", "2", "n")}


def _fourier(function):
    return door(function, module="cgrad.fft")


def _spacing(name, n, d):
    n = whole_number(name, "n", n)
    if n < 1:
        raise ValueError(f"{name}: n must be positive, got {n}")
    if d == 0:
        raise ValueError(f"{name}: the spacing d of samples must not be 0")
    return n, 1.0 / (n * d)


@_fourier
def fftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    """Frequencies of the results of a discrete Fourier transform, in cycles per unit of `d`.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : number, optional
        Spacing of the samples.
    dtype : dtype, optional
        The default float if left out.
    device : {"cpu", None}, optional
        Accepted for compatibility.
    requires_grad : bool, optional
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d: 0 and the positive frequencies, then the negative ones.

    Raises
    ------
    ValueError
        If n is not positive, or d is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fft.fftfreq(4, 0.5)
    tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    n, unit = _spacing("fftfreq", n, d)
    check_device("fftfreq", device)
    whole = concat([arange(0, (n + 1) // 2, dtype="float64"), arange(-(n // 2), 0, dtype="float64")])
    return finish((whole * unit).astype(arange(0.0, dtype=dtype).dtype), requires_grad)


@_fourier
def rfftfreq(n, d=1.0, *, dtype=None, device=None, requires_grad=False):
    """Frequencies of the results of a discrete Fourier transform of real numbers: 0 and the positive ones.

    Parameters
    ----------
    n : int
        Length of the transform.
    d : number, optional
        Spacing of the samples.
    dtype : dtype, optional
        The default float if left out.
    device : {"cpu", None}, optional
        Accepted for compatibility.
    requires_grad : bool, optional
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1-d, of length ``n // 2 + 1``.

    Raises
    ------
    ValueError
        If n is not positive, or d is 0.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fft.rfftfreq(4, 0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    n, unit = _spacing("rfftfreq", n, d)
    check_device("rfftfreq", device)
    return finish((arange(0, n // 2 + 1, dtype="float64") * unit).astype(arange(0.0, dtype=dtype).dtype), requires_grad)


def _shifted(name, x, axes, back):
    x = as_tensor(name, x)
    axes = several_axes(name, axes, x.ndim)
    axes = tuple(range(x.ndim)) if axes is None else axes
    shifts = tuple([-(x.shape[a] // 2) if back else x.shape[a] // 2 for a in axes])
    return roll(x, shifts, axes) if axes else x.clone()


@_fourier
def fftshift(x, axes=None):
    """The zero frequency moved to the middle.

    Parameters
    ----------
    x : Tensor
    axes : int, tuple of int or None, optional
        The axes to shift; None for all.

    Returns
    -------
    Tensor
        The same numbers, each axis of length n rolled by ``n // 2``.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``ifftshift(g)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fft.fftshift(cg.tensor([0, 1, 2, -2, -1]))
    tensor([-2, -1,  0,  1,  2])
    """
    return _shifted("fftshift", x, axes, False)


@_fourier
def ifftshift(x, axes=None):
    """The zero frequency moved back from the middle to the front; the inverse of `fftshift`.

    Parameters
    ----------
    x : Tensor
    axes : int, tuple of int or None, optional
        The axes to shift; None for all.

    Returns
    -------
    Tensor
        The same numbers, each axis of length n rolled by ``-(n // 2)``.

    Raises
    ------
    IndexError
        If an axis is out of range.
    ValueError
        If an axis is named twice.

    Notes
    -----
    Gradient: ``fftshift(g)``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.fft.ifftshift(cg.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _shifted("ifftshift", x, axes, True)


def _hint(name):
    return "; the transform has complex numbers on one side, and complex dtypes do not exist yet" if name in _COMPLEX else ""


open_doors(globals(), hint=_hint)
