"""Random tensors: reproducible in any process, of the right distribution, inside their ranges."""
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import cgrad as cg


@pytest.fixture(autouse=True)
def keep_the_default_generator():
    state = cg.random.get_rng_state()
    yield
    cg.random.set_rng_state(state)


def draws(generator):
    return [f(generator=generator).tolist() for f in (
        lambda **o: cg.rand(5, **o), lambda **o: cg.rand(5, dtype=cg.float64, **o), lambda **o: cg.randn(3, 2, **o), lambda **o: cg.randint(-5, 5, (6,), **o),
        lambda **o: cg.randperm(9, **o), lambda **o: cg.uniform(-2, 3, (4,), **o), lambda **o: cg.normal(1.0, 2.0, (4,), **o),
        lambda **o: cg.bernoulli(cg.full((5,), 0.5), **o), lambda **o: cg.multinomial(cg.ones(6), 4, **o), lambda **o: cg.exponential(2.0, (3,), **o))]


def test_the_numbers_of_a_seed_are_fixed():
    """They are part of the interface: a new version must not change what a seed means."""
    g = cg.Generator(0)
    reference = np.random.PCG64(0).random_raw(3)
    assert cg.rand(3, dtype=cg.float64, generator=g).tolist() == [int(r >> np.uint64(11)) * 2.0 ** -53 for r in reference]
    g.manual_seed(0)
    halves = [int(r) >> shift & 0xFFFFFFFF for r in reference for shift in (32, 0)]
    assert cg.rand(6, generator=g).tolist() == [(h >> 8) * 2.0 ** -24 for h in halves]
    g.manual_seed(12)
    np.testing.assert_allclose(cg.randn(4, dtype=cg.float64, generator=g).numpy(), np.random.Generator(np.random.PCG64(12)).standard_normal(4), rtol=1e-12)


def test_same_seed_same_numbers():
    assert draws(cg.Generator(5)) == draws(cg.Generator(5)) != draws(cg.Generator(6))
    cg.manual_seed(5)
    first = draws(None)
    cg.manual_seed(5)
    assert draws(None) == first == draws(cg.Generator(5))
    code = "import cgrad as cg; cg.manual_seed(5); print(cg.rand(5).tolist(), cg.randn(2).tolist())"
    out = {subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in range(2)}
    cg.manual_seed(5)
    assert out == {f"{cg.rand(5).tolist()} {cg.randn(2).tolist()}\n"}


def test_state_can_be_restored():
    g = cg.Generator(3)
    cg.randn(7, generator=g)
    state = g.get_state()
    first = draws(g)
    g.set_state(state)
    assert draws(g) == first
    other = cg.Generator()
    other.set_state(state)
    assert draws(other) == first and other.initial_seed() == 3
    copy = pickle.loads(pickle.dumps(cg.Generator(4)))
    assert draws(copy) == draws(cg.Generator(4))
    for bad in (None, [1], cg.zeros(48), cg.zeros(3, dtype=cg.uint8), cg.zeros(48, dtype=cg.uint8)):
        with pytest.raises((TypeError, ValueError), match="set_state"):
            g.set_state(bad)
    with cg.random.fork_rng(1):
        inside = cg.rand(2).tolist()
    cg.manual_seed(1)
    assert cg.rand(2).tolist() == inside


@pytest.mark.parametrize("seed", ["a", 1.5, None, True, 2 ** 64])
def test_bad_seeds(seed):
    with pytest.raises((TypeError, ValueError), match="seed"):
        cg.manual_seed(seed)
    assert isinstance(cg.manual_seed(-1), cg.Generator) and cg.Generator(np.int64(3)).initial_seed() == 3


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_distributions(dtype):
    g = cg.Generator(11)
    n = 60_000

    def fits(x, distribution):
        assert x.dtype == dtype and stats.kstest(x.numpy().astype(float), distribution.cdf).pvalue > 1e-3
    fits(cg.rand(n, generator=g, dtype=dtype), stats.uniform)
    fits(cg.randn(n, generator=g, dtype=dtype), stats.norm)
    fits(cg.uniform(-3, 5, (n,), generator=g, dtype=dtype), stats.uniform(-3, 8))
    fits(cg.normal(2, 3, (n,), generator=g, dtype=dtype), stats.norm(2, 3))
    fits(cg.exponential(2.0, (n,), generator=g, dtype=dtype), stats.expon(0, 0.5))
    tails = cg.randn(400_000, generator=g, dtype=dtype).numpy()
    assert stats.binomtest(int((np.abs(tails) > 3.7).sum()), tails.size, 2 * stats.norm.sf(3.7)).pvalue > 1e-3
    assert abs(stats.kurtosis(tails)) < 0.05 and abs(stats.skew(tails)) < 0.02


