"""NumPy's functions whose arguments mean something else here, or that cgrad has under no name of its own.

An adapter takes NumPy's arguments and is entered under NumPy's name; all of them are made of recorded functions, so gradients flow.
Loaded by the first call that needs one.  Next: numpy_protocol.py, which looks them up.
"""
import string

import numpy as np

from cgrad.core.arguments import as_tensor
from cgrad.core.inplace import check_written
from cgrad.core.tensor import Tensor
from cgrad.ops.define import PUBLIC
from cgrad.ops.linalg import decompositions, norms
from cgrad.ops.numpy_protocol import values, write

ADAPTERS = {}


def adapter(*names):
    """Enter a function that takes NumPy's arguments under NumPy's names."""
    def enter(function):
        ADAPTERS.update(dict.fromkeys(names, function))
        return function
    return enter


def _flat_if_no_axis(name):
    def fold(a, axis=None, dtype=None, out=None):
        a = as_tensor(name, a)
        if axis is None:
            a, axis = a.reshape(-1), 0
        return write(name, PUBLIC[name](a, axis=axis, dtype=dtype), out)
    return fold


adapter("cumsum")(_flat_if_no_axis("cumulative_sum"))
adapter("cumprod")(_flat_if_no_axis("cumulative_prod"))


@adapter("where")
def _where(condition, *values):
    if not values:
        return PUBLIC["nonzero"](as_tensor("where", condition))
    x, y = (v if isinstance(v, (int, float)) else as_tensor("where", v) for v in values)
    return PUBLIC["where"](as_tensor("where", condition), x, y)


@adapter("broadcast_arrays")
def _broadcast_arrays(*args, subok=False):
    if any(x is None or isinstance(x, str) for x in args):       # Matplotlib does so with colours and the like
        return np.broadcast_arrays(*values(args))
    return PUBLIC["broadcast_tensors"](*args)


@adapter("split")
def _split(ary, indices_or_sections, axis=0):
    if isinstance(indices_or_sections, int) and ary.shape[axis] % indices_or_sections:
        raise ValueError(f"numpy.split: {indices_or_sections} sections do not divide the length {ary.shape[axis]} of axis {axis}; use np.array_split")
    return PUBLIC["tensor_split"](ary, indices_or_sections, axis)


@adapter("transpose")
def _transpose(a, axes=None):
    return PUBLIC["permute_dims"](as_tensor("transpose", a), tuple(range(np.ndim(a)))[::-1] if axes is None else tuple(axes))


@adapter("dot")
def _dot(a, b, out=None):
    a, b = as_tensor("dot", a), as_tensor("dot", b)
    if a.ndim == 0 or b.ndim == 0:
        result = PUBLIC["multiply"](a, b)
    else:
        result = PUBLIC["tensordot"](a, b, ([a.ndim - 1], [max(b.ndim - 2, 0)])) if a.ndim > 2 or b.ndim > 2 else PUBLIC["matmul"](a, b)
    return write("dot", result, out)


@adapter("vdot")
def _vdot(a, b):
    return PUBLIC["dot"](as_tensor("vdot", a).reshape(-1), as_tensor("vdot", b).reshape(-1))


@adapter("outer")
def _outer(a, b, out=None):
    return write("outer", PUBLIC["outer"](as_tensor("outer", a).reshape(-1), as_tensor("outer", b).reshape(-1)), out)


def _middle(name, quantile):
    def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        result = PUBLIC[quantile](a, 0.5, axis=axis, **{"keepdims": True} if keepdims is True else {})
        return write(name, result, out)
    return median


adapter("median")(_middle("median", "quantile"))             # the mean of the two middle elements, where ours takes the lower
adapter("nanmedian")(_middle("nanmedian", "nanquantile"))


@adapter("linspace")
def _linspace(start, stop, num=50, endpoint=True, dtype=None, axis=0, **options):
    if options.pop("retstep", False) or axis not in (0, -1) or options.pop("device", None) not in (None, "cpu"):
        raise TypeError("numpy.linspace: retstep= and axis= are not taken for tensors")
    start, stop = as_tensor("linspace", start), as_tensor("linspace", stop)
    span = stop - start                          # ends of any shape, which ours does not take
    steps = PUBLIC["linspace"](0, 1, num, endpoint=endpoint, dtype=span.dtype if span.is_floating_point() else None)
    steps = steps.reshape((-1,) + (1,) * span.ndim if axis == 0 else (-1,))
    start, stop = (x if axis == 0 else x[..., None] for x in (start, stop))
    result = start * (1 - steps) + stop * steps
    return result if dtype is None else result.astype(dtype)


