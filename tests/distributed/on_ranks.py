"""What each rank checks, started by test_mpi.py under mpiexec: every function whose name begins with check_.

Every rank knows the data of all, so that it can work out by NumPy, or by cgrad on one process, what must come.
"""
import hashlib
import itertools
import sys
import threading
import traceback

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn
from cgrad.distributed import DataParallel, ShardedOptimizer, all_gather, all_reduce, broadcast, broadcast_parameters, reduce, reduce_scatter

comm = cg.distributed.init(timeout=60)
RANK, SIZE = comm.rank, comm.size


def values(*shape, seed=0):
    """The arrays of all ranks."""
    return [np.random.default_rng([seed, rank]).standard_normal(shape) for rank in range(SIZE)]


def mine(arrays, **options):
    return cg.tensor(arrays[RANK], **options)


def raised(kind, function, *arguments, **options):
    """The words of an error, which must come on all ranks and be the same."""
    try:
        function(*arguments, **options)
    except kind as error:
        text = str(error)
    else:
        raise AssertionError(f"no {kind.__name__} on rank {RANK}")
    assert len({words.partition(": ")[2] for words in comm.allgather(text)}) == 1          # but for the name of the call
    return text


def same_on_all(array):
    return len(set(comm.allgather(np.asarray(array).tobytes()))) == 1


def digest(module):
    return hashlib.sha256(b"".join(np.asarray(x.detach()).tobytes() for x in module.state_dict().values())).hexdigest()


# ------------------------------------------------------------------------------------------------------------------ collectives
def check_sums_copies_and_pieces():
    for shape in [(), (0,), (3,), (2, 4 * SIZE), (2, 0, 3)]:
        xs = values(*shape)
        total = np.sum(xs, axis=0)
        np.testing.assert_allclose(all_reduce(mine(xs)).numpy(), total, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(all_reduce(mine(xs), op="mean").numpy(), total / SIZE, rtol=1e-14, atol=1e-14)
        assert same_on_all(all_reduce(mine(xs)))
        for root in range(SIZE):
            np.testing.assert_array_equal(broadcast(mine(xs), root).numpy(), xs[root])
            got = reduce(mine(xs), root).numpy()
            np.testing.assert_allclose(got, total if RANK == root else 0 * total, rtol=1e-14, atol=1e-14)
        for axis in range(-len(shape), len(shape)):
            np.testing.assert_array_equal(all_gather(mine(xs), axis=axis).numpy(), np.concatenate(xs, axis=axis))
    xs = values(2, 4 * SIZE)
    np.testing.assert_allclose(reduce_scatter(mine(xs), axis=1).numpy(), np.split(np.sum(xs, axis=0), SIZE, axis=1)[RANK], rtol=1e-14, atol=1e-14)


def check_layouts_and_dtypes():
    xs = [np.random.default_rng(rank).integers(0, 20, (4, 6)) for rank in range(SIZE)]
    for name in ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]:
        x = cg.tensor(xs[RANK]).astype(name)
        for change in (lambda a: a, lambda a: a.T, lambda a: a[::-1, ::2], lambda a: a[1:2, 3]):
            got = all_reduce(change(x) if name == "bfloat16" else cg.asarray(change(np.asarray(x))))
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got.astype("float64").numpy(), change(np.sum(xs, axis=0)))
            np.testing.assert_array_equal(all_gather(change(x)).astype("float64").numpy() if change(x).ndim == 2 else 0,
                                          np.concatenate([change(a) for a in xs]) if change(x).ndim == 2 else 0)
    flags = broadcast(cg.tensor([RANK == 0, True]))
    assert flags.dtype == cg.bool and flags.tolist() == [True, True]


def check_pieces_of_unequal_length():
    xs = [np.arange(3.0 * (rank + 1)).reshape(rank + 1, 3) for rank in range(SIZE)]
    x = mine(xs, requires_grad=True)
    y = all_gather(x)
    np.testing.assert_array_equal(y.detach().numpy(), np.concatenate(xs))
    weights = values(*y.shape)
    (y * cg.tensor(weights[RANK])).sum().backward()
    start = RANK * (RANK + 1) // 2
    np.testing.assert_allclose(x.grad.numpy(), np.sum(weights, axis=0)[start:start + RANK + 1], rtol=1e-14, atol=1e-14)


