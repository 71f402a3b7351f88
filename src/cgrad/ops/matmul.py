"""Products of vectors, matrices and batches of matrices.

Three products are each other's derivatives, so that no matrix is transposed in memory or on the tape: ``x @ y``, ``x @ y.T`` (plus a bias: the
affine map of a layer, one node) and ``x.T @ y``.  The engine sums gradients back over batch axes that were broadcast.  Next: joining.py.
"""
import math

from cgrad.core.forward import linear as forward_linear
from cgrad.core.forward import matmul as forward
from cgrad.core.arguments import as_tensor, cast, one_axis, whole_number
from cgrad.ops.batching import with_ndim
from cgrad.ops.define import BILINEAR, define, public
from cgrad.ops.reduction import _sum
from cgrad.ops.shape import _expand_dims, _permute, _reshape, _squeeze, matrix_transpose


def _rows(x):
    """All leading axes joined: (..., n) as (rows, n)."""
    shape = tuple(x.shape)
    return _reshape(x, (math.prod(shape[:-1]), shape[-1]))


def _matmul_x(g, y, shape_x):
    """Gradient in the left operand, up to a sum over broadcast axes."""
    if y.ndim == 1:
        return g * y if len(shape_x) == 1 else _expand_dims(g, (g.ndim,)) * y
    if y.ndim == 2:
        return _matmul(y, g) if len(shape_x) == 1 else _linear(g, y, None)
    if len(shape_x) == 1:
        return _squeeze(_matmul(y, _expand_dims(g, (g.ndim,))), (y.ndim - 1,))
    return _matmul(g, matrix_transpose(y))


def _matmul_y(g, x, shape_y):
    """Gradient in the right operand, up to a sum over broadcast axes."""
    if x.ndim == 1:
        if len(shape_y) == 1:
            return g * x
        return _expand_dims(x, (1,)) * _expand_dims(g, (g.ndim - 1,))
    if len(shape_y) == 1:
        return _matmul(g, x) if x.ndim == 2 else _matmul(_reshape(g, (math.prod(g.shape),)), _rows(x))
    if len(shape_y) == 2:
        return _product_of_rows(x, g)
    return _matmul(matrix_transpose(x), g)


def _matmul_batch(x, y, batched):
    """Products of all examples; where only one operand differs between them, its rows become those of one product."""
    row, column = x.ndim - batched[0] == 1, y.ndim - batched[1] == 1
    if x.ndim == batched[0] or y.ndim == batched[1]:
        raise ValueError("matmul: both operands need at least one axis (multiply by a number with *); "
                         f"got shapes {tuple(x.shape[batched[0]:])} and {tuple(y.shape[batched[1]:])}")
    if not batched[1] and y.ndim < 3:
        return _matmul(x, y)
    if not batched[0] and x.ndim == 2 and column:
        return _matmul(y, _permute(x, (1, 0)))
    x = _expand_dims(x, (x.ndim - 1,)) if row else x
    y = _expand_dims(y, (y.ndim,)) if column else y
    ndim = max(x.ndim - batched[0], y.ndim - batched[1])
    out = _matmul(with_ndim(x, ndim) if batched[0] else x, with_ndim(y, ndim) if batched[1] else y)
    gone = (out.ndim - 2,) * row + (out.ndim - 1,) * column
    return _squeeze(out, gone) if gone else out


_matmul = define(
    "matmul", forward=forward.matmul, inputs=("x", "y"),
    vjp=(lambda g, y, shape_x: _matmul_x(g, y, shape_x), lambda g, x, shape_y: _matmul_y(g, x, shape_y)),
    batch=_matmul_batch, kind=BILINEAR, symbol="@", public=False)


def _linear_tangent(tx, ty, tz, x, y):
    total = None
    for term in (None if tx is None else _linear(tx, y, None), None if ty is None else _linear(x, ty, None), tz):
        if term is not None:
            total = term if total is None else total + term
    return total


def _linear_batch(x, y, z, batched):
    if x.ndim > batched[0] and not batched[1] and not batched[2]:
        return _linear(x, y, z)
    out = _matmul_batch(x, matrix_transpose(y), batched)
    if z is None:
        return out
    return out + (with_ndim(z, out.ndim - (batched[0] or batched[1])) if batched[2] else z)


