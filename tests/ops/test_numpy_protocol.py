"""NumPy's functions on tensors: the values are NumPy's own, the results are recorded, and what is not there says so."""
import inspect

import numpy as np
import pytest

import cgrad as cg

A = np.array([[1.5, -2.0, 0.25], [3.0, 0.5, -1.25]])
B = np.array([[0.5, 2.0, 1.0], [1.0, 4.0, 2.0]])
V = np.array([3.0, 1.0, 2.5, -4.0])
NAN = np.array([1.0, np.nan, 3.0])

UFUNCS = [
    "absolute", "negative", "positive", "exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arcsinh", "square", "floor", "ceil",
    "trunc", "rint", "sign", "degrees", "radians", "isnan", "isinf", "isfinite", "signbit", "reciprocal", "conjugate", "fabs", "logical_not",
]
BINARY = [
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "maximum", "minimum", "fmax", "fmin", "hypot", "arctan2", "copysign",
    "logaddexp", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "float_power",
]
# What is called with the arrays A, B, V of NumPy and then with tensors of the same values.
CALLS = {
    "sum": lambda a, b, v: np.sum(a), "sum by position": lambda a, b, v: np.sum(a, 0, None, None, True),
    "mean over an axis": lambda a, b, v: np.mean(a, axis=0), "mean keepdims": lambda a, b, v: np.mean(a, axis=1, keepdims=True),
    "prod": lambda a, b, v: np.prod(a, axis=(0, 1)), "std ddof": lambda a, b, v: np.std(a, ddof=1), "var": lambda a, b, v: np.var(a, axis=0),
    "std correction": lambda a, b, v: np.std(v, mean=np._NoValue, ddof=2),
    "max": lambda a, b, v: np.max(a, axis=1), "amin": lambda a, b, v: np.amin(a), "ptp": lambda a, b, v: np.ptp(a, axis=0),
    "any": lambda a, b, v: np.any(a > 1, axis=0), "all": lambda a, b, v: np.all(a > -9), "count": lambda a, b, v: np.count_nonzero(a > 0, axis=1),
    "median": lambda a, b, v: np.median(v), "median of an axis": lambda a, b, v: np.median(a, axis=0), "percentile": lambda a, b, v: np.percentile(v, 30),
    "percentiles": lambda a, b, v: np.percentile(v, [25, 75]), "quantile": lambda a, b, v: np.quantile(v, 0.4, method="lower"),
    "average": lambda a, b, v: np.average(a, axis=1), "weighted average": lambda a, b, v: np.average(a, axis=1, weights=[1, 2, 3]),
    "average returned": lambda a, b, v: np.average(a, axis=0, weights=np.array([1.0, 3.0]), returned=True),
    "average of all returned": lambda a, b, v: np.average(a, returned=True),
    "nansum": lambda a, b, v: np.nansum(a), "nan_to_num": lambda a, b, v: np.nan_to_num(a, nan=7.0),
    "cumsum": lambda a, b, v: np.cumsum(a), "cumsum axis": lambda a, b, v: np.cumsum(a, axis=1), "cumprod": lambda a, b, v: np.cumprod(a, 0),
    "diff": lambda a, b, v: np.diff(v, n=2), "trapezoid": lambda a, b, v: np.trapezoid(a, dx=0.5), "trapezoid x": lambda a, b, v: np.trapezoid(a, b),
    "where": lambda a, b, v: np.where(a > 0, a, b), "where number": lambda a, b, v: np.where(a > 0, a, 0), "where places": lambda a, b, v: np.where(a > 0),
    "select": lambda a, b, v: np.select([a > 2, a > 0], [a, 2 * a], -1.0), "clip": lambda a, b, v: np.clip(a, -1, 1),
    "clip by name": lambda a, b, v: np.clip(a, a_min=0.5, a_max=None), "clip min": lambda a, b, v: np.clip(a, min=0.0),
    "round": lambda a, b, v: np.round(a, 1), "around": lambda a, b, v: np.around(a),
    "concatenate": lambda a, b, v: np.concatenate([a, b], axis=1), "stack": lambda a, b, v: np.stack((a, b), -1), "vstack": lambda a, b, v: np.vstack([a, b]),
    "hstack": lambda a, b, v: np.hstack([v, v]), "append": lambda a, b, v: np.append(v, [1.0]), "append axis": lambda a, b, v: np.append(a, b, axis=0),
    "column_stack": lambda a, b, v: np.column_stack([v, v]), "split": lambda a, b, v: np.split(v, 2), "split at": lambda a, b, v: np.split(v, [1, 3]),
    "array_split": lambda a, b, v: np.array_split(v, 3), "atleast": lambda a, b, v: np.atleast_2d(v), "atleast two": lambda a, b, v: np.atleast_1d(v, a[0, 0]),
    "transpose": lambda a, b, v: np.transpose(a), "transpose axes": lambda a, b, v: np.transpose(a[None], (2, 0, 1)),
    "moveaxis": lambda a, b, v: np.moveaxis(a, 0, 1), "swapaxes": lambda a, b, v: np.swapaxes(a, 0, 1), "expand": lambda a, b, v: np.expand_dims(v, 0),
    "squeeze": lambda a, b, v: np.squeeze(a[None]), "reshape": lambda a, b, v: np.reshape(a, (3, 2)), "ravel": lambda a, b, v: np.ravel(a),
    "broadcast_to": lambda a, b, v: np.broadcast_to(v, (2, 4)), "tile": lambda a, b, v: np.tile(v, (2, 2)), "repeat": lambda a, b, v: np.repeat(v, 2),
    "roll": lambda a, b, v: np.roll(v, 1), "flip": lambda a, b, v: np.flip(a), "fliplr": lambda a, b, v: np.fliplr(a), "flipud": lambda a, b, v: np.flipud(a),
    "tril": lambda a, b, v: np.tril(a), "pad": lambda a, b, v: np.pad(v, (1, 2)), "pad value": lambda a, b, v: np.pad(v, 1, constant_values=3.0),
    "take": lambda a, b, v: np.take(v, [2, 0]), "take axis": lambda a, b, v: np.take(a, [1], axis=1), "meshgrid": lambda a, b, v: np.meshgrid(v, v),
    "broadcast_arrays": lambda a, b, v: np.broadcast_arrays(a, v[:3], 1),
    "sort": lambda a, b, v: np.sort(v), "argsort": lambda a, b, v: np.argsort(v), "argmax": lambda a, b, v: np.argmax(a, axis=1),
    "unique": lambda a, b, v: np.unique(v), "unique counts": lambda a, b, v: np.unique(v, return_counts=True), "isin": lambda a, b, v: np.isin(v, [1.0]),
    "dot": lambda a, b, v: np.dot(a, b.T), "dot of vectors": lambda a, b, v: np.dot(v, v), "dot of a number": lambda a, b, v: np.dot(a, 2.0),
    "dot of more axes": lambda a, b, v: np.dot(a[None], b.T[None]), "dot with a vector": lambda a, b, v: np.dot(a[None], v[:3]),
    "vdot": lambda a, b, v: np.vdot(a, b), "inner": lambda a, b, v: np.inner(v, v), "outer": lambda a, b, v: np.outer(a, v),
    "matmul": lambda a, b, v: np.matmul(a, b.T), "tensordot": lambda a, b, v: np.tensordot(a, b, ([0, 1], [0, 1])),
    "einsum": lambda a, b, v: np.einsum("ij,kj->ik", a, b), "vecdot": lambda a, b, v: np.vecdot(a, b),
    "norm": lambda a, b, v: np.linalg.norm(v), "norm of all": lambda a, b, v: np.linalg.norm(a), "norm axis": lambda a, b, v: np.linalg.norm(a, axis=1),
    "norm order": lambda a, b, v: np.linalg.norm(v, 1), "norm inf": lambda a, b, v: np.linalg.norm(a, np.inf, axis=0, keepdims=True),
    "norm of matrices": lambda a, b, v: np.linalg.norm(np.stack([a, b]), 2, axis=(1, 2)), "svd": lambda a, b, v: np.linalg.svd(a, False),
    "svd values": lambda a, b, v: np.linalg.svd(a, compute_uv=False), "qr": lambda a, b, v: np.linalg.qr(a), "qr r": lambda a, b, v: np.linalg.qr(a, "r"),
    "solve": lambda a, b, v: np.linalg.solve(a @ a.T, v[:2]), "inv": lambda a, b, v: np.linalg.inv(a @ a.T), "eigh": lambda a, b, v: np.linalg.eigh(a @ a.T),
    "trace": lambda a, b, v: np.trace(np.stack([a, b, a])), "vander": lambda a, b, v: np.vander(v, 3), "vander up": lambda a, b, v: np.vander(v, increasing=True),
    "fftshift": lambda a, b, v: np.fft.fftshift(a, axes=1), "diagonal": lambda a, b, v: np.diagonal(a, 1), "kron": lambda a, b, v: np.kron(a, b),
    "nuclear norm": lambda a, b, v: np.linalg.norm(a, "nuc"),
    "det": lambda a, b, v: np.linalg.det(a @ b.T),
    "slogdet": lambda a, b, v: np.linalg.slogdet(a @ b.T), "pinv": lambda a, b, v: np.linalg.pinv(a), "svdvals": lambda a, b, v: np.linalg.svdvals(a),
    "eigvalsh": lambda a, b, v: np.linalg.eigvalsh(a @ a.T), "cholesky": lambda a, b, v: np.linalg.cholesky(a @ a.T),
    "matrix_power": lambda a, b, v: np.linalg.matrix_power(a @ b.T, 3), "multi_dot": lambda a, b, v: np.linalg.multi_dot([a, b.T, a]),
    "lstsq": lambda a, b, v: np.linalg.lstsq(a.T, v[:3])[0],
    "diagonal of more": lambda a, b, v: np.diagonal(np.stack([a, b]), 1), "diag": lambda a, b, v: np.diag(v),
    "diag of a matrix": lambda a, b, v: np.diag(a, 1), "kron with a vector": lambda a, b, v: np.kron(a, v), "cross": lambda a, b, v: np.cross(a, b),
    "cov": lambda a, b, v: np.cov(a), "cov ddof": lambda a, b, v: np.cov(a, ddof=0), "corrcoef": lambda a, b, v: np.corrcoef(a), "rot90": lambda a, b, v: np.rot90(a),
    "nanmedian": lambda a, b, v: np.nanmedian(a, axis=0, keepdims=True), "nanmedian of all": lambda a, b, v: np.nanmedian(v),
    "linspace": lambda a, b, v: np.linspace(v[0], v[1]), "linspace num": lambda a, b, v: np.linspace(v[0], v[1], 5, endpoint=False),
    "linspace of vectors": lambda a, b, v: np.linspace(v, 2 * v, 3), "linspace axis": lambda a, b, v: np.linspace(v, 1.0, 3, axis=-1),
    "argwhere": lambda a, b, v: np.argwhere(a > 0), "flatnonzero": lambda a, b, v: np.flatnonzero(a > 0), "take_along": lambda a, b, v: np.take_along_axis(
        a, np.array([[1], [0]]), axis=1), "searchsorted": lambda a, b, v: np.searchsorted(np.sort(v), a, side="right"),
    "nanstd": lambda a, b, v: np.nanstd(a, axis=1, ddof=1), "nanquantile": lambda a, b, v: np.nanquantile(v, 0.3), "bincount": lambda a, b, v: np.bincount(
        np.argsort(v), minlength=6),
    "ones_like": lambda a, b, v: np.ones_like(a), "full_like": lambda a, b, v: np.full_like(a, 2.5), "copy": lambda a, b, v: np.copy(a),
    "isclose": lambda a, b, v: np.isclose(a, b), "allclose": lambda a, b, v: np.allclose(a, a), "array_equal": lambda a, b, v: np.array_equal(a, b),
    "add.reduce": lambda a, b, v: np.add.reduce(a), "add.reduce all": lambda a, b, v: np.add.reduce(a, axis=None),
    "maximum.reduce": lambda a, b, v: np.maximum.reduce(a, axis=1, keepdims=True), "multiply.reduce": lambda a, b, v: np.multiply.reduce(a, 1),
    "add.accumulate": lambda a, b, v: np.add.accumulate(a), "multiply.accumulate": lambda a, b, v: np.multiply.accumulate(a, axis=1),
    "logaddexp.reduce": lambda a, b, v: np.logaddexp.reduce(a, axis=0), "subtract.outer": lambda a, b, v: np.subtract.outer(v, a),
    "divmod": lambda a, b, v: divmod(a, b), "np.divmod": lambda a, b, v: np.divmod(a, 0.7), "modf": lambda a, b, v: np.modf(a),
    "maximum.accumulate": lambda a, b, v: np.maximum.accumulate(a, axis=1), "minimum.accumulate": lambda a, b, v: np.minimum.accumulate(v),
    "sum where": lambda a, b, v: np.sum(a, axis=0, where=a > 0), "sum initial": lambda a, b, v: np.sum(a, axis=1, initial=3.0),
    "prod where": lambda a, b, v: np.prod(a, where=a > 0, initial=2.0), "max initial": lambda a, b, v: np.max(a, axis=0, initial=1.0),
    "min where": lambda a, b, v: np.min(a, axis=1, initial=9.0, where=a > 0), "any where": lambda a, b, v: np.any(a > 1, axis=1, where=b > 1),
    "mean where": lambda a, b, v: np.mean(a, axis=1, where=a > 0), "var where": lambda a, b, v: np.var(a, axis=1, keepdims=True, where=b < 3),
    "std where": lambda a, b, v: np.std(a, ddof=1, where=b < 3), "add.reduce initial": lambda a, b, v: np.add.reduce(a, initial=1.0),
    "maximum.reduce where": lambda a, b, v: np.maximum.reduce(a, axis=1, initial=-9.0, where=a < 1),
    "einsum optimize": lambda a, b, v: np.einsum("ij,kj->ik", a, b, optimize=True),
    "einsum sublists": lambda a, b, v: np.einsum(a, [0, 1], b, [2, 1], [2, 0]), "einsum sublists alone": lambda a, b, v: np.einsum(a, [1, 0]),
    "einsum sublists dots": lambda a, b, v: np.einsum(a, [..., 1], b, [..., 1], [...]),
    "reshape F": lambda a, b, v: np.reshape(a, (3, 2), order="F"), "reshape F rest": lambda a, b, v: np.reshape(a, -1, order="F"),
    "ravel F": lambda a, b, v: np.ravel(a, "F"), "copy F": lambda a, b, v: np.copy(a, order="F"),
    "sort of all": lambda a, b, v: np.sort(a, axis=None), "argsort of all": lambda a, b, v: np.argsort(a, axis=None),
    "partition": lambda a, b, v: np.sort(np.partition(v, 1)[:2]), "argpartition": lambda a, b, v: np.sort(v[np.argpartition(v, 1)[:2]]),
    "matvec": lambda a, b, v: np.matvec(a, b), "vecmat": lambda a, b, v: np.vecmat(v[:2], a), "block": lambda a, b, v: np.block([[a, b], [b, a]]),
    "block of unlike": lambda a, b, v: np.block([[a, np.ones((2, 1))], [v]]), "insert": lambda a, b, v: np.insert(v, 1, 5.0),
    "insert several": lambda a, b, v: np.insert(v, [1, 3], v[:2]), "insert rows": lambda a, b, v: np.insert(a, 1, b, axis=0),
    "insert column": lambda a, b, v: np.insert(a, 2, b[:, 0], axis=1), "delete": lambda a, b, v: np.delete(a, 1, axis=1),
    "delete several": lambda a, b, v: np.delete(v, [0, -1]), "resize": lambda a, b, v: np.resize(a, (4, 2)), "rollaxis": lambda a, b, v: np.rollaxis(a, 1),
    "rollaxis to": lambda a, b, v: np.rollaxis(np.stack([a, b]), 0, -1), "windows of two axes": lambda a, b, v: np.lib.stride_tricks.sliding_window_view(a, (2, 2)),
    "windows of an axis": lambda a, b, v: np.lib.stride_tricks.sliding_window_view(a, 2, axis=-1), "cov columns": lambda a, b, v: np.cov(a, rowvar=False),
    "cov bias": lambda a, b, v: np.cov(a, bias=True), "cov of two": lambda a, b, v: np.cov(a, b[0]), "cov of one": lambda a, b, v: np.cov(v),
    "cov weights": lambda a, b, v: np.cov(a, aweights=[1.0, 2.0, 3.0]), "corrcoef columns": lambda a, b, v: np.corrcoef(a[:, :2], rowvar=False),
    "corrcoef of two": lambda a, b, v: np.corrcoef(v, np.exp(v)), "histogram2d": lambda a, b, v: np.histogram2d(v, v, bins=3)[0],
    "compress": lambda a, b, v: np.compress([True, False, True], a, axis=1), "extract": lambda a, b, v: np.extract(a > 0, a),
    "sliding windows": lambda a, b, v: np.lib.stride_tricks.sliding_window_view(v, 2), "choose": lambda a, b, v: np.choose(np.argmax(a, axis=0), [a[0], b[1]]),
    "diff prepend": lambda a, b, v: np.diff(a, axis=0, prepend=0.0), "diff append": lambda a, b, v: np.diff(a, axis=1, append=b[:, :1]),
    "ediff1d": lambda a, b, v: np.ediff1d(a, to_begin=[9.0]), "interp": lambda a, b, v: np.interp(a, [-1.0, 0.0, 2.0], v[:3]),
    "interp ends": lambda a, b, v: np.interp(v + 0.2, np.sort(b[0]), a[0], left=7.0, right=8.0), "polyval": lambda a, b, v: np.polyval(v, a),
    "polyfit": lambda a, b, v: np.polyfit(v, np.exp(v), 2), "polyfit weights": lambda a, b, v: np.polyfit(v, np.stack([np.exp(v), v ** 3], 1), 1, w=[1, 2, 1, 3]),
    "union": lambda a, b, v: np.union1d(a, v), "intersection": lambda a, b, v: np.intersect1d(a, [0.5, 3.0, 9.0]), "setdiff": lambda a, b, v: np.setdiff1d(a, b),
    "nanmax": lambda a, b, v: np.nanmax(a, axis=1), "nanmin keepdims": lambda a, b, v: np.nanmin(a, keepdims=True),
    "nanpercentile": lambda a, b, v: np.nanpercentile(v, [20, 60]), "real_if_close": lambda a, b, v: np.real_if_close(a),
    "piecewise": lambda a, b, v: np.piecewise(a, [a < 0, a > 2], [lambda x: -x, 5.0, lambda x: x * x]),
    "apply_along_axis": lambda a, b, v: np.apply_along_axis(lambda row: row[:2] * row[-1], 1, a),
    "apply_along_axis number": lambda a, b, v: np.apply_along_axis(lambda column: column.sum(), 0, a),
    "convolve full": lambda a, b, v: np.convolve(v, a[0], "full"), "convolve short full": lambda a, b, v: np.convolve(a[0], v, "full"),
    "correlate full": lambda a, b, v: np.correlate(v, a[0], "full"), "correlate short full": lambda a, b, v: np.correlate(a[0], v, "full"),
    "convolve same": lambda a, b, v: np.convolve(v, a[0], "same"), "convolve short same": lambda a, b, v: np.convolve(a[0], v, "same"),
    "correlate same": lambda a, b, v: np.correlate(v, a[0], "same"), "correlate short same": lambda a, b, v: np.correlate(a[0], v, "same"),
    "convolve valid": lambda a, b, v: np.convolve(v, a[0], "valid"), "convolve short valid": lambda a, b, v: np.convolve(a[0], v, "valid"),
    "correlate valid": lambda a, b, v: np.correlate(v, a[0], "valid"), "correlate short valid": lambda a, b, v: np.correlate(a[0], v, "valid"),
    "dtype by a short name": lambda a, b, v: np.add(a, b, dtype="f4"), "sum dtype": lambda a, b, v: np.sum(a, dtype="float32"),
    "operands by name": lambda a, b, v: np.take(indices=[1, 0], a=v), "list": lambda a, b, v: np.add(v, [1, 2, 3, 4]), "dtype": lambda a, b, v: np.exp(v, dtype=np.float64), "shape": lambda a, b, v: np.shape(a),
    "ndim": lambda a, b, v: np.ndim(a), "size": lambda a, b, v: np.size(a), "array2string": lambda a, b, v: np.array2string(a),
}


