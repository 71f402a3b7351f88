"""A rank that fails takes the others down, within seconds and with its name; and files, bits and resumption."""
import re
import time

import numpy as np
import pytest
from launch import run, start

import cgrad as cg

BEGIN = """
import os, signal, sys, time
import numpy as np
import cgrad as cg
from cgrad import nn
from cgrad.distributed import DataParallel, ShardedOptimizer, all_reduce
comm = cg.distributed.init(timeout=float(os.environ.get("LIMIT", 60)))
rank, size = comm.rank, comm.size

def error(net, x, y):
    return ((net(x) - y) ** 2).mean()
"""


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "script.py"
        path.write_text(BEGIN + text)
        return path
    return write


def failed(done, limit, started):
    assert done.returncode != 0
    assert time.monotonic() - started < limit, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(("act", "words"), [
    ("raise KeyError('lost')", ["Rank 1 of 2", "KeyError: 'lost'", "script.py"]),
    ("os.kill(os.getpid(), signal.SIGKILL)", []),
    ("os._exit(3)", []),
    ("sys.exit(3)", ["Rank 0 of 2", "RuntimeError: DataParallel: the sum of the gradients: rank 0 of 2 waits for rank 1, which has come to the end"]),
    ("break", ["Rank 0 of 2", "which has come to the end of its program"]),
], ids=["raises", "is killed", "ends at once", "exits", "has fewer steps"])
def test_a_rank_that_fails_ends_the_job(act, words, script):
    started = time.monotonic()
    done = start(2, script(f"""
net = DataParallel(nn.Linear(2, 1))
for step in range(100):
    if rank == 1 and step == 2:
        {act}
    net(cg.ones((3, 2))).sum().backward()
"""), timeout=60)
    text = failed(done, 30, started)
    assert all(word in text for word in words), text


def test_a_wait_has_a_limit(script, monkeypatch):
    started = time.monotonic()
    done = start(2, script("""
cg.distributed.init(timeout=2)
net = DataParallel(nn.Linear(2, 1))
if rank == 0:
    net(cg.ones((3, 2))).sum().backward()
time.sleep(60)
"""), timeout=60)
    text = failed(done, 30, started)
    assert "TimeoutError: DataParallel: the sum of the gradients: rank 0 of 2 has waited 2 s for the others" in text


def test_an_error_in_the_middle_of_backward_is_remembered(script):
    done = start(2, script("""
net = DataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
class Breaks(cg.Op):
    def forward(self, x):
        return x * 1
    def backward(self, g):
        raise ValueError("here")
for _ in range(2):
    try:
        net.module[1](Breaks()(net.module[0](cg.ones((3, 2))))).sum().backward()
    except ValueError:
        pass
"""), timeout=60)
    assert "an earlier backward ended in the middle by an error" in failed(done, 60, time.monotonic())


TRAINING = """
path, steps, begin = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rng = np.random.default_rng(0)
x, y = cg.tensor(rng.standard_normal((240, 5))), cg.tensor(rng.standard_normal((240, 2)))
cg.manual_seed(rank)
net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)).double()
model = DataParallel(net)
optimizer = ShardedOptimizer(cg.optim.Adam(net.parameters(), lr=0.02))
sampler = cg.data.DistributedSampler(x, seed=1)
done = 0
if begin == "load":
    state = cg.load(path)
    net.load_state_dict(state["net"])
    optimizer.load_state_dict(state["optimizer"])
    done = state["done"]
global_batch, n = 24, len(x)
while done < steps:
    epoch, within = divmod(done * global_batch, n)
    sampler.set_epoch(epoch, start=within)
    for batch in cg.data.BatchSampler(sampler, global_batch // size, drop_last=False):
        optimizer.zero_grad()
        loss = error(model, x[batch], y[batch])
        loss.backward()
        optimizer.step()
        done += 1
        if rank == 0:
            print(done, net[0].bias[0].item().hex())
        if done == steps:
            break
cg.distributed.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "done": done}, path)
"""


def numbers(out):
    return {int(step): float.fromhex(value) for step, value in re.findall(r"^(\d+) (\S+)$", out, re.MULTILINE)}


def test_the_same_bits_in_every_run_and_another_number_of_ranks_goes_on(script, tmp_path):
    training, paths = script(TRAINING), [tmp_path / f"{k}.npz" for k in range(4)]
    unbroken = run(2, training, paths[0], 16, "new")
    assert unbroken == run(2, training, paths[1], 16, "new") and len(numbers(unbroken)) == 16
    one, two = cg.load(paths[0]), cg.load(paths[1])
    for name, value in one["net"].items():
        np.testing.assert_array_equal(value.numpy(), two["net"][name].numpy())

    first = run(2, training, paths[2], 7, "new")                # within the first epoch of ten steps
    rest = run(4, training, paths[2], 16, "load")
    assert [*numbers(rest)] == [*range(8, 17)]
    for step, value in (numbers(first) | numbers(rest)).items():
        assert value == pytest.approx(numbers(unbroken)[step], rel=1e-10)
    alone = run(1, training, paths[3], 16, "new")
    for step, value in numbers(alone).items():
        assert value == pytest.approx(numbers(unbroken)[step], rel=1e-10)


def test_a_rank_that_is_killed_leaves_no_half_checkpoint(script, tmp_path):
    path = tmp_path / "state.npz"
    done = start(2, script("""
path = sys.argv[1]
for version in range(1000):
    if rank == 1 and version == 6:
        os.kill(comm.bcast(None, root=0), signal.SIGKILL)
    if rank == 0 and version == 6:
        comm.bcast(os.getpid(), root=0)
    cg.distributed.save({"version": version, "w": cg.full((300_000,), float(version))}, path)
"""), path, timeout=60)
    assert done.returncode != 0
    state = cg.load(path)
    assert state["version"] >= 5 and state["w"].tolist() == [float(state["version"])] * 300_000
