"""A saved value that was changed in place: the error names who saved it, who changed it, the lines of code and what to do."""
import linecache
import re

import numpy as np
import pytest

import cgrad as cg
from cgrad.autograd import detect_anomaly


def leaf(data):
    return cg.tensor(np.array(data, np.float64), requires_grad=True)


def error_of(result):
    with pytest.raises(RuntimeError, match="has since been changed in place") as error:
        result.sum().backward()
    return str(error.value)


def line_after(text, message):
    """The line of code that a message names after some words."""
    file, line = re.search(text + r" in (.*?), line (\d+), in", message).groups()
    return linecache.getline(file, int(line)).strip()


def check(message, owner, which, writer, code):
    assert message.startswith(f"{owner}: a tensor of shape ") and f"saved for backward ({which})" in message
    assert line_after(f"by {writer}", message) == code
    assert "x.clone()" in message or "step() after backward" in message


def augmented(y):
    y += 1.0


def underscore(y):
    y.exp_()


def by_keyword(y):
    y.clip_(min=0.5)


def setitem(y):
    y[1] = 5.0


def setitem_by_indices(y):
    y[cg.tensor([0, 2])] = 5.0


def copied(y):
    y.copy_(cg.ones(3))


def filled(y):
    y.zero_()


def random_numbers(y):
    y.detach().uniform_()


def through_a_view(y):
    y[1:].mul_(3.0)


def through_views_of_views(y):
    y.reshape(1, 3).T[::-1][:2].sub_(3.0)


def through_detach(y):
    y.detach().mul_(3.0)


def without_recording(y):
    with cg.no_grad():
        y.mul_(3.0)


def out_argument(y):
    np.add(y.detach(), 1.0, out=y.detach())


@pytest.mark.parametrize(("write", "name"), [
    (augmented, "add"), (underscore, "exp_"), (by_keyword, "clip_"), (setitem, "setitem"), (setitem_by_indices, "setitem"), (copied, "copy_"),
    (filled, "zero_"), (random_numbers, "random numbers"), (through_a_view, "multiply"), (through_views_of_views, "subtract"),
    (through_detach, "multiply"), (without_recording, "multiply"), (out_argument, "add"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_every_way_of_writing_is_named_with_its_line(write, name):
    y = leaf([1.0, 2.0, 3.0]) * 2.0
    z = y * y
    write(y)
    code = linecache.getlines(__file__)[write.__code__.co_firstlineno + (write is without_recording)].strip()
    message = error_of(z)
    check(message, "multiply", "input 0, x", name, code)
    assert "(version 1, saved at version 0)" in message and "detect_anomaly" in message


def test_the_saved_result():
    y = cg.exp(leaf([1.0, 2.0]))
    z = y + 1.0
    y.sub_(1.0)
    check(error_of(z), "exp", "its result", "subtract", "y.sub_(1.0)")


def test_one_of_several_saved_results():
    q, r = cg.linalg.qr(leaf([[1.0, 2.0], [3.0, 5.0]]))
    loss = (q * 2.0).sum() + (r * 2.0).sum()
    r.mul_(2.0)
    check(error_of(loss), "qr", "its result", "multiply", "r.mul_(2.0)")


def test_a_result_that_no_rule_reads_may_be_written():
    x = leaf([[1.0, 3.0, 2.0]])
    y, _ = cg.cummax(x, 1)
    y += 1.0
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 2.0, 0.0]]
    x.grad = None
    y = cg.tensor(np.array([[2.0, 6.0, 3.0]])) / x
    y -= 1.0
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[-2.0, -6 / 9, -3 / 4]], rtol=1e-15)
    x.grad = None
    loss = cg.nn.functional.cross_entropy(x, cg.tensor([1]), reduction="none")
    loss *= cg.tensor(np.array([2.0]))
    loss.sum().backward()
    p = np.exp([1.0, 3.0, 2.0]) / np.exp([1.0, 3.0, 2.0]).sum()
    np.testing.assert_allclose(x.grad.numpy(), [2 * (p - [0, 1, 0])], rtol=1e-12)


def test_a_later_input():
    a = leaf([1.0, 2.0]) * 1.0
    w = cg.tensor(np.array([0.5, 0.25]))
    z = cg.lerp(a, leaf([3.0, 4.0]), w)
    w *= 2.0
    check(error_of(z), "lerp", "input 2, weight", "multiply", "w *= 2.0")


def test_the_line_that_saved_is_named_under_detect_anomaly():
    with detect_anomaly():
        y = leaf([1.0, 2.0]) * 2.0
        z = y * y
    y += 1.0
    message = error_of(z)
    assert line_after("It was saved", message) == "z = y * y" and line_after("by add", message) == "y += 1.0"
    assert "Inside cgrad.autograd.detect_anomaly()" not in message


def test_several_changes():
    y = leaf([1.0]) * 2.0
    z = y * y
    y.add_(1.0)
    y.mul_(2.0)
    check(error_of(z), "multiply", "input 0, x", "add", "y.add_(1.0)")        # the first is the one to blame
    y = leaf([1.0]) * 2.0
    z = y * y
    y.add_(1.0)
    cg.exp(z).sum() + (y * y).sum()
    y.mul_(2.0)
    assert "2 times, among others by multiply" in error_of(z)


def test_optimizers():
    for kind, name in ((cg.optim.SGD, "SGD.step"), (cg.optim.Adam, "Adam.step")):
        layer = cg.nn.Linear(3, 2)
        x = cg.ones((4, 3), requires_grad=True)
        optimizer = kind(layer.parameters(), lr=0.1)
        loss = layer(x).sum()
        loss.backward(retain_graph=True)
        optimizer.step()
        message = error_of(loss)
        check(message, "linear", "input 1, y", name, "optimizer.step()")
        assert "call step() after backward" in message


def test_own_operations():
    class Square(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x

        def backward(self, grads):
            return 2 * grads * self.x

    y = leaf([1.0, 2.0]) * 1.0
    z = Square()(y)
    y.mul_(2.0)
    check(error_of(z), "Square", "kept by the Op", "multiply", "y.mul_(2.0)")

    class Cube(cg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, grad):
            return 3 * grad * ctx.saved_tensors[0] ** 2

    y = leaf([1.0, 2.0]) * 1.0
    z = Cube.apply(y)
    y[0] = 7.0
    check(error_of(z), "Cube", "kept by the Op", "setitem", "y[0] = 7.0")


def test_checkpoints():
    y = leaf([1.0, 2.0]) * 1.0
    z = cg.checkpoint(cg.sin, y)
    y += 1.0
    check(error_of(z), "checkpoint", "an argument, with which the call would be repeated", "add", "y += 1.0")


def test_a_write_before_the_save_is_nobodys_fault():
    y = leaf([1.0, 2.0]) * 2.0
    y += 1.0
    (y * y).sum().backward()
    w = cg.zeros(2)
    for _ in range(3):
        w += 1.0
        (leaf([1.0, 2.0]) * w).sum().backward()


def test_memory_that_is_used_again_forgets_who_wrote():
    for write, name in ((augmented, "add"), (setitem, "setitem"), (copied, "copy_")) * 2:
        y = leaf([1.0, 2.0, 3.0]) * 2.0
        z = y * y
        write(y)
        assert f"by {name} in" in error_of(z)
        del y, z