def test_integers_and_choices():
    g = cg.Generator(2)
    x = cg.randint(-3, 4, (70_000,), generator=g).numpy()
    assert stats.chisquare(np.bincount(x + 3)).pvalue > 1e-3 and x.min() == -3 and x.max() == 3
    assert cg.randint(2, (4,)).shape == (4,) and cg.randint(0, 5, size=3).shape == (3,) and cg.randint(0, 2 ** 62, (2, 2)).dtype is cg.int64
    for dtype, low, high in (("uint8", 0, 256), ("int8", -128, 128), ("int16", -2 ** 15, 2 ** 15), ("int64", -2 ** 63, 2 ** 63), ("uint16", 0, 2 ** 16),
                             ("uint64", 2 ** 63, 2 ** 64), ("float16", 0, 2 ** 11), ("float32", 0, 9), ("bool", 0, 2)):
        y = cg.randint(low, high, (500,), dtype=dtype, generator=g).numpy()
        assert y.dtype == dtype and y.min() >= low and y.max() <= high - 1
    with pytest.raises(ValueError, match="low must be below high"):
        cg.randint(3, 3, (2,))
    with pytest.raises(ValueError, match="uint8 cannot hold"):
        cg.randint(0, 300, (2,), dtype=cg.uint8)
    orders = [tuple(cg.randperm(3, generator=g).tolist()) for _ in range(6000)]
    assert stats.chisquare(np.unique(orders, axis=0, return_counts=True)[1]).pvalue > 1e-3 and len(set(orders)) == 6
    p = cg.bernoulli(cg.full((20_000,), 0.3), generator=g).numpy().mean()
    assert abs(p - 0.3) < 0.02 and cg.bernoulli(0.5, (2, 3)).shape == (2, 3) and cg.bernoulli(1.0, 3).tolist() == [1, 1, 1]
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="must be in"):
            cg.bernoulli(bad, 3)
    weights = cg.tensor([1.0, 0.0, 3.0])
    counts = np.bincount(cg.multinomial(weights, 20_000, replacement=True, generator=g).numpy(), minlength=3)
    assert counts[1] == 0 and stats.chisquare(counts[[0, 2]], [5000, 15000]).pvalue > 1e-3
    first = [cg.multinomial(weights, 2, generator=g).tolist() for _ in range(3000)]
    assert all(sorted(f) == [0, 2] for f in first) and abs(np.mean([f[0] == 2 for f in first]) - 0.75) < 0.04
    assert cg.multinomial(cg.ones(2, 3), 2).shape == (2, 2)
    for w, n in ((weights, 3), (-weights, 1), (cg.zeros(3), 1), (weights / 0, 1)):
        with pytest.raises(ValueError, match="multinomial"):
            cg.multinomial(w, n)


def test_float32_never_reaches_one():
    x = cg.rand(3_000_000, generator=cg.Generator(1))
    assert x.max().item() < 1 and x.min().item() >= 0
    low, high = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    assert cg.uniform(low, high, (1000,)).max().item() < high
    assert cg.uniform(3, 3, (2,)).tolist() == [3, 3]
    for bounds in ((1, 0), (0, float("inf")), (float("nan"), 1)):
        with pytest.raises(ValueError, match="low"):
            cg.uniform(*bounds, (2,))


def test_in_place():
    x = cg.zeros(4, 6)
    view = x.T[::2]
    assert view.uniform_(5, 6) is view and x[:, 0].min().item() >= 5 and x[:, 1].tolist() == [0, 0, 0, 0] and x._version > 0
    for fill in (lambda t: t.normal_(0, 2, generator=cg.Generator(1)), lambda t: t.exponential_(), lambda t: t.bernoulli_(0.5), lambda t: t.uniform_()):
        assert fill(cg.zeros(100)).shape == (100,)
    leaf = cg.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.normal_()
    with cg.no_grad():
        leaf.normal_()
    w = leaf * 2
    w.uniform_()
    w.sum().backward()
    assert leaf.grad.tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="floating"):
        cg.zeros(2, dtype=cg.int64).normal_()
    with pytest.raises(TypeError, match="floating"):
        cg.rand(2, dtype=cg.int64)


def test_gradients_flow_through_mean_and_std():
    mean, std = cg.zeros(3, requires_grad=True), cg.ones(3, requires_grad=True)
    x = cg.normal(mean, std, generator=cg.Generator(1))
    x.sum().backward()
    np.testing.assert_allclose(mean.grad.numpy(), 1)
    np.testing.assert_allclose(std.grad.numpy(), cg.randn(3, generator=cg.Generator(1)).numpy())
    with pytest.raises(ValueError, match="negative"):
        cg.normal(0.0, -1.0, (2,))
    assert cg.normal(cg.zeros(3, dtype=cg.float64), 1.0).dtype is cg.float64
    assert cg.rand_like(cg.zeros(2, dtype=cg.float64)).dtype is cg.float64 and cg.randn_like(cg.zeros(2, 3)).shape == (2, 3)
    assert cg.randint_like(cg.zeros(2), 5).dtype is cg.float32
    with pytest.raises(TypeError, match="Generator"):
        cg.rand(2, generator=3)
