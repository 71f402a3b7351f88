"""The hint that zero_grad was forgotten: once, and never where adding up is meant."""
import warnings

import pytest

import cgrad as cg
from cgrad import nn, optim


@pytest.fixture
def p():
    return cg.tensor([1.0, 2.0], requires_grad=True)


def loss(*params):
    return sum((p * p).sum() for p in params)


def hints(action, times=4):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(times):
            action()
    return [str(w.message) for w in seen]


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.Rprop])
def test_forgetting_is_told_once(p, make):
    q = cg.tensor([1.0], requires_grad=True)                  # in a second group, without a gradient
    opt = make([{"params": [q]}, {"params": [p]}], lr=0.01)

    def forgetful():
        loss(p).backward()
        opt.step()

    (text,) = hints(forgetful)
    assert text.startswith(f"{make.__name__}.step: these gradients still hold those of an earlier step") and "zero_grad()" in text
    assert hints(forgetful) == []
    other = make([q], lr=0.01)
    assert len(hints(lambda: (loss(q).backward(), other.step()))) == 1         # each optimizer for itself


def test_the_warning_points_to_the_call(p):
    opt = optim.SGD([p])
    loss(p).backward()
    opt.step()
    loss(p).backward()
    with pytest.warns(UserWarning, match="zero_grad") as seen:
        opt.step()
    assert seen[0].filename == __file__


def test_optimizers_of_ones_own_tell_it_too(p):
    class Sign(optim.Optimizer):
        def update(self, group):
            for p in group["params"]:
                p.sub_(cg.sign(p.grad) * group["lr"])

    opt = Sign([p], {"lr": 0.1})
    assert len(hints(lambda: (loss(p).backward(), opt.step()))) == 1


@pytest.mark.parametrize("clip", [lambda p: nn.utils.clip_grad_norm_(p, 0.1), lambda p: nn.utils.clip_grad_value_(p, 0.1)])
def test_clipping_does_not_hide_it(p, clip):
    opt = optim.SGD([p])
    assert len(hints(lambda: (loss(p).backward(), clip([p]), opt.step()))) == 1


@pytest.mark.parametrize("zero", [
    lambda opt, p: opt.zero_grad(), lambda opt, p: opt.zero_grad(set_to_none=False), lambda opt, p: p.grad is None or p.grad.zero_(),
    lambda opt, p: setattr(p, "grad", None), lambda opt, p: p.grad is None or p.grad.mul_(0.5),
])
def test_whoever_zeroes_hears_nothing(p, zero):
    opt = optim.SGD([p], lr=0.01, momentum=0.9)

    def before():
        zero(opt, p)
        loss(p).backward()
        opt.step()

    def after():
        loss(p).backward()
        opt.step()
        zero(opt, p)

    assert hints(before) == []
    p.grad = None
    assert hints(after) == []


def test_a_module_that_zeroes():
    net = nn.Linear(2, 1)
    opt = optim.SGD(net.parameters(), lr=0.01)
    for how in (True, False):
        assert hints(lambda: (net.zero_grad(set_to_none=how), net(cg.ones(3, 2)).sum().backward(), opt.step())) == []   # noqa: B023


def test_adding_up_before_a_step_is_meant(p):
    opt = optim.Adam([p])

    def micro_batches():
        opt.zero_grad()
        for _ in range(3):
            loss(p).backward()
        opt.step()

    assert hints(micro_batches) == []


def test_two_optimizers_that_take_turns():
    """The generator's loss also fills the discriminator's gradients, which are zeroed before they are used."""
    generator, discriminator = nn.Linear(2, 2), nn.Linear(2, 1)
    g_opt, d_opt = optim.Adam(generator.parameters()), optim.Adam(discriminator.parameters())

    def turn():
        x = cg.ones(4, 2)
        d_opt.zero_grad()
        discriminator(generator(x).detach()).sum().backward()
        d_opt.step()
        g_opt.zero_grad()
        discriminator(generator(x)).sum().backward()
        g_opt.step()

    assert hints(turn) == []


def test_gradients_by_hand_and_steps_without_backward(p):
    opt = optim.SGD([p], lr=0.01)

    def new():
        p.grad = cg.ones(2)
        opt.step()

    def written():
        p.grad.copy_(cg.full((2,), 2.0))
        opt.step()

    assert hints(new) == hints(written) == hints(opt.step) == []


def test_zeroed_between_backward_and_step(p):
    """Added to a used gradient, but thrown away again before the step."""
    opt = optim.SGD([p], lr=0.01)

    def tangled():
        loss(p).backward()
        if p.grad is not None:
            p.grad.zero_()
        loss(p).backward()
        opt.step()

    assert hints(tangled) == []


def test_create_graph(p):
    opt = optim.SGD([p], lr=0.01)
    assert hints(lambda: (opt.zero_grad(), loss(p).backward(create_graph=True), opt.step())) == []
