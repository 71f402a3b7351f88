"""Hooks on saved tensors: what is packed, that it comes back, in every kind of derivative; and tensors saved on disk."""
import gc
import os
import threading
import weakref

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import save_on_disk, saved_tensors_hooks

RNG = np.random.default_rng(5)


def leaf(data):
    return cg.tensor(np.array(data, np.float64), requires_grad=True)


def by_numpy():
    """Hooks that keep nothing of the tensor itself."""
    return saved_tensors_hooks(lambda x: x.numpy().copy(), cg.tensor)


def network(x, w, v):
    """Inputs, results, leaves, views, several results, lists, numbers."""
    h = cg.tanh(x @ w + 0.5)
    h = h.T[::-1].exp().sin() * v
    a, b = cg.split(h, 1, 0)[:2]
    h = cg.lerp(a, b, cg.sigmoid(a)) + cg.maximum(a, b) / (1.0 + b ** 2)
    q, r = cg.linalg.qr(cg.concat([x, x * 2.0]).T @ cg.concat([x, x * 2.0]) + cg.eye(3, dtype=cg.float64))
    return h.logsumexp(0).sum() + cg.log(cg.abs(r) + 1.0).sum() + cg.cumulative_prod(w, axis=0).sum() + (q[0] * v[:3]).sum()


def inputs():
    return [leaf(RNG.standard_normal(shape)) for shape in ((4, 3), (3, 2), (4,))]


def gradients(tensors, function=network):
    return cg.autograd.grad(function(*tensors), tensors)


def same(found, wanted):
    for g, h in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(g.detach().numpy(), h.detach().numpy())


# ------------------------------------------------------------------ hooks
def test_gradients_are_the_same_through_copies():
    tensors = inputs()
    plain = gradients(tensors)
    with by_numpy():
        y = network(*tensors)
    same(cg.autograd.grad(y, tensors, retain_graph=True), plain)
    same(cg.autograd.grad(y, tensors), plain)
    with pytest.raises(RuntimeError, match="freed"):
        cg.autograd.grad(y, tensors)


def test_derivatives_of_higher_order():
    tensors = inputs()
    with by_numpy():
        assert cg.autograd.gradgradcheck(network, tensors)
    x = leaf([0.5, 2.0])
    with by_numpy():
        y = (cg.exp(x) * x * x).sum()                 # e^x x^2
    (g,) = cg.autograd.grad(y, x, create_graph=True)
    (h,) = cg.autograd.grad(g.sum(), x, create_graph=True)
    v = x.detach().numpy()
    np.testing.assert_allclose(h.detach().numpy(), np.exp(v) * (v * v + 4 * v + 2), rtol=1e-14)
    (h,) = cg.autograd.grad(h.sum(), x)
    np.testing.assert_allclose(h.numpy(), np.exp(v) * (v * v + 6 * v + 6), rtol=1e-14)


def test_what_is_packed():
    seen = []
    with saved_tensors_hooks(lambda x: seen.append(x) or len(seen) - 1, lambda k: seen[k]):
        w, x = leaf([2.0, 3.0]), cg.tensor(np.array([5.0, 7.0]))
        y = w * x                                     # the gradient of w needs x only
        assert [s.tolist() for s in seen] == [[5.0, 7.0]]
        z = cg.exp(y)                                 # its result
        assert seen[1].tolist() == z.tolist()
        z = z * z                                     # one tensor twice
        assert len(seen) == 3
        u = w * leaf([1.0, 1.0])                      # two leaves
        assert len(seen) == 5
        z = z * 2.0 + 1.0 + u                         # numbers
        with cg.no_grad():
            z * z
        z.detach() * x
        assert len(seen) == 5
    assert all(not s.requires_grad and s.grad_fn is None for s in seen)
    assert not cg.is_grad_enabled() or z.requires_grad
    z.sum().backward()
    v = np.array([2.0, 3.0])
    k = np.array([5.0, 7.0])
    np.testing.assert_allclose(w.grad.numpy(), 4 * k * np.exp(2 * v * k) + 1.0, rtol=1e-14)


def test_the_innermost_applies_and_only_in_its_thread():
    seen = []

    def named(name):
        return saved_tensors_hooks(lambda x: seen.append(name) or x, lambda x: x)

    x = leaf(2.0)

    def in_thread():
        x * x
    with named("outer"):
        x * x
        with named("inner"):
            x * x
            thread = threading.Thread(target=in_thread)
            thread.start()
            thread.join()
        x * x
    x * x
    assert seen == ["outer", "inner", "outer"]


def test_hooks_are_called_with_recording_off_and_not_for_themselves():
    x = leaf([1.0, 2.0])
    calls = []

    def pack(x):
        calls.append(cg.is_grad_enabled())
        with cg.enable_grad():
            inner = x.clone().requires_grad_()
            return (inner * inner).detach()

    with saved_tensors_hooks(pack, lambda p: calls.append(cg.is_grad_enabled()) or p.sqrt()):
        y = x * x
    (g,) = cg.autograd.grad(y.sum(), x, create_graph=True)
    assert calls == [False, False] and g.tolist() == [2.0, 4.0] and cg.is_grad_enabled()