# Results that do not depend on the values of the tensors, or only by steps.
CONSTANT = {"histogram2d", "ones_like", "full_like", "average returned", "average of all returned", "slogdet", "divmod", "np.divmod", "modf"}


def check(result, expected):
    if isinstance(expected, (tuple, list)) and not isinstance(expected, str):
        assert len(result) == len(expected)
        for one, other in zip(result, expected, strict=True):
            check(one, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert isinstance(result, (cg.Tensor, bool))
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-12 if expected.dtype != np.float32 else 1e-6)
        assert np.shape(result) == expected.shape
        if isinstance(result, cg.Tensor):
            assert result.dtype.name == expected.dtype.name
    else:
        assert result == expected


@pytest.mark.parametrize("name", UFUNCS)
def test_ufunc_of_one_operand(name):
    f = getattr(np, name)
    x = cg.tensor(A, requires_grad=True)
    check(f(x), f(A))
    assert f(x).requires_grad == getattr(cg, {"conjugate": "clone", "fabs": "abs", "rint": "round"}.get(name, name))(x).requires_grad


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("left", ["tensor", "array", "number"])
def test_ufunc_of_two_operands(name, left):
    f = getattr(np, name)
    x, first = cg.tensor(B, requires_grad=True), {"tensor": cg.tensor(A), "array": A, "number": 1.5}[left]
    with np.errstate(all="ignore"):
        check(f(first, x), f(1.5 if left == "number" else A, B))
        check(f(x, first), f(B, 1.5 if left == "number" else A))


