"""NumPy's functions on Tensors: ``np.sin(t)``, ``array + t``, ``np.concatenate([t, t])`` are recorded and give Tensors.

NumPy hands its calls to `ufunc_call` (ufuncs and operators, after the short way in core/apply.pyx) and to `array_function` (all
others).  A function that means the same here is found by its name; FUNCTIONS lists those whose names are the same, RENAMED the
others, `numpy_adapters.py` those whose arguments have another meaning.  What cgrad does not have raises a TypeError: a result outside the
graph would be a silently wrong gradient.  Next: aliases.py, the other spellings of cgrad itself.
"""
import functools
import inspect
import sys

import numpy as np

from cgrad.core.apply import set_ufunc
from cgrad.core.arguments import as_tensor
from cgrad.core.dtype import DType
from cgrad.core.inplace import write_out
from cgrad.core.tensor import Tensor
from cgrad.ops import aliases
from cgrad.ops.define import PUBLIC

#: NumPy functions that are called here with the same arguments (positions may differ), by NumPy's name
FUNCTIONS = frozenset("""
    all allclose amax amin any argmax argmin argwhere array_equal astype bincount clip concatenate
    count_nonzero cross cumulative_prod cumulative_sum diag diagflat diagonal digitize empty_like expand_dims flatnonzero flip
    hstack i0 inner isclose isin isneginf isposinf kron matrix_transpose max mean meshgrid min
    moveaxis nan_to_num nanmean nanprod nanquantile nanstd nansum nanvar nonzero ones_like pad prod quantile histogram
    imag real repeat roll rot90 round searchsorted sinc squeeze stack std sum swapaxes take take_along_axis tensordot tile
    trapezoid tril triu unique_all unique_counts unique_inverse unique_values unstack var vstack zeros_like atleast_3d
    dstack hsplit vsplit dsplit nancumsum nancumprod nanargmax nanargmin unwrap broadcast_to
    linalg.cholesky linalg.cond linalg.cross linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm
    linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.multi_dot linalg.outer linalg.pinv linalg.slogdet linalg.solve
    linalg.svdvals linalg.tensordot linalg.tensorinv linalg.tensorsolve linalg.trace linalg.vecdot linalg.vector_norm linalg.diagonal
    fft.fft fft.ifft fft.fft2 fft.ifft2 fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfft2 fft.irfft2 fft.rfftn fft.irfftn fft.hfft fft.ihfft
    append insert delete resize trim_zeros ediff1d convolve correlate interp polyval polyfit vander ptp average percentile nanpercentile nanmax nanmin
    union1d intersect1d setdiff1d setxor1d angle isreal
    fft.fftshift fft.ifftshift atleast_1d atleast_2d column_stack fliplr flipud
""".split())  # noqa: SIM905
RENAMED = {"around": "round", "array_split": "tensor_split", "fix": "trunc"}

#: NumPy functions whose results are no numbers that depend smoothly on the tensor; they run on the values themselves
PLAIN = frozenset("""
    array2string array_repr array_str array_equiv can_cast iscomplex iscomplexobj isrealobj may_share_memory min_scalar_type ndim result_type save savetxt
    savez savez_compressed shape shares_memory size common_type histogram_bin_edges diag_indices_from tril_indices_from triu_indices_from ix_
    ravel_multi_index unravel_index packbits unpackbits lexsort
""".split())  # noqa: SIM905

#: other spellings of a keyword, where cgrad's own (aliases.py) are not enough
KEYWORDS = {"a_min": "min", "a_max": "max", "ddof": "correction", "method": "interpolation"}
#: what the methods `reduce` and `accumulate` of a ufunc are
FOLDS = {
    ("add", "reduce"): "sum", ("multiply", "reduce"): "prod", ("maximum", "reduce"): "max", ("minimum", "reduce"): "min",
    ("logical_and", "reduce"): "all", ("logical_or", "reduce"): "any", ("logaddexp", "reduce"): "logsumexp",
    ("add", "accumulate"): "cumulative_sum", ("multiply", "accumulate"): "cumulative_prod", ("logaddexp", "accumulate"): "logcumsumexp",
    ("maximum", "accumulate"): "cummax", ("minimum", "accumulate"): "cummin",
}

