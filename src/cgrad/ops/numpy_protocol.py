"""NumPy's functions on Tensors: ``np.sin(t)``, ``array + t``, ``np.concatenate([t, t])`` are recorded and give Tensors.

NumPy hands its calls to `ufunc_call` (ufuncs and operators, after the short way in core/apply.pyx) and to `array_function` (all
others).  A function that means the same here is found by its name; FUNCTIONS lists those whose names are the same, RENAMED the
others, `adapter` those whose arguments have another meaning.  What cgrad does not have raises a TypeError: a result outside the
graph would be a silently wrong gradient.  Next: aliases.py, the other spellings of cgrad itself.
"""
import functools
import inspect
import sys

import numpy as np

from cgrad.core.apply import set_ufunc
from cgrad.core.arguments import as_tensor
from cgrad.core.tensor import Tensor
from cgrad.ops import aliases
from cgrad.ops.define import PUBLIC
from cgrad.ops.linalg import decompositions, norms, products

#: NumPy functions that are called here with the same arguments (positions may differ), by NumPy's name
FUNCTIONS = frozenset("""
    all allclose amax amin any argmax argmin argsort argwhere array_equal astype bincount clip concatenate corrcoef
    count_nonzero cov cross cumulative_prod cumulative_sum diag diagflat diagonal diff digitize einsum empty_like expand_dims flatnonzero flip
    hstack i0 inner interp isclose isin isneginf isposinf kron matrix_transpose max mean meshgrid min
    moveaxis nan_to_num nanmax nanmean nanmin nanprod nanquantile nanstd nansum nanvar nonzero ones_like pad prod quantile histogram
    imag ravel real repeat reshape roll rot90 round searchsorted sinc sort squeeze stack std sum swapaxes take take_along_axis tensordot tile
    trapezoid tril triu unique_all unique_counts unique_inverse unique_values unstack var vstack zeros_like atleast_3d
    dstack hsplit vsplit dsplit nancumsum nancumprod nanargmax nanargmin unwrap broadcast_to
    linalg.cholesky linalg.cond linalg.cross linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm
    linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.multi_dot linalg.outer linalg.pinv linalg.slogdet linalg.solve
    linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot linalg.vector_norm linalg.diagonal
    fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft fft.ihfft
    fft.fftshift fft.ifftshift atleast_1d atleast_2d column_stack fliplr flipud
""".split())  # noqa: SIM905
RENAMED = {"around": "round", "array_split": "tensor_split", "fix": "trunc", "copy": "clone"}

#: NumPy functions whose results are no numbers that depend smoothly on the tensor; they run on the values themselves
PLAIN = frozenset("""
    array2string array_repr array_str array_equiv can_cast iscomplex iscomplexobj isrealobj may_share_memory min_scalar_type ndim result_type save savetxt
    savez savez_compressed shape shares_memory size common_type
""".split())  # noqa: SIM905

#: other spellings of a keyword, where cgrad's own (aliases.py) are not enough
KEYWORDS = {"a_min": "min", "a_max": "max", "ddof": "correction", "method": "interpolation"}
#: what the methods `reduce` and `accumulate` of a ufunc are
FOLDS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max", ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any", ("logaddexp", "reduce"): "logsumexp",
    ("add", "accumulate"): "cumulative_sum", ("multiply", "accumulate"): "cumulative_prod", ("logaddexp", "accumulate"): "logcumsumexp",
}

ADAPTERS = {}

_functions = {}       # NumPy function -> what is called for it; filled when first used


