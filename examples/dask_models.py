"""Many small models on a cluster: the networks of an ensemble, trained by the workers of a Dask scheduler
=======================================================================================================

The data go to each worker once; networks, optimizers and streams of random numbers stay where they were made, or travel to whoever
is free.  Give the address of a scheduler (``dask scheduler``, ``dask worker``) to use a cluster; without one, worker processes on this
machine are started.

Run it: ``python examples/dask_models.py``
"""
import argparse
import copy

import numpy as np
from dask.distributed import Client

import cgrad as cg
from cgrad import nn
from cgrad.nn import functional as F


class Learner:
    """A network with its optimizer and the stream that its batches are drawn from.

    They are one object because Dask sends the members of a tuple, list or dict one by one: the optimizer would arrive with
    parameters of its own, which are not those of the network.
    """

    def __init__(self, seed):
        cg.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
        self.optimizer = cg.optim.Adam(self.model.parameters(), lr=0.02)
        self.stream = cg.Generator(seed)

    def trained(self, x, y, steps):
        """A copy that has gone some steps further: Dask may ask again for what it has lost, so a task leaves its arguments as they are."""
        new = copy.deepcopy(self)
        for _ in range(steps):
            rows = cg.randint(0, len(x), (32,), generator=new.stream)
            loss = F.mse_loss(new.model(x[rows]), y[rows])
            new.optimizer.zero_grad()
            loss.backward()
            new.optimizer.step()
        return new


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scheduler", help="its address, for instance tcp://10.0.0.1:8786 (default: worker processes on this machine)")
    parser.add_argument("--models", type=int, default=100, help="how many (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=200, help="in each of the two rounds (default: %(default)s)")
    options = parser.parse_args()

    noise = np.random.default_rng(0)
    x = cg.tensor(np.sort(noise.uniform(-3, 3, (200, 1))), dtype=cg.float32)
    y = cg.sin(x) + 0.1 * cg.tensor(noise.normal(size=x.shape), dtype=cg.float32)

    where = {"address": options.scheduler} if options.scheduler else {"threads_per_worker": 1, "dashboard_address": None}
    with Client(**where) as client:
        workers = len(client.scheduler_info()["workers"])
        x_there, y_there = client.scatter([x, y], broadcast=True)
        learners = client.map(Learner, range(options.models))
        for _ in range(2):
            learners = client.map(Learner.trained, learners, x=x_there, y=y_there, steps=options.steps)
        models = [learner.model for learner in client.gather(learners)]

    with cg.no_grad():
        curves = cg.stack([model(x) for model in models])
    print(f"{len(models)} networks, trained by {workers} workers")
    print(f"a network misses the sine by {(curves - cg.sin(x)).square().mean().sqrt().item():.3f}, "
          f"the mean of all by {(curves.mean(0) - cg.sin(x)).square().mean().sqrt().item():.3f}")


if __name__ == "__main__":
    main()
