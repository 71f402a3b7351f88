"""Elementwise kernels over sizes, layouts and dtypes."""
from .common import DTYPES, LIBS, SIZES, arrays, require, tensors

UNARY = ["exp", "log", "sin", "tanh", "sqrt", "negative"]
BINARY = ["add", "multiply", "divide", "maximum", "power"]


def function(op, lib):
    import numpy as np
    return getattr(np, op) if lib == "numpy" else require(op)


class Unary:
    params = [UNARY, SIZES, DTYPES, LIBS]
    param_names = ["op", "size", "dtype", "lib"]

    def setup(self, op, size, dtype, lib):
        self.call = function(op, lib)
        (self.x,) = (arrays if lib == "numpy" else tensors)(1, size, dtype)

    def time_unary(self, op, size, dtype, lib):
        self.call(self.x)


class Binary:
    params = [BINARY, SIZES, DTYPES, LIBS]
    param_names = ["op", "size", "dtype", "lib"]

    def setup(self, op, size, dtype, lib):
        self.call = function(op, lib)
        self.x, self.y = (arrays if lib == "numpy" else tensors)(2, size, dtype)

    def time_binary(self, op, size, dtype, lib):
        self.call(self.x, self.y)


class Layout:
    """x * y on a million elements that lie in memory in other ways."""
    params = [["contiguous", "transposed", "row broadcast", "column broadcast", "every second", "reversed"], LIBS]
    param_names = ["layout", "lib"]

    def setup(self, layout, lib):
        make = arrays if lib == "numpy" else tensors
        self.x, self.y = make(2, (1000, 1000))
        if layout == "transposed":
            self.x = self.x.T
        elif layout == "row broadcast":
            (self.y,) = make(1, (1000,))
        elif layout == "column broadcast":
            (self.y,) = make(1, (1000, 1))
        elif layout == "every second":
            self.x, self.y = (z[:, ::2] for z in make(2, (1000, 2000)))
        elif layout == "reversed":
            self.x = self.x[::-1, ::-1]

    def time_multiply(self, layout, lib):
        self.x * self.y


class Backward:
    """Forward and backward of one operation on a large array."""
    params = [["exp", "tanh", "multiply", "divide"], [1_000, 100_000, 1_000_000]]
    param_names = ["op", "size"]

    def setup(self, op, size):
        self.call = require(op)
        self.inputs = tensors(2 if op in BINARY else 1, size, requires_grad=True)
        self.g = tensors(1, size)[0]

    def time_forward_backward(self, op, size):
        self.call(*self.inputs).backward(self.g)
        for x in self.inputs:
            x.grad = None


class Threads:
    """The split over threads: 1 against 2."""
    params = [["add", "exp"], [10_000, 100_000, 4_000_000], [1, 2]]
    param_names = ["op", "size", "threads"]

    def setup(self, op, size, threads):
        import cgrad as cg
        self.call = require(op)
        self.before = cg.get_num_threads()
        cg.set_num_threads(threads)
        self.inputs = tensors(2 if op in BINARY else 1, size)

    def teardown(self, op, size, threads):
        import cgrad as cg
        cg.set_num_threads(self.before)

    def time_op(self, op, size, threads):
        self.call(*self.inputs)