#: what an operation without an operand gives: what stands in for elements that where= leaves out
IDENTITY = {"sum": 0, "prod": 1, "any": False, "all": True, "nansum": 0, "nanprod": 1, "max": None, "min": None, "amax": None, "amin": None}
COMBINED = {"sum": "add", "prod": "multiply", "nansum": "add", "nanprod": "multiply", "max": "maximum", "min": "minimum", "amax": "maximum", "amin": "minimum"}
# What the functions written in C take, for the versions of NumPy of which inspect cannot tell (before 2.4)
SIGNATURES = {
    "bincount": lambda x, /, weights=None, minlength=0: None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "inner": lambda a, b, /: None,
}
#: keywords that tell only how NumPy lays out or finds a result
HARMLESS = {"zeros_like": {"order"}, "ones_like": {"order"}, "empty_like": {"order"}, "astype": {"order"}}

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
        return _loop(name, function, operands, **options) if options else function(*operands)
    folded = FOLDS.get((name, method))
    if folded is None:
        raise TypeError(f"numpy.{name}.{method}: cgrad has no such operation on tensors; compute it with others, or outside the graph "
                        "on np.asarray(t)")
    return write(f"{name}.{method}", *_fold_options(f"{name}.{method}", PUBLIC[folded], *operands, **options))


def _ufunc(ufunc):
    """What computes a ufunc; kept for the next call."""
    name = ufunc.__name__
    function = adapters().get(name)
    if function is None and (getattr(np, name, None) is ufunc or getattr(sys.modules.get("scipy.special"), name, None) is ufunc):
        function = PUBLIC.get(name)
    if function is None:
        raise TypeError(f"numpy.{name}: cgrad has no such operation on tensors; compute it with others, or outside the graph on np.asarray(t)")
    set_ufunc(ufunc, function)
    return function


def _loop(name, function, operands, out=None, where=True, dtype=None, casting="same_kind", order="K", subok=True):
    """The result of a call with keywords."""
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    if casting != "same_kind":
        raise TypeError(f"numpy.{name}: casting={casting!r} is not taken for tensors; convert them with astype")
    if dtype is not None:
        operands = [as_tensor(name, v).astype(_dtype(dtype)) for v in operands]
    if where is True:
        return _into(name, function, operands, {}, out)
    if out is None:
        raise TypeError(f"numpy.{name}: where= needs out=, what the other elements are")
    return _into(name, lambda *operands, rest: PUBLIC["where"](as_tensor(name, where), function(*operands), rest), operands, {"rest": out}, out)


def _fold_options(name, function, x, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=True):
    """The same for a reduction or accumulation."""
    x = as_tensor(name, x)
    options = {"axis": axis} | ({"keepdims": True} if keepdims else {})
    result = _partly(name, function.__name__, function, [x if dtype is None else x.astype(_dtype(dtype))], options, where,
                     None if initial is np._NoValue else initial)
    return getattr(result, "values", result), out          # of a running extreme, the places are left out


def _into(name, function, args, kwargs, out):
    """What a function gives, written into `out` if the caller named one."""
    if isinstance(out, Tensor):
        return write_out(f"numpy.{name}", function, tuple(args), kwargs, out)
    return write(name, function(*args, **kwargs), out)


def write(name, result, out):
    """`result`, written into `out` if the caller named one; into an array only if no gradient is lost by it."""
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    if out is None:
        return result
    if isinstance(out, tuple) or isinstance(result, tuple):
        raise TypeError(f"numpy.{name}: out= is taken for one result only")
    if isinstance(out, Tensor):
        return write_out(f"numpy.{name}", lambda: result, (), {}, out)
    if result.requires_grad:
        raise TypeError(f"numpy.{name}: the result requires grad and would leave the graph in an array; write into a tensor, or use t.detach()")
    np.copyto(out, np.asarray(result), casting="same_kind")
    return out


# -------------------------------------------------------------------------------------------------------------- functions
def array_function(x, function, types, args, kwargs):
    """`Tensor.__array_function__`: any other function of NumPy, called with a tensor somewhere among its arguments."""
    for kind in types:
        if not issubclass(kind, (Tensor, np.ndarray)):
            return NotImplemented
    ours = _functions.get(function)
    if ours is None:
        ours = _functions[function] = _function(function)
    out = kwargs.pop("out", None)
    return ours(*args, **kwargs) if out is None else _into(function.__name__, ours, args, kwargs, out)


