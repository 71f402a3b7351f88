"""Derivatives as functions: Jacobians, Hessians and gradients of each example, computed as batches."""
from .common import require, tensors


class Matrices:
    """Of a small layer, where the calls cost more than the numbers."""
    params = [["jacrev", "jacfwd", "hessian"], [8, 32, 128]]
    param_names = ["which", "n"]

    def setup(self, which, n):
        make, tanh = require("func." + which), require("tanh")
        w, = tensors(1, (n, n))
        self.x, = tensors(1, (n,))
        self.call = make((lambda x: tanh(w @ x).sum()) if which == "hessian" else (lambda x: tanh(w @ x)))

    def time_matrix(self, which, n):
        self.call(self.x)


class Examples:
    """vmap over the rows of a matrix."""
    params = [["values", "gradients", "weight gradients"], [16, 256]]
    param_names = ["of", "n"]

    def setup(self, of, n):
        vmap, grad, tanh = require("func.vmap"), require("func.grad"), require("tanh")
        self.w, = tensors(1, (32, 32))
        self.x, = tensors(1, (n, 32))

        def f(w, x):
            return tanh(w @ x).sum()

        self.call = vmap({"values": f, "gradients": grad(f, 1), "weight gradients": grad(f)}[of], (None, 0))

    def time_map(self, of, n):
        self.call(self.w, self.x)
