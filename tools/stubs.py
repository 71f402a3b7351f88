"""Write the type stubs of the top level and of Tensor from the functions themselves.

    python tools/stubs.py            write the stubs of cgrad, of its modules in MODULES, of core/tensor, and stubtest-overloads.txt
    python tools/stubs.py --check    say what has no type yet or is not up to date, and exit with 1 if there is anything

Signatures come from the running package; types from the tables below, by the name of the parameter, with exceptions by function.
A new operation mostly needs nothing here but a run of this script.
"""
import argparse
import inspect
import sys
from pathlib import Path

import cgrad as cg
from cgrad.core.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "cgrad"

ALIASES = '''\
_Number: TypeAlias = _bool | _int | _float
_ArrayLike: TypeAlias = Tensor | np.ndarray[Any, Any] | np.generic | _Number | Sequence[Any]
_Axes: TypeAlias = _int | Sequence[_int] | None
_Shape: TypeAlias = _int | Sequence[_int]
_DTypeLike: TypeAlias = DType | np.dtype[Any] | type[Any] | str
_Device: TypeAlias = _str | None
_Index: TypeAlias = _int | slice | None | EllipsisType | Tensor | np.ndarray[Any, Any] | Sequence[Any]
'''
ALIAS_NAMES = [line.split(":")[0] for line in ALIASES.splitlines()]