def _function(function):
    """What is called for a NumPy function: the adapter, or cgrad's function behind a translation of the arguments."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    short = name.removeprefix("linalg.").removeprefix("fft.")
    if name in adapters():
        return adapters()[name]
    if name in PLAIN:
        return lambda *args, **kwargs: function(*values(args), **{k: values(v) for k, v in kwargs.items()})
    ours = None
    if name != short:
        ours = getattr(_module("cgrad." + name.partition(".")[0]), short, None) if name in FUNCTIONS else None
    if ours is None and (name in FUNCTIONS or name in RENAMED):
        ours = PUBLIC.get(RENAMED.get(name, short))
    if ours is None:
        raise TypeError(f"numpy.{name}: cgrad has no such function of tensors; compute it with others, or outside the graph on np.asarray(t)")
    parameters = inspect.signature(SIGNATURES.get(name, function)).parameters.values()
    positions = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.POSITIONAL_ONLY]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    first = next((k for k, key in enumerate(positions) if key in defaults), len(positions)) if positions else sys.maxsize     # all are operands
    return functools.partial(_translated, name, ours, positions, defaults, _keywords(ours), first)


def adapters():
    """The functions that take NumPy's own arguments, by NumPy's name."""
    from cgrad.ops.numpy_adapters import ADAPTERS
    return ADAPTERS


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


def _translated(name, ours, positions, defaults, keywords, first, *args, **kwargs):
    """Call `ours` with the arguments of a NumPy call, which NumPy has checked: operands by position, what differs from its default by name.

    `first` is the first position that has a default.
    """
    if len(args) > first:
        kwargs = {**dict(zip(positions[first:], args[first:])), **kwargs}
        args = args[:first]
    elif len(args) < first <= len(positions):                  # operands by name
        args += tuple([kwargs.pop(key) for key in positions[len(args):first]])
    if not kwargs:
        return ours(*args)
    out = initial = None
    where = True
    taken = {}
    for key, value in kwargs.items():
        default = defaults.get(key, inspect.Parameter.empty)
        if key == "out":                                       # given by position
            out = value
        elif value is default or isinstance(value, (str, int)) and isinstance(default, (str, int)) and value == default:
            continue
        elif key == "where":
            where = value
        elif key == "initial":
            initial = value
        elif key in HARMLESS.get(name, ()):
            continue
        elif key in keywords:
            taken[keywords[key]] = _dtype(value) if key == "dtype" else value
        else:
            raise TypeError(f"numpy.{name}: {key}= is not taken for tensors; cgrad's function takes {', '.join(dict.fromkeys(keywords.values()))}")
    result = _partly(name, name, ours, args, taken, where, initial)
    return result if out is None else write(name, result, out)


def _dtype(dtype):
    """A dtype as NumPy lets one be named ("f4", int, ...)."""
    return dtype if dtype is None or isinstance(dtype, DType) else np.dtype(dtype)


def _partly(name, kind, ours, operands, options, where, initial):
    """A reduction of the elements that `where` leaves, beginning with `initial`."""
    if where is True and initial is None:
        return ours(*operands, **options)
    x, *rest = operands
    x = as_tensor(name, x)
    if where is not True:
        where = PUBLIC["broadcast_to"](as_tensor(name, where), x.shape)
        if kind in ("mean", "var", "std") and initial is None and not rest:
            return _moments(kind, x, where, **options)
        identity = IDENTITY.get(kind, NotImplemented)
        if identity is NotImplemented or identity is None and initial is None:
            raise TypeError(f"numpy.{name}: where= is not taken for tensors" + ("" if identity is NotImplemented else " without initial="))
        x = PUBLIC["where"](where, x, initial if identity is None else identity)
    result = ours(x, *rest, **options)
    if initial is None:
        return result
    if kind not in COMBINED:
        raise TypeError(f"numpy.{name}: initial= is not taken for tensors")
    return PUBLIC[COMBINED[kind]](result, initial)


def _moments(kind, x, where, axis=None, keepdims=False, correction=0, dtype=None):
    """Mean, variance or standard deviation of the elements that `where` leaves."""
    total = PUBLIC["sum"]
    x = x if dtype is None else x.astype(dtype)
    count = total(where.astype(x.dtype), axis=axis, keepdims=True)
    out = total(PUBLIC["where"](where, x, 0), axis=axis, keepdims=True) / count
    if kind != "mean":
        distance = PUBLIC["where"](where, x - out, 0)
        out = total(distance * distance, axis=axis, keepdims=True) / (count - correction)
    out = out if keepdims else total(out, axis=axis)           # takes away axes of length 1
    return PUBLIC["sqrt"](out) if kind == "std" else out


def values(x):
    """Arguments with arrays in place of tensors."""
    if isinstance(x, Tensor):
        return np.asarray(x)
    return type(x)(values(v) for v in x) if type(x) in (list, tuple) else x
