"""Matrix products from 1-d to batches."""
from .common import DTYPES, LIBS, arrays, require, tensors


class Square:
    params = [[2, 8, 32, 128, 512, 1024], DTYPES, LIBS]
    param_names = ["n", "dtype", "lib"]

    def setup(self, n, dtype, lib):
        self.x, self.y = (arrays if lib == "numpy" else tensors)(2, (n, n), dtype)
        self.x @ self.y

    def time_matmul(self, n, dtype, lib):
        self.x @ self.y


class Shapes:
    params = [["dot 1000", "matvec 500", "batch 64 of 16", "batch broadcast 64 of 16", "transposed 256", "thin 2000x8"], LIBS]
    param_names = ["case", "lib"]

    def setup(self, case, lib):
        make = arrays if lib == "numpy" else tensors
        if case.startswith("dot"):
            self.x, self.y = make(2, 1000)
        elif case.startswith("matvec"):
            (self.x,), (self.y,) = make(1, (500, 500)), make(1, 500)
        elif case.startswith("batch broadcast"):
            (self.x,), (self.y,) = make(1, (64, 16, 16)), make(1, (16, 16))
        elif case.startswith("batch"):
            self.x, self.y = make(2, (64, 16, 16))
        elif case.startswith("transposed"):
            self.x, self.y = make(2, (256, 256))
            self.y = self.y.T
        else:
            (self.x,), (self.y,) = make(1, (2000, 8)), make(1, (8, 2000))

    def time_matmul(self, case, lib):
        self.x @ self.y


class Backward:
    params = [[8, 64, 256]]
    param_names = ["n"]

    def setup(self, n):
        require("matmul")
        self.x, self.y = tensors(2, (n, n), requires_grad=True)
        (self.g,) = tensors(1, (n, n))

    def time_forward_backward(self, n):
        (self.x @ self.y).backward(self.g)
