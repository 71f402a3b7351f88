"""Helpers for training: clipping of gradients, parameters as one vector, parametrizations, fusion with batch norms, batches of sequences."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import cgrad as cg
from cgrad.core.forward.optim import limit, total_norm
from cgrad.core.tensor import Tensor
from cgrad.ops.define import open_doors

if TYPE_CHECKING:
    from cgrad.nn.utils.fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
    from cgrad.nn.utils.parametrizations import spectral_norm, weight_norm
from cgrad.nn.utils import rnn

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval",
    "fuse_linear_bn_weights", "get_total_norm", "parameters_to_vector", "remove_spectral_norm", "remove_weight_norm", "rnn", "spectral_norm",
    "vector_to_parameters", "weight_norm",
]

def _list(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _gradients(parameters):
    return [p.grad for p in _list(parameters) if p.grad is not None]


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of the vector of all elements of all tensors.

    Parameters
    ----------
    tensors : iterable of Tensor, or a Tensor
    norm_type : float, default 2
        Its order; ``inf`` for the largest element.
    error_if_nonfinite : bool, default False
        Raise RuntimeError if the norm is NaN or infinite.
    foreach
        Has no effect; there for PyTorch's signature.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.get_total_norm([cg.tensor([3.0]), cg.tensor([[0.0, 4.0]])])
    tensor(5.)
    """
    tensors, norm_type = _list(tensors), float(norm_type)
    if not norm_type > 0:
        raise ValueError(f"get_total_norm: norm_type must be positive, got {norm_type}")
    if not tensors:
        return cg.tensor(0.0)
    if norm_type == math.inf:
        total = cg.stack([abs(x).max() if x.size else x.sum() for x in tensors]).max()
    elif norm_type == 2.0:
        total = _euclidean(tensors)
    else:
        total = sum((abs(x) ** norm_type).sum() for x in tensors) ** (1.0 / norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(f"get_total_norm: the total norm is {total.item()}; nothing was changed")
    return total


def _euclidean(tensors):
    if cg.is_grad_enabled() and any(x.requires_grad for x in tensors) or not all(x.dtype.is_floating_point for x in tensors):
        return cg.sqrt(sum((x * x).sum() for x in tensors))
    dtype = cg.result_type(*tensors)
    return cg.tensor(total_norm(tensors), dtype=dtype if dtype.itemsize >= 4 else cg.float32)      # float16 ends at 65504


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale all gradients by ``min(1, max_norm / (total_norm + 1e-6))``, where `get_total_norm` gave the norm.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([0.0, 0.0], requires_grad=True)
    >>> (w * cg.tensor([3.0, 4.0])).sum().backward()
    >>> cg.nn.utils.clip_grads_with_norm_([w], 1.0, cg.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    max_norm = float(max_norm)
    if not max_norm >= 0:
        raise ValueError(f"clip_grad_norm_: max_norm must not be negative, got {max_norm}")
    factor = max_norm / (float(total_norm) + 1e-6)
    if not factor >= 1.0:
        limit("clip_grad_norm_", _gradients(parameters), factor)


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale all gradients down together so that their total norm is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor, or a Tensor
    max_norm : float
    norm_type : float, default 2
        The order of the norm of the vector of all gradients; ``inf`` for the largest element.
    error_if_nonfinite : bool, default False
        Raise RuntimeError, with the gradients unchanged, if the norm is NaN or infinite.
    foreach
        Has no effect; there for PyTorch's signature.

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
    parameters = _list(parameters)
    with cg.no_grad():
        total = get_total_norm(_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, total)
    return total


def clip_grad_value_(parameters, clip_value, foreach=None):
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
    limit("clip_grad_value_", _gradients(parameters), -clip_value, clip_value)


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


def remove_weight_norm(module, name="weight"):
    """Make a weight that `weight_norm` wrote as length and direction an ordinary parameter again; returns the module.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.weight_norm(cg.nn.Linear(2, 3))
    >>> list(cg.nn.utils.remove_weight_norm(layer).state_dict())
    ['bias', 'weight']
    """
    from cgrad.nn.utils.parametrize import remove_parametrizations
    return remove_parametrizations(module, name)


def remove_spectral_norm(module, name="weight"):
    """Make a weight under `spectral_norm` an ordinary parameter with its present value again; returns the module.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.spectral_norm(cg.nn.Linear(2, 2))
    >>> cg.nn.utils.remove_spectral_norm(layer)
    Linear(in_features=2, out_features=2, bias=True)
    """
    return remove_weight_norm(module, name)


open_doors(globals(), {                  # what few programs need
    "fuse_conv_bn_eval": ".fusion", "fuse_conv_bn_weights": ".fusion", "fuse_linear_bn_eval": ".fusion", "fuse_linear_bn_weights": ".fusion",
    "spectral_norm": ".parametrizations", "weight_norm": ".parametrizations", "parametrize": None, "parametrizations": None,
})