@adapter("full_like")
def _full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    if shape is not None:
        raise TypeError("numpy.full_like: shape= is not taken for tensors; use cgrad.full")
    return PUBLIC["full_like"](as_tensor("full_like", a), fill_value, dtype=dtype, **options)


@adapter("unique")
def _unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **options):
    return PUBLIC["unique"](ar, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts, axis=axis, **options)


@adapter("select")
def _select(condlist, choicelist, default=0):
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = _where(condition, choice, result)
    return result


@adapter("gradient")
def _gradient(f, *varargs, axis=None, edge_order=1):
    slopes = PUBLIC["gradient"](f, *varargs, axis=axis, edge_order=edge_order)
    return slopes[0] if len(slopes) == 1 else slopes


adapter("linalg.norm")(norms.norm)


@adapter("linalg.qr")
def _qr(a, mode="reduced"):
    return decompositions.qr(a, mode).R if mode == "r" else decompositions.qr(a, mode)


@adapter("linalg.svd")
def _svd(a, full_matrices=True, compute_uv=True, hermitian=False):
    return decompositions.svd(a, full_matrices) if compute_uv else decompositions.svdvals(a)


@adapter("trace")
def _trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    # Over the first two axes, where ours takes the last two.
    return write("trace", PUBLIC["diagonal"](a, offset, axis1, axis2).sum(-1, dtype=dtype), out)


@adapter("fabs")
def _fabs(x):
    return PUBLIC["absolute"](x)


@adapter("rint")
def _rint(x):
    return PUBLIC["round"](x)


@adapter("matvec")
def _matvec(x1, x2):
    return PUBLIC["matmul"](x1, as_tensor("matvec", x2)[..., None])[..., 0]


@adapter("vecmat")
def _vecmat(x1, x2):
    return PUBLIC["matmul"](as_tensor("vecmat", x1)[..., None, :], x2)[..., 0, :]


# ------------------------------------------------------------------------------------------------------ order and places
def _fortran(name, a, shape):
    """The elements in Fortran's order, in a shape."""
    a = as_tensor(name, a)
    turned = PUBLIC["reshape"](PUBLIC["permute_dims"](a, tuple(range(a.ndim))[::-1]), shape[::-1])
    return PUBLIC["permute_dims"](turned, tuple(range(turned.ndim))[::-1])


def _check_order(name, order):
    if order not in ("C", "F"):
        raise TypeError(f'numpy.{name}: order must be "C" or "F" for tensors, got {order!r}')


@adapter("reshape")
def _reshape(a, shape, order="C", *, copy=None):
    _check_order("reshape", order)
    if order == "F":
        return _fortran("reshape", a, (shape,) if isinstance(shape, int) else tuple(shape))
    return PUBLIC["reshape"](a, shape, copy=copy)


@adapter("ravel")
def _ravel(a, order="C"):
    _check_order("ravel", order)
    return _fortran("ravel", a, (-1,)) if order == "F" else PUBLIC["reshape"](as_tensor("ravel", a), (-1,))


@adapter("copy")
def _copy(a, order="K", subok=False):
    return PUBLIC["clone"](a)


def _sorted(name, ours):
    def sort(a, axis=-1, kind=None, order=None, *, stable=None):
        if order is not None:
            raise TypeError(f"numpy.{name}: order= is for structured arrays")
        a = as_tensor(name, a)
        return PUBLIC[ours](a, axis=axis, stable=True) if axis is not None else PUBLIC[ours](a.reshape(-1), stable=True)
    return sort


adapter("sort")(_sorted("sort", "sort"))
adapter("argsort")(_sorted("argsort", "argsort"))


@adapter("partition")
def _partition(a, kth, axis=-1, kind="introselect", order=None):
    return ADAPTERS["sort"](a, axis, order=order)            # sorted is partitioned, at every place


@adapter("argpartition")
def _argpartition(a, kth, axis=-1, kind="introselect", order=None):
    return ADAPTERS["argsort"](a, axis, order=order)


def _moves(name, function, at):
    """A function that only moves elements: NumPy moves their places, and the elements are taken from there."""
    def moved(*args, **kwargs):
        a = as_tensor(name, args[at])
        rest = [values(v) for k, v in enumerate(args) if k != at]
        rest.insert(at, np.arange(a.size).reshape(a.shape))
        places = np.asarray(function(*rest, **{key: values(v) for key, v in kwargs.items()}))
        return PUBLIC["take"](a.reshape(-1), as_tensor(name, places.reshape(-1)), axis=0).reshape(places.shape)
    return moved