# Types by the name of a parameter.
PARAMETERS = {
    **dict.fromkeys(["x", "y", "z", "condition", "index", "indices", "source", "src", "mask", "weight", "weights", "other", "like"], "_ArrayLike"),
    **dict.fromkeys(["alpha", "beta", "lambd", "negative_slope", "min_val", "max_val", "fill_value", "nan", "low", "high", "rtol", "atol",
                     "start", "step", "base", "rate", "mean", "std", "correction", "posinf", "neginf", "threshold", "rcond", "maxnorm", "d"], "_Number"),
    **dict.fromkeys(["k", "n", "n_rows", "n_cols", "num", "steps", "count", "offset", "decimals", "chunks", "num_samples", "start_dim", "end_dim",
                     "axis0", "axis1", "axis2", "dim", "more", "length", "N", "ind", "precision", "edgeitems", "linewidth"], "_int"),
    **dict.fromkeys(["keepdims", "requires_grad", "copy", "equal_nan", "endpoint", "replacement", "unbiased", "include_initial", "as_tuple",
                     "preserve_rng_state", "retain_graph", "create_graph", "force", "sci_mode",
                     "descending", "stable", "sorted", "largest", "right", "out_int32", "density", "assume_unique", "invert", "return_inverse",
                     "return_counts", "return_index", "accumulate", "include_self", "upper", "left", "unitriangular", "hermitian", "full_matrices",
                     "check_errors", "adjoint", "pivot"], "_bool"),
    "reduce": 'Literal["sum", "prod", "mean", "amax", "amin"]',
    **dict.fromkeys(["boundaries", "sorter", "q", "fweights", "aweights"], "_ArrayLike"),
    "minlength": "_int", "dx": "_Number", "bins": "_int", "range": "tuple[_Number, _Number]",
    "interpolation": 'Literal["linear", "lower", "higher", "midpoint", "nearest"]', "side": 'Literal["left", "right"]',
    **dict.fromkeys(["stop", "end", "value", "min", "max"], "_Number | Tensor"),
    **dict.fromkeys(["xs", "tensors"], "Sequence[_ArrayLike]"),
    **dict.fromkeys(["prepend", "append", "bias"], "_ArrayLike"),
    **dict.fromkeys(["shape", "size", "sizes", "repetitions", "shift", "repeats", "lengths"], "_Shape"),
    "axis": "_int", "axes": "Sequence[_int] | _int", "source_axes": "_Shape", "destination": "_Shape",
    "dtype": "_DTypeLike", "a": "_DTypeLike", "b": "_DTypeLike", "device": "_Device", "generator": "Generator",
    "data": "_ArrayLike", "obj": "Any", "array": "np.ndarray[Any, Any]", "buffer": "Any", "key": "_Index | tuple[_Index, ...]",
    "approximate": 'Literal["none", "tanh"]', "indexing": 'Literal["xy", "ij"]', "rounding_mode": 'Literal["trunc", "floor"]',
    "p": "_Number | Tensor", "shapes": "Sequence[_int]", "pad_width": "Any", "constant_values": "_Number", "ord": "_Number",
    "size_or_sizes": "_Shape", "split_sizes": "Sequence[_int]", "strides": "_Shape", "storage_offset": "_int", "pad": "Sequence[_int]", "edge_order": "_int",
    **dict.fromkeys(["spacings", "spacing", "values", "to_end", "to_begin", "xp", "fp", "w"], "_ArrayLike"),
    **dict.fromkeys(["discont", "period"], "_Number"), "deg": "_int", "trim": "_str", **dict.fromkeys(["wrap", "increasing", "returned"], "_bool"),
    "indices_or_sections": "_Shape", "gradient": "_ArrayLike", "profile": "_str", "state": "Tensor", "seed": "_int",
    **dict.fromkeys(["vjp", "jvp", "batch"], "Callable[..., Any]"),
    **dict.fromkeys(["if_true", "if_false"], "Callable[..., Any] | _Number"), "arrays": "_bool",
    "function": "Callable[..., _T]", "args": "Any", "kwargs": "Any", "mode": "_str", "compute_mode": "_str", "inputs": "Tensor | Sequence[Tensor]",
    **dict.fromkeys(["use_reentrant", "non_blocking"], "_bool"), "early_stop": "_bool", "out": "Tensor",
    "hook": "Callable[[Tensor], Tensor | None]", "memo": "dict[_int, Any]",
    "protocol": "Any", "subscripts": "_str", "operands": "_ArrayLike",
    **dict.fromkeys(["tau", "LU", "pivots"], "_ArrayLike"), "UPLO": 'Literal["L", "U"]',
}
# The same where one function differs: "function.parameter".
EXCEPTIONS = {
    **{f"{name}.axis": "_Axes" for name in ("all", "amax", "amin", "any", "count_nonzero", "flip", "logsumexp", "max", "mean", "min", "nanmean",
                                            "nansum", "aminmax", "median", "nanmedian", "quantile", "nanquantile", "nanstd", "nanvar", "norm", "prod", "roll",
                                            "squeeze", "std", "std_mean", "sum", "var", "var_mean", "vector_norm")},
    "why_no_grad.result": "Tensor | None", "expand_dims.axis": "_int | Sequence[_int]", "unsqueeze.axis": "_int | Sequence[_int]",
    "moveaxis.source": "_Shape", "movedim.source": "_Shape", "tensordot.axes": "_int | Sequence[_int] | Sequence[Sequence[_int]]",
    "transpose.axes": "_int", "broadcast_tensors.tensors": "_ArrayLike", "broadcast_arrays.tensors": "_ArrayLike", "meshgrid.xs": "_ArrayLike",
    "lerp.end": "_ArrayLike", "normal.mean": "_Number | Tensor", "normal.std": "_Number | Tensor", "scalar_tensor.value": "_Number",
    "masked_fill.value": "_Number | Tensor", "index_put.value": "_ArrayLike", "threshold.value": "_Number",
    "set_printoptions.threshold": "_int", "show_config.mode": 'Literal["stdout", "dicts"]', "pad.mode": "_str", "select.index": "_int",
    "randint.low": "_int", "randint.high": "_int", "randint_like.low": "_int", "randint_like.high": "_int", "narrow.start": "_int | Tensor",
    "linspace.start": "_Number | Tensor", "logspace.start": "_Number | Tensor", "logspace.base": "_Number | Tensor", "full.fill_value": "_Number | Tensor",
    "full_like.fill_value": "_Number | Tensor", "fork_rng.seed": "_int", "fill_.value": "_Number | Tensor", "new_full.fill_value": "_Number",
    "to.args": "_DTypeLike | Tensor | _bool", "type.dtype": "_DTypeLike", "repeat_interleave.repeats": "_int | Sequence[_int] | Tensor",
    "arange.stop": "_Number", "arange.end": "_Number", "Tensor.new_tensor.data": "_ArrayLike", "item.index": "_int",
    "checkpoint_sequential.input": "Any", "checkpoint_sequential.segments": "_int",
    **{f"checkpoint_{name}.functions": "Iterable[Callable[..., Any]]" for name in ("sequential", "budget")}, "checkpoint_budget.nbytes": "_int",
    **dict.fromkeys(["foreign_op.function", "foreign_op.partials"], "Any"), "foreign_op.signature": "_str", "foreign_op.name": "_str",
    "scatter.reduce": 'Literal["add", "multiply"]', "histogram.bins": "_int | _ArrayLike", "digitize.bins": "_ArrayLike",
    "histc.min": "_Number", "histc.max": "_Number",
    "can_cast.from_": "_DTypeLike | Tensor", "can_cast.to": "_DTypeLike", "finfo.type": "_DTypeLike | Tensor", "iinfo.type": "_DTypeLike | Tensor",
    "isdtype.kind": "_DTypeLike | tuple[_DTypeLike, ...]", "result_type.arrays_and_dtypes": "_DTypeLike | Tensor | np.ndarray[Any, Any] | _Number",
    "to_device.stream": "None",
    "backward.inputs": "Tensor | Sequence[Tensor]", "tile.repetitions": "_Shape",
    "norm.p": "_Number | _str", "norm.ord": "_Number | _str", "matrix_norm.ord": "_Number | _str", "cond.p": "_Number | _str",
    "matrix_norm.axis": "Sequence[_int]", "renorm.p": "_Number", "dist.p": "_Number", "cdist.p": "_Number", "pinv.rtol": "_Number | Tensor",
    "pinv.atol": "_Number | Tensor", "matrix_rank.rtol": "_Number | Tensor", "matrix_rank.atol": "_Number | Tensor",
    "tensorsolve.axes": "Sequence[_int]", "qr.mode": 'Literal["reduced", "complete", "r"]', "block_diag.xs": "_ArrayLike",
    "multi_dot.xs": "Sequence[_ArrayLike] | _ArrayLike", "chain_matmul.xs": "Sequence[_ArrayLike] | _ArrayLike",
    "multi_dot.more": "_ArrayLike", "chain_matmul.more": "_ArrayLike", "fftshift.axes": "_Axes", "ifftshift.axes": "_Axes",
    "mvlgamma.p": "_int", "multigammaln.p": "_int", "ldexp.n": "_ArrayLike", "logit.eps": "_Number", "combinations.r": "_int",
    "combinations.with_replacement": "_bool", "cartesian_prod.tensors": "_ArrayLike", "unfold.size": "_int",
    "unfold.step": "_int", "insert.indices": "_Index", "delete.indices": "_Index", "polyval.p": "_ArrayLike", "interp.left": "_Number",
    "interp.right": "_Number",
    "ravel_multi_index.indices": "Sequence[_ArrayLike]", "put_along_axis.axis": "_int | None", "is_tensor.x": "Any",
    "geomspace.start": "_Number | Tensor", "gradient.axis": "_Axes", **{f"{name}.axis": "_Axes" for name in (
    "nanmax", "nanmin", "nanprod", "ptp", "average", "percentile", "nanpercentile")},
    **{f"atleast_{n}d.xs": "_ArrayLike | Sequence[_ArrayLike]" for n in (1, 2, 3)},
}
RETURNS = {
    **dict.fromkeys(["allclose", "array_equal", "can_cast", "isdtype", "is_grad_enabled", "is_contiguous", "is_floating_point", "is_complex", "is_signed",
                     "is_nonzero", "is_tensor"], "_bool"), "average": "Tensor | tuple[Tensor, Tensor]",
    **dict.fromkeys(["backward", "set_default_dtype", "set_num_threads", "set_printoptions", "set_rng_state", "retain_grad"], "None"),
    **dict.fromkeys(["get_num_threads", "initial_seed", "seed", "dim", "numel", "ndimension", "nelement", "element_size", "data_ptr", "storage_offset"],
    "_int"),
    **dict.fromkeys(["broadcast_tensors", "chunk", "split", "tensor_split", "unbind", "unstack", "meshgrid", "std_mean", "var_mean",
                     "gradient", "hsplit", "vsplit", "dsplit", "split_with_sizes", "divmod", "modf", "unravel_index"],
                    "tuple[Tensor, ...]"),
    **dict.fromkeys(["topk", "kthvalue", "mode", "cummax", "cummin"], "Selection"), "aminmax": "Extremes", "histogram": "Histogram",
    **dict.fromkeys(["unique", "unique_consecutive", "atleast_1d", "atleast_2d", "atleast_3d"], "Tensor | tuple[Tensor, ...]"),
    "unique_all": "UniqueAll", "unique_counts": "UniqueCounts", "unique_inverse": "UniqueInverse",
    **dict.fromkeys(["get_default_dtype", "promote_types", "result_type"], "DType"), "finfo": "FloatInfo", "iinfo": "IntInfo",
    **dict.fromkeys(["default_generator", "manual_seed"], "Generator"),
    "broadcast_arrays": "list[Tensor]",
    "broadcast_shapes": "tuple[_int, ...]", "checkpoint": "_T", "op": "Callable[..., Any]",
    "checkpoint_sequential": "Any", "checkpoint_budget": "Callable[[Any], Any]",
    "foreign_op": "Callable[..., Any]",
    "fork_rng": "AbstractContextManager[Any]", "threads": "AbstractContextManager[Any]",
    "nonzero": "tuple[Tensor, ...] | Tensor", "show_config": "dict[_str, dict[_str, Any]] | None", "numpy": "np.ndarray[Any, Any]",
    "tolist": "Any", "item": "Any", "tobytes": "_bytes", "why_no_grad": "_str", "register_hook": "Any", "register_post_accumulate_grad_hook": "Any",
    "__array__": "np.ndarray[Any, Any]",
    "__dlpack__": "Any", "__dlpack_device__": "tuple[_int, _int]", "__reduce_ex__": "Any", "__reduce__": "Any", "stride": "_int | tuple[_int, ...]",
    "requires_grad_": "Self", "data_ptr_": "_int", "slogdet": "Slogdet",
    "inv_ex": "InvEx", "lstsq": "Lstsq", "lu": "LU", "lu_factor": "LUFactor", "cholesky_ex": "CholeskyEx",
    "eigh": "Eigh", "qr": "QR", "svd": "SVD", "frexp": "Frexp",
}
PROPERTIES = {
    "shape": "tuple[_int, ...]", "strides": "tuple[_int, ...]", "ndim": "_int", "size": "Count", "itemsize": "_int", "nbytes": "_int",
    "dtype": "DType", "device": "device", "is_leaf": "_bool", "grad_fn": "Node | None", "output_nr": "_int", "retains_grad": "_bool",
    **dict.fromkeys(["T", "mT", "H", "mH", "real"], "Tensor"), "_version": "_int", "is_cuda": "_bool",
}
WRITABLE = {"requires_grad": "_bool", "grad": "Tensor | None", "data": "Tensor"}
BUILTINS = "from builtins import bool as _bool, bytes as _bytes, float as _float, int as _int, str as _str"
REEXPORTS = {   # names of the top level that are defined, with their types, elsewhere
    "cgrad": ["autograd", "cuda", "data", "distributed", "fft", "func", "linalg", "memory", "nn", "optim", "random", "special", "utils"],
    "cgrad.autograd.mode": ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled"],
    "cgrad.core.device": ["device as device"],
    "cgrad.core.dtype": ["DType as dtype"],
    "cgrad.files": ["load", "save"], "cgrad.show.explain": ["explain"], "cgrad.show.graph": ["graph"], "cgrad.show.profile": ["profile"],
    "cgrad.core.tensor": ["Tensor"],
    "cgrad.ops.namespace": ["NamespaceInfo as __array_namespace_info__"],
    "cgrad.ops.op": ["Op"],
    "cgrad.ops.generator": ["Generator"],
}
MODULES = [cg.linalg, cg.fft, cg.special]      # modules of functions whose stubs are written here
FURTHER = {"where": ("condition: _ArrayLike", "tuple[Tensor, ...]")}        # another signature of a function, and what it then returns
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"]
HIDDEN = {"kernels", "core", "ops", "config", "tree", "printing", "files", "porting"}     # modules that hold public names but are none