def check_derivatives_of_collectives():
    """The sum of all ranks' losses, differentiated in all ranks' tensors; first and second order, forward mode, vmap."""
    xs, cs, ts = values(2 * SIZE, 3), values(2 * SIZE, 3, seed=1), values(2 * SIZE, 3, seed=2)
    total, all_c = np.sum(xs, axis=0), np.sum(cs, axis=0)

    def loss(function):
        return lambda x: (function(x) ** 3 * cg.tensor(cs[RANK])).sum()
    # loss: the sum over ranks r of c[r] * s**3 with s the sum of all x: slope 3 s**2 C, second slope in direction t: 6 s C T
    first, second = 3 * total**2 * all_c, 6 * total * all_c * np.sum(ts, axis=0)
    for function in (all_reduce, lambda x: broadcast(reduce(x)), lambda x: all_gather(reduce_scatter(x))):
        x = mine(xs, requires_grad=True)
        g, = cg.autograd.grad(loss(function)(x), x, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), first, rtol=1e-12)
        (g * mine(ts)).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), second, rtol=1e-12)
        _, pushed = cg.func.jvp(function, (mine(xs),), (mine(ts),))
        np.testing.assert_allclose(pushed.numpy(), np.sum(ts, axis=0), rtol=1e-12, atol=1e-12)
        slopes = cg.func.vmap(cg.func.grad(loss(function)))(cg.stack([mine(xs), 2 * mine(xs)]))
        np.testing.assert_allclose(slopes.numpy(), np.stack([first, 4 * first]), rtol=1e-12)


def check_calls_that_differ():
    text = raised(ValueError, all_reduce, cg.zeros((RANK == 1) + 2))
    assert "rank 0 calls all_reduce of float32 (2,)" in text and "rank 1 calls all_reduce of float32 (3,)" in text
    assert "float64" in raised(ValueError, all_reduce, cg.zeros(2, dtype="float64" if RANK == 1 else "float32"))
    assert "mean" in raised(ValueError, all_reduce, cg.zeros(2), op="mean" if RANK == 1 else "sum")
    assert "all_gather" in raised(ValueError, all_gather if RANK == 1 else all_reduce, cg.zeros(2))
    assert "without a gradient" in raised(ValueError, broadcast, cg.zeros(2, requires_grad=RANK == 0))
    assert "(3, 2)" in raised(ValueError, all_gather, cg.zeros((RANK == 1) + 2, 2), axis=1)
    assert f"0 to {SIZE - 1}" in raised(ValueError, broadcast, cg.zeros(2), root=SIZE)
    assert "multiple" in raised(ValueError, reduce_scatter, cg.zeros(SIZE + 1))
    assert "0-d" in raised(ValueError, all_gather, cg.tensor(1.0))
    assert "bools" in raised(TypeError, all_reduce, cg.tensor([True]))
    assert all_reduce(cg.tensor(1)).item() == SIZE         # and the ranks still agree


# ------------------------------------------------------------------------------------------------------------------ data parallelism
def network(dtype="float64", seed=3):
    cg.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, 2)).to(dtype)


def batch(rows, seed=0):
    rng = np.random.default_rng(seed)
    return cg.tensor(rng.standard_normal((rows, 5))), cg.tensor(rng.standard_normal((rows, 2)))


def error(net, x, y):
    return ((net(x) - y) ** 2).mean()


def whole_gradient(rows):
    net = network()
    error(net, *batch(rows)).backward()
    return [p.grad.numpy() for p in net.parameters()]


def assert_gradients(net, expected):
    for p, g in zip(net.parameters(), expected, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g, rtol=1e-12, atol=1e-13)
        assert same_on_all(p.grad)


