"""The tape: deep and wide graphs, what they cost in time and memory, derivatives of higher order."""
import gc

import cgrad as cg

from .common import require, tensors


class Deep:
    """A chain of n multiplications of one element."""
    params = [[1_000, 100_000]]
    param_names = ["length"]

    def setup(self, length):
        (self.x,) = tensors(1, (), requires_grad=True)

    def chain(self, length):
        y = self.x
        for _ in range(length):
            y = y * 1.0
        return y

    def time_record_and_drop(self, length):
        self.chain(length)

    def time_backward(self, length):
        self.chain(length).backward()

    def time_backward_without_collector(self, length):
        gc.disable()
        try:
            self.chain(length).backward()
        finally:
            gc.enable()

    def peakmem_record(self, length):
        self.chain(length)


class Wide:
    """n terms of one leaf added up: every gradient lands in the same place."""
    params = [[10, 1_000], [1, 10_000]]
    param_names = ["terms", "size"]

    def setup(self, terms, size):
        (self.x,) = tensors(1, size, requires_grad=True)

    def time_backward(self, terms, size):
        total = 0.0
        for k in range(terms):
            total = total + self.x * float(k)
        total.sum().backward()


class HigherOrder:
    """Functions of cg.func on a small polynomial."""
    params = [[3, 30]]
    param_names = ["n"]

    def setup(self, n):
        require("func.hessian")
        self.f = lambda x: (x**3).sum() * x[0]
        (self.x,) = tensors(1, n, "float64")
        (self.t,) = tensors(1, n, "float64", seed=1)

    def time_grad(self, n):
        cg.func.grad(self.f)(self.x)

    def time_jvp(self, n):
        cg.func.jvp(self.f, (self.x,), (self.t,))

    def time_hessian(self, n):
        cg.func.hessian(self.f)(self.x)


class Memory:
    """Peak memory of a step that keeps n results of a million float32 (4 MB) each."""
    params = [[1, 20]]
    param_names = ["results"]

    def peakmem_exp_chain(self, results):
        (x,) = tensors(1, 1_000_000, requires_grad=True, low=0.0, high=0.1)
        y = x
        for _ in range(results):
            y = y.tanh()
        y.sum().backward()