@pytest.mark.parametrize("name", CALLS)
def test_call(name):
    call = CALLS[name]
    result = call(*(cg.tensor(x, requires_grad=True) for x in (A, B, V)))
    check(result, call(A, B, V))
    if name not in CONSTANT:
        for x in result if isinstance(result, (tuple, list)) else (result,):
            assert not isinstance(x, cg.Tensor) or not x.is_floating_point() or x.requires_grad


@pytest.mark.parametrize("name", ["mean over an axis", "std ddof", "median of an axis", "weighted average", "cumsum", "where", "select", "clip", "concatenate",
                                  "append", "column_stack", "split at", "transpose axes", "dot of more axes", "outer", "einsum", "norm axis", "subtract.outer",
                                  "np.divmod", "maximum.reduce", "pad", "tile", "ptp", "mean where", "std where", "max initial", "maximum.accumulate", "block",
                                  "insert rows", "insert several", "delete", "sliding windows", "convolve same", "correlate full", "interp ends", "polyval",
                                  "polyfit weights", "piecewise", "apply_along_axis", "nanmax", "reshape F", "diff append"])
def test_gradient(name):
    call = CALLS[name]

    def scalar(a, b, v):
        out = call(a, b, v)
        return sum((x * x).sum() for x in (out if isinstance(out, (tuple, list)) else [out]))
    assert cg.autograd.gradcheck(scalar, tuple(cg.tensor(x, requires_grad=True) for x in (A, B, V)))