def parts(rows):
    """The rows of each rank, as unequal as can be."""
    cuts = [0, *(rows * (r + 1) ** 2 // SIZE**2 for r in range(SIZE))]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def check_the_gradient_is_that_of_the_whole_batch():
    expected = whole_gradient(48)
    x, y = batch(48)
    for bucket_bytes in (4 << 20, 200, 1):
        net = DataParallel(network(seed=3 + RANK), bucket_bytes=bucket_bytes)       # other parameters: those of rank 0 count
        for _ in range(3):                                                          # the buckets are made anew after the first
            net.zero_grad()
            error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
            assert_gradients(net, expected)
    net = DataParallel(network(), bucket_bytes=200, progress_thread=True)
    for _ in range(20):
        net.zero_grad()
        error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
        assert_gradients(net, expected)
    assert threading.active_count() == 1
    # unequal batches: by examples, and as a sum
    own = parts(48)[RANK]
    net = DataParallel(network(), average="examples")
    for _ in range(2):
        net.zero_grad()
        error(net, x[own], y[own]).backward()
        assert_gradients(net, expected)
    net = DataParallel(network(), average=None)
    (((net(x[own]) - y[own]) ** 2).sum() / (48 * 2)).backward()
    assert_gradients(net, expected)


def check_a_module_that_is_wrapped_no_more():
    x, y = batch(6 * SIZE)
    net = network()
    model = DataParallel(net)
    error(model, x[RANK::SIZE], y[RANK::SIZE]).backward()
    del model
    net.zero_grad()
    error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
    assert not same_on_all(net[0].weight.grad)
    model = DataParallel(net, average=None)
    net.zero_grad()
    (error(model, x[RANK::SIZE], y[RANK::SIZE]) / SIZE).backward()
    assert_gradients(net, whole_gradient(6 * SIZE))


def check_gradients_add_up_without_sync():
    expected = whole_gradient(48)
    x, y = batch(48)
    x, y = x[RANK::SIZE], y[RANK::SIZE]
    net = DataParallel(network(), bucket_bytes=300)
    n = len(x) // 3
    for _ in range(2):
        net.zero_grad()
        with net.no_sync():
            for k in (0, 1):
                (error(net, x[k * n:][:n], y[k * n:][:n]) / 3).backward()
        (error(net, x[2 * n:], y[2 * n:]) / 3).backward()
        assert_gradients(net, expected)
    net.zero_grad()
    for k in range(3):                                                              # averages add up to the same
        (error(net, x[k * n:][:n], y[k * n:][:n]) / 3).backward()
    assert_gradients(net, expected)


def check_parameters_that_are_not_used():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.both, self.even, self.never = nn.Linear(5, 2), nn.Linear(5, 2), nn.Linear(5, 2)
            self.double()

        def forward(self, x, even):
            return self.both(x) + (self.even(x) if even else 0)

    cg.manual_seed(0)
    x, y = batch(6 * SIZE)
    twin = Branches()
    error(lambda rows: cg.stack([twin(row, k % SIZE % 2 == 0) for k, row in enumerate(rows)]), x, y).backward()
    net = DataParallel(twin, bucket_bytes=100)
    expected = [p.grad for p in twin.parameters()]
    for _ in range(3):
        net.zero_grad()
        error(lambda rows: net(rows, RANK % 2 == 0), x[RANK::SIZE], y[RANK::SIZE]).backward()
        for p, g in zip(net.parameters(), expected, strict=True):
            if g is None:
                assert p.grad is None
            else:
                np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-12, atol=1e-13)


def check_dtypes_side_by_side():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            for name in ("float16", "bfloat16", "float32", "float64"):
                setattr(self, f"of_{name}", nn.Parameter(cg.ones((3,), dtype=name)))

        def forward(self, scale):
            return sum((p * p).sum().double() * scale for p in self.parameters())

    net = DataParallel(Mixed(), bucket_bytes=16)
    for _ in range(2):
        net.zero_grad()
        net(float(RANK + 1)).backward()                             # slope 2 * (rank + 1)
        for p in net.parameters():
            assert p.grad.dtype == p.dtype and p.grad.tolist() == [SIZE + 1.0] * 3
    # more than float16 holds is no trouble on the way, only at the end
    assert all(p.grad.dtype == p.dtype for p in net.parameters())


def check_buffers_are_those_of_rank_0():
    cg.manual_seed(RANK)
    net = DataParallel(nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)))
    alone = nn.BatchNorm1d(4)
    for step in range(3):
        xs = [np.random.default_rng([step, rank]).standard_normal((6, 5)).astype(np.float32) for rank in range(SIZE)]
        alone(net.module[0](cg.tensor(xs[0])).detach())
        net(mine(xs)).sum().backward()
        for name, value in net.module[1].named_buffers():
            np.testing.assert_array_equal(value.numpy(), alone.get_buffer(name).numpy())
    own = DataParallel(nn.BatchNorm1d(4), broadcast_buffers=False)
    own(cg.full((6, 4), float(RANK))).sum().backward()
    np.testing.assert_allclose(own.module.running_mean.numpy(), 0.1 * RANK, rtol=1e-6, atol=1e-7)


