"""A run that is stopped in the middle of an epoch and goes on in a new process is bit for bit the unbroken run."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cgrad as cg

RUN = """
import sys
import cgrad as cg
from cgrad import nn

path, stop_after, optimizer, n_workers = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])

class Jitter(cg.data.Dataset):
    '''Samples with noise of their own, drawn in the worker if there are some.'''
    def __init__(self):
        generator = cg.Generator(0)
        self.x, self.y = cg.randn((22, 4), generator=generator), cg.randn((22, 1), generator=generator)
    def __len__(self):
        return 22
    def __getitem__(self, i):
        info = cg.data.get_worker_info()
        return self.x[i] + 0.1 * cg.randn(4, generator=None if info is None else info.generator), self.y[i]

cg.manual_seed(int(sys.argv[5]))
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 1))
if optimizer == "SGD":
    opt = cg.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    schedule = cg.optim.lr_scheduler.MultiStepLR(opt, [1, 2], gamma=0.5)
else:
    opt = cg.optim.AdamW([{"params": net[0].parameters(), "lr": 0.02}, {"params": net[4].parameters()}], lr=0.01, amsgrad=True)
    schedule = cg.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=3)
loader = cg.data.DataLoader(Jitter(), batch_size=5, shuffle=True, num_workers=n_workers)
parts = {"net": net, "opt": opt, "schedule": schedule, "loader": loader}
epoch, step = 0, 0

if sys.argv[6] == "load":
    state = cg.load(path)
    for name, part in parts.items():
        part.load_state_dict(state[name])
    epoch, step = state["epoch"], state["step"]
    cg.random.set_rng_state(state["rng"])

for epoch in range(epoch, 3):
    for x, y in loader:
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
        step += 1
        print(step, loss.item().hex(), schedule.get_last_lr())
        if step == stop_after:
            cg.save({name: part.state_dict() for name, part in parts.items()}
                    | {"epoch": epoch, "step": step, "rng": cg.random.get_rng_state()}, path)
            sys.exit()
    schedule.step()
for name, value in net.state_dict().items():
    print(name, value.tobytes().hex())
print(cg.rand(()).item().hex())
"""


def run(*arguments):
    done = subprocess.run([sys.executable, "-c", RUN, *map(str, arguments)], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": str(Path(cg.__file__).parents[1])})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("optimizer", "form", "stops", "n_workers"), [
    ("SGD", "npz", [2, 5, 11], 0), ("AdamW", "safetensors", [7], 0), ("AdamW", "npz", [3], 2),
])
def test_a_resumed_run_is_the_unbroken_run(optimizer, form, stops, n_workers, tmp_path):
    if form == "safetensors":
        pytest.importorskip("safetensors")
    path = tmp_path / f"state.{form}"
    unbroken = run(path, 0, optimizer, n_workers, 1, "new")
    assert len(unbroken) > 15 + 5
    for stop in stops:                                     # in an epoch, at the end of its last batch
        first = run(path, stop, optimizer, n_workers, 1, "new")
        rest = run(path, 0, optimizer, n_workers + (2 if n_workers else 0), 99, "load")
        assert first + rest == unbroken