OPERATORS = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, "/": lambda x, y: x / y, "//": lambda x, y: x // y, "%": lambda x, y: x % y,
    "**": lambda x, y: abs(x) ** y, "@": lambda x, y: x @ y, "<": lambda x, y: x < y, "==": lambda x, y: x == y, "!=": lambda x, y: x != y,
    ">=": lambda x, y: x >= y,
}


@pytest.mark.parametrize("symbol", OPERATORS)
def test_operator_with_an_array_on_the_left(symbol):
    f = OPERATORS[symbol]
    a, b = A[:, :2], B[:, :2]
    result = f(a, cg.tensor(b, requires_grad=True))
    check(result, f(a, b))
    assert result.requires_grad == (symbol not in ("<", "==", "!=", ">="))


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), np.bool_(True)])
def test_operator_with_a_scalar_on_the_left(scalar):
    x = cg.tensor([1.0, 2.0], requires_grad=True)
    for result in (scalar * x, scalar + x, scalar / x, scalar > x):
        assert isinstance(result, cg.Tensor)
    (scalar * x).sum().backward()
    assert x.grad.tolist() == [float(scalar)] * 2
    assert (np.float64(2) * x).dtype is cg.float32 and (np.float32(2) * x).dtype is cg.float32      # a Python float, too, would leave it so


