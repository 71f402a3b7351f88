"""Convolution and its two adjoints: in the images (the transposed convolution) and in the weight.

Each is bilinear and has the two others as derivatives, so that derivatives of any order are made of these three: their rules can be read
off ``<y, conv(x, w)> = <conv_transpose(y, w), x> = <conv_weight(y, x), w>``.  A rule's parameter names say what the tape keeps (see
define.py).  For a batch (vmap) examples become further images, or further groups of channels where each has a weight of its own.
`nn/functional/conv.py` is the public door.
"""

from cgrad.core.forward import conv as forward
from cgrad.ops.define import BILINEAR, define
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _permute, _reshape, broadcast_to

#: the extents of the result along the axes of the kernel, one number for each of these axes, groups of channels
_OPTIONS = ("extents", "stride", "padding", "dilation", "groups")


def _bias_gradient(g):
    return _sum(g, (0, *range(2, g.ndim)), False)


def _tangent(function, tx, ty, tz, x, y, *options):
    terms = []
    if tx is not None:
        terms.append(function(tx, y, None, *options))
    if ty is not None:
        terms.append(function(x, ty, None, *options))
    if tz is not None:
        extents = options[0]
        terms.append(broadcast_to(_reshape(tz, (*tz.shape, *(1,) * len(extents))), (x.shape[0], *tz.shape, *extents)))
    return sum(terms[1:], terms[0])


def _examples_from(out, size, axis):
    """Examples that are images (axis 0) or groups of channels (axis 1), along a first axis of their own."""
    out = _reshape(out, (*out.shape[:axis], size, out.shape[axis] // size, *out.shape[axis + 1:]))
    return _permute(out, (1, 0, *range(2, out.ndim))) if axis else out


def _as_groups(x, size, batched):
    """Examples as groups of the channels of each image; images that all share are repeated."""
    if not batched:
        x = broadcast_to(x, (size, *x.shape))
    x = _permute(x, (1, 0, *range(2, x.ndim)))
    return _reshape(x, (x.shape[0], size * x.shape[2], *x.shape[3:]))


def _batch(function, x, y, z, size, batched, *options):
    if batched[1]:
        if z is not None:
            z = _reshape(z if batched[2] else broadcast_to(z, (size, *z.shape)), (size * z.shape[-1],))
        out = function(_as_groups(x, size, batched[0]), _reshape(y, (size * y.shape[1], *y.shape[2:])), z, *options[:-1], size * options[-1])
        return _examples_from(out, size, 1)
    if batched[0]:
        x = _reshape(x, (size * x.shape[1], *x.shape[2:]))
    out = function(x, y, None if batched[2] else z, *options)
    if batched[0]:
        out = _examples_from(out, size, 0)
    return out + _reshape(z, (size, 1, z.shape[1], *(1,) * len(options[0]))) if batched[2] else out


#: conv(x, y, z, *options): y the weight (filters, channels / groups, *kernel), z the bias (filters,) or None
_conv = define(
    "conv", forward=forward.conv, inputs=("x", "y", "z"), optional=("z",), options=_OPTIONS,
    vjp=(lambda g, y, shape_x, stride, padding, dilation, groups: _conv_transpose(g, y, None, shape_x[2:], stride, padding, dilation, groups),
         lambda g, x, shape_y, stride, padding, dilation, groups: _conv_weight(g, x, shape_y[2:], stride, padding, dilation, groups),
         _bias_gradient),
    jvp=lambda tx, ty, tz, x, y, extents, stride, padding, dilation, groups: _tangent(
        _conv, tx, ty, tz, x, y, extents, stride, padding, dilation, groups),
    batch=lambda x, y, z, size, batched, extents, stride, padding, dilation, groups: _batch(
        _conv, x, y, z, size, batched, extents, stride, padding, dilation, groups), public=False)

#: conv_transpose(x, y, z, *options): x what conv gives, y the weight of conv, z a bias of the result or None
_conv_transpose = define(
    "conv_transpose", forward=forward.conv_transpose, inputs=("x", "y", "z"), optional=("z",), options=_OPTIONS,
    vjp=(lambda g, y, shape_x, stride, padding, dilation, groups: _conv(g, y, None, shape_x[2:], stride, padding, dilation, groups),
         lambda g, x, shape_y, stride, padding, dilation, groups: _conv_weight(x, g, shape_y[2:], stride, padding, dilation, groups),
         _bias_gradient),
    jvp=lambda tx, ty, tz, x, y, extents, stride, padding, dilation, groups: _tangent(
        _conv_transpose, tx, ty, tz, x, y, extents, stride, padding, dilation, groups),
    batch=lambda x, y, z, size, batched, extents, stride, padding, dilation, groups: _batch(
        _conv_transpose, x, y, z, size, batched, extents, stride, padding, dilation, groups), public=False)

#: conv_weight(x, y, *options): x what conv gives, y its images
_conv_weight = define(
    "conv_weight", forward=forward.conv_weight, inputs=("x", "y"), options=_OPTIONS, kind=BILINEAR,
    vjp=(lambda g, y, shape_x, stride, padding, dilation, groups: _conv(y, g, None, shape_x[2:], stride, padding, dilation, groups),
         lambda g, x, shape_y, stride, padding, dilation, groups: _conv_transpose(x, g, None, shape_y[2:], stride, padding, dilation, groups)),
    batch=lambda x, y, size, batched, extents, stride, padding, dilation, groups: _examples_from(_conv_weight(
        _as_groups(x, size, batched[0]), _as_groups(y, size, batched[1]), extents, stride, padding, dilation, size * groups), size, 0),
    public=False)
