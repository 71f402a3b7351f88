"""Several threads, one graph; backward inside backward; errors, signals and forks in the middle; depth."""
import sys
import threading

import numpy as np
import pytest

import cgrad as cg

LARGE = 40_000               # elements from which kernels let go of the GIL and share their work among threads


def leaf(data):
    return cg.tensor(np.asarray(data, dtype=np.float64), requires_grad=True)


@pytest.fixture
def free_running():
    """Let Python switch threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work, n=4):
    """Call work(k) in n threads at once; the first error of any is raised here."""
    errors = []
    start = threading.Barrier(n)

    def call(k):
        try:
            start.wait(60)
            work(k)
        except BaseException as error:  # noqa: BLE001
            errors.append(error)
    threads = [threading.Thread(target=call, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


# ------------------------------------------------------------------ gradients of shared leaves
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "broadcast", "half"])
@pytest.mark.parametrize("size", [3, LARGE])
def test_no_gradient_of_a_shared_leaf_is_lost(size, layout, free_running):
    n, rounds = 4, 30
    x = leaf(np.ones((2, size)))
    if layout == "half":
        x = cg.ones((2, size), dtype=cg.float16, requires_grad=True)

    def work(k):
        for _ in range(rounds):
            if layout == "transposed":
                x.T.contiguous().backward(cg.ones((size, 2), dtype=cg.float64))
            elif layout == "broadcast":
                x.backward(cg.ones((1, 1), dtype=cg.float64).expand(2, size))
            else:
                (x * 2).sum().backward()
    in_threads(work, n)
    each = 1.0 if layout in ("transposed", "broadcast") else 2.0
    np.testing.assert_array_equal(x.grad.numpy(), np.full((2, size), n * rounds * each))


def test_no_gradient_with_a_graph_is_lost(free_running):
    x = leaf(np.full(LARGE, 2.0))
    in_threads(lambda k: [(x ** 3).sum().backward(create_graph=True) for _ in range(5)])
    np.testing.assert_array_equal(x.grad.detach().numpy(), 20 * 3 * 4.0)
    (second,) = cg.autograd.grad(x.grad.sum(), (x,))
    np.testing.assert_array_equal(second.numpy(), 20 * 6 * 2.0)


def test_a_retained_graph_is_shared(free_running):
    x, w = leaf(np.full(50, 2.0)), leaf(3.0)
    y = (x * w).tanh() * w
    seen = [[] for _ in range(4)]
    y.register_hook(lambda g: seen[int(threading.current_thread().name)].append(g[0].item()))

    def work(k):
        threading.current_thread().name = str(k)
        for _ in range(100):
            (y.sum() + (y * y).sum()).backward(retain_graph=True)
    in_threads(work)
    t = np.tanh(6.0)
    g = 1 + 2 * 3 * t
    np.testing.assert_allclose(x.grad.numpy(), 400 * g * 3 * (1 - t * t) * 3, rtol=1e-9)
    np.testing.assert_allclose(w.grad.item(), 400 * 50 * g * (t + 3 * (1 - t * t) * 2), rtol=1e-9)
    for values in seen:
        np.testing.assert_allclose(values, [g] * 100, rtol=1e-12)


def test_a_node_queued_by_two_backwards_gets_the_whole_gradient_in_each():
    x = leaf(2.0)
    n = x * x
    a, b = n * 10.0, n * 20.0
    d, c = n * 3.0, n * 4.0
    first, second = c + d, a + b
    seen = {}
    queued, done = threading.Event(), threading.Event()
    n.register_hook(lambda g: seen.setdefault(threading.current_thread().name, []).append(g.item()))

    def in_first(g):              # c has been passed: the first backward has n in its queue
        if threading.current_thread().name == "first":
            queued.set()
            assert half.wait(60)
    half = threading.Event()

    def in_second(g):             # b has been passed: the second backward has n in its queue, too; let the first one end
        if threading.current_thread().name == "second":
            half.set()
            assert done.wait(60)
    d.register_hook(in_first)
    a.register_hook(in_second)

    def run_first():
        first.backward(retain_graph=True)
        done.set()

    def run_second():
        assert queued.wait(60)
        second.backward(retain_graph=True)
    threads = [threading.Thread(target=run_first, name="first"), threading.Thread(target=run_second, name="second")]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert seen == {"first": [7.0], "second": [30.0]} and x.grad.item() == 37 * 4.0


def test_a_graph_freed_under_a_running_backward_is_an_error():
    x = leaf(np.full(5, 2.0))
    y = x * x

    class meanwhile(cg.Op):
        def forward(self, t):
            return t * 1.0

        def backward(self, g):
            t = threading.Thread(target=lambda: y.sum().backward())
            t.start()
            t.join()
            return g
    z = meanwhile()(y)
    with pytest.raises(RuntimeError, match="freed by another backward"):
        z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.full(5, 4.0))


def test_two_backwards_that_free_one_graph_give_an_error_or_all(free_running):
    for _ in range(30):
        x = leaf(np.full(LARGE, 2.0))
        y = (x * x).exp()
        total = y.sum()
        ends = []

        def work(k, total=total, ends=ends):
            try:
                total.backward()
                ends.append("all")
            except RuntimeError as error:
                ends.append(str(error))
        in_threads(work, 2)
        np.testing.assert_allclose(x.grad.numpy(), ends.count("all") * 4 * np.exp(4.0), rtol=1e-12)
        assert "all" in ends and all(end == "all" or "freed by another backward" in end for end in ends)