def check_ranks_with_less_data_join():
    def batches(rank):
        return [batch(4 + rank, seed=10 * rank + k) for k in range(2 + rank)]
    for average in ("ranks", "examples"):
        net = DataParallel(network(), average=average, bucket_bytes=200)
        optimizer = cg.optim.Adam(net.parameters(), lr=0.01)
        with net.join(optimizer.step):
            for x, y in batches(RANK):
                optimizer.zero_grad()
                error(net, x, y).backward()
                optimizer.step()
        twin = network()
        optimizer = cg.optim.Adam(twin.parameters(), lr=0.01)
        for k in range(2 + SIZE - 1):
            there = [batches(rank)[k] for rank in range(SIZE) if k < 2 + rank]
            weights = [len(x) if average == "examples" else 1 for x, _ in there]
            optimizer.zero_grad()
            (sum(w * error(twin, x, y) for w, (x, y) in zip(weights, there)) / sum(weights)).backward()
            optimizer.step()
        for p, q in zip(net.parameters(), twin.parameters(), strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-10)
            assert same_on_all(p.detach())


def check_models_that_differ():
    def built(change):
        cg.manual_seed(0)
        net = network()
        if RANK == SIZE - 1:
            change(net)
        return net
    last = f"on rank {SIZE - 1}"
    text = raised(ValueError, DataParallel, built(lambda net: net.set_submodule("2", nn.Linear(7, 9).double())))
    assert text.startswith(f"DataParallel: parameter '2.weight' is float64 of shape (9, 7) {last}, float64 of shape (6, 7) on rank 0")
    text = raised(ValueError, DataParallel, built(lambda net: net[4].float()))
    assert f"parameter '4.weight' is float32 of shape (2, 6) {last}, float64" in text
    text = raised(ValueError, DataParallel, built(lambda net: net.append(nn.BatchNorm1d(2))))
    assert f"parameter '5.weight' is float32 of shape (2,) {last}, missing on rank 0" in text
    text = raised(ValueError, DataParallel, built(lambda net: net[0].bias.requires_grad_(False)))
    assert f"parameter '0.bias' is float64 of shape (7,), frozen {last}" in text
    assert "no parameter of the module" in raised(ValueError, DataParallel, network().requires_grad_(False))
    assert "average" in raised(ValueError, DataParallel, network(), average="all")
    assert "Module" in raised(TypeError, DataParallel, error)
    net = DataParallel(network(), average="examples")
    assert "counts the first axis" in raised(ValueError, net, cg.zeros((0, 5)))


def check_options_that_differ_and_parameters_that_are_thawed():
    text = raised(ValueError, DataParallel, network(), bucket_bytes=10 + (RANK == 1))
    assert text.startswith("DataParallel: the option bucket_bytes is 11 on rank 1, 10 on rank 0")
    net = network()
    net[0].weight.requires_grad_(False)
    model = DataParallel(net)
    error(model, *batch(4)).backward()
    assert net[0].weight.grad is None and net[0].bias.grad is not None
    net[0].weight.requires_grad_(True)
    assert "parameter '0.weight' requires a gradient now" in raised(RuntimeError, error(model, *batch(4)).backward)