KEPT = {
    "multiply": lambda a, t: a * t, "power": lambda a, t: (t + 2) ** a, "matmul": lambda a, t: t @ a, "matmul with the array first": lambda a, t: a @ t,
    "np.dot": lambda a, t: np.dot(t, a), "einsum": lambda a, t: cg.einsum("ij,kj->ik", t, a), "outer": lambda a, t: np.outer(a, t),
    "kron": lambda a, t: np.kron(a, t), "solve": lambda a, t: cg.linalg.solve(a, t), "lerp": lambda a, t: cg.lerp(t, t * t, a),
    "where": lambda a, t: np.where(a > 2, t, t * t), "mask": lambda a, t: np.where(a.astype(bool), t, 0.0), "take_along_axis": lambda a, t: np.take_along_axis(
        t, a.astype(int) % 2, 1), "index": lambda a, t: t[a.astype(int)[0] % 2], "in place": lambda a, t: t.clone().mul_(a),
    "mse": lambda a, t: cg.nn.functional.mse_loss(t, a), "a view of it": lambda a, t: np.multiply(np.transpose(t), a.T),
}


@pytest.mark.parametrize("name", KEPT)
def test_an_array_that_the_tape_keeps_may_be_written_later(name):
    """The tape keeps a copy: it would not notice."""
    a, grads = np.array([[3.0, 1.0], [2.0, 5.0]]), []
    for overwrite in (False, True):
        given, t = a.copy(), cg.tensor([[1.0, -2.0], [0.5, 3.0]], dtype=cg.float64, requires_grad=True)
        out = (KEPT[name](given, t) ** 2).sum()
        if overwrite:
            given[:] = 0
        out.backward()
        grads.append(t.grad.numpy())
    np.testing.assert_array_equal(*grads)


