"""Derivatives as functions: Jacobians, Hessians and gradients of each example, computed as batches."""
from .common import require, tensors


class Gradients:
    """What the transformation adds to forward and backward, which "by hand" are those alone."""
    params = [["number", "two numbers", "ten elements", "network", "parameters of a network"], ["grad", "by hand"]]
    param_names = ["of", "way"]

    def setup(self, of, way):
        grad, sin, tanh = require("func.grad"), require("sin"), require("tanh")
        w1, w2, x, batch = tensors(1, (16, 10))[0], tensors(1, (1, 16))[0], tensors(1, (10,))[0], tensors(1, (32, 10))[0]
        f, x = {"number": (lambda x: sin(x) * x + x * 2.0, x[0].clone()), "two numbers": (lambda x, y: sin(x) * y, (x[0].clone(), x[1].clone())),
                "ten elements": (lambda x: (sin(x) * x).sum(), x),
                "network": (lambda x: (w2 @ tanh(w1 @ x)).sum(), x),
                "parameters of a network": (lambda p: ((tanh(batch @ p["w1"].T) @ p["w2"].T) ** 2).mean(), {"w1": w1, "w2": w2})}[of]

        def by_hand():
            leaves = {k: v.detach().requires_grad_() for k, v in x.items()} if isinstance(x, dict) else x.detach().requires_grad_()
            f(leaves).backward()
            return [v.grad for v in leaves.values()] if isinstance(leaves, dict) else leaves.grad

        def two_by_hand():
            first, second = x[0].detach().requires_grad_(), x[1].detach().requires_grad_()
            f(first, second).backward()
            return first.grad, second.grad

        if of == "two numbers":
            self.call = two_by_hand if way == "by hand" else lambda: grad(f, (0, 1))(*x)
        else:
            self.call = by_hand if way == "by hand" else lambda: grad(f)(x)

    def time_gradient(self, of, way):
        self.call()


class Hessians:
    """Of a function of n variables: the matrix, its product with a vector, a linear map used over and over."""
    params = [["hessian", "forward over reverse", "hvp", "linearized"], [8, 64]]
    param_names = ["which", "n"]

    def setup(self, which, n):
        hessian, jacfwd, grad, hvp, linearize = (require("func." + name) for name in ("hessian", "jacfwd", "grad", "hvp", "linearize"))

        def rosenbrock(x):
            return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

        x, v = tensors(2, (n,))
        push = linearize(grad(rosenbrock), x)[1]
        self.call = {"hessian": lambda: hessian(rosenbrock)(x), "forward over reverse": lambda: jacfwd(grad(rosenbrock))(x),
                     "hvp": lambda: hvp(rosenbrock, (x,), (v,)), "linearized": lambda: push(v)}[which]

    def time_second_derivatives(self, which, n):
        self.call()


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