#: linear(x, y, z) is x @ y.T + z: x the input (..., n), y the weight (m, n), z the bias (m,) or None
_linear = define(
    "linear", forward=forward_linear.linear, inputs=("x", "y", "z"), optional=("z",),
    vjp=(lambda g, y: _matmul(g, y), lambda g, x: _product_of_rows(g, x), lambda g: g), fused=(None, None, "g"),
    jvp=_linear_tangent, batch=_linear_batch, public=False)


def _product_of_rows_batch(x, y, batched):
    x, y = [_reshape(t, t.shape[:b] + (math.prod(t.shape[b:-1]), t.shape[-1])) for t, b in zip((x, y), batched)]
    return _matmul_batch(matrix_transpose(x), y, batched)


#: product_of_rows(x, y) is x.T @ y with all leading axes summed over: the gradient of a weight
_product_of_rows = define(
    "product_of_rows", forward=forward_linear.product_of_rows, inputs=("x", "y"), kind=BILINEAR,
    vjp=(lambda g, y: _linear(y, g, None), lambda g, x: _matmul(x, g)), batch=_product_of_rows_batch, public=False)


@public(method=True)
def matmul(x, y):
    """Matrix product: ``x @ y``.

    Parameters
    ----------
    x, y : Tensor
        Matrices along the last two axes; leading axes broadcast.  A 1-d `x` is a row, a 1-d `y` a column, and that axis
        is gone from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If an operand is 0-d, the inner lengths differ or the leading axes do not broadcast.

    Notes
    -----
    Gradient: ``g @ y.mT`` and ``x.mT @ g``, summed over broadcast axes.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensor([[1.0, 2.0], [3.0, 4.0]]) @ cg.tensor([1.0, 10.0])
    tensor([21., 43.])
    """
    return _matmul(as_tensor("matmul", x), as_tensor("matmul", y))


def _exact_ndim(name, x, ndim, which):
    x = as_tensor(name, x)
    if x.ndim != ndim:
        raise ValueError(f"{name}: {which} must be {ndim}-d, got shape {tuple(x.shape)}; use matmul for other shapes")
    return x


@public(method=True)
def mm(x, y):
    """Product of two matrices; `matmul` without broadcasting.

    Parameters
    ----------
    x, y : Tensor
        2-d.

    Returns
    -------
    Tensor
        2-d.

    Raises
    ------
    ValueError
        If an operand is not 2-d or the inner lengths differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mm(cg.tensor([[1.0, 2.0]]), cg.tensor([[3.0], [4.0]]))
    tensor([[11.]])
    """
    return _matmul(_exact_ndim("mm", x, 2, "x"), _exact_ndim("mm", y, 2, "y"))


@public(method=True)
def mv(x, y):
    """Product of a matrix and a vector.

    Parameters
    ----------
    x : Tensor
        2-d.
    y : Tensor
        1-d.

    Returns
    -------
    Tensor
        1-d.

    Raises
    ------
    ValueError
        For other numbers of axes, or if the inner lengths differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.mv(cg.tensor([[1.0, 2.0]]), cg.tensor([3.0, 4.0]))
    tensor([11.])
    """
    return _matmul(_exact_ndim("mv", x, 2, "x"), _exact_ndim("mv", y, 1, "y"))


@public(method=True)
def bmm(x, y):
    """Products of the matrices of two batches; `matmul` without broadcasting.

    Parameters
    ----------
    x, y : Tensor
        3-d, with as many matrices in both.

    Returns
    -------
    Tensor
        3-d.

    Raises
    ------
    ValueError
        If an operand is not 3-d, or the batches or inner lengths differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.bmm(cg.ones(5, 2, 3), cg.ones(5, 3, 4)).shape
    (5, 2, 4)
    """
    x, y = _exact_ndim("bmm", x, 3, "x"), _exact_ndim("bmm", y, 3, "y")
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"bmm: the batches differ in length; got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    return _matmul(x, y)