@pytest.mark.parametrize("call", [lambda a, t: a + t, lambda a, t: t * a, lambda a, t: np.maximum(a, t), lambda a, t: np.positive(t) + a])
def test_an_array_that_nobody_keeps_is_no_part_of_the_result(call):
    a, t = np.ones(3), cg.zeros(3, dtype=cg.float64)
    with cg.no_grad():
        out = call(a, t)
    before = out.tolist()
    a[:] = 7
    t[:] = 5
    assert out.tolist() == before


def test_an_array_written_in_place():
    a = np.ones(2)
    a += cg.tensor([1.0, 2.0])
    assert isinstance(a, np.ndarray) and a.tolist() == [2, 3]
    with pytest.raises(TypeError, match="add: the result requires grad and would leave the graph"):
        a += cg.tensor([1.0, 2.0], requires_grad=True)
    assert a.tolist() == [2, 3]


def test_out_and_where():
    x = cg.tensor([1.0, 4.0], requires_grad=True)
    out = cg.zeros(2)
    assert np.sqrt(x, out=out) is out and out.requires_grad
    out.sum().backward()
    assert x.grad.tolist() == [0.5, 0.25]
    out = cg.full((2,), 7.0)
    np.sqrt(x, where=np.array([True, False]), out=out)
    assert out.tolist() == [1, 7]
    out = np.zeros(2)
    assert np.sqrt(x.detach(), out=out) is out and out.tolist() == [1, 2]
    assert np.sum(x.detach(), out=np.zeros(())) == 5
    with pytest.raises(TypeError, match=r"numpy.sqrt: where= needs out="):
        np.sqrt(x, where=np.array([True, False]))
    with pytest.raises(ValueError, match=r"numpy.sqrt: the result has shape \(2,\), out= has \(3,\)"):
        np.sqrt(x, out=cg.zeros(3))
    with pytest.raises(TypeError, match="numpy.sqrt: a result of float32 cannot be written into out= of int64"):
        np.sqrt(x, out=cg.zeros(2, dtype=cg.int64))
    with pytest.raises(TypeError, match="leave the graph"):
        np.sum(x, out=np.zeros(()))


