"""Several threads, one graph; backward inside backward; errors, signals and forks in the middle; depth."""
import subprocess
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


def test_checkpoints_functions_and_ops_in_threads(free_running):
    class cube(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x * x

        def backward(self, g):
            return g * 3.0 * self.x * self.x

    w = leaf(np.full(20, 2.0))
    op = cube()

    def work(k):
        for _ in range(30):
            y = cg.checkpoint(lambda x: op(x).tanh() * w, w * 0.25)
            y.sum().backward(create_graph=k % 2 == 0)
            with cg.no_grad():
                assert not (w * 1.0).requires_grad
    in_threads(work)
    t = np.tanh(0.125)
    np.testing.assert_allclose(w.grad.detach().numpy(), 120 * (t + 2 * (1 - t * t) * 3 * 0.25 * 0.25), rtol=1e-10)


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_with_threads_of_their_own_in_threads(threads, free_running):
    x = leaf(np.random.default_rng(0).uniform(-1, 1, (300, 200)))
    with cg.threads(threads):                   # the BLAS under NumPy may split sums otherwise for another number
        want = (x @ x.T).tanh().sum(axis=0)
    results = []

    def work(k):
        for _ in range(5):
            y = (x @ x.T).tanh().sum(axis=0)
            y.sum().backward()
            results.append(y.detach().numpy())
    with cg.threads(threads):
        in_threads(work)
    for y in results:
        np.testing.assert_array_equal(y, want.detach().numpy())
    a = x.detach().numpy()
    slope = 1 - np.tanh(a @ a.T) ** 2
    np.testing.assert_allclose(x.grad.numpy(), 20 * (slope + slope.T) @ a, rtol=1e-9)


def test_modes_belong_to_their_thread_and_die_with_it():
    seen = {}
    step = threading.Barrier(2)

    def off():
        cg.set_grad_enabled(False)
        step.wait(60)
        seen["off"] = cg.is_grad_enabled()
        step.wait(60)
        raise KeyError("the thread dies with its mode off")

    def on():
        step.wait(60)
        seen["on"] = cg.is_grad_enabled()
        step.wait(60)
    with pytest.raises(KeyError):
        in_threads(lambda k: (off, on)[k](), 2)
    assert seen == {"off": False, "on": True} and cg.is_grad_enabled()
    in_threads(lambda k: seen.update({k: cg.is_grad_enabled()}), 2)
    assert seen[0] and seen[1]


# ------------------------------------------------------------------ backward inside backward
class Hook:
    """Runs something in the backward of what it is put on."""

    def __init__(self, during):
        self.during = during

    def __call__(self, y):
        y = y * 1.0
        y.register_hook(lambda g: self.during())
        return y


class AsOp(cg.Op):
    def __init__(self, during):
        self.during = during

    def forward(self, x):
        return x * 1.0

    def backward(self, g):
        self.during()
        return g


def as_function(during):
    class F(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            during()
            return g
    return F.apply


def as_leaf_hook(during):
    def call(y):
        extra = leaf(np.zeros(y.shape))
        extra.register_hook(lambda g: during())
        return y + extra
    return call


def as_checkpoint(during):
    calls = []

    def function(x):
        calls.append(1)
        if len(calls) > 1:
            during()
        return x * 1.0
    return lambda y: cg.checkpoint(function, y, early_stop=False)


PLACES = pytest.mark.parametrize("place", [Hook, AsOp, as_function, as_leaf_hook, as_checkpoint], ids=["hook", "Op", "Function", "leaf hook", "checkpoint"])


@PLACES
def test_a_backward_inside_a_backward(place):
    w = leaf([1.0, 2.0])
    inner = []

    def during():
        assert not cg.is_grad_enabled() or place is as_checkpoint
        with cg.enable_grad():
            (w ** 3).sum().backward()
            inner.append(cg.autograd.grad((w ** 2).sum(), (w,), create_graph=True)[0].tolist())
    x = leaf([3.0, 4.0])
    y = place(during)(x * w)
    (y * y).sum().backward()
    assert inner == [[2.0, 4.0]] and cg.is_grad_enabled()
    assert x.grad.tolist() == [2 * 3 * 1.0, 2 * 4 * 4.0]
    assert w.grad.tolist() == [2 * 9 * 1.0 + 3.0, 2 * 16 * 2.0 + 12.0]


@PLACES
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, MemoryError, SystemExit])
def test_an_error_in_the_middle_leaves_nothing_behind(place, create_graph, error):
    def during():
        if broken:
            raise error("on purpose")
    x, w = leaf([3.0, 4.0]), leaf([1.0, 2.0])
    x.grad = cg.ones(2, dtype=cg.float64)
    kept = x * 5.0
    kept.retain_grad()
    for broken in (True, False):
        y = place(during)(kept * w)
        result = (y * y).sum() + (w * w).sum()
        if broken:
            with pytest.raises(error):
                result.backward(create_graph=create_graph)
            assert x.grad.tolist() == [1.0, 1.0] and w.grad is None and kept.grad is None
            assert cg.is_grad_enabled()
            if place is not as_leaf_hook:             # that leaf is not asked for
                with pytest.raises(error):
                    cg.autograd.grad(((place(during)(kept * w)) ** 2).sum(), (w,))
            if not create_graph:
                kept = x * 5.0
                kept.retain_grad()
    result.backward()
    assert kept.grad.tolist() == [2 * 15 * 1.0, 2 * 20 * 4.0]
    assert x.grad.tolist() == [1 + 5 * 30.0, 1 + 5 * 160.0]
    assert w.grad.tolist() == [2 * 225 * 1.0 + 2.0, 2 * 400 * 2.0 + 4.0]