@public(method=True)
def dot(x, y):
    """Sum of the products of two vectors.

    Parameters
    ----------
    x, y : Tensor
        1-d, of the same length.

    Returns
    -------
    Tensor
        0-d.

    Raises
    ------
    ValueError
        If an operand is not 1-d or the lengths differ.

    Notes
    -----
    Gradient: ``g * y`` and ``g * x``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.dot(cg.tensor([1.0, 2.0]), cg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return _matmul(_exact_ndim("dot", x, 1, "x"), _exact_ndim("dot", y, 1, "y"))


@public(method=True)
def vdot(x, y):
    """Sum of the products of two vectors; `dot` for real numbers.

    Parameters
    ----------
    x, y : Tensor
        1-d, of the same length.

    Returns
    -------
    Tensor
        0-d.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vdot(cg.tensor([1.0, 2.0]), cg.tensor([3.0, 4.0]))
    tensor(11.)
    """
    return _matmul(_exact_ndim("vdot", x, 1, "x"), _exact_ndim("vdot", y, 1, "y"))


@public(method=False)
def vecdot(x, y, axis=-1):
    """Sum of products along an axis; the other axes broadcast.

    Parameters
    ----------
    x, y : Tensor
    axis : int, optional
        The axis to sum over, counted from the end (negative) in both.

    Returns
    -------
    Tensor
        Of the dtype of the product, integers too.

    Raises
    ------
    IndexError
        If the axis is out of range.
    ValueError
        If the lengths along the axis differ or the shapes do not broadcast.

    Notes
    -----
    Gradient: ``g * y`` and ``g * x``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.vecdot(cg.tensor([[1.0, 2.0], [3.0, 4.0]]), cg.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    x, y = as_tensor("vecdot", x), as_tensor("vecdot", y)
    if x.ndim == 0 or y.ndim == 0:
        raise ValueError(f"vecdot: needs at least one axis, got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    axis = whole_number("vecdot", "axis", axis)
    if x.shape[one_axis("vecdot", axis, x.ndim)] != y.shape[one_axis("vecdot", axis, y.ndim)]:
        raise ValueError(f"vecdot: the lengths along axis {axis} differ; got shapes {tuple(x.shape)} and {tuple(y.shape)}")
    product = x * y
    return cast(_sum(product, (one_axis("vecdot", axis, product.ndim),) if product.ndim > 1 else None, False), product.dtype)


@public(method=True)
def inner(x, y):
    """Sum of products over the last axes: one number for each pair of rows.

    Parameters
    ----------
    x, y : Tensor
        With last axes of the same length; a 0-d operand just multiplies.

    Returns
    -------
    Tensor
        Of shape ``x.shape[:-1] + y.shape[:-1]``.

    Raises
    ------
    ValueError
        If the lengths differ.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.inner(cg.tensor([[1.0, 2.0], [3.0, 4.0]]), cg.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    x, y = as_tensor("inner", x), as_tensor("inner", y)
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    return tensordot(x, y, ((x.ndim - 1,), (y.ndim - 1,)))


@public(method=True)
def outer(x, y):
    """Product of each element of one vector with each of another.

    Parameters
    ----------
    x, y : Tensor
        1-d.

    Returns
    -------
    Tensor
        2-d.

    Raises
    ------
    ValueError
        If an operand is not 1-d.

    Notes
    -----
    Gradient: ``g @ y`` and ``x @ g``.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.outer(cg.tensor([1.0, 2.0]), cg.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    return _expand_dims(_exact_ndim("outer", x, 1, "x"), (1,)) * _exact_ndim("outer", y, 1, "y")


@public(method=False)
def tensordot(x, y, axes=2):
    """Sum of products over any axes of two tensors.

    Parameters
    ----------
    x, y : Tensor
    axes : int or pair of tuples of int, optional
        A number: the last axes of `x` with the first ones of `y`.  A pair: the axes of `x`, and the axes of `y` they meet.

    Returns
    -------
    Tensor
        The axes of `x` that are left, then those of `y`.

    Raises
    ------
    ValueError
        If the axes differ in number or length.

    Notes
    -----
    Gradient: that of the matrix product it is made of.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.tensordot(cg.ones(2, 3, 4), cg.ones(3, 4, 5)).shape
    (2, 5)
    """
    x, y = as_tensor("tensordot", x), as_tensor("tensordot", y)
    if isinstance(axes, (tuple, list)):
        ours, theirs = axes
        ours = tuple(ours) if isinstance(ours, (tuple, list)) else (ours,)
        theirs = tuple(theirs) if isinstance(theirs, (tuple, list)) else (theirs,)
    else:
        n = whole_number("tensordot", "axes", axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: axes={n} does not fit shapes {tuple(x.shape)} and {tuple(y.shape)}")
        ours, theirs = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    ours = tuple([one_axis("tensordot", axis, x.ndim) for axis in ours])
    theirs = tuple([one_axis("tensordot", axis, y.ndim) for axis in theirs])
    if len(set(ours)) != len(ours) or len(set(theirs)) != len(theirs):
        raise ValueError(f"tensordot: an axis is named twice in {ours} or {theirs}")
    if len(ours) != len(theirs) or any(x.shape[i] != y.shape[j] and 1 not in (x.shape[i], y.shape[j]) for i, j in zip(ours, theirs)):
        raise ValueError(f"tensordot: axes {ours} of shape {tuple(x.shape)} and axes {theirs} of shape {tuple(y.shape)} "
                         "differ in number or length")
    for i, j in zip(ours, theirs):            # an axis of length 1 stretches, as in PyTorch
        if x.shape[i] != y.shape[j]:
            x, y = (x.sum(i, keepdims=True), y) if y.shape[j] == 1 else (x, y.sum(j, keepdims=True))
    left = tuple([i for i in range(x.ndim) if i not in ours])
    right = tuple([i for i in range(y.ndim) if i not in theirs])
    rows, columns = tuple([x.shape[i] for i in left]), tuple([y.shape[i] for i in right])
    inner_count = math.prod(x.shape[i] for i in ours)
    product = _matmul(_reshape(_permute(x, left + ours), (math.prod(rows), inner_count)),
                      _reshape(_permute(y, theirs + right), (inner_count, math.prod(columns))))
    return _reshape(product, rows + columns)


# ------------------------------------------------------------------------------------------------------------ dense layers
@public(method=False)
def linear(x, weight, bias=None):
    """A dense layer: ``x @ weight.T + bias``, recorded as one operation.

    Parameters
    ----------
    x : Tensor
        Of shape (..., in).
    weight : Tensor
        Of shape (out, in), or (in,) for a single output without an axis.
    bias : Tensor, optional
        Of shape (out,), or (1,), or 0-d.

    Returns
    -------
    Tensor
        Of shape (..., out).

    Raises
    ------
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Gradient: ``g @ weight``, ``g.T @ x`` over all rows, and ``g`` summed over all rows.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.linear(cg.tensor([[1.0, 2.0]]), cg.tensor([[3.0, 4.0]]), cg.tensor([0.5]))
    tensor([[11.5000]])
    """
    x, weight = as_tensor("linear", x), as_tensor("linear", weight)
    if weight.ndim not in (1, 2) or x.ndim == 0 or x.shape[-1] != weight.shape[-1]:
        raise ValueError(f"linear: x of shape {tuple(x.shape)} does not fit a weight of shape {tuple(weight.shape)}; "
                         "their last axes must have the same length, and a weight has 1 or 2 axes")
    if weight.ndim == 1:
        product = _matmul(x, weight)
        return product if bias is None else product + bias
    if bias is None:
        return _linear(x, weight, None)
    bias = as_tensor("linear", bias)
    if bias.ndim > 1 or bias.ndim == 1 and bias.shape[0] not in (1, weight.shape[0]):
        raise ValueError(f"linear: a bias of shape {tuple(bias.shape)} does not fit a weight of shape {tuple(weight.shape)}; "
                         f"it should have shape ({weight.shape[0]},)")
    return _linear(x, weight, bias) if bias.shape == weight.shape[:1] else _linear(x, weight, None) + bias