def test_functions_that_write_into_their_argument():
    a, b = cg.tensor(A, requires_grad=True), cg.tensor(B, requires_grad=True)
    for call in (lambda out, new: np.copyto(out, new[:1]), lambda out, new: np.copyto(out, new, where=A > 0),
                 lambda out, new: np.put_along_axis(out, np.array([[1], [0]]), new[:, :1], 1), lambda out, new: np.putmask(out, A > 0, new),
                 lambda out, new: np.fill_diagonal(out, 7.0)):
        want, got, array = A.copy(), a.clone(), A.copy()
        call(want, B)
        call(got, b)
        call(array, b.detach())
        check(got, want)
        np.testing.assert_array_equal(array, want)
        g, = cg.autograd.grad(got.sum(), a)
        np.testing.assert_array_equal(g.numpy(), (want == A).astype(float))


def test_dtypes_are_numpys_too():
    for dtype in (cg.bool, cg.uint8, cg.int64, cg.float32):
        assert np.dtype(dtype) == dtype.name and np.zeros(2, dtype=dtype).dtype.name == dtype.name
    assert np.float32 == cg.float32 and np.dtype("f8") != cg.float32


def test_a_slice_of_nothing_but_nan():
    check(np.nanmax(cg.tensor([[np.nan, np.nan], [1.0, np.nan]]), axis=1), np.array([np.nan, 1.0], np.float32))


@pytest.mark.parametrize(("call", "words"), [
    (lambda t: np.spacing(t), "numpy.spacing: cgrad has no such operation"),
    (lambda t: np.add.at(t, [0], 1), "numpy.add.at: cgrad has no such operation"),
    (lambda t: np.add.reduceat(t, [0]), "numpy.add.reduceat: cgrad has no such operation"),
    (lambda t: np.subtract.reduce(t), "numpy.subtract.reduce: cgrad has no such operation"),
    (lambda t: np.emath.sqrt(t), r"numpy.lib.\w+.sqrt: cgrad has no such function"),
    (lambda t: np.polyfit(t, t, 1, full=True), "numpy.polyfit: full="),
    (lambda t: np.linalg.eig(t), "numpy.linalg.eig: cgrad has no such function"),
    (lambda t: np.nansum(t, where=[True, False], initial=0.0) + np.nanmean(t, where=[True, False]), "numpy.nanmean: where= is not taken"),
    (lambda t: np.max(t, where=np.array([True, False])), "numpy.max: where= is not taken for tensors without initial="),
    (lambda t: np.logaddexp.reduce(t, initial=1.0), "numpy.logaddexp.reduce: initial= is not taken"),
    (lambda t: np.copyto(np.zeros(2), t), "numpy.copyto: a tensor that requires grad would leave the graph"),
    (lambda t: np.histogram2d(t, t, weights=t), "numpy.histogram2d: a gradient of weights is not recorded"),
    (lambda t: np.putmask(np.zeros(2), [True, False], t), "numpy.putmask: a tensor that requires grad"),
    (lambda t: np.add(t, t, casting="unsafe"), "numpy.add: casting='unsafe' is not taken"),
    (lambda t: np.reshape(t, (2, 1), order="A"), 'numpy.reshape: order must be "C" or "F"'),
    (lambda t: np.add(t, "a"), "add: operands are tensors, arrays or numbers, got str"),
    (lambda t: np.add(t, np.array(["a", "b"])), "dtype <U1 are not supported"),
    (lambda t: np.add(t, np.array([1, None])), "dtype object are not supported"),
    (lambda t: np.frompyfunc(lambda x: x, 1, 1)(t), "cgrad has no such operation"),
])
def test_what_is_not_there(call, words):
    with pytest.raises(TypeError, match=words):
        call(cg.tensor([1.0, 2.0], requires_grad=True))


def test_other_libraries_come_first():
    class Theirs:
        def __array_ufunc__(self, *args, **kwargs):
            return "theirs"

        def __array_function__(self, *args, **kwargs):
            return "theirs too"
    x = cg.ones(2)
    assert np.add(x, Theirs()) == "theirs" and np.concatenate([x, Theirs()]) == "theirs too"


def arrays():
    """Arrays that NumPy has and a tensor cannot address as they are, and others that it can."""
    frozen = A.copy()
    frozen.flags.writeable = False
    record = np.zeros((2, 3), [("tag", "i1"), ("value", "<f8")])
    record["value"] = A
    yield from (A.astype(">f8"), np.asfortranarray(A), A[::-1, ::-1], A[:, :1].repeat(3, 1), np.broadcast_to(A[0], (2, 3)), frozen, record["value"],
                A[:0], np.array(2.0), A.astype(">i2"), A > 0)


@pytest.mark.parametrize("array", list(arrays()), ids=lambda a: f"{a.dtype.str}{a.strides}{a.flags.writeable}")
def test_every_array_is_an_operand(array):
    plain = np.asarray(array)
    t = cg.tensor(B[:array.shape[0]] if array.ndim else B, requires_grad=True)
    before = plain.copy()
    for result, expected in ((array + t, plain + t.numpy(force=True)), (np.multiply(t, array), t.numpy(force=True) * plain)):
        assert isinstance(result, cg.Tensor) and result.requires_grad
        np.testing.assert_array_equal(result.detach(), expected)
    assert np.array_equal(plain, before)


