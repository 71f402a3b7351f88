"""Every operation inside vmap against a loop over the examples: values, gradients, tangents, for batched and shared operands."""
import itertools
import warnings

import numpy as np
from test_ops import ROWS, array, as_tuple, by_name, call_cgrad, cotangents_of, rng_for, scalar, split

import cgrad as cg
from cgrad.func import grad, jvp, vjp, vmap

N = 3

#: What has no rule for batches, since the shape of its result depends on the values, or since it is a user's.
EXAMPLE_BY_EXAMPLE = {"unique", "op"}


def patterns(n):
    """in_axes of n operands: all along the first axis, all along the last, and mixtures with shared ones."""
    yield (0,) * n
    yield (-1,) * n
    if 1 < n <= 3:
        yield from (p for p in itertools.product((0, None), repeat=n) if None in p and 0 in p)
    elif n > 3:
        yield (None,) * (n - 1) + (0,)


def stacked(examples, in_axes):
    """The operands of all examples as vmap gets them; shared ones are those of the first example."""
    return [e[0] if axis is None else np.stack(e, axis) for e, axis in zip(zip(*examples), in_axes)]


def loop(function, examples, in_axes):
    outs = [as_tuple(function(*[cg.tensor(examples[0][k] if axis is None else example[k]) for k, axis in enumerate(in_axes)])) for example in examples]
    return [np.stack([array(out[k]) for out in outs]) for k in range(len(outs[0]))]


def check(function, examples, in_axes, name, tolerance=1.0):
    want = loop(function, examples, in_axes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if name in EXAMPLE_BY_EXAMPLE else "error", RuntimeWarning)
        got = as_tuple(vmap(function, in_axes)(*[cg.tensor(v) for v in stacked(examples, in_axes)]))
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.shape == w.shape and np.dtype(str(g.dtype).rpartition(".")[2]) == w.dtype, f"{name}: {g.shape} {g.dtype}, expected {w.shape} {w.dtype}"
        np.testing.assert_allclose(array(g), w, rtol=1e-11 * tolerance, atol=1e-12 * tolerance, equal_nan=True, err_msg=f"{name} {in_axes}")


def cases_of(row, floating=False):
    """(function of the operands alone, three examples of them) for each sample."""
    for sample in row.samples:
        rng = rng_for(row)
        drawn = [split(sample, rng, picks=True) for _ in range(N)]
        put = drawn[0][1]
        if drawn[0][0]:
            yield (lambda *xs, sample=sample, put=put: call_cgrad(row, sample, xs, put)), [values for values, _ in drawn]


MAPPED = [r for r in ROWS if r.mapped and not r.name.endswith("_indices")]


@by_name(MAPPED)
def test_values(row):
    for function, examples in cases_of(row):
        for in_axes in patterns(len(examples[0])):
            if row.name == "setitem" and in_axes[0] is None:
                continue                   # a batch cannot be written into what all examples share
            check(function, examples, in_axes, row.name, row.tolerance)


@by_name([r for r in MAPPED if r.differentiable])
def test_gradients_and_tangents(row):
    for function, examples in cases_of(row):
        n = len(examples[0])
        argnums = tuple([k for k, v in enumerate(examples[0]) if v.dtype.kind == "f"])
        outs = function(*[cg.tensor(v) for v in examples[0]])
        weights = [None if c is None else cg.tensor(c) for c in cotangents_of(outs, rng_for(row, 1))]
        directions = [cg.tensor(rng_for(row, 2 + k).standard_normal(examples[0][k].shape)) for k in argnums]

        def total(*xs):
            return scalar(function(*xs), weights)

        def gradient(*xs):
            return grad(total, argnums)(*xs)

        def tangent(*xs):
            return jvp(total, xs, tuple(directions), argnums=argnums)[1]

        for in_axes in {(0,) * n} if row.name == "setitem" else {(0,) * n, (0,) + (None,) * (n - 1), (None,) * (n - 1) + (0,)}:
            check(gradient, examples, in_axes, row.name, 10 * row.tolerance)
            check(tangent, examples, in_axes, row.name, 10 * row.tolerance)
        # Many gradients pulled through one graph, many tangents pushed through one call.
        xs = [cg.tensor(v) for v in examples[0]]
        several = [[[rng_for(row, 10 + i).standard_normal(examples[0][k].shape) for k in argnums] for i in range(N)],
                   [[c for c in cotangents_of(outs, rng_for(row, 20 + i)) if c is not None] for i in range(N)]]
        floating = [k for k, w in enumerate(weights) if w is not None]
        _, pull = vjp(lambda *xs: tuple(function(*xs)[k] for k in floating), *xs, argnums=argnums)
        check(lambda *gs: pull(gs[0] if len(floating) == 1 else gs), several[1], (0,) * len(floating), row.name, 10 * row.tolerance)
        check(lambda *ts: jvp(total, xs, ts, argnums=argnums)[1], several[0], (0,) * len(argnums), row.name, 10 * row.tolerance)