for _name, _at in (("compress", 1), ("extract", 1)):
    adapter(_name)(_moves(_name, getattr(np, _name), _at))


@adapter("rollaxis")
def _rollaxis(a, axis, start=0):
    a = as_tensor("rollaxis", a)
    axis, start = axis % a.ndim, start + a.ndim if start < 0 else start
    return PUBLIC["moveaxis"](a, axis, start - (axis < start))


@adapter("lib.stride_tricks.sliding_window_view")
def _sliding_window_view(x, window_shape, axis=None, *, subok=False, writeable=False):
    x = as_tensor("sliding_window_view", x)
    lengths = window_shape if isinstance(window_shape, (tuple, list)) else (window_shape,)
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    for length, k in zip(lengths, [k % x.ndim for k in axes], strict=True):
        x = PUBLIC["unfold"](x, k, length, 1)
    return x


@adapter("block")
def _block(arrays):
    def depth(x):
        return 1 + max((depth(v) for v in x), default=0) if isinstance(x, list) else 0

    def ndim(x):
        return max((ndim(v) for v in x), default=0) if isinstance(x, list) else np.ndim(x)

    def joined(x, level):
        if isinstance(x, list):
            return PUBLIC["concat"]([joined(v, level + 1) for v in x], axis=level - deepest)
        x = as_tensor("block", x)
        return x.reshape((1,) * (rank - x.ndim) + x.shape)

    deepest = depth(arrays)
    rank = max(deepest, ndim(arrays))
    return joined(arrays, 0)


@adapter("choose")
def _choose(a, choices, out=None, mode="raise"):
    if mode != "raise":
        raise TypeError(f"numpy.choose: mode={mode!r} is not taken for tensors")
    a, *choices = PUBLIC["broadcast_arrays"](as_tensor("choose", a), *[as_tensor("choose", c) for c in choices])
    return write("choose", PUBLIC["take_along_axis"](PUBLIC["stack"](choices), a[None], 0)[0], out)


# -------------------------------------------------------------------------------------------------------------- calculus
def _ends(name, a, axis, end):
    """What is put before or after a tensor along an axis: a number stands for a slice of it."""
    end = as_tensor(name, end)
    return end if end.ndim else PUBLIC["broadcast_to"](end, a.shape[:axis] + (1,) + a.shape[axis + 1:])


@adapter("diff")
def _diff(a, n=1, axis=-1, prepend=np._NoValue, append=np._NoValue):
    a = as_tensor("diff", a)
    ends = {key: _ends("diff", a, axis % max(a.ndim, 1), end) for key, end in (("prepend", prepend), ("append", append)) if end is not np._NoValue}
    return PUBLIC["diff"](a, n, axis, **ends)


# ------------------------------------------------------------------------------------------------------ functions of parts
@adapter("piecewise")
def _piecewise(x, condlist, funclist, *args, **kw):
    x = as_tensor("piecewise", x)
    conditions = [as_tensor("piecewise", c) for c in (condlist if isinstance(condlist, (list, tuple)) else [condlist])]
    if len(funclist) == len(conditions) + 1:
        covered = conditions[0]
        for condition in conditions[1:]:
            covered = covered | condition
        conditions.append(~covered)
    out = PUBLIC["zeros_like"](x)
    for condition, function in zip(conditions, funclist, strict=True):
        part = function(x[condition], *args, **kw) if callable(function) else function
        places = PUBLIC["broadcast_to"](condition, x.shape)
        part = as_tensor("piecewise", part).astype(x.dtype)
        out = PUBLIC["where"](places, part, out) if part.ndim == 0 else PUBLIC["masked_scatter"](out, places, part)
    return out


@adapter("apply_along_axis")
def _apply_along_axis(func1d, axis, arr, *args, **kwargs):
    arr = PUBLIC["moveaxis"](as_tensor("apply_along_axis", arr), axis, -1)
    found = [as_tensor("apply_along_axis", func1d(row, *args, **kwargs)) for row in arr.reshape((-1, arr.shape[-1]))]
    out = PUBLIC["stack"](found).reshape(arr.shape[:-1] + found[0].shape)
    places = range(axis % arr.ndim, axis % arr.ndim + found[0].ndim)
    return PUBLIC["moveaxis"](out, tuple(range(arr.ndim - 1, out.ndim)), tuple(places)) if found[0].ndim else out