@pytest.mark.parametrize("array", [np.zeros(3, [("a", "f8")]), np.zeros(3, "M8[s]"), np.zeros(3, "c8"), np.zeros(3, object), np.zeros(3, "g"),
                                   np.zeros(3, "S2"), np.zeros(3, "V4"), np.recarray(3, [("a", "f8")])], ids=lambda a: type(a).__name__ + a.dtype.str)
def test_arrays_that_are_refused(array):
    t = cg.ones(3, requires_grad=True)
    for call in (lambda: np.add(array, t), lambda: t + array, lambda: np.concatenate([t, array]), lambda: array * t):
        with pytest.raises(TypeError):
            call()


def test_masked_arrays_and_matrices():
    t, masked = cg.ones(3, requires_grad=True), np.ma.masked_array(np.zeros(3), [0, 1, 0])
    for call in (lambda: np.add(masked, t), lambda: t + masked, lambda: np.concatenate([t, masked]), lambda: cg.tensor(masked)):
        with pytest.raises(TypeError, match="masked arrays are not supported"):
            call()
    assert isinstance(masked * t, np.ma.MaskedArray)          # they ask nobody: outside of the graph, as np.asarray(t) is
    with pytest.warns(PendingDeprecationWarning):
        m = np.matrix([[1.0, 2.0, 3.0]])
    assert (t * m).requires_grad and (t * m).tolist() == (m * t).tolist() == [[1, 2, 3]]          # elementwise, as with any array


def test_viewers_see_the_values():
    t = cg.tensor(V, requires_grad=True)
    view = np.asarray(t)
    assert view.tolist() == V.tolist() and not view.flags.writeable and np.shares_memory(view, t.detach().numpy())
    labels = np.broadcast_arrays(t, None)             # as Matplotlib calls it
    assert labels[0].tolist() == V.tolist() and labels[1].tolist() == [None] * 4
    np.testing.assert_array_equal(t, V)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(t, V + 1)


def test_scipy_ufuncs():
    from scipy import special
    x = cg.tensor(V, requires_grad=True)
    check(special.expit(x), special.expit(V))
    check(special.erf(x), special.erf(V))
    with pytest.raises(TypeError, match="numpy.fresnel: cgrad has no such operation"):
        special.fresnel(x)


def test_defaults_are_numpys():
    """What equals NumPy's default is left out of the call, so ours must do the same; None and <no value> leave the choice to us."""
    from cgrad.ops import numpy_protocol
    harmless = {"order", "subok", "casting", "overwrite_input", "optimize", "copy", "hermitian"}      # of no consequence for what a tensor holds
    differ = set()
    for name in numpy_protocol.FUNCTIONS:
        function = np
        for part in name.split("."):
            function = getattr(function, part)
        try:
            translated = numpy_protocol._function(function)
        except TypeError:               # not there yet
            continue
        _, ours, _, defaults, keywords, _ = translated.args
        parameters = inspect.signature(ours).parameters
        differ |= {(name, key, parameters[keywords[key]].default if key in keywords and keywords[key] in parameters else "absent")
                   for key, value in defaults.items() if value is not None and value is not np._NoValue and key not in harmless}
        differ -= {(name, key, value) for key, value in defaults.items()}
    assert {(name, key) for name, key, _ in differ} == {
        ("searchsorted", "side"),       # None means "left"
        # What only NumPy can be told; its default is what ours does, anything else raises.
        ("array_equal", "equal_nan"), ("cross", "axisa"), ("cross", "axisb"), ("cross", "axisc"),
        ("diagflat", "k"), ("meshgrid", "sparse"), ("take", "mode"), ("angle", "deg"), ("polyfit", "full"), ("polyfit", "cov"), ("intersect1d", "return_indices"),
    }


def test_inside_transformations():
    x = cg.tensor([0.5, 1.0], dtype=cg.float64)
    _, tangent = cg.func.jvp(lambda x: np.sum(np.sin(x)), (x,), (cg.ones_like(x),))
    assert tangent.item() == pytest.approx(np.cos([0.5, 1.0]).sum())
    check(cg.func.vmap(lambda row: np.dot(row, row))(cg.tensor(A)), (A * A).sum(1))
    check(cg.func.grad(cg.func.grad(lambda x: np.exp(x) * np.float64(2)))(x[0]), 2 * np.exp(np.float64(0.5)))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float32"])
def test_vecdot_keeps_the_dtype(dtype):
    x = np.array([[1, 2, 3], [100, 100, 100]]).astype(dtype)
    check(np.vecdot(cg.tensor(x), cg.tensor(x[0])), np.vecdot(x, x[0]))


def test_subclasses_take_part():
    w = cg.nn.Parameter(cg.tensor([1.0, 2.0]))
    np.sum(np.square(w)).backward()
    assert w.grad.tolist() == [2, 4]
