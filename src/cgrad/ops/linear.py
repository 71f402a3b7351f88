"""The affine map of a layer as one operation, so that a layer is one node on the tape and its weight is never transposed in memory.

A rule's parameter names say what the tape keeps (see define.py).  `nn/functional/linear.py` is the public door.
"""

import math

from cgrad.core.forward import linear as forward
from cgrad.ops.define import BILINEAR, define
from cgrad.ops.matmul import _matmul, linear_batch, matmul_batch
from cgrad.ops.shape import _reshape, matrix_transpose


def _product_of_rows_batch(x, y, batched):
    """x.T @ y of all examples, each with its leading axes as one."""
    x, y = [_reshape(t, t.shape[:b] + (math.prod(t.shape[b:-1]), t.shape[-1])) for t, b in zip((x, y), batched)]
    return matmul_batch(matrix_transpose(x), y, batched)


# x.T @ y with all leading axes summed over: the gradient of a weight.
_product_of_rows = define(
    "product_of_rows", forward=forward.product_of_rows, inputs=("x", "y"), kind=BILINEAR,
    vjp=(lambda g, y: linear(y, g, None), lambda g, x: _matmul(x, g)), batch=_product_of_rows_batch, public=False)


def _tangent(tx, ty, tz, x, y):
    total = None
    for term in (None if tx is None else linear(tx, y, None), None if ty is None else linear(x, ty, None), tz):
        if term is not None:
            total = term if total is None else total + term
    return total


#: linear(x, y, z): x the input (..., n), y the weight (m, n), z the bias (m,) or None
linear = define(
    "linear", forward=forward.linear, inputs=("x", "y", "z"),
    vjp=(lambda g, y: _matmul(g, y), lambda g, x: _product_of_rows(g, x), lambda g: g), fused=(None, None, "g"),
    jvp=_tangent, batch=lambda x, y, z, batched: _linear_batch(x, y, z, batched), public=False)


def _linear_batch(x, y, z, batched):
    return linear(x, y, z) if x.ndim > batched[0] and not batched[1] and not batched[2] else linear_batch(x, y, z, batched)