@adapter("einsum")
def _einsum(*operands, out=None, optimize=False, **kwargs):
    if kwargs:
        raise TypeError(f"numpy.einsum: {', '.join(kwargs)}= is not taken for tensors")
    if not isinstance(operands[0], str):         # each operand with the numbers of its axes, then those of the result
        names = ["".join("..." if k is Ellipsis else string.ascii_letters[k] for k in axes) for axes in (*operands[1:-1:2], operands[-1])]
        inputs = names[:-1] if len(operands) % 2 else names
        operands = (",".join(inputs) + ("->" + names[-1] if len(operands) % 2 else ""), *operands[:2 * len(inputs):2])
    return write("einsum", PUBLIC["einsum"](*operands), out)


def _without_derivative(name):
    """Counts in bins: numbers that depend on the tensors by steps only, but smoothly on weights."""
    def counted(*args, weights=None, **kwargs):
        if isinstance(weights, Tensor) and weights.requires_grad:
            raise TypeError(f"numpy.{name}: a gradient of weights is not recorded; use weights.detach()")
        counts, *edges = getattr(np, name)(*values(args), weights=values(weights), **{key: values(v) for key, v in kwargs.items()})
        return as_tensor(name, counts), *edges
    return counted


adapter("histogram2d")(_without_derivative("histogram2d"))
adapter("histogramdd")(_without_derivative("histogramdd"))


def _of_columns(name):
    def moments(x, y=None, rowvar=True, bias=np._NoValue, ddof=None, fweights=None, aweights=None, *, dtype=None):
        x = as_tensor(name, x)
        x = x.reshape((1, -1)) if x.ndim < 2 else x if rowvar else x.mT
        if y is not None:
            y = as_tensor(name, y)
            x = PUBLIC["concat"]([x, y.reshape((1, -1)) if y.ndim < 2 else y if rowvar else y.mT])
        x = x if dtype is None else x.astype(dtype)
        if name == "corrcoef":
            out = PUBLIC["corrcoef"](x)
        else:
            correction = ddof if ddof is not None else 0 if bias is True else 1
            out = PUBLIC["cov"](x, correction=correction, fweights=fweights, aweights=aweights)
        return out.reshape(()) if x.shape[0] == 1 else out
    return moments


adapter("cov")(_of_columns("cov"))
adapter("corrcoef")(_of_columns("corrcoef"))


@adapter("real_if_close")
def _real_if_close(a, tol=100):
    return as_tensor("real_if_close", a)


# --------------------------------------------------------------------------------------------------------- written in place
def _place(name, target, *others):
    """The tensor to write into; None if it is an array, which then must not lose a gradient."""
    if isinstance(target, Tensor):
        return target
    if any(isinstance(x, Tensor) and x.requires_grad for x in others):
        raise TypeError(f"numpy.{name}: a tensor that requires grad would leave the graph in an array; write into a tensor, or use t.detach()")
    return None


@adapter("copyto")
def _copyto(dst, src, casting="same_kind", where=True):
    if _place("copyto", dst, src) is None:
        np.copyto(dst, values(src), casting, where=values(where))
    else:
        src = PUBLIC["broadcast_to"](as_tensor("copyto", src), dst.shape)
        check_written("numpy.copyto", dst, src)
        dst.copy_(src if where is True else PUBLIC["where"](as_tensor("copyto", where), src, dst))


def _written(name):
    """A function that writes numbers into its first argument."""
    def function(target, *args, **options):
        if _place(name, target, *args) is None:
            getattr(np, name)(target, *[values(x) for x in args], **options)
        else:
            PUBLIC[name](target, *args, **options)
    return function


for _name in ("put_along_axis", "fill_diagonal"):
    adapter(_name)(_written(_name))


@adapter("putmask")
def _putmask(a, mask, values_):
    if _place("putmask", a, values_) is None:
        np.putmask(a, values(mask), values(values_))
        return
    new = as_tensor("putmask", values_)
    if new.ndim and new.shape != a.shape:
        raise TypeError(f"numpy.putmask: values of shape {tuple(new.shape)} are not repeated for a tensor of shape {tuple(a.shape)}; use np.where")
    a.copy_(PUBLIC["where"](as_tensor("putmask", mask), new.astype(a.dtype), a))
