"""why_no_grad names the reason."""
import copy
import re

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn


def leaf(value=2.0):
    return cg.tensor(value, requires_grad=True)


def test_what_was_never_tracked():
    assert "dtype is int64" in cg.tensor(3).why_no_grad()
    assert "dtype is bool" in (leaf() > 1).why_no_grad()
    assert "make it with requires_grad=True" in cg.tensor(3.0).why_no_grad()
    assert "make it with requires_grad=True" in (cg.tensor(3.0) * 2).why_no_grad()


def test_what_was_computed_under_no_grad():
    x = leaf()
    with cg.no_grad():
        for y in (x * 2, x.exp(), x.sum(), x.reshape(1), cg.stack([x, x]), cg.where(x > 1, x, 0.0)):
            assert y.why_no_grad() == ("it, or what it was computed from, was computed under no_grad, so nothing was recorded (parameters are changed there in "
                                       "place: w -= step); inside cgrad.autograd.detect_anomaly() the line is noted")
        assert "make it with" in (cg.tensor(1.0) * 2).why_no_grad()


def test_what_was_detached():
    x = leaf()
    assert x.detach().why_no_grad() == ("it, or what it was computed from, was detached from the graph; inside cgrad.autograd.detect_anomaly() the line is "
                                        "noted")
    with cg.autograd.detect_anomaly():
        y = (x * 2).detach()
    assert re.fullmatch(r"it, or what it was computed from, was detached from the graph in .*test_reasons\.py, line \d+, in test_what_was_detached: y = \(x \* 2\)\.detach\(\)",
                        y.why_no_grad())
    assert "make it with" in cg.tensor(1.0).detach().why_no_grad(), "it was never in a graph"


def test_results_keep_no_gradient_unless_told_to():
    x = leaf()
    y = x * 3
    z = y * y
    z.backward(retain_graph=True)
    assert "no leaf but a result of multiply" in y.why_no_grad()
    y.retain_grad()
    assert "no backward has reached it since retain_grad() was called" in y.why_no_grad()
    z.backward()
    assert y.why_no_grad() == "it has a gradient, of shape ()"


def test_leaves():
    x, other = leaf(), leaf()
    y = x * x
    assert x.why_no_grad(y) == "backward() has not been called on the result, or the gradient was set to None since"
    assert "no backward has reached it" in x.why_no_grad()
    assert "the result does not depend on it" in other.why_no_grad(y)
    assert "the result has no graph: it, or what it was computed from, was detached" in x.why_no_grad(y.detach())
    y.backward()
    assert x.why_no_grad() == "it has a gradient, of shape ()"
    assert "freed by a backward or grad(), which did not reach it" in other.why_no_grad(y)
    x.grad = None
    assert "its gradient was set to None" in x.why_no_grad()
    assert x.why_no_grad(x) == "backward() has not been called on the result, or the gradient was set to None since"


@pytest.mark.parametrize(("leave", "reason"), [
    (lambda x: x.detach(), "detached from the graph"),
    (lambda x: (x * 2).data, "detached from the graph"),
    (lambda x: (x * 2).detach_(), "detached from the graph"),
    (lambda x: x > 1, "by an operation without slope, such as a comparison, argmax or a cast to integers"),
    (lambda x: x.argmax(), "by an operation without slope"),
    (lambda x: x.long(), "by an operation without slope"),
    (lambda x: cg.no_grad()(lambda: x * 2)(), "computed under no_grad"),
    (lambda x: cg.inference_mode()(lambda: x.exp())(), "computed under no_grad"),
    (lambda x: x.requires_grad_(False), "told to require no grad any more; requires_grad_() undoes that"),
])
def test_a_reason_is_inherited_with_its_line(leave, reason):
    def use(y):
        return (y.float() * 2.0 + 1.0, y.float().sum().exp(), cg.stack([y.float(), y.float()]).reshape(-1)[0], cg.where(cg.tensor(True), y.float(), 0.0),
                y.float().topk(1).values if y.ndim else y.float(), y.float().unsqueeze(0).T, cg.ones(1) @ y.float().reshape(-1)[:1], y.half().tanh())

    for z in use(leave(leaf([2.0, 3.0]))):
        assert z.is_leaf and not z.requires_grad
        assert re.fullmatch(rf"it, or what it was computed from, was .*{re.escape(reason)}.*; inside cgrad.autograd.detect_anomaly\(\) the line is noted",
                            z.why_no_grad()), z.why_no_grad()
    x = leaf([2.0, 3.0])
    with cg.autograd.detect_anomaly():
        y = leave(x)
    place = re.escape(__file__) + r", line \d+, in (<lambda>|test_a_reason_is_inherited_with_its_line)"
    for z in use(y):
        assert re.search(rf"{re.escape(reason)}.* in {place}", z.why_no_grad()), z.why_no_grad()
        with pytest.raises(RuntimeError, match=reason.split(" (")[0].split("(")[0]):
            z.sum().backward()


def test_several_reasons_are_all_named():
    x = leaf()
    with cg.no_grad():
        y = x * x.detach()
    assert "detached from the graph and computed under no_grad" in y.why_no_grad()


