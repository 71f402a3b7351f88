"""Helpers for training: clipping of gradients, parameters as one vector."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def _list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters):
    return [p.grad for p in _list(parameters) if p.grad is not None]


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False):
    """Scale all gradients down together so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor, or a Tensor
    max_norm : float
    norm_type : float, default 2
        The order of the norm of the vector of all gradients; ``inf`` for the largest element.
    error_if_nonfinite : bool, default False
        Raise RuntimeError, with the gradients unchanged, if the norm is NaN or infinite.

    Returns
    -------
    Tensor
        The norm before clipping.

    Notes
    -----
    The factor is ``min(1, max_norm / (norm + 1e-6))``, as in PyTorch.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([0.0, 0.0], requires_grad=True)
    >>> (w * cg.tensor([3.0, 4.0])).sum().backward()
    >>> cg.nn.utils.clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    max_norm, norm_type = float(max_norm), float(norm_type)
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm_: max_norm must not be negative, got {max_norm}")
    if not norm_type > 0:
        raise ValueError(f"clip_grad_norm_: norm_type must be positive, got {norm_type}")
    gradients = _gradients(parameters)
    with cg.no_grad():
        if not gradients:
            return cg.tensor(0.0)
        if norm_type == math.inf:
            total = cg.stack([abs(g).max() if g.size else g.sum() for g in gradients]).max()
        elif norm_type == 2.0:
            total = cg.sqrt(sum((g * g).sum() for g in gradients))
        else:
            total = sum((abs(g) ** norm_type).sum() for g in gradients) ** (1.0 / norm_type)
        norm = total.item()
        if error_if_nonfinite and not math.isfinite(norm):
            raise RuntimeError(f"clip_grad_norm_: the total norm of the gradients is {norm}; they were left unchanged")
        factor = max_norm / (norm + 1e-6)
        if not factor >= 1.0:
            for g in gradients:
                g.mul_(factor)
    return total


def clip_grad_value_(parameters, clip_value):
    """Cut every element of every gradient to ``[-clip_value, clip_value]``.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([0.0, 0.0], requires_grad=True)
    >>> (w * cg.tensor([3.0, -0.5])).sum().backward()
    >>> cg.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad
    tensor([ 1.0000, -0.5000])
    """
    clip_value = float(clip_value)
    if not clip_value >= 0:
        raise ValueError(f"clip_grad_value_: clip_value must not be negative, got {clip_value}")
    with cg.no_grad():
        for g in _gradients(parameters):
            g.copy_(cg.clip(g, -clip_value, clip_value))


def parameters_to_vector(parameters):
    """All parameters one after another as one vector; recorded.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.parameters_to_vector([cg.tensor([[1.0, 2.0]]), cg.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    parts = [p.reshape(-1) for p in _list(parameters)]
    if not parts:
        raise ValueError("parameters_to_vector: there are no parameters")
    return cg.concat(parts)


def vector_to_parameters(vec, parameters):
    """Write the pieces of a vector back into the parameters, in place.

    Raises
    ------
    ValueError
        If the vector has not exactly as many elements as the parameters together; nothing is written then.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([[0.0, 0.0]], requires_grad=True)
    >>> cg.nn.utils.vector_to_parameters(cg.tensor([1.0, 2.0]), [w])
    >>> w.tolist()
    [[1.0, 2.0]]
    """
    parameters = _list(parameters)
    needed = sum(p.size for p in parameters)
    if vec.ndim != 1 or vec.size != needed:
        raise ValueError(f"vector_to_parameters: the parameters have {needed} elements, the vector has shape {tuple(vec.shape)}")
    start = 0
    with cg.no_grad():
        for p in parameters:
            p.copy_(vec[start:start + p.size].reshape(p.shape))
            start += p.size