missing = []
overloaded = []        # dotted names with two signatures, which mypy.stubtest cannot compare with the one at run time


def type_of(function, parameter):
    """The type of a parameter as text."""
    name = parameter.name
    if name == "out":
        results = RETURNS.get(function, "Tensor")
        return ("Tensor" if results == "Tensor" else "Tensor | tuple[Tensor, ...]" if "Tensor |" in results else "tuple[Tensor, ...]") + " | None"
    text = EXCEPTIONS.get(f"{function}.{name}") or EXCEPTIONS.get(f"{function.rstrip('_')}.{name}") or PARAMETERS.get(name)
    if text is None:
        missing.append(f"{function}({name})")
        return "Any"
    if parameter.default is None and "None" not in text and text not in ("Any", "_Axes", "_Device"):
        text += " | None"
    return text


def default_of(parameter):
    value = parameter.default
    return repr(value) if value is None or isinstance(value, (bool, int, float, str, tuple)) else "..."


def signature_of(function, name, method):
    """The parameters as text, with types."""
    parts, starred = [], False
    parameters = list(inspect.signature(function).parameters.values())
    if method:
        parts, parameters = [parameters[0].name], parameters[1:]      # x for the functions that are methods as well
    for parameter in parameters:
        kind, text = parameter.kind, f"{parameter.name}: {type_of(name, parameter)}"
        if kind is parameter.VAR_POSITIONAL:
            text, starred = f"*{text}", True
        elif kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if parameter.default is not parameter.empty:
            text += f" = {default_of(parameter)}"
        parts.append(text)
    return ", ".join(parts)


