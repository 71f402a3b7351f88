"""The same bits for any number of threads: every kernel that is split over threads, on sizes where it is.

Elementwise kernels, casts and reductions come from their tables; the other families are listed in FAMILIES by the file that splits
them, and a file that is not listed fails a test.  Every job waits for its workers (for a while), so that few are done alone by chance.
"""
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import cgrad as cg
from cgrad import _buildinfo
from cgrad.kernels import dispatch, doors, parallel, reduce
from cgrad.nn import functional as F
from cgrad.ops import recurrent

THREADS = (1, 2, 3, 8)
SHAPE = (263, 269)              # enough for eight threads even where an element costs one addition; no multiple of anything
DTYPES = [np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float32, np.float64]
FLOATS = ["float32", "float64"]


@pytest.fixture(autouse=True)
def all_workers_come():
    before = parallel.get_num_threads()
    parallel.meet_all_workers(True)
    yield
    parallel.meet_all_workers(False)
    parallel.set_num_threads(before)


def check(function, always_split=True):
    """The arrays or tensors that function() returns, compared bit by bit; unless told otherwise they must come from split jobs."""
    results = []
    for n in THREADS:
        parallel.set_num_threads(n)
        before = parallel.jobs_shared()
        done = function()
        results.append([np.asarray(r).tobytes() for r in (done if isinstance(done, (tuple, list)) else [done])])
        if always_split and _buildinfo.OPENMP:
            assert (parallel.jobs_shared() > before) == (n > 1), f"{n} threads"
    for n, result in zip(THREADS, results):
        assert result == results[0], f"other bits with {n} threads"


def data(dtype, shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(max(-100, np.iinfo(dtype).min), 100, shape).astype(dtype)
    x = rng.standard_normal(shape).astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max]
    x.reshape(-1)[rng.integers(0, x.size, 20 * len(special))] = special * 20
    return x


def tensor(dtype, *shape, seed=0, requires_grad=False):
    return cg.tensor(np.random.default_rng(seed).standard_normal(shape).astype(dtype), requires_grad=requires_grad)


LAYOUTS = {
    "transposed": lambda x: np.asfortranarray(x),
    "backwards, every other": lambda x: np.repeat(x, 2, axis=1)[::-1, ::-2],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}


# ---- from the tables -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", dispatch.kernel_names())
def test_elementwise(name):
    for dtype in doors.dtypes_of(name):
        inputs = [data(dtype, seed=k) for k in range(doors.inputs_of(name))]
        if name == "where":
            inputs[0] = data(bool)
        try:
            result = dtype
            doors.apply(name, np.empty(1, result), *[x.reshape(-1)[:1] for x in inputs])
        except TypeError:              # a comparison
            result = bool
        mixed = [layout(x) for layout, x in zip(itertools.cycle(LAYOUTS.values()), inputs)]
        check(lambda: doors.apply(name, np.empty(SHAPE, result), *mixed))
        flat = [x.reshape(-1) for x in inputs]
        check(lambda: doors.apply(name, np.empty(flat[0].shape, result), *flat))