# ------------------------------------------------------------------------------------------------------------------ ufuncs
def ufunc_call(ufunc, method, inputs, options):
    """An operation of NumPy on operands of which at least one is a tensor."""
    name = ufunc.__name__
    function = _ufunc(ufunc)
    operands = []
    for operand in inputs:
        if not isinstance(operand, (Tensor, np.ndarray, np.generic, int, float, str, type(None))):
            if hasattr(type(operand), "__array_ufunc__"):
                return NotImplemented                 # another library, which may know better
            operand = as_tensor(name, operand)
        operands.append(operand)
    if method == "outer":
        x, y = (as_tensor(name, v) for v in operands)
        method, operands = "__call__", (x[(...,) + (None,) * y.ndim], y)
    if method == "__call__":
        return _write(name, *_loop_options(name, function, operands, **options)) if options else function(*operands)
    folded = FOLDS.get((name, method))
    if folded is None:
        raise TypeError(f"numpy.{name}.{method}: cgrad has no such operation on tensors; compute it with others, or outside the graph "
                        "on np.asarray(t)")
    return _write(f"{name}.{method}", *_fold_options(f"{name}.{method}", PUBLIC[folded], *operands, **options))


def _ufunc(ufunc):
    """What computes a ufunc; kept for the next call."""
    name = ufunc.__name__
    function = ADAPTERS.get(name)
    if function is None and (getattr(np, name, None) is ufunc or getattr(sys.modules.get("scipy.special"), name, None) is ufunc):
        function = PUBLIC.get(name)
    if function is None:
        raise TypeError(f"numpy.{name}: cgrad has no such operation on tensors; compute it with others, or outside the graph on np.asarray(t)")
    set_ufunc(ufunc, function)
    return function


def _loop_options(name, function, operands, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True):
    """The result of a call with keywords, and where it is to be written."""
    if casting != "same_kind":
        raise TypeError(f"numpy.{name}: casting={casting!r} is not taken for tensors; convert them with astype")
    if dtype is not None:
        operands = [as_tensor(name, v).astype(dtype) for v in operands]
    result = function(*operands)
    if where is not True:
        if out is None or out[0] is None:
            raise TypeError(f"numpy.{name}: where= needs out=, what the other elements are")
        result = PUBLIC["where"](as_tensor(name, where), result, out[0])
    return result, out