def test_a_quantising_pack():
    x = leaf([0.5, -1.0, 0.25])

    def pack(x):
        scale = float(cg.abs(x).max()) / 127
        return (x / scale).round().to(cg.int8), scale

    with saved_tensors_hooks(pack, lambda packed: packed[0].to(cg.float64) * packed[1]):
        y = (x * x).sum()
    y.backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * x.detach().numpy(), atol=2 / 127)
    assert abs(x.grad.numpy() - 2 * x.detach().numpy()).max() > 1e-6          # it was not kept as it is


def test_errors():
    x = leaf([1.0, 2.0])

    def fail(x):
        raise KeyError("on purpose")
    with pytest.raises(KeyError), saved_tensors_hooks(fail, lambda x: x):
        x * x
    assert cg.is_grad_enabled() and (x * x).requires_grad
    with pytest.raises(RuntimeError, match="pack hook has changed a tensor in place that multiply saved"), \
            saved_tensors_hooks(lambda x: x.mul_(2.0), lambda x: x):
        x * x
    for wrong, text in ((3, "int"), (cg.ones(2), r"shape \(2,\) and dtype float32"), (cg.ones(3, dtype=cg.float64), r"shape \(3,\)")):
        with saved_tensors_hooks(lambda x: None, lambda packed, wrong=wrong: wrong):
            y = (x * x).sum()
        with pytest.raises(RuntimeError, match=rf"unpack hook returned .*{text}.* for a tensor of shape \(2,\) and dtype float64 that multiply saved"):
            y.backward()
        assert x.grad is None
    with saved_tensors_hooks(lambda x: x, fail):
        y = (x * x).sum()
    with pytest.raises(KeyError):
        y.backward()
    assert x.grad is None and cg.is_grad_enabled()
    with pytest.raises(TypeError, match="pack_hook must be a function, got int"):
        saved_tensors_hooks(3, fail)


def test_later_writes():
    x = leaf([1.0, 2.0])
    for pack, unpack in ((lambda x: x, lambda x: x), (lambda x: {"x": [x]}, lambda p: p["x"][0]), (lambda x: x.numpy(), cg.tensor),
                         (lambda x: x[:1], lambda x: cg.ones(2, dtype=cg.float64))):
        y = x * 2.0
        with saved_tensors_hooks(pack, unpack):
            z = (y * y).sum()
        y.mul_(3.0)
        with pytest.raises(RuntimeError, match=r"multiply: .*\(input 0, x\) has since been changed in place by multiply in .*y\.mul_\(3\.0\)"):
            z.backward()
    y = x * 2.0
    with by_numpy():
        z = (y * y).sum()
    y.mul_(3.0)                                       # what was kept is a copy
    z.backward()
    assert x.grad.tolist() == [8.0, 16.0]


@pytest.mark.parametrize("hooks", [lambda: saved_tensors_hooks(lambda x: x, lambda x: x), by_numpy], ids=["itself", "a copy"])
def test_an_operation_in_place_keeps_what_it_overwrites(hooks):
    x = leaf([1.0, 2.0])
    w = leaf([3.0, 5.0])
    with hooks():
        y = x * 1.0
        y.mul_(w)                                     # saves y, which it overwrites
        y[:1].pow_(2.0)
    y.sum().backward()
    # y = ((x0 w0)**2, x1 w1)
    assert w.grad.tolist() == [6.0, 2.0] and x.grad.tolist() == [18.0, 5.0]


def test_no_memory_is_held():
    x = leaf(np.ones(1000))
    with by_numpy():
        y = x * 2.0
        z = y * y
        ref = weakref.ref(y)
        del y
    assert ref() is None
    z.sum().backward()
    assert x.grad.tolist()[0] == 8.0


def test_a_cycle_through_the_hooks_is_collected():
    class Keeper:
        pass

    def make():
        keeper = Keeper()
        x = leaf([1.0])
        with saved_tensors_hooks(lambda x: x.clone(), lambda x: keeper and x):
            keeper.y = x * x
        return weakref.ref(keeper)
    refs = [make() for _ in range(3)]
    gc.collect()
    assert [r() for r in refs] == [None] * 3


def test_inside_vmap_and_forward_mode():
    x = leaf(RNG.standard_normal((3, 2)))
    w = leaf([2.0, 3.0])
    with by_numpy():
        y = cg.func.vmap(lambda row: cg.exp(row * w).sum())(x)
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), (x.detach().numpy() * np.exp(x.detach().numpy() * [2.0, 3.0])).sum(0), rtol=1e-14)
    with by_numpy():
        h = cg.func.hessian(lambda w: cg.exp(w).sum())(w.detach())
    np.testing.assert_allclose(h.numpy(), np.diag(np.exp([2.0, 3.0])), rtol=1e-14)


# ------------------------------------------------------------------ on disk
def files(folder):
    return len(os.listdir(folder))


