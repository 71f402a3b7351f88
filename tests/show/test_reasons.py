"""why_no_grad names the reason."""
import re

import cgrad as cg


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
            assert y.why_no_grad() == "it was computed under no_grad, so nothing was recorded"
        assert "make it with" in (cg.tensor(1.0) * 2).why_no_grad()


def test_what_was_detached():
    x = leaf()
    assert "it was detached from the graph (inside cgrad.autograd.detect_anomaly() the line is noted)" == x.detach().why_no_grad()
    with cg.autograd.detect_anomaly():
        y = (x * 2).detach()
    assert re.fullmatch(r"it was detached from the graph in .*test_reasons\.py, line \d+, in test_what_was_detached: y = \(x \* 2\)\.detach\(\)",
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
    assert x.why_no_grad(y) == "backward() has not been called on the result"
    assert "no backward has reached it" in x.why_no_grad()
    assert "the result does not depend on it" in other.why_no_grad(y)
    assert "the result has no graph: it was detached" in x.why_no_grad(y.detach())
    y.backward()
    assert x.why_no_grad() == "it has a gradient, of shape ()"
    assert "freed by a backward, which did not reach it" in other.why_no_grad(y)
    x.grad = None
    assert "its gradient was set to None" in x.why_no_grad()
    assert x.why_no_grad(x) == "backward() has not been called on the result"