def check_shared_parameters_and_checkpoints():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            cg.manual_seed(1)
            self.first, self.second = nn.Linear(5, 5).double(), nn.Linear(5, 5).double()
            self.second.weight = self.first.weight
            self.last = nn.Linear(5, 2).double()

        def forward(self, x):
            return self.last(cg.checkpoint(lambda x: cg.tanh(self.second(cg.tanh(self.first(x)))), x))

    x, y = batch(8 * SIZE)
    twin = Tied()
    error(twin, x, y).backward()
    net = DataParallel(Tied(), bucket_bytes=50)
    for _ in range(3):
        net.zero_grad()
        error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
        assert_gradients(net, [p.grad.numpy() for p in twin.parameters()])


def check_everything_is_broadcast():
    for kind in (cg.optim.Adam, cg.optim.SGD):
        net = network(seed=RANK)
        options = {"momentum": 0.9} if kind is cg.optim.SGD else {}
        optimizer = kind(net.parameters(), lr=0.01 * (RANK + 1), **options)
        for _ in range(RANK + 1):
            optimizer.zero_grad()
            error(net, *batch(5, seed=RANK)).backward()
            optimizer.step()
        before = digest(net), optimizer.state_dict()
        broadcast_parameters(net, optimizer, root=SIZE - 1)
        assert set(comm.allgather(digest(net))) == {comm.bcast(before[0], root=SIZE - 1)}
        expected = comm.bcast(before[1], root=SIZE - 1)
        state = optimizer.state_dict()
        assert state["param_groups"][0]["lr"] == 0.01 * SIZE == expected["param_groups"][0]["lr"]
        for number, entry in expected["state"].items():
            for key, value in entry.items():
                np.testing.assert_array_equal(np.asarray(state["state"][number][key]), np.asarray(value))


def check_a_hand_written_step_sees_averages():
    """What backward leaves in .grad may be clipped."""
    expected = whole_gradient(8 * SIZE)
    x, y = batch(8 * SIZE)
    net = DataParallel(network())
    error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 0.01)
    np.testing.assert_allclose(norm.item(), np.sqrt(sum((g**2).sum() for g in expected)), rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------------ shared-out optimizers
def check_a_shared_out_optimizer_steps_like_the_whole():
    x, y = batch(6 * SIZE)
    for make in (lambda params: cg.optim.AdamW(params, lr=0.02), lambda params: cg.optim.SGD(params, lr=0.1, momentum=0.9),
                 lambda params: cg.optim.Adagrad(params, lr=0.1)):
        net, twin = DataParallel(network()), network()
        groups = [[{"params": m[0].parameters(), "lr": 0.05}, {"params": [*m[2].parameters(), *m[4].parameters()]}] for m in (net.module, twin)]
        optimizer, plain = ShardedOptimizer(make(groups[0])), make(groups[1])
        schedules = [cg.optim.lr_scheduler.StepLR(o, 2, gamma=0.5) for o in (optimizer, plain)]
        for _ in range(5):
            optimizer.zero_grad()
            error(net, x[RANK::SIZE], y[RANK::SIZE]).backward()
            for p, q in zip(net.parameters(), twin.parameters()):
                q.grad = p.grad.clone()
            optimizer.step()
            plain.step()
            for schedule in schedules:
                schedule.step()
            assert all(p.grad is not None for p in net.parameters())
        assert digest(net.module) == digest(twin) and same_on_all(net.module[4].weight.detach())
        counts = comm.allgather(len(optimizer.state))
        assert sum(counts) == 6 and max(counts) < 6
        state = optimizer.state_dict()
        if RANK == 0:
            whole = plain.state_dict()
            assert state["param_groups"] == whole["param_groups"] and state["state"].keys() == whole["state"].keys()
            for number, entry in whole["state"].items():
                for key, value in entry.items():
                    np.testing.assert_array_equal(np.asarray(state["state"][number][key]), np.asarray(value))
        # on from there
        again = ShardedOptimizer(make([{"params": net.module[0].parameters()}, {"params": [*net.module[2].parameters(), *net.module[4].parameters()]}]))
        again.load_state_dict(comm.bcast(state, root=0))
        assert len(again.state) == len(optimizer.state) and again.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]
        again.step()
        plain.step()
        assert digest(net.module) == digest(twin)
    assert "LBFGS" in raised(TypeError, ShardedOptimizer, cg.optim.LBFGS(network().parameters()))


