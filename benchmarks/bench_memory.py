"""Memory: what the allocator saves, what stays behind, what a training step needs at its peak."""
import numpy as np

import cgrad as cg

from .common import tensors


class Reuse:
    """Results of `size` float32, whose blocks are there already, are new from the system, or are given by the caller."""
    params = [[100_000, 4_000_000], ["kept", "new", "numpy"]]
    param_names = ["size", "block"]

    def setup(self, size, block):
        self.x, self.y = tensors(2, size)
        if block == "numpy":
            self.x, self.y = self.x.numpy(), self.y.numpy()
        self.limit = cg.memory.set_limit(0) if block == "new" else None

    def teardown(self, size, block):
        if self.limit is not None:
            cg.memory.set_limit(self.limit)

    def time_add(self, size, block):
        self.x + self.y

    def time_expression(self, size, block):
        """Three of the four inner results die in the next operation."""
        self.x * self.y + self.x * 2.0 - self.y


class Peak:
    """Peak of what tensors hold during a step of a network, in multiples of its parameters."""
    params = [[64, 512]]
    param_names = ["width"]
    unit = "x"

    def track_step(self, width):
        nn = cg.nn
        model = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        optimizer = cg.optim.SGD(model.parameters(), lr=0.01)
        x = cg.tensor(np.ones((32, width), "float32"))
        for _ in range(2):
            cg.memory.reset_peak()
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        return cg.memory.stats()["peak_bytes"] / sum(p.nbytes for p in model.parameters())

    track_step.unit = "x"


class Checkpoints:
    """Peak of a step through 50 layers with checkpoints, in shares of the peak without; parameters and gradients count in both."""
    params = [["sequential", "budget"]]
    param_names = ["how"]

    def track_peak(self, how):
        nn = cg.nn
        model = nn.Sequential(*[module for _ in range(50) for module in (nn.Linear(64, 64), nn.Tanh())])
        x = cg.tensor(np.ones((2000, 64), "float32"))
        whole = self.peak(model, model, x)
        if how == "sequential":
            return self.peak(model, lambda x: cg.checkpoint_sequential(model, 8, x), x) / whole
        return self.peak(model, cg.checkpoint_budget(model, whole // 5), x) / whole

    def peak(self, model, forward, x):
        for _ in range(2):
            model.zero_grad()
            cg.memory.reset_peak()
            forward(x).sum().backward()
        model.zero_grad()
        return cg.memory.stats()["peak_bytes"]

    track_peak.unit = "of the peak"


class Convolution:
    """What a convolution and its gradients hold at their peak beside operands and results: partial sums of the weight's gradient."""

    def track_beside(self):
        x, w = cg.ones((4, 64, 64, 64), requires_grad=True), cg.ones((64, 64, 3, 3), requires_grad=True)
        g = cg.ones((4, 64, 64, 64))
        cg.memory.reset_peak()
        before = cg.memory.stats()["live_bytes"]
        cg.autograd.grad(cg.nn.functional.conv2d(x, w, padding=1), (x, w), g)
        return cg.memory.stats()["peak_bytes"] - before - 2 * x.nbytes - w.nbytes

    track_beside.unit = "bytes"


class AfterUse:
    """Bytes that stay live after a graph was used and dropped: none."""

    def track_left(self):
        (x,) = tensors(1, 100_000, requires_grad=True)
        before = cg.memory.stats()["live_bytes"]
        (x * x).exp().sum().backward()
        x.grad = None
        return cg.memory.stats()["live_bytes"] - before

    track_left.unit = "bytes"


class Attention:
    """MB that the process grows by in forward and backward of `length` queries and keys of width 64, whose scores alone would take 4 * length**2 bytes."""
    params = [[1024, 8192]]
    param_names = ["length"]

    def peakmem_step(self, length):
        q, k, v = tensors(3, length * 64, requires_grad=True)
        attend = cg.nn.functional.scaled_dot_product_attention
        attend(*(x.reshape(length, 64) for x in (q, k, v))).sum().backward()
