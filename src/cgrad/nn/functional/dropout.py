"""Random masking."""
from __future__ import annotations

import cgrad as cg

__all__ = ["dropout"]


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
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout: the probability p must lie in [0, 1], got {p}")
    if not training or p == 0.0:
        return input
    if not input.dtype.is_floating_point:
        raise TypeError(f"dropout: the input must be floating point, got {input.dtype}")
    if p == 1.0:
        mask = cg.zeros(input.shape, dtype=input.dtype)
    else:
        with cg.no_grad():
            mask = (cg.rand(*input.shape) >= p).astype(input.dtype) / (1.0 - p)
    if inplace:
        return input.mul_(mask)
    return input * mask