def _fold_options(name, function, x, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """The same for a reduction or accumulation."""
    if initial is not None and initial is not np._NoValue or where is not True:
        raise TypeError(f"numpy.{name}: initial= and where= are not taken for tensors; choose the elements with cgrad.where first")
    x = as_tensor(name, x)
    return function(x if dtype is None else x.astype(dtype), axis=axis, **{"keepdims": True} if keepdims else {}), out


def _write(name, result, out):
    """`result`, written into `out` if the caller named one; into an array only if no gradient is lost by it."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result
    if isinstance(out, tuple) or isinstance(result, tuple):
        raise TypeError(f"numpy.{name}: out= is taken for one result only")
    if isinstance(out, np.ndarray):
        if result.requires_grad:
            raise TypeError(f"numpy.{name}: the result requires grad and would leave the graph in an array; write into a tensor, or use t.detach()")
        np.copyto(out, np.asarray(result), casting="same_kind")
        return out
    if out.shape != result.shape:
        raise ValueError(f"numpy.{name}: the result has shape {result.shape}, out= has {out.shape}")
    if not np.can_cast(result.dtype.name, out.dtype.name, casting="same_kind"):
        raise TypeError(f"numpy.{name}: a result of {result.dtype.name} cannot be written into out= of {out.dtype.name}")
    return out.copy_(result)


# -------------------------------------------------------------------------------------------------------------- functions
def array_function(x, function, types, args, kwargs):
    """`Tensor.__array_function__`: any other function of NumPy, called with a tensor somewhere among its arguments."""
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    ours = _functions.get(function)
    if ours is None:
        ours = _functions[function] = _function(function)
    return ours(*args, **kwargs)


def _function(function):
    """What is called for a NumPy function: the adapter, or cgrad's function behind a translation of the arguments."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    short = name.removeprefix("linalg.").removeprefix("fft.")
    if name in ADAPTERS:
        return ADAPTERS[name]
    if name in PLAIN:
        return lambda *args, **kwargs: function(*_values(args), **{k: _values(v) for k, v in kwargs.items()})
    ours = None
    if name != short:
        ours = getattr(_module("cgrad." + name.partition(".")[0]), short, None) if name in FUNCTIONS else None
    if ours is None and (name in FUNCTIONS or name in RENAMED):
        ours = PUBLIC.get(RENAMED.get(name, short))
    if ours is None:
        raise TypeError(f"numpy.{name}: cgrad has no such function of tensors; compute it with others, or outside the graph on np.asarray(t)")
    parameters = inspect.signature(function).parameters.values()
    return functools.partial(_translated, name, ours, [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.POSITIONAL_ONLY],
                             {p.name: p.default for p in parameters if p.default is not p.empty}, _keywords(ours))


def _module(name):
    """The namespace of that name, if cgrad has it."""
    import importlib
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def _keywords(ours):
    """The keywords that a function takes, as {spelling: own name}."""
    code = getattr(inspect.unwrap(ours), "__code__", None)
    own = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if code is not None and code.co_varnames else ()
    names = {name: name for name in own}
    for name in own:
        names.update({other: name for other in aliases.KEYWORDS.get(name, ()) if other not in names})
    names.update({theirs: mine for theirs, mine in KEYWORDS.items() if mine in names})
    return names


def _translated(name, ours, positions, defaults, keywords, *args, **kwargs):
    """Call `ours` with the arguments of a NumPy call, which NumPy has checked: operands by position, what differs from its default by name."""
    operands, options = list(args), kwargs
    count = next((k for k, key in enumerate(positions[:len(args)]) if key in defaults), len(args))
    if positions and count < len(args):
        operands, options = operands[:count], {**dict(zip(positions[count:], args[count:])), **kwargs}
    elif count < len(positions) and positions[count] not in defaults:
        options = dict(kwargs)
        operands += [options.pop(key) for key in positions[count:] if key not in defaults]
    out = None
    taken = {}
    for key, value in options.items():
        default = defaults.get(key, inspect.Parameter.empty)
        if key == "out":
            out = value
        elif value is default or isinstance(value, (str, int)) and isinstance(default, (str, int)) and value == default:
            continue
        elif key in keywords:
            taken[keywords[key]] = value
        else:
            raise TypeError(f"numpy.{name}: {key}= is not taken for tensors; cgrad's function takes {', '.join(dict.fromkeys(keywords.values()))}")
    result = ours(*operands, **taken)
    return result if out is None else _write(name, result, out)


def _values(x):
    """Arguments with arrays in place of tensors."""
    if isinstance(x, Tensor):
        return np.asarray(x)
    return type(x)(_values(v) for v in x) if type(x) in (list, tuple) else x


# --------------------------------------------------------------------------------- where NumPy's arguments mean something else
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
        return _write(name, PUBLIC[name](a, axis=axis, dtype=dtype), out)
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
        return np.broadcast_arrays(*_values(args))
    return PUBLIC["broadcast_arrays"](*args)


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
    return _write("dot", result, out)


@adapter("vdot")
def _vdot(a, b):
    return PUBLIC["dot"](as_tensor("vdot", a).reshape(-1), as_tensor("vdot", b).reshape(-1))


@adapter("outer")
def _outer(a, b, out=None):
    return _write("outer", PUBLIC["outer"](as_tensor("outer", a).reshape(-1), as_tensor("outer", b).reshape(-1)), out)


def _middle(name, quantile):
    def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
        result = PUBLIC[quantile](a, 0.5, axis=axis, **{"keepdims": True} if keepdims is True else {})
        return _write(name, result, out)
    return median


adapter("median")(_middle("median", "quantile"))             # the mean of the two middle elements, where ours takes the lower
adapter("nanmedian")(_middle("nanmedian", "nanquantile"))


@adapter("linspace")
def _linspace(start, stop, num=50, endpoint=True, dtype=None, axis=0, **options):
    if options.pop("retstep", False) or axis not in (0, -1) or options.pop("device", None) not in (None, "cpu"):
        raise TypeError("numpy.linspace: retstep= and axis= are not taken for tensors")
    start, stop = as_tensor("linspace", start), as_tensor("linspace", stop)
    span = stop - start                          # recorded, which our linspace is not
    steps = PUBLIC["linspace"](0, 1, num, endpoint=endpoint, dtype=span.dtype if span.is_floating_point() else None)
    steps = steps.reshape((-1,) + (1,) * span.ndim if axis == 0 else (-1,))
    start, stop = (x if axis == 0 else x[..., None] for x in (start, stop))
    result = start * (1 - steps) + stop * steps
    return result if dtype is None else result.astype(dtype)


@adapter("full_like")
def _full_like(a, fill_value, dtype=None, order="K", subok=True, shape=None, **options):
    if shape is not None or isinstance(fill_value, Tensor) and (fill_value.requires_grad or fill_value.ndim):
        raise TypeError("numpy.full_like: shape= and tensors as fill_value are not taken; use np.broadcast_to")
    return PUBLIC["full_like"](as_tensor("full_like", a), fill_value, dtype=dtype, **options)


@adapter("percentile")
def _percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False):
    return _write("percentile", PUBLIC["quantile"](a, np.asarray(q) / 100, axis=axis, keepdims=keepdims, interpolation=method), out)