def overload_with_other_names(function, name, method):
    """A second signature with the other spellings (dim, keepdim, ...), or None."""
    from cgrad.ops import aliases
    parameters = inspect.signature(function).parameters
    renames = {p: aliases.KEYWORDS[p][0] for p in ("axis", "keepdims") if p in parameters and aliases.KEYWORDS[p][0] not in parameters}
    if not renames or not hasattr(function, "__wrapped__"):
        return None
    parts = []
    for text in signature_of(function, name, method).split(", "):
        head, colon, tail = text.partition(":")
        parts.append(renames.get(head, head) + colon + tail)
    return ", ".join(parts)


def definition(function, name, method=False, indent="", module="cgrad"):
    """The lines that declare a function; overloads if it knows other spellings of its keywords or another signature."""
    returns = RETURNS.get(name, "Self" if method and name.endswith("_") and not name.startswith("__") else "Tensor")
    signatures = [(signature_of(function, name, method), returns)]
    other = overload_with_other_names(function, name, method)
    lines = []
    if other is not None:
        signatures.append((other, returns))
    if name in FURTHER and not method:
        signatures.append(FURTHER[name])
    if len(signatures) > 1:
        overloaded.append(f"cgrad.core.tensor.Tensor.{name}" if method else f"{module}.{name}")
    for signature, result in signatures:
        lines += [f"{indent}@overload"] * (len(signatures) > 1) + [f"{indent}def {name}({signature}) -> {result}: ..."]
    return lines