def test_whoever_asks_for_grad_again_starts_anew():
    y = leaf([1.0]).detach().requires_grad_()
    z = (y * 2).sum()
    assert z.requires_grad and "no backward has reached it" in y.why_no_grad()
    z.backward()
    assert y.grad.tolist() == [2.0]
    frozen = nn.Linear(2, 1).requires_grad_(False)
    assert "told to require no grad" in frozen(cg.ones(1, 2)).why_no_grad()
    assert frozen.requires_grad_()(cg.ones(1, 2)).requires_grad


def test_integers_of_tracked_tensors_cannot_simply_be_converted():
    assert cg.tensor([1, 2]).why_no_grad().endswith("convert it first, x.float()")
    assert leaf([1.0, 2.0]).argmax().why_no_grad() == (
        "its dtype is int64, and only floating point tensors have gradients, none of which goes through integers: a smooth stand-in has one, "
        "such as softmax for argmax and sigmoid for a comparison")


def test_what_went_through_numbers_says_that_it_may_have():
    x = leaf()
    y = x * 2
    for z in (cg.tensor(y.item()) * 3, cg.tensor(y.detach().numpy()), cg.asarray(np.asarray(y)) + 1, cg.tensor(float(y))):
        assert z.why_no_grad().endswith("what went through Python numbers, NumPy or cgrad.tensor() has left the graph")
        assert "the result has no graph: it does not require grad" in x.why_no_grad(z)


@pytest.mark.parametrize("function", [
    lambda x: nn.functional.relu(x), lambda x: cg.where(x > 0, x, 0.0), lambda x: x.round(), lambda x: x * 0.0, lambda x: cg.clip(x, 0.0, 1.0),
])
def test_a_gradient_of_zeros_is_told(function):
    x = leaf([-1.5, -2.5])
    function(x).sum().backward()
    assert x.grad.tolist() == [0, 0]
    assert re.fullmatch(r"it has a gradient, of shape \(2,\), but all of it is 0: .*dead relu.*cgrad\.explain\(result\) shows where the 0 comes in", x.why_no_grad())


def test_a_gradient_that_is_not_finite_is_told():
    x = leaf([0.0, 1.0, 4.0])
    cg.sqrt(x).sum().backward()
    assert x.why_no_grad() == ("it has a gradient, of shape (3,), but 1 of its 3 elements are not finite: cgrad.autograd.detect_anomaly() finds where "
                               "that begins")
    x = cg.zeros(0, requires_grad=True)
    x.sum().backward()
    assert x.why_no_grad() == "it has a gradient, of shape (0,)"


def test_rules_of_own_operations_are_named():
    class Stingy(cg.Op):
        def forward(self, x):
            return x * 2

        def backward(self, grads):
            return None

    x = leaf()
    y = Stingy()(x) * 1.0
    y.backward(retain_graph=True)
    assert x.why_no_grad(y) == ("backward() has not been called on the result, or the gradient was set to None since, or a rule has given None (of Stingy)")
    z = Stingy()(x)
    z.backward()
    assert "or a rule has given None (of Stingy)" in x.why_no_grad(z)


def test_other_tensors_in_its_place():
    net = nn.Linear(2, 1)
    weight = net.weight
    other = copy.deepcopy(net)
    net.load_state_dict(other.state_dict(), assign=True)
    for result in (net(cg.ones(1, 2)).sum(), other(cg.ones(1, 2)).sum()):
        assert weight.why_no_grad(result).startswith("the result does not depend on it: the recorded operations start from other tensors (a copy, a new parameter")
    assert net.weight.why_no_grad(net(cg.ones(1, 2)).sum()).startswith("backward() has not been called")
    x = leaf()
    assert "the result does not depend on it" in x.why_no_grad(nn.Parameter((x * 2).detach()) * 3)


def test_gradients_that_are_returned_are_not_kept():
    x = leaf()
    y = x * x
    cg.autograd.grad(y, x, retain_graph=True)
    assert x.why_no_grad().endswith("grad() and cgrad.func return gradients and leave .grad alone")
    cg.autograd.grad(y, x)
    assert "freed by a backward or grad(), which did not reach it or left .grad alone" in x.why_no_grad(y)
    seen = []
    cg.func.grad(lambda x: (seen.append(x.why_no_grad()), x * x)[1])(cg.tensor(3.0))
    cg.func.vmap(lambda x: (seen.append(x.why_no_grad()), x * x)[1])(cg.ones(2))
    cg.func.jvp(lambda x: (seen.append(x.why_no_grad()), x * x)[1], (cg.tensor(3.0),), (cg.tensor(1.0),))
    assert len(seen) == 3 and all(isinstance(text, str) for text in seen)


def test_a_checkpoint_and_a_map_are_on_the_way():
    x = leaf([1.0, 2.0])
    for y in (cg.checkpoint(lambda x: x * 2, x), cg.func.vmap(lambda v: v * 2)(x), cg.func.vmap(lambda v: v * x.sum())(cg.ones(3))):
        assert x.why_no_grad(y.sum()).startswith("backward() has not been called on the result")


def test_the_result_must_be_a_tensor():
    with pytest.raises(TypeError, match="why_no_grad: the result must be a tensor, got float"):
        leaf().why_no_grad(3.0)