@adapter("unique")
def _unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, **options):
    return PUBLIC["unique"](ar, return_index=return_index, return_inverse=return_inverse, return_counts=return_counts, axis=axis, **options)


@adapter("select")
def _select(condlist, choicelist, default=0):
    result = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        result = _where(condition, choice, result)
    return result


@adapter("append")
def _append(arr, values, axis=None):
    arr, values = as_tensor("append", arr), as_tensor("append", values)
    return PUBLIC["concat"]([arr.reshape(-1), values.reshape(-1)] if axis is None else [arr, values], axis=axis or 0)


@adapter("gradient")
def _gradient(f, *varargs, axis=None, edge_order=1):
    slopes = PUBLIC["gradient"](f, *varargs, axis=axis, edge_order=edge_order)
    return slopes[0] if len(slopes) == 1 else slopes


@adapter("ptp")
def _ptp(a, axis=None, out=None, keepdims=False):
    return _write("ptp", PUBLIC["max"](a, axis=axis, keepdims=keepdims) - PUBLIC["min"](a, axis=axis, keepdims=keepdims), out)


@adapter("average")
def _average(a, axis=None, weights=None, returned=False, *, keepdims=False):
    a = as_tensor("average", a)
    if weights is None:
        result = PUBLIC["mean"](a, axis=axis, keepdims=keepdims)
        total = PUBLIC["full_like"](result, a.size / max(result.size, 1))
    else:
        weights = as_tensor("average", weights)
        if weights.shape != a.shape:
            if not isinstance(axis, int) or weights.shape != (a.shape[axis],):
                raise TypeError(f"numpy.average: weights of shape {weights.shape} do not belong to a tensor of shape {a.shape} along axis {axis}")
            weights = weights.reshape([-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
        total = PUBLIC["sum"](PUBLIC["broadcast_to"](weights, a.shape), axis=axis, keepdims=keepdims)
        result = PUBLIC["sum"](a * weights, axis=axis, keepdims=keepdims) / total
    return (result, PUBLIC["broadcast_to"](total, result.shape)) if returned else result


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
    return _write("trace", PUBLIC["diagonal"](a, offset, axis1, axis2).sum(-1, dtype=dtype), out)


@adapter("vander")
def _vander(x, N=None, increasing=False):
    powers = products.vander(x, N)
    return powers if increasing else PUBLIC["flip"](powers, -1)


@adapter("divmod")
def _divmod(x, y):
    return PUBLIC["floor_divide"](x, y), PUBLIC["remainder"](x, y)


@adapter("modf")
def _modf(x):
    whole = PUBLIC["trunc"](x)
    return x - whole, whole


@adapter("fabs")
def _fabs(x):
    return PUBLIC["absolute"](x)


@adapter("rint")
def _rint(x):
    return PUBLIC["round"](x)


@adapter("conjugate")
def _conjugate(x):
    return PUBLIC["conj"](x)