def tensor_stub():
    lines = [
        '"""Generated by tools/stubs.py."""',
        BUILTINS, "from collections.abc import Callable, Iterator, Sequence", "from types import EllipsisType",
        "from typing import Any, Literal, Self, SupportsIndex, TypeAlias, overload", "", "import numpy as np",
        "from typing_extensions import disjoint_base", "",
        "from cgrad.core.device import Count, device",
        "from cgrad.core.dtype import DType", "from cgrad.core.tape import Node", "from cgrad.ops.generator import Generator",
        "from cgrad.ops.results import Extremes, Frexp, Selection, Slogdet", "",
        ALIASES, "@disjoint_base", "class Tensor:",
    ]
    for name, text in sorted(PROPERTIES.items()):
        lines += ["    @property", f"    def {name}(self) -> {text}: ..."]
    for name, text in sorted(WRITABLE.items()):
        lines += ["    @property", f"    def {name}(self) -> {text}: ...", f"    @{name}.setter", f"    def {name}(self, value: {text}) -> None: ..."]
    for name in BINARY:
        more = ", mod: None = None" if name == "pow" else ""
        lines += [f"    def __{side}{name}__(self, other: Any{more}, /) -> Tensor: ..." for side in ("", "r")]
        lines.append(f"    def __i{name}__(self, other: Any, /) -> Self: ...")
    lines += [f"    def __{side}divmod__(self, other: Any, /) -> tuple[Tensor, Tensor]: ..." for side in ("", "r")]
    for name in ("lt", "le", "gt", "ge"):
        lines.append(f"    def __{name}__(self, other: Any, /) -> Tensor: ...")
    lines += [f"    def __{name}__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]" for name in ("eq", "ne")]
    lines += [f"    def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")]
    lines += [f"    def __{name}__(self) -> {text}: ..." for name, text in
              (("bool", "_bool"), ("int", "_int"), ("float", "_float"), ("complex", "complex"), ("index", "_int"), ("len", "_int"), ("hash", "_int"),
               ("iter", "Iterator[Tensor]"))]
    lines += [
        "    def __round__(self, ndigits: SupportsIndex | None = None) -> Any: ...",
        "    def __format__(self, spec: _str) -> _str: ...",
        "    def __contains__(self, value: Any, /) -> _bool: ...",
        "    def __getitem__(self, key: _Index | tuple[_Index, ...], /) -> Tensor: ...",
        "    def __setitem__(self, key: _Index | tuple[_Index, ...], value: _ArrayLike, /) -> None: ...",
        "    def __array__(self, dtype: Any = None, copy: _bool | None = None) -> np.ndarray[Any, Any]: ...",
        "    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: _bool | None = None) -> Any: ...",
        "    def __dlpack_device__(self) -> tuple[_int, _int]: ...",
        "    def __array_ufunc__(self, ufunc: np.ufunc, method: _str, *inputs: Any, **options: Any) -> Any: ...",
        "    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any: ...",
        "    def __array_namespace__(self, *, api_version: _str | None = None) -> Any: ...",
        "    def __copy__(self) -> Tensor: ...",
        "    def __deepcopy__(self, memo: dict[_int, Any]) -> Tensor: ...",
    ]
    for name, value in sorted(vars(Tensor).items()):
        if not name.startswith("_") and callable(value):
            lines += definition(value, name, method=True, indent="    ")
    lines.append("def limit_pool(nbytes: int) -> None: ...")            # for cgrad.memory
    return "\n".join(lines) + "\n"


