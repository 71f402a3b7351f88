"""Random masking."""
from __future__ import annotations

import cgrad as cg

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


_SATURATION = -1.7580993408473766      # what selu tends to at minus infinity: -scale * alpha


def dropout(input, p=0.5, training=True, inplace=False):
    """Set elements to zero at random and scale the rest up by ``1 / (1 - p)``, so that the expectation stays.

    Parameters
    ----------
    input : Tensor
    p : float, default 0.5
        Probability of a zero, in [0, 1].
    training : bool, default True
        False returns the input unchanged.
    inplace : bool, default False
        Write the result into `input`.

    Raises
    ------
    ValueError
        If `p` is outside [0, 1].

    Notes
    -----
    The same mask multiplies the gradient. Random numbers come from the default generator (`cgrad.manual_seed`).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.dropout(cg.ones(3), p=0.5, training=False)
    tensor([1., 1., 1.])
    """
    return _drop("dropout", input, p, training, inplace, input.shape)


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Set whole channels to zero at random, for input of shape (N, C, L) or (C, L); else as `dropout`.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(set(cg.nn.functional.dropout1d(cg.ones(50, 4, 3)).sum(axis=2).ravel().tolist()))
    [0.0, 6.0]
    """
    return _drop("dropout1d", input, p, training, inplace, _channels("dropout1d", input, 2, 3))


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Set whole channels to zero at random, for input of shape (N, C, H, W) or (N, C, L); else as `dropout`.

    Notes
    -----
    Three axes are (N, C, L), as in PyTorch, not (C, H, W). Tompson et al., 2015.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(set(cg.nn.functional.dropout2d(cg.ones(50, 4, 3, 1)).sum(axis=(2, 3)).ravel().tolist()))
    [0.0, 6.0]
    """
    return _drop("dropout2d", input, p, training, inplace, _channels("dropout2d", input, None, 4, 3))


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Set whole channels to zero at random, for input of shape (N, C, D, H, W) or (C, D, H, W); else as `dropout`.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(set(cg.nn.functional.dropout3d(cg.ones(50, 4, 3, 1, 1)).sum(axis=(2, 3, 4)).ravel().tolist()))
    [0.0, 6.0]
    """
    return _drop("dropout3d", input, p, training, inplace, _channels("dropout3d", input, 4, 5))


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout for networks of `selu`: elements become its saturation value, and mean and variance stay 0 and 1.

    Parameters
    ----------
    input : Tensor
    p : float, default 0.5
        Probability of being replaced, in [0, 1].
    training : bool, default False
    inplace : bool, default False
        Write the result into `input`.

    Notes
    -----
    ``a * (x * keep + s * (1 - keep)) + b`` with s = -1.7581 (selu at minus infinity), ``a = ((1 - p) * (1 + p * s**2)) ** -0.5`` and
    ``b = -a * p * s``; Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.functional.alpha_dropout(cg.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    return _alpha("alpha_dropout", input, p, training, inplace, input.shape)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """`alpha_dropout` of whole channels: all elements behind the first two axes, (N, C, ...), share their fate.

    Examples
    --------
    >>> import cgrad as cg
    >>> out = cg.nn.functional.feature_alpha_dropout(cg.zeros(2, 3, 4), training=True)
    >>> bool((out == out[..., :1]).all())
    True
    """
    if input.ndim < 2:
        raise ValueError(f"feature_alpha_dropout: the input must have at least 2 axes, got shape {tuple(input.shape)}")
    return _alpha("feature_alpha_dropout", input, p, training, inplace, _channels("feature_alpha_dropout", input, None, input.ndim))


def _channels(name, input, single, *batched):
    """The shape of a mask with one element for each channel; inputs of `single` axes have no axis of samples."""
    if input.ndim not in batched and input.ndim != single:
        known = sorted({*batched, single} - {None})
        raise ValueError(f"{name}: the input must have {' or '.join(map(str, known))} axes, got shape {tuple(input.shape)}")
    kept = 1 if input.ndim == single else 2
    return tuple(input.shape[:kept]) + (1,) * (input.ndim - kept)


def _is_on(name, input, p, training):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name}: the probability p must lie in [0, 1], got {p}")
    if training and p and not input.dtype.is_floating_point:
        raise TypeError(f"{name}: the input must be floating point, got {input.dtype}")
    return training and p > 0.0


def _kept(shape, p, dtype):
    """1 with probability ``1 - p``, else 0."""
    with cg.no_grad():
        return (cg.rand(*shape) >= p).astype(dtype) if p < 1.0 else cg.zeros(shape, dtype=dtype)


def _drop(name, input, p, training, inplace, shape):
    if not _is_on(name, input, p, training):
        return input
    mask = _kept(shape, p, input.dtype)
    if p < 1.0:
        mask /= 1.0 - p
    return input.mul_(mask) if inplace else input * mask


def _alpha(name, input, p, training, inplace, shape):
    if not _is_on(name, input, p, training):
        return input
    kept = _kept(shape, p, input.dtype)
    if p == 1.0:
        a = b = 0.0                      # PyTorch's choice; the formula has no limit there
    else:
        a = ((1.0 - p) * (1.0 + p * _SATURATION ** 2)) ** -0.5
        b = -a * p * _SATURATION
    shift = (1.0 - kept) * (a * _SATURATION) + b
    scale = kept * a
    return input.mul_(scale).add_(shift) if inplace else input * scale + shift
