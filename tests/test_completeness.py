"""Every public function has a row in the tables of cases, which leads to tests of all its derivatives, or stands here with the reason why not.

A row that is differentiable is tested for backward, forward mode, second order (backward and forward over backward), and inside vmap with its
gradients and tangents, for batched and shared operands along several axes (tests/ops/test_ops.py, tests/ops/test_batching.py).
"""
import inspect

import numpy as np
import pytest
from network_cases import ROWS
from test_ops import array, as_tuple, call_cgrad, constant, cotangents_of, rng_for, scalar, split

import cgrad as cg
from cgrad.func import grad, jvp, vmap

#: What has no derivative, by the reason; with a row it is tested for its values and inside vmap.
NOT_DIFFERENTIABLE = {
    "asks about dtypes, shapes or memory": """
        broadcast_shapes can_cast finfo iinfo is_complex is_floating_point is_nonzero is_tensor isdtype numel promote_types result_type
        Tensor.data_ptr Tensor.dim Tensor.element_size Tensor.is_contiguous Tensor.is_signed Tensor.ndimension Tensor.nelement Tensor.storage_offset
        Tensor.stride""",
    "sets or asks how cgrad works": """
        default_generator fork_rng get_default_dtype get_num_threads get_rng_state initial_seed is_grad_enabled manual_seed seed set_default_dtype
        set_num_threads set_printoptions set_rng_state show_config threads""",
    "makes a tensor of sizes and numbers alone": """
        arange empty eye identity ones tri tril_indices triu_indices zeros fft.fftfreq fft.rfftfreq Tensor.new_empty Tensor.new_full Tensor.new_ones Tensor.new_zeros""",
    "makes one in the likeness of another": "empty_like ones_like zeros_like",
    "makes one of data: a leaf": "array as_tensor asarray from_dlpack from_numpy frombuffer scalar_tensor tensor Tensor.new_tensor Tensor._make_subclass",
    "draws constants": """
        bernoulli exponential multinomial rand rand_like randint randint_like randn randn_like randperm uniform
        Tensor.bernoulli_ Tensor.exponential_ Tensor.normal_ Tensor.random_ Tensor.uniform_""",
    "compares or tests": """
        all allclose any array_equal equal greater greater_equal isclose isfinite isin isinf isnan isneginf isposinf isreal less less_equal
        logical_and logical_not logical_or logical_xor not_equal signbit""",
    "works on integers": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd lcm ravel_multi_index unravel_index""",
    "gives places, counts or bins": """
        argmax argmin argsort argwhere bucketize count_nonzero digitize flatnonzero histc histogram nanargmax nanargmin nonzero searchsorted
        linalg.matrix_rank nn.functional.one_hot""",
    "gives a set, whose size depends on the values": """
        intersect1d setdiff1d setxor1d trim_zeros union1d unique_all unique_consecutive unique_counts unique_inverse""",
    "is zero for every real number": "imag",
    "reads or writes a file": "load save",
    "looks at a computation": "explain graph Tensor.why_no_grad",
    "is an error": "Tensor.cuda",
    "takes numbers out of the graph": "Tensor.detach Tensor.detach_ Tensor.item Tensor.numpy Tensor.tobytes Tensor.tolist",
    "is the tape itself": "Tensor.backward Tensor.register_hook Tensor.register_post_accumulate_grad_hook Tensor.requires_grad_ Tensor.retain_grad",
}
LISTED = {name: reason for reason, names in NOT_DIFFERENTIABLE.items() for name in names.split()}

#: Methods that are functions, or two of them, by another name.
SAME_AS = {f"Tensor.{name}": "astype" for name in ["bfloat16", "bool", "byte", "char", "double", "float", "half", "int", "long", "short", "to", "type", "type_as"]} | {
    "Tensor.cpu": "positive", "Tensor.to_device": "positive"}

MODULES = {"": cg, "linalg.": cg.linalg, "fft.": cg.fft, "special.": cg.special, "nn.functional.": cg.nn.functional}


def resolve(name):
    """The public function of a dotted name; None for what is none (a row of indexing, say)."""
    owner = cg
    for part in name.split("."):
        owner = getattr(owner, part, None)
    return owner or getattr(cg.special, name, None)


def public():
    """(dotted name, function) of everything public that can be called and is no class."""
    for prefix, module in MODULES.items():
        for name in getattr(module, "__all__", dir(module)):
            f = getattr(module, name)
            if callable(f) and not inspect.isclass(f):
                yield prefix + name, f
    for name in dir(cg.Tensor):
        f = getattr(cg.Tensor, name)
        if not name.startswith("__") and callable(f) and not inspect.isclass(f):
            yield "Tensor." + name, f


WITH_ROW = {row.name: row.differentiable for row in reversed(ROWS)} | {row.name: True for row in ROWS if row.differentiable}
FUNCTIONS = {id(resolve(name)): differentiable for name, differentiable in WITH_ROW.items() if resolve(name) is not None}


def has_row(name, f):
    """Whether the function has a row, and a differentiable one; an alias has that of its function, a method and what writes in place that of the function."""
    base = name.removeprefix("Tensor.")
    for candidate in (name, SAME_AS.get(name), base, base.rstrip("_")) if name.startswith("Tensor.") else (name,):
        if candidate in WITH_ROW:
            return WITH_ROW[candidate]
        g = f if candidate == name else resolve(candidate) if candidate else None
        if id(g) in FUNCTIONS:
            return FUNCTIONS[id(g)]
    return None


def test_every_public_function_has_a_row_or_a_reason():
    missing = []
    for name, f in public():
        base = name.removeprefix("Tensor.").rstrip("_")
        listed = {name, base} & LISTED.keys() or any(resolve(other) is not None and resolve(other) is resolve(base) for other in LISTED)
        if not has_row(name, f) and not listed:
            missing.append(name)
    assert not missing, f"add rows to tests/ops/cases.py or network_cases.py, or names to NOT_DIFFERENTIABLE with a reason, for {missing}"


def test_no_reason_is_given_for_what_has_derivatives():
    names = {name for name, _ in public()}
    assert not [name for name in LISTED if name not in names], "the list names what there is not"
    assert not [name for name in LISTED if WITH_ROW.get(name)], "the list names what the tables differentiate"
    assert len(LISTED) == sum(len(v.split()) for v in NOT_DIFFERENTIABLE.values()), "a name stands under two reasons"


def test_every_row_belongs_to_something_public():
    syntax = {"getitem", "setitem"}
    assert not [row.name for row in ROWS if row.name not in syntax and resolve(row.name) is None]


# ------------------------------------------------------------------------------------------------------------ methods
METHODS = sorted(name.removeprefix("Tensor.") for name, _ in public() if name.startswith("Tensor.") and name != "Tensor.copy_")


def samples_of(name):
    """(row, sample) of the calls of the function that a method is, whose first operand is a tensor."""
    function = resolve(name)
    for row in ROWS:
        if function is not None and row.mapped and resolve(row.name) is function and row.function in (None, function):
            for sample in row.samples:
                if sample.args and type(sample.args[0]).__name__ in ("Draw", "ndarray"):
                    yield row, sample


def result(function, row, sample, put):
    return lambda *xs: as_tuple(function(*put(xs, constant), **sample.kwargs))


@pytest.mark.parametrize("name", [m for m in METHODS if not m.endswith("_") and any(True for _ in samples_of(m))])
def test_methods_are_their_functions(name):
    for row, sample in samples_of(name):
        values, put = split(sample, rng_for(row))
        xs = [cg.tensor(v) for v in values]
        want, got = call_cgrad(row, sample, xs, put), result(lambda x, *args, **kwargs: getattr(x, name)(*args, **kwargs), row, sample, put)(*xs)
        for a, b in zip(want, got, strict=True):
            np.testing.assert_array_equal(array(a), array(b))


@pytest.mark.parametrize("name", [m for m in METHODS if m.endswith("_") and any(True for _ in samples_of(m[:-1]))])
def test_writing_in_place_has_the_derivatives_of_the_function(name):
    for row, sample in samples_of(name[:-1]):
        values, put = split(sample, rng_for(row))
        xs = [cg.tensor(v) for v in values]
        first = put(xs, constant)[0]
        want = call_cgrad(row, sample, xs, put)
        if len(want) > 1 or want[0].shape != first.shape or want[0].dtype != first.dtype:
            continue

        def written(x, *args, name=name, **kwargs):
            y = x.clone()
            out = getattr(y, name)(*args, **kwargs)
            assert out is y
            return y

        function, inplace = result(row.call, row, sample, put), result(written, row, sample, put)
        np.testing.assert_array_equal(array(inplace(*xs)[0]), array(want[0]))
        if not xs or not row.differentiable:
            continue
        weights = [cg.tensor(c) for c in cotangents_of(want, rng_for(row, 1))]
        directions = tuple(cg.tensor(rng_for(row, 2 + k).standard_normal(v.shape)) for k, v in enumerate(values))
        argnums = tuple(range(len(xs)))
        for transformed in (lambda f: grad(lambda *xs: scalar(f(*xs), weights), argnums)(*xs), lambda f: jvp(lambda *xs: f(*xs)[0], tuple(xs), directions)[1],
                            lambda f: vmap(lambda *xs: f(*xs)[0])(*[cg.stack([x, x]) for x in xs]),
                            lambda f: vmap(grad(lambda *xs: scalar(f(*xs), weights), argnums))(*[cg.stack([x, x]) for x in xs])):
            for a, b in zip(as_tuple(transformed(function)), as_tuple(transformed(inplace)), strict=True):
                np.testing.assert_allclose(array(b), array(a), rtol=1e-11, atol=1e-12, err_msg=f"{name}{sample.kwargs}")
