"""Reductions over all elements and along either axis of a matrix."""
from .common import DTYPES, LIBS, arrays, require, tensors

REDUCTIONS = ["sum", "mean", "max", "var", "argmax", "prod"]
SHAPES = {"one": (1, 1), "small": (32, 32), "square": (1000, 1000), "tall": (100_000, 10), "wide": (10, 100_000)}


class Reduce:
    params = [REDUCTIONS, list(SHAPES), [None, 0, 1], LIBS]
    param_names = ["op", "shape", "axis", "lib"]

    def setup(self, op, shape, axis, lib):
        import numpy as np
        self.call = getattr(np, op) if lib == "numpy" else require(op)
        (self.x,) = (arrays if lib == "numpy" else tensors)(1, SHAPES[shape])

    def time_reduce(self, op, shape, axis, lib):
        self.call(self.x, axis=axis)


class Softmax:
    """Row-wise softmax family, forward and with its backward."""
    params = [["softmax", "log_softmax", "logsumexp"], [(32, 10), (1000, 1000)], DTYPES]
    param_names = ["op", "shape", "dtype"]

    def setup(self, op, shape, dtype):
        self.call = require(op)
        (self.x,) = tensors(1, shape, dtype)
        (self.leaf,) = tensors(1, shape, dtype, requires_grad=True)

    def time_forward(self, op, shape, dtype):
        self.call(self.x, axis=-1)

    def time_forward_backward(self, op, shape, dtype):
        self.call(self.leaf, axis=-1).sum().backward()


class Backward:
    params = [["sum", "mean", "max", "var", "prod"], [None, 0, 1]]
    param_names = ["op", "axis"]

    def setup(self, op, axis):
        self.call = require(op)
        (self.x,) = tensors(1, (500, 500), requires_grad=True)

    def time_forward_backward(self, op, axis):
        self.call(self.x, axis=axis).sum().backward()