def test_files_come_and_go(tmp_path):
    x = leaf(RNG.standard_normal(100))
    with save_on_disk(tmp_path, min_bytes=0):
        h = x * 2.0
        y = cg.exp(cg.sin(h))
        small = (x[:3] * x[:3]).sum()
    assert files(tmp_path) == 4
    seen = []
    h.register_hook(lambda g: seen.append(files(tmp_path)))
    y.sum().backward(retain_graph=True)
    assert files(tmp_path) == 4
    y.sum().backward()
    assert seen == [4, 2] and files(tmp_path) == 2        # each goes as soon as its operation has run
    v = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), 2 * 2 * np.exp(np.sin(2 * v)) * np.cos(2 * v), rtol=1e-14)
    del small
    assert files(tmp_path) == 0


def test_a_dropped_graph_and_a_failed_forward_leave_no_file(tmp_path):
    x = leaf(np.ones(100))
    with save_on_disk(tmp_path, min_bytes=0):
        y = cg.exp(x) * x
    assert files(tmp_path) == 3
    del y
    assert files(tmp_path) == 0
    with pytest.raises(ValueError, match="broadcast"), save_on_disk(tmp_path, min_bytes=0):
        cg.exp(x) * cg.ones(3)
    assert files(tmp_path) == 0


def test_small_tensors_stay(tmp_path):
    x = leaf(np.ones(100))
    with save_on_disk(tmp_path, min_bytes=801):
        y = cg.exp(x)
    assert files(tmp_path) == 0
    with save_on_disk(tmp_path, min_bytes=800):
        z = cg.exp(x)
    assert files(tmp_path) == 1
    (y + z).sum().backward()
    assert files(tmp_path) == 0


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dtypes_and_layouts(dtype, tmp_path):
    x = cg.tensor(RNG.standard_normal((4, 6)), dtype=getattr(cg, dtype), requires_grad=True)

    def function(x):
        y = x.T[::2] * 1.0
        y = (y[:, 1:] * y[:, :3]).flip(0)
        return (y.reshape(1, -1, 1).squeeze() * y.permute(1, 0).reshape(-1)).to(cg.float32).sum()

    function(x).backward()
    plain, x.grad = x.grad, None
    with save_on_disk(tmp_path, min_bytes=1):
        y = function(x)
    assert files(tmp_path) > 2
    y.backward()
    assert x.grad.tolist() == plain.tolist() and files(tmp_path) == 0


def test_other_dtypes_and_no_elements(tmp_path):
    x = leaf(RNG.standard_normal((3, 4)))
    mask, places = x.detach() > 0, cg.tensor([[0, 1], [2, 0], [1, 1]])
    with save_on_disk(tmp_path, min_bytes=0):
        y = cg.where(mask, x, 0.0).sum() + cg.take_along_axis(x, places, 1).sum() + (x[:0] * x[:0]).sum()
    y.backward()
    wanted = (x.detach().numpy() > 0).astype(float)
    np.add.at(wanted, (np.arange(3)[:, None], places.numpy()), 1.0)
    np.testing.assert_array_equal(x.grad.numpy(), wanted)
    del y
    assert files(tmp_path) == 0


def test_second_order_networks_and_checkpoints(tmp_path):
    tensors = inputs()
    with save_on_disk(tmp_path, min_bytes=1):
        assert cg.autograd.gradgradcheck(network, tensors)
    plain = gradients(tensors)
    with save_on_disk(tmp_path, min_bytes=1):
        y = cg.checkpoint(network, *tensors)
        same(cg.autograd.grad(y, tensors), plain)        # repeated inside the context
        y = cg.checkpoint(network, *tensors)
    same(cg.autograd.grad(y, tensors), plain)
    gc.collect()
    assert files(tmp_path) == 0
    net = cg.nn.Sequential(cg.nn.Linear(8, 16), cg.nn.ReLU(), cg.nn.LayerNorm(16), cg.nn.Linear(16, 4))
    x = cg.randn(5, 8)
    net(x).logsumexp(1).sum().backward()
    plain = [p.grad for p in net.parameters()]
    net.zero_grad()
    with save_on_disk(tmp_path, min_bytes=1):
        net(x).logsumexp(1).sum().backward()
    same([p.grad for p in net.parameters()], plain)
    assert files(tmp_path) == 0


def test_errors_of_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="save_on_disk: there is no folder"):
        save_on_disk(tmp_path / "none")
    x = leaf(np.ones(10))
    with save_on_disk(tmp_path, min_bytes=1):
        y = cg.exp(x).sum()
    for name in os.listdir(tmp_path):
        os.truncate(tmp_path / name, 8)
    with pytest.raises(OSError, match="has 8 bytes where 80 were written"):
        y.backward()
    for name in os.listdir(tmp_path):
        os.unlink(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        y.backward()
    del y


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_leaves_the_files_of_its_parent(tmp_path):
    x = leaf(np.ones(10))
    with save_on_disk(tmp_path, min_bytes=1):
        y = cg.exp(x).sum()
    child = os.fork()
    if child == 0:
        del y
        os._exit(files(tmp_path) - 1)
    assert os.waitpid(child, 0)[1] == 0
    y.backward()
    assert files(tmp_path) == 0
