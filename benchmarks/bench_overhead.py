"""The cost of a call: operations on one element, where everything but the arithmetic is overhead."""
import operator

from .common import LIBS, arrays, require, tensors

UNARY = ["exp", "sin", "negative", "sqrt"]
BINARY = ["add", "multiply", "divide"]
CHAIN = 1_000


class Binary:
    """x op y through the operator."""
    params = [["add", "mul", "truediv", "lt"], ["cgrad", "cgrad recorded", "numpy"]]
    param_names = ["op", "lib"]

    def setup(self, op, lib):
        self.call = getattr(operator, op)
        self.x, self.y = arrays(2, ()) if lib == "numpy" else tensors(2, (), requires_grad=lib == "cgrad recorded")

    def time_operator(self, op, lib):
        self.call(self.x, self.y)

    def time_python_number(self, op, lib):
        self.call(self.x, 2.0)


class Function:
    """The public function, by keyword-free call."""
    params = [UNARY, ["cgrad", "cgrad recorded", "numpy"]]
    param_names = ["op", "lib"]

    def setup(self, op, lib):
        import numpy as np
        self.call = getattr(np, op) if lib == "numpy" else require(op)
        (self.x,) = arrays(1, ()) if lib == "numpy" else tensors(1, (), requires_grad=lib == "cgrad recorded")

    def time_function(self, op, lib):
        self.call(self.x)


class Backward:
    """A chain of 1,000 operations on one element: divide by 1,000 for the cost of a node."""
    params = [["multiply", "exp_log", "add_number"]]
    param_names = ["chain"]

    def setup(self, chain):
        self.x, self.w = tensors(2, (), requires_grad=True)

    def forward(self, chain):
        y, w = self.x, self.w
        if chain == "multiply":
            for _ in range(CHAIN):
                y = y * w
        elif chain == "exp_log":
            for _ in range(CHAIN // 2):
                y = y.exp().log()
        else:
            for _ in range(CHAIN):
                y = y + 1.0
        return y

    def time_forward(self, chain):
        self.forward(chain)

    def time_forward_backward(self, chain):
        self.forward(chain).backward()


class OwnOperation:
    """Forward and backward of a product of two numbers, built in and in each form of an operation of one's own."""
    params = [["built in", "Op", "Function", "op", "foreign_op"]]
    param_names = ["form"]

    def setup(self, form):
        import cgrad as cg
        self.x, self.y = tensors(2, (), requires_grad=True)

        class Product(cg.Op):
            def forward(self, x, y):
                self.x, self.y = x, y
                return x * y

            def backward(self, grads):
                return grads * self.y, grads * self.x

        class product(cg.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx, grad):
                x, y = ctx.saved_tensors
                return grad * y, grad * x

        def foreign():
            import ctypes
            fdim = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(("fdim", ctypes.CDLL(None)))
            return cg.foreign_op(fdim, partials=(lambda x, y: y, lambda x, y: x))      # as long as a product would take

        self.call = {"built in": lambda: operator.mul, "Op": Product, "Function": lambda: product.apply, "foreign_op": foreign,
                     "op": lambda: cg.op(operator.mul, vjp=lambda g, out, x, y: (g * y, g * x))}[form]()

    def time_forward_backward(self, form):
        self.call(self.x, self.y).backward()


class Create:
    """Making small tensors and reading them."""
    params = [LIBS]
    param_names = ["lib"]

    def setup(self, lib):
        import numpy as np

        import cgrad as cg
        self.make = np.array if lib == "numpy" else cg.tensor
        self.zeros = np.zeros if lib == "numpy" else cg.zeros
        self.x = self.make([1.0, 2.0, 3.0])
        self.s = self.make(1.0)

    def time_from_number(self, lib):
        self.make(1.0)

    def time_from_list(self, lib):
        self.make([1.0, 2.0, 3.0])

    def time_zeros(self, lib):
        self.zeros((3, 4))

    def time_item(self, lib):
        self.s.item()

    def time_tolist(self, lib):
        self.x.tolist()

    def time_index(self, lib):
        self.x[1]

    def time_slice(self, lib):
        self.x[1:]