def test_an_error_in_forward_leaves_modes_as_they_were():
    class failing(cg.Op):
        def forward(self, x):
            assert not cg.is_grad_enabled()
            raise KeyError("on purpose")
    x = leaf([1.0])
    for call in (lambda: failing()(x), lambda: cg.checkpoint(lambda x: failing()(x), x)):
        with pytest.raises(KeyError):
            call()
        assert cg.is_grad_enabled() and (x * 2.0).requires_grad
        with cg.no_grad(), pytest.raises(KeyError):
            call()
        assert cg.is_grad_enabled()


# ------------------------------------------------------------------ signals, processes, depth
def test_control_c_ends_a_long_backward_of_fused_rules(run_python):
    out = run_python("""
        import os, signal, threading, time
        import cgrad as cg
        x = cg.ones(200_000, dtype=cg.float64, requires_grad=True)
        def chain(n):
            y = x
            for _ in range(n):
                y = y * x
            return y.sum()
        result = chain(3000)
        def interrupt():
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
        t = threading.Thread(target=interrupt)
        caught = False
        try:
            t.start()
            result.backward()
            for _ in range(100):            # a fast machine may be done before the signal comes
                time.sleep(0.01)
        except KeyboardInterrupt:
            caught = True
        t.join()
        assert caught and cg.is_grad_enabled()
        assert x.grad is None or x.grad[0].item() == 3001.0
        x.grad = None
        chain(3).backward()
        print(x.grad[0].item())
    """)
    assert out.split() == ["4.0"]


def test_a_forked_child_computes_and_differentiates(run_python):
    out = run_python("""
        import os, sys, threading
        import cgrad as cg
        cg.set_num_threads(2)
        x = cg.ones((400, 400), dtype=cg.float64, requires_grad=True)
        def work():
            x.grad = None
            ((x @ x).tanh() * (x * 2.0).exp()).sum().backward()
            return x.grad.sum().item()
        want = work()
        y = cg.ones((400, 400), dtype=cg.float64, requires_grad=True)
        def busy():
            while not stop:
                (y.tanh() * y).sum().backward()       # not in OpenBLAS, whose lock a child would inherit
        stop = False
        thread = threading.Thread(target=busy)
        thread.start()
        codes = []
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                os._exit(0 if abs(work() - want) < 1e-9 * abs(want) else 1)
            codes.append(os.waitpid(pid, 0)[1])
        stop = True
        thread.join()
        assert abs(work() - want) < 1e-9 * abs(want)
        print(codes)
    """, timeout=120)
    assert out.strip() == "[0, 0, 0, 0, 0]"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_worker_processes(method, run_python, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(f"""
import multiprocessing
import cgrad as cg

def work(x):
    y = x.detach().requires_grad_()
    (y @ y.T).sum().backward()
    return y.grad

if __name__ == "__main__":
    x = cg.ones((300, 200), dtype=cg.float64)
    (x @ x.T).sum()
    context = multiprocessing.get_context({method!r})
    with context.Pool(2) as pool:
        for g in pool.map(work, [x, x * 2.0, x * 3.0]):
            print(g[0, 0].item(), g.shape)
""")
    out = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr[-2000:]
    assert out.stdout.splitlines() == [f"{600.0 * k} (300, 200)" for k in (1, 2, 3)]


def test_depth_costs_no_stack(run_python):
    out = run_python("""
        import copy, pickle, threading
        import cgrad as cg
        from cgrad.core.graph import sources
        threading.stack_size(128 * 1024)
        N = 300_000

        def work():
            x, w = cg.tensor(1.0, requires_grad=True), cg.tensor(1.0, requires_grad=True)
            class same(cg.Op):
                def forward(self, x):
                    self.x = x
                    return x * 1.0
                def backward(self, g):
                    return g
            for step, n in ((lambda y: y * w, N), (lambda y: y + 1e-9, N), (lambda y: cg.where(True, y, w), N // 10), (same(), N // 10),
                            (lambda y: cg.checkpoint(lambda y: y * w, y), N // 30), (lambda y: y.reshape(1).reshape(()), N // 3),
                            (lambda y: y.__imul__(w), N // 3)):
                y = x * w
                z = y
                for _ in range(n):
                    y = step(y)
                assert repr(y).startswith("tensor")
                assert len(sources((y,), ())[0]) >= 1
                cg.autograd.grad(y, (x,), retain_graph=True)
                y.backward()
                copy.deepcopy(x), copy.deepcopy(y.detach()), pickle.loads(pickle.dumps(y.detach()))
                y = x * w
                for _ in range(n):
                    y = step(y)
                del y                          # never run
            y = x
            y.register_hook(lambda g: None)
            for k in range(N // 10):
                y = y * w
                if k == 5:
                    y.register_hook(lambda g: None)       # from here on seen by the collector
            import gc
            gc.collect()
            y.backward()
            del y
            g = x * w
            for _ in range(3):
                (g,) = cg.autograd.grad(g * g * x, (x,), create_graph=True)
            for _ in range(N // 10):
                g = g * w
            g.backward()
            print("done")
        t = threading.Thread(target=work)
        t.start()
        t.join()
    """)
    assert out.strip() == "done"