@pytest.mark.parametrize("target", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
def test_cast(source, target):
    x = data(source)
    for layout in LAYOUTS.values():
        check(lambda: doors.cast(np.empty(SHAPE, target), layout(x)))


def reductions():
    try:
        reduce.reduce_into("?", np.ones(1), (0,), np.ones(1))
    except KeyError as error:
        return re.search("there are (.*?)[\"']?$", str(error)).group(1).split(", ")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", reductions())
def test_reduction(name, dtype):
    dtype = np.dtype(dtype)
    result = bool if name in ("any", "all") else np.int64 if name.startswith("arg") else dtype
    if name in ("sum", "prod") and dtype.kind != "f":
        result = np.uint64 if dtype.kind == "u" else np.int64
    shapes = {(2003, 301): [(0,), (1,), (0, 1)], (61, 103, 97): [(1,), (0, 2)], (150_001, 4): [(0,), (1,)]}
    for shape, choices in shapes.items():
        x = data(dtype, shape)
        for axes, view in itertools.product(choices, (x, np.asfortranarray(x)[::-1])):
            if name.startswith("arg") and len(axes) not in (1, x.ndim):
                continue
            left = [n for axis, n in enumerate(shape) if axis not in axes]

            def function(view=view, axes=axes, left=left):
                out = np.empty(left, result)
                reduce.reduce_into(name, view, axes, out)
                return out
            check(function, always_split=not name.startswith("arg"))      # an index is searched in one go in a few long columns


# ---- by family -----------------------------------------------------------------------------------------------------------------

def normalised(function, *shapes):
    """Forward and backward of a function of tensors."""
    def run(dtype):
        xs = [tensor(dtype, *shape, seed=k, requires_grad=True) for k, shape in enumerate(shapes)]
        out = function(*xs)
        out.backward(tensor(dtype, *out.shape, seed=9))
        return [out.detach(), *(x.grad for x in xs)]
    return run


def trained(optimizer, **options):
    def run(dtype):
        p = tensor(dtype, *SHAPE, requires_grad=True)
        opt = optimizer([p], lr=0.01, **options)
        for step in range(3):
            p.grad = tensor(dtype, *SHAPE, seed=step + 1)
            opt.step()
        return p.detach()
    return run


def product(*shapes):
    def run(dtype):
        x, y = (tensor(dtype, *shape, seed=k) for k, shape in enumerate(shapes))
        return x @ y, x @ y.flip(0).flip(0) if y.ndim == 1 else x @ y.mT.contiguous().mT
    return run


ROWS = np.random.default_rng(3).integers(0, 301, 997)
FAMILIES = {
    "iterate": {
        "copy of a transpose": lambda dtype: tensor(dtype, *SHAPE).T.contiguous(),
        "copy of permuted axes": lambda dtype: tensor(dtype, 31, 47, 53).permute(2, 0, 1).contiguous(),
        "concatenation": lambda dtype: cg.concat([tensor(dtype, *SHAPE), tensor(dtype, *SHAPE, seed=1)], axis=1),
        "gelu written out": normalised(lambda x: 0.5 * x * (1 + cg.tanh(0.8 * (x + 0.04 * (x * x * x)))), SHAPE),
    },
    "reduce": {
        "logsumexp": normalised(lambda x: cg.logsumexp(x, axis=0), SHAPE),
        "var": normalised(lambda x: cg.var(x, axis=1), SHAPE),
        "gradient of a broadcast row": normalised(lambda x, y: x * y, SHAPE, SHAPE[1:]),
        "cumulative sum": normalised(lambda x: cg.cumulative_sum(cg.exp(x), axis=0), SHAPE),
    },
    "rows": {
        "softmax": normalised(lambda x: cg.softmax(x, axis=-1), SHAPE),
        "softmax of columns": normalised(lambda x: cg.softmax(x, axis=0), SHAPE),
        "log_softmax": normalised(lambda x: cg.log_softmax(x, axis=-1), SHAPE),
        "logsumexp": normalised(lambda x: cg.logsumexp(x, axis=-1), SHAPE),
    },
    "loss": {
        "cross_entropy": normalised(lambda x: F.cross_entropy(x, cg.tensor(ROWS[:263] % 269)), SHAPE),
        "cross_entropy of each": normalised(lambda x: F.cross_entropy(x, cg.tensor(ROWS[:263] % 269), reduction="none", label_smoothing=0.1), SHAPE),
    },
    "norm": {
        "layer_norm": normalised(lambda x, w, b: F.layer_norm(x, (269,), w, b), SHAPE, (269,), (269,)),
        "rms_norm": normalised(lambda x, w: F.rms_norm(x, (269,), w), SHAPE, (269,)),
        "batch_norm": normalised(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), (9, 31, 17, 19), (31,), (31,)),
        "batch_norm of columns": normalised(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), SHAPE, (269,), (269,)),
        "group_norm": normalised(lambda x, w, b: F.group_norm(x, 4, w, b), (9, 32, 17, 19), (32,), (32,)),
    },
    "attention": {
        "many heads": normalised(F.scaled_dot_product_attention, (3, 7, 67, 40), (3, 7, 83, 40), (3, 7, 83, 24)),
        "one long head": normalised(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (1003, 24), (1003, 24), (1003, 24)),
    },
    "conv": {
        "images": normalised(lambda x, w, b: F.conv2d(x, w, b, padding=1), (4, 13, 31, 29), (20, 13, 3, 3), (20,)),
        "small images": normalised(lambda x, w, b: F.conv2d(x, w, b), (67, 6, 9, 9), (17, 6, 5, 5), (17,)),
        "depthwise, strided": normalised(lambda x, w: F.conv2d(x, w, stride=2, groups=24), (5, 24, 41, 43), (24, 1, 3, 3)),
        "signals, transposed": normalised(lambda x, w, b: F.conv_transpose1d(x, w, b, 2), (3, 19, 211), (19, 23, 5), (23,)),
    },
    "embedding": {
        "embedding": normalised(lambda table: F.embedding(cg.tensor(ROWS), table), (301, 128)),
        "bags": normalised(lambda table, factors: F.embedding_bag(cg.tensor(ROWS[:990].reshape(99, 10)), table, mode="sum", per_sample_weights=factors),
                           (301, 128), (99, 10)),
    },
    "blas": {
        "batch of products": product((67, 24, 31), (67, 31, 17)),
        "batch of larger products": product((64, 128, 64), (64, 64, 128)),
        "matrix times vector": product((601, 409), (409,)),
        "vector times matrix": product((601,), (601, 409)),
        "integers": lambda dtype: cg.tensor(data("int32", (40, 30, 20))) @ cg.tensor(data("int32", (40, 20, 30))),
    },
    "index": {
        "rows": lambda dtype: tensor(dtype, 301, 128)[cg.tensor(ROWS)],
        "columns": lambda dtype: tensor(dtype, 128, 301)[:, cg.tensor(ROWS)],
        "mask": lambda dtype: tensor(dtype, 400, 400)[tensor(dtype, 400, 400, seed=1) > 0],
        "scatter_add": normalised(lambda x, y: cg.index_add(x, 0, cg.tensor(ROWS), y), (301, 128), (997, 128)),
        "gradient of rows": normalised(lambda x: x[cg.tensor(ROWS)] * 2, (301, 128)),
        "gather": normalised(lambda x: cg.gather(x, 1, cg.tensor(np.random.default_rng(0).integers(0, 269, (263, 500)))) * 2, SHAPE),
    },
    "pool": {
        "max_pool": normalised(lambda x: F.max_pool2d(x, 2), (7, 9, 40, 61)),
        "overlapping windows": normalised(lambda x: F.max_pool2d(x, 3, 2, 1), (7, 9, 40, 61)),
        "avg_pool": normalised(lambda x: F.avg_pool2d(x, 3, 2, 1), (7, 9, 40, 61)),
        "adaptive_avg_pool": normalised(lambda x: F.adaptive_avg_pool2d(x, (5, 1)), (7, 9, 40, 61)),
        "grid_sample": normalised(lambda x, grid: F.grid_sample(x, cg.tanh(grid)), (5, 7, 40, 61), (5, 37, 41, 2)),
        "adaptive_max_pool": normalised(lambda x: F.adaptive_max_pool3d(x, (2, 3, 7)), (61, 9, 8, 61)),
    },
    "recurrent": {
        "lstm": normalised(lambda x, h, c, w: recurrent.lstm(x, h, c, w, None, False)[0], (90 * 20, 4 * 17), (90, 17), (90, 17), (4 * 17, 17)),
        "gru": normalised(lambda x, h, w: recurrent.gru(x, h, w, None, None, True)[0], (90 * 20, 3 * 17), (90, 17), (3 * 17, 17)),
        "rnn": normalised(lambda x, h, w: recurrent.rnn(x, h, w, False, (90, 90, 71, 40), False)[0], (291, 67), (90, 67), (67, 67)),
    },
    "optim": {
        "SGD": trained(cg.optim.SGD),
        "momentum": trained(cg.optim.SGD, momentum=0.9, nesterov=True, weight_decay=0.1),
        "Adam": trained(cg.optim.Adam, amsgrad=True),
        "AdamW": trained(cg.optim.AdamW, weight_decay=0.1),
        "RMSprop": trained(cg.optim.RMSprop, centered=True, momentum=0.9),
        **{name: trained(getattr(cg.optim, name)) for name in ("NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "Rprop", "ASGD")},
    },
}


def test_every_family_is_here():
    sources = Path(__file__).resolve().parents[2].joinpath("src", "cgrad").rglob("*.pyx")
    splitting = {path.stem for path in sources if "parallel_for(" in path.read_text() and path.stem != "parallel"}
    assert splitting == set(FAMILIES)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("family", "name"), [(family, name) for family, members in FAMILIES.items() for name in members])
def test_family(family, name, dtype):
    check(lambda: FAMILIES[family][name](dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_random_numbers(dtype):
    def draw():
        g = cg.manual_seed(5)
        return [cg.randn(*SHAPE, dtype=dtype, generator=g), cg.rand(*SHAPE, dtype=dtype, generator=g), cg.randint(0, 1000, SHAPE, generator=g), cg.randperm(70_000, generator=g)]
    check(draw, always_split=False)