def top_stub():
    lines = [
        '"""Generated by tools/stubs.py."""',
        BUILTINS, "from collections.abc import Callable, Iterable, Sequence", "from contextlib import AbstractContextManager",
        "from typing import Any, Literal, TypeVar, overload", "", "import numpy as np", "",
    ]
    for module, names in sorted(REEXPORTS.items()):
        lines.append(f"from {module} import " + ", ".join(n if " as " in n else f"{n} as {n}" for n in names))
    lines += ["from cgrad.core.dtype import DType", "from cgrad.core.tensor import " + ", ".join(ALIAS_NAMES),
              "from cgrad.ops.namespace import FloatInfo, IntInfo",
              "from cgrad.ops.results import Extremes, Frexp, Histogram, Selection, Slogdet, UniqueAll, UniqueCounts, UniqueInverse", "",
              '_T = TypeVar("_T")', "",
              "__version__: _str", "__array_api_version__: _str", ""]
    done = {n.split(" as ")[-1] for names in REEXPORTS.values() for n in names} | HIDDEN
    for name in dir(cg):
        if name in done or name.startswith("_"):
            continue
        value = getattr(cg, name)
        if type(value).__name__ == "DType":
            lines.append(f"{name}: DType")
        elif value is None or type(value) is float:
            lines.append(f"{name}: {'None' if value is None else '_float'}")
        elif callable(value) and not inspect.isclass(value):
            lines += definition(value, name)
        else:
            missing.append(name)
    return "\n".join(lines) + "\n"


def module_stub(module):
    lines = [
        '"""Generated by tools/stubs.py."""',
        BUILTINS, "from collections.abc import Sequence", "from typing import Literal, overload", "", "import numpy as np", "",
        "from cgrad.core.dtype import DType", "from cgrad.core.tensor import Tensor, " + ", ".join(ALIAS_NAMES),
        "from cgrad.ops.results import LU, QR, SVD, CholeskyEx, Eigh, InvEx, LUFactor, Lstsq, Slogdet", "",
        f"__all__ = {module.__all__}", "",
    ]
    for name in module.__all__:
        value = getattr(module, name)
        if not inspect.isclass(value):
            lines += definition(value, name, module=module.__name__)
        else:
            bases = ", ".join(base.__name__ if base.__module__ == "builtins" else f"np.linalg.{base.__name__}" for base in value.__bases__)
            lines.append(f"class {name}({bases}): ...")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a stub is not up to date")
    check = parser.parse_args().check
    wrong = []
    stubs = {SOURCE / "__init__.pyi": top_stub(), SOURCE / "core" / "tensor.pyi": tensor_stub()}
    stubs |= {SOURCE / f"{module.__name__.rpartition('.')[2]}.pyi": module_stub(module) for module in MODULES}
    stubs[ROOT / "tools" / "stubtest-overloads.txt"] = "# Generated by tools/stubs.py.\n" + "".join(f"{name}\n" for name in overloaded)
    for path, text in stubs.items():
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            wrong.append(f"{path.relative_to(ROOT)} is not up to date: run python tools/stubs.py")
    wrong += [f"no type is known for {name}: add it to the tables of tools/stubs.py" for name in dict.fromkeys(missing)]
    print("\n".join(wrong) or "the stubs are complete")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