def check_narrow_parameters_are_shared_out_and_broadcast():
    def parameters(seed):
        rng = np.random.default_rng(seed)
        return nn.ParameterList([nn.Parameter(cg.tensor(rng.standard_normal(n)).astype(name))
                                 for n, name in ((3, "float16"), (5, "bfloat16"), (7, "float32"), (0, "float64"), (1, "bfloat16"))])
    own, twin = parameters(RANK), parameters(0)
    broadcast_parameters(own)
    optimizers = ShardedOptimizer(cg.optim.Adam(own.parameters(), lr=0.1)), cg.optim.Adam(twin.parameters(), lr=0.1)
    for k in range(3):
        for params, optimizer in zip((own, twin), optimizers):
            for p in params.parameters():
                p.grad = cg.full(p.shape, 0.5 + k, dtype=p.dtype)
            optimizer.step()
        for p, q in zip(own.parameters(), twin.parameters(), strict=True):
            assert p.dtype == q.dtype and p.tolist() == q.tolist()


def check_frozen_and_later_parameters_of_a_shared_out_optimizer():
    net = network()
    optimizer = ShardedOptimizer(cg.optim.Adam(net[0].parameters()))
    optimizer.add_param_group({"params": [*net[2].parameters(), *net[4].parameters()], "lr": 0.5})
    (net[4](cg.ones((3, 6), dtype="float64")) ** 2).sum().backward()
    before = net[0].weight.tolist(), net[4].weight.tolist()
    optimizer.step()
    assert net[0].weight.tolist() == before[0] and net[4].weight.tolist() != before[1] and same_on_all(net[4].weight.detach())


# ------------------------------------------------------------------------------------------------------------------ the rest
def check_samples_are_dealt_out():
    for n in (0, 1, 3, 8, 11):
        for options in ({}, {"drop_last": True}, {"pad": False}):
            sampler = cg.data.DistributedSampler(range(n), seed=5, **options)
            sampler.set_epoch(2)
            shares = comm.allgather(list(sampler))
            assert [*map(len, shares)] == comm.allgather(len(sampler))
            everything = [i for share in shares for i in share]
            if options == {"pad": False}:
                assert sorted(everything) == list(range(n))
            else:
                assert len({*map(len, shares)}) == 1
                assert set(everything) == set(range(n)) or options.get("drop_last")


def check_saving():
    path = sys.argv[2] + f"/saved-{SIZE}.npz"
    cg.distributed.save({"rank": RANK, "w": cg.ones(3)}, path)
    assert cg.load(path)["rank"] == 0
    with pytest.raises(RuntimeError if RANK else OSError, match="rank 0 could not write /nowhere/at/all.npz" if RANK else "nowhere"):
        cg.distributed.save({}, "/nowhere/at/all.npz")
    cg.distributed.barrier()
    assert cg.distributed.get_rank() == RANK and cg.distributed.get_world_size() == SIZE


def check_a_part_of_the_ranks():
    """init with a communicator of one's own: each half by itself."""
    half = comm.Split(RANK % 2, RANK)
    cg.distributed.init(half, timeout=60)
    try:
        assert all_reduce(cg.tensor(RANK)).item() == sum(r for r in range(SIZE) if r % 2 == RANK % 2)
    finally:
        cg.distributed.init(timeout=60)


if __name__ == "__main__":
    for name, check in [*globals().items()]:
        if name.startswith("check_"):
            comm.Barrier()
            try:
                check()
                failed = None
            except Exception:
                failed = f"rank {RANK}\n{traceback.format_exc()}"
            failures = [text for text in comm.allgather(failed) if text]
            if RANK == 0:
                print(f"== {name}\n" + "".join(failures), flush=True)
