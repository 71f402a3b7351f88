"""check_op finds what is wrong with an own operation, and nothing where all is right."""
import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import GradcheckError, check_op


def inputs(*shapes):
    rng = np.random.default_rng(7)
    return tuple(cg.tensor(rng.uniform(0.5, 1.5, shape), requires_grad=True) for shape in shapes)


class multiply(cg.Op):
    def forward(self, x, y):
        self.x, self.y = x, y
        return x * y

    def backward(self, grads):
        return grads * self.y, grads * self.x


class Exponential(cg.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        out = cg.exp(x * scale)
        ctx.save_for_backward(out)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0] * ctx.scale, None


class two_results(cg.Op):
    def forward(self, x):
        self.x = x
        return cg.sin(x), cg.cos(x)

    def backward(self, grads):
        first, second = (0 if g is None else g for g in grads)
        return first * cg.cos(self.x) - second * cg.sin(self.x)


@pytest.mark.parametrize("op", [multiply, multiply()])
def test_a_right_op_passes(op):
    assert check_op(op, inputs((2, 3), (2, 3)))


def test_functions_decorated_ones_and_several_results_pass():
    assert check_op(Exponential, (*inputs((3,)), 2.0))
    assert check_op(two_results, inputs((4,)))
    assert check_op(cg.op(lambda x: x ** 3, vjp=lambda g, out, x: 3 * g * x * x), inputs((2,)))
    assert check_op(cg.sin, inputs((2, 2)))
    sinc = cg.op(np.sinc, vjp=lambda g, out, x: g * (np.cos(np.pi * x) - out) / x, arrays=True)
    assert check_op(sinc, inputs((3,)), second_order=False, forward_mode=False)


class wrong_gradient(multiply):
    def backward(self, grads):
        return grads * self.x, grads * self.y


class wrong_second(multiply):
    def backward(self, grads):
        return grads * self.y.detach(), grads * self.x


class writes(multiply):
    def forward(self, x, y):
        out = super().forward(x, y)
        x.detach().mul_(1.25)
        return out


class reads_memory(multiply):
    """Takes the memory as it lies."""

    def forward(self, x, y):
        super().forward(x, y)
        return x * y + 0 * x if x.is_contiguous() else x * y + 1


class shares(multiply):
    """Keeps its state on the class."""

    def forward(self, x, y):
        type(self).kept = x, y
        return x * y

    def backward(self, grads):
        x, y = type(self).kept
        return grads * y, grads * x


class raises_dtype(multiply):
    def forward(self, x, y):
        return super().forward(x, y) * cg.tensor(np.ones(2))


class mixes_examples(multiply):
    def batch(self, axes, x, y):
        return (x * y).flip(0)


class hoards(multiply):
    hoard = []

    def forward(self, x, y):
        out = super().forward(x, y)
        self.hoard.append(out)
        return out


@pytest.mark.parametrize(("op", "message"), [
    (wrong_gradient, r"wrong_gradient: derivatives: gradcheck: backward is wrong: derivative of output 0\[0\] with respect to input 0\[0\]"),
    (wrong_second, "wrong_second: second derivatives: "),
    (writes, "writes: "),
    (reads_memory, "reads_memory: with strided inputs, result 0"),
    (shares, "shares: "),
    (raises_dtype, "raises_dtype: with float32 inputs, result 0 has dtype float64"),
    (mixes_examples, "mixes_examples: under vmap, result 0"),
    (hoards, r"hoards: 20 calls with their backward left \d+ bytes and \d+ objects behind"),
])
def test_faults_are_found(op, message):
    [cg.tensor(0.0) for _ in range(2000)].clear()           # dead objects for reuse, which must hide nothing
    with pytest.raises((GradcheckError, RuntimeError), match=message):
        check_op(op, inputs((2,), (2,)))


def test_what_is_not_an_operation():
    with pytest.raises(TypeError, match="expected an operation, got int"):
        check_op(3, inputs((2,)))
