"""Layers joined with the batch norm that follows them, for evaluation."""
from __future__ import annotations

import copy

import cgrad as cg
from cgrad.nn.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv, bn, transpose=False):
    """A new convolution that does what `conv` and then `bn` do in evaluation.

    Parameters
    ----------
    conv : Conv1d, Conv2d, Conv3d or, with `transpose`, a transposed one
    bn : BatchNorm1d, BatchNorm2d or BatchNorm3d with running moments
    transpose : bool, default False

    Raises
    ------
    RuntimeError
        If one of them is in training mode or `bn` has no running moments.

    Examples
    --------
    >>> import cgrad as cg
    >>> conv, bn = cg.nn.Conv2d(3, 8, 3, bias=False).eval(), cg.nn.BatchNorm2d(8).eval()
    >>> x = cg.randn(1, 3, 5, 5)
    >>> bool(cg.allclose(cg.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-5))
    True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, lambda *args: fuse_conv_bn_weights(*args, transpose=transpose))


def fuse_linear_bn_eval(linear, bn):
    """A new Linear that does what `linear` and then `bn` do in evaluation.

    Raises
    ------
    RuntimeError
        If one of them is in training mode or `bn` has no running moments.
    ValueError
        If `bn` has neither as many features as `linear` has outputs nor one.

    Examples
    --------
    >>> import cgrad as cg
    >>> linear, bn = cg.nn.Linear(3, 8).eval(), cg.nn.BatchNorm1d(8).eval()
    >>> x = cg.randn(4, 3)
    >>> bool(cg.allclose(cg.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-5))
    True
    """
    if bn.num_features not in (1, linear.out_features):
        raise ValueError(f"fuse_linear_bn_eval: bn must have 1 or {linear.out_features} features, got {bn.num_features}")
    return _fused("fuse_linear_bn_eval", linear, bn, fuse_linear_bn_weights)


def fuse_conv_bn_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, transpose=False):
    """Weight and bias of the joined convolution, as parameters.

    Parameters
    ----------
    conv_w : Tensor, shape ``(out, in, *kernel)``, or with `transpose` ``(in, out, *kernel)``
    conv_b : Tensor, shape (out,), or None
    bn_rm, bn_rv : Tensor, shape (out,)
        The running mean and variance.
    bn_eps : float
    bn_w, bn_b : Tensor, shape (out,), or None
    transpose : bool, default False

    Notes
    -----
    With ``s = bn_w / sqrt(bn_rv + bn_eps)``: ``conv_w * s`` and ``(conv_b - bn_rm) * s + bn_b``.

    Examples
    --------
    >>> import cgrad as cg
    >>> w, b = cg.nn.utils.fuse_conv_bn_weights(cg.ones(1, 1, 1), None, cg.tensor([1.0]), cg.tensor([4.0]), 0.0, None, None)
    >>> w.item(), b.item()
    (0.5, -0.5)
    """
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _joined(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b):
    """Weight and bias of the joined Linear; as `fuse_conv_bn_weights`.

    Examples
    --------
    >>> import cgrad as cg
    >>> w, b = cg.nn.utils.fuse_linear_bn_weights(cg.ones(1, 2), None, cg.tensor([1.0]), cg.tensor([4.0]), 0.0, None, None)
    >>> w.tolist(), b.item()
    ([[0.5, 0.5]], -0.5)
    """
    return _joined(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def _joined(weight, bias, mean, var, eps, scale, shift, shape):
    with cg.no_grad():
        factor = cg.rsqrt(var + eps) * (1.0 if scale is None else scale)
        moved = (-mean if bias is None else bias - mean) * factor + (0.0 if shift is None else shift)
        fused = (weight * factor.reshape(*shape)).astype(weight.dtype)
        moved = moved.astype(weight.dtype if bias is None else bias.dtype)
    # a linear layer and a norm of one feature: the same shift for all outputs
    moved = moved.expand(fused.shape[0]).clone() if moved.shape == (1,) and weight.ndim == 2 else moved
    return Parameter(fused, weight.requires_grad), Parameter(moved, weight.requires_grad if bias is None else bias.requires_grad)


def _fused(function, layer, bn, weights):
    if layer.training or bn.training:
        raise RuntimeError(f"{function}: both layers must be in evaluation mode; call eval() first")
    if bn.running_mean is None or bn.running_var is None:
        raise RuntimeError(f"{function}: the batch norm has no running moments (track_running_stats=False)")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
