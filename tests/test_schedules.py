"""Schedules of the learning rate against closed formulas, going on from a saved state, and averages of weights."""
import copy
import math
import pickle
import warnings

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn, optim
from cgrad.optim import lr_scheduler as schedules
from cgrad.optim import swa_utils


def optimizer(lr=0.8, groups=1, **options):
    params = [{"params": [cg.zeros(1, requires_grad=True)]} for _ in range(groups)]
    return optim.SGD(params, lr=lr, **options)


def rates(make, n, **options):
    opt = optimizer(**options)
    schedule = make(opt)
    out = []
    for _ in range(n):
        out.append(opt.param_groups[0]["lr"])
        assert schedule.get_last_lr() == [out[-1]]
        opt.step()
        schedule.step()
    return out


def cosine(t, length, high=0.8, low=0.1):
    return low + (high - low) * (1 + math.cos(math.pi * t / length)) / 2


def warm(t):
    """Waves of 2, 6, 18 epochs."""
    length = 2
    while t >= length:
        t, length = t - length, 3 * length
    return cosine(t, length)


def triangle(t, up=2, down=4):
    t = t % (up + down)
    return t / up if t <= up else 1 - (t - up) / down


def between(a, b, t):
    return a + (b - a) * (1 - math.cos(math.pi * t)) / 2


def one_cycle(t):       # max 1.0, 10 steps, a rise of 3
    return between(0.04, 1.0, t / 2) if t <= 2 else between(1.0, 0.04 / 1e4, (t - 2) / 7)


S = schedules
SCHEDULES = {
    "StepLR": (lambda o: S.StepLR(o, 2, gamma=0.5), lambda t: 0.8 * 0.5 ** (t // 2)),
    "MultiStepLR": (lambda o: S.MultiStepLR(o, [4, 1, 4], gamma=0.1), lambda t: 0.8 * 0.1 ** ((t >= 1) + 2 * (t >= 4))),
    "ConstantLR": (lambda o: S.ConstantLR(o, 0.25, total_iters=3), lambda t: 0.2 if t < 3 else 0.8),
    "ConstantLR from 0": (lambda o: S.ConstantLR(o, 0.0, total_iters=3), lambda t: 0.0 if t < 3 else 0.8),
    "ExponentialLR": (lambda o: S.ExponentialLR(o, 0.9), lambda t: 0.8 * 0.9**t),
    "LinearLR": (lambda o: S.LinearLR(o, 0.25, 0.5, total_iters=4), lambda t: 0.8 * (0.25 + 0.25 * min(t, 4) / 4)),
    "LinearLR to 0": (lambda o: S.LinearLR(o, 1.0, 0.0, total_iters=4), lambda t: 0.8 * (1 - min(t, 4) / 4)),
    "PolynomialLR": (lambda o: S.PolynomialLR(o, total_iters=5, power=2.0), lambda t: 0.8 * (1 - min(t, 5) / 5) ** 2),
    "CosineAnnealingLR": (lambda o: S.CosineAnnealingLR(o, T_max=4, eta_min=0.1), lambda t: cosine(t, 4)),
    "CosineAnnealingWarmRestarts": (lambda o: S.CosineAnnealingWarmRestarts(o, 2, 3, eta_min=0.1), warm),
    "CosineAnnealingWarmRestarts, all alike": (lambda o: S.CosineAnnealingWarmRestarts(o, 3, eta_min=0.1), lambda t: cosine(t % 3, 3)),
    "LambdaLR": (lambda o: S.LambdaLR(o, lambda t: 1 / (1 + t)), lambda t: 0.8 / (1 + t)),
    "MultiplicativeLR": (lambda o: S.MultiplicativeLR(o, lambda t: t / (1 + t)), lambda t: 0.8 / (1 + t)),
    "CyclicLR": (lambda o: S.CyclicLR(o, 0.5, 1.0, 2, 4, cycle_momentum=False), lambda t: 0.5 + 0.5 * triangle(t)),
    "CyclicLR, triangular2": (lambda o: S.CyclicLR(o, 0.5, 1.0, 2, 4, "triangular2", cycle_momentum=False), lambda t: 0.5 + 0.5 * triangle(t) / 2 ** (t // 6)),
    "CyclicLR, exp_range": (lambda o: S.CyclicLR(o, 0.5, 1.0, 3, mode="exp_range", gamma=0.9, cycle_momentum=False),
                            lambda t: 0.5 + 0.5 * triangle(t, 3, 3) * 0.9**t),
    "CyclicLR, scale_fn": (lambda o: S.CyclicLR(o, 0.5, 1.0, 2, 4, scale_fn=lambda n: 1 / n, cycle_momentum=False),
                           lambda t: 0.5 + 0.5 * triangle(t) / (1 + t // 6)),
    "OneCycleLR": (lambda o: S.OneCycleLR(o, 1.0, total_steps=10, cycle_momentum=False), one_cycle),
    "SequentialLR": (lambda o: S.SequentialLR(o, [S.ConstantLR(o, 0.5, 9), S.ExponentialLR(o, 0.5), S.CosineAnnealingLR(o, 3, 0.1)], [3, 5]),
                     lambda t: 0.4 if t < 3 else 0.8 * 0.5 ** (t - 3) if t < 5 else cosine(t - 5, 3)),
    "ChainedScheduler": (lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.5, 3), S.ExponentialLR(o, 0.9)]), lambda t: (0.4 if t < 3 else 0.8) * 0.9**t),
    "SWALR": (lambda o: swa_utils.SWALR(o, 0.05, anneal_epochs=4), lambda t: between(0.8, 0.05, min(t, 4) / 4)),
    "SWALR, linear": (lambda o: swa_utils.SWALR(o, 0.05, anneal_epochs=4, anneal_strategy="linear"), lambda t: 0.8 - 0.75 * min(t, 4) / 4),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_follow_their_formula(name):
    make, formula = SCHEDULES[name]
    n = 10 if "OneCycle" in name else 15
    np.testing.assert_allclose(rates(make, n), [formula(t) for t in range(n)], rtol=1e-9, atol=1e-16)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("before", [1, 3, 6])
def test_schedules_go_on_exactly_from_their_state(name, before):
    make, _ = SCHEDULES[name]
    whole = rates(make, 9)
    opt = optimizer()
    schedule = make(opt)
    for _ in range(before):
        opt.step()
        schedule.step()
    saved = pickle.loads(pickle.dumps((opt.state_dict(), schedule.state_dict())))
    untouched = copy.deepcopy(saved)
    other = optimizer()
    again = make(other)
    other.load_state_dict(saved[0])
    again.load_state_dict(saved[1])
    assert saved[1] == untouched[1]
    assert again.get_last_lr() == schedule.get_last_lr()
    for want in whole[before:]:
        assert other.param_groups[0]["lr"] == want
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again.step()


@pytest.mark.parametrize("name", [n for n in SCHEDULES if n not in ("SequentialLR", "ChainedScheduler", "OneCycleLR")])
def test_a_rate_in_a_tensor_is_written_into(name):
    make, formula = SCHEDULES[name]
    lr = cg.tensor(0.8, dtype=cg.float64)
    opt = optimizer(lr)
    schedule = make(opt)
    for t in range(8):
        assert opt.param_groups[0]["lr"] is lr
        assert lr.item() == pytest.approx(formula(t), rel=1e-9)
        opt.step()
        schedule.step()


@pytest.mark.parametrize("name", ["StepLR", "MultiStepLR", "ExponentialLR", "LinearLR", "PolynomialLR", "CosineAnnealingLR",
                                  "CosineAnnealingWarmRestarts", "LambdaLR", "CyclicLR", "OneCycleLR"])
def test_last_epoch_goes_on_from_the_optimizers_state(name):
    """The constructor takes the step into the epoch after `last_epoch`, with the rate that was saved."""
    make, formula = SCHEDULES[name]
    opt = optimizer()
    schedule = make(opt)
    for _ in range(3):
        opt.step()
        schedule.step()
    other = optimizer()
    other.load_state_dict(opt.state_dict())
    cls = {"StepLR": lambda o: S.StepLR(o, 2, 0.5, 2), "MultiStepLR": lambda o: S.MultiStepLR(o, [4, 1, 4], 0.1, 2),
           "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9, 2), "LinearLR": lambda o: S.LinearLR(o, 0.25, 0.5, 4, 2),
           "PolynomialLR": lambda o: S.PolynomialLR(o, 5, 2.0, 2), "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 4, 0.1, 2),
           "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 2, 3, 0.1, 2), "LambdaLR": lambda o: S.LambdaLR(o, lambda t: 1 / (1 + t), 2),
           "CyclicLR": lambda o: S.CyclicLR(o, 0.5, 1.0, 2, 4, cycle_momentum=False, last_epoch=2),
           "OneCycleLR": lambda o: S.OneCycleLR(o, 1.0, total_steps=10, cycle_momentum=False, last_epoch=2)}[name]
    again = cls(other)
    for t in range(3, 9):
        assert again.last_epoch == t and other.param_groups[0]["lr"] == pytest.approx(formula(t), rel=1e-9)
        other.step()
        again.step()


def test_schedules_can_be_combined():
    opt = optimizer(1.0)
    both = [S.ExponentialLR(opt, 0.5), S.StepLR(opt, 2, gamma=0.1)]
    opt.step()
    for _ in range(2):
        for schedule in both:
            schedule.step()
    assert opt.param_groups[0]["lr"] == pytest.approx(0.025)


def test_each_group_has_its_function_and_rate():
    opt = optim.SGD([{"params": cg.zeros(1, requires_grad=True)}, {"params": cg.zeros(1, requires_grad=True), "lr": 2.0}], lr=1.0)
    S.LambdaLR(opt, [lambda t: 0.5, lambda t: 0.1])
    assert [g["lr"] for g in opt.param_groups] == [0.5, pytest.approx(0.2)]
    with pytest.raises(ValueError, match="2"):
        S.LambdaLR(opt, [lambda t: 1.0])
    schedule = S.CyclicLR(opt, [0.1, 0.2], [0.3, 0.6], 2, cycle_momentum=False)
    opt.step()
    schedule.step()
    assert schedule.get_last_lr() == [pytest.approx(0.2), pytest.approx(0.4)]
    opt.add_param_group({"params": cg.zeros(1, requires_grad=True)})
    with pytest.raises(ValueError, match="3 parameter groups"):
        schedule.step()


def test_callable_objects_are_saved_by_their_attributes():
    class Slope:
        def __init__(self, slope):
            self.slope = slope

        def __call__(self, t):
            return 1 / (1 + self.slope * t)

    saved = S.LambdaLR(optimizer(), Slope(2.0)).state_dict()
    fresh = S.LambdaLR(optimizer(), Slope(1.0))
    fresh.load_state_dict(saved)
    assert fresh.lr_lambdas[0].slope == 2.0 and saved["lr_lambdas"] == [{"slope": 2.0}]


@pytest.mark.parametrize(("make", "options", "key"), [(optim.SGD, {"momentum": 0.5}, "momentum"), (optim.Adam, {}, "betas")])
def test_momentum_goes_against_the_rate(make, options, key):
    for schedule_of, low, high, turn in [(lambda o: S.CyclicLR(o, 0.5, 1.0, 2), 0.8, 0.9, 2), (lambda o: S.OneCycleLR(o, 1.0, total_steps=10), 0.85, 0.95, 2)]:
        opt = make([cg.zeros(1, requires_grad=True)], lr=0.1, **options)
        schedule = schedule_of(opt)
        seen = []
        for _ in range(4):
            value = opt.param_groups[0][key]
            seen.append(value if key == "momentum" else value[0])
            opt.step()
            schedule.step()
        assert seen[0] == pytest.approx(high) and seen[turn] == pytest.approx(low) and low < seen[1] < high and low < seen[3] < high
    with pytest.raises(ValueError, match="cycle_momentum"):
        S.CyclicLR(optim.Adagrad([cg.zeros(1, requires_grad=True)]), 0.1, 0.2)


def test_one_cycle_in_three_phases_and_its_end():
    opt = optimizer()
    schedule = S.OneCycleLR(opt, 1.0, epochs=2, steps_per_epoch=5, pct_start=0.4, anneal_strategy="linear", cycle_momentum=False, three_phase=True,
                            div_factor=10.0, final_div_factor=10.0)
    got = []
    for _ in range(10):
        got += schedule.get_last_lr()
        opt.step()
        schedule.step()
    np.testing.assert_allclose(got, [0.1, 0.4, 0.7, 1.0, 0.7, 0.4, 0.1, 0.07, 0.04, 0.01], rtol=1e-12)
    with pytest.raises(ValueError, match="step 11"):
        schedule.step()


def test_warm_restarts_by_parts_of_an_epoch():
    opt = optimizer()
    schedule = S.CosineAnnealingWarmRestarts(opt, 2, 3, eta_min=0.1)
    for t in np.arange(0, 10, 0.25):
        schedule.step(t)
        assert schedule.get_last_lr()[0] == pytest.approx(warm(t))
    with pytest.raises(ValueError, match="negative"):
        schedule.step(-1)


def test_plateau():
    def run(metrics, **options):
        opt = optimizer(1.0)
        schedule = S.ReduceLROnPlateau(opt, factor=0.5, **options)
        for metric in metrics:
            schedule.step(metric)
        assert schedule.get_last_lr() == [opt.param_groups[0]["lr"]]
        return opt.param_groups[0]["lr"]

    assert run([3, 2, 1], patience=0) == 1.0
    assert run([1, 1, 1], patience=1) == 0.5 and run([1, 1], patience=1) == 1.0 and run([1, 1, 1], patience=0) == 0.25
    assert run([1, 2, 3], mode="max", patience=0) == 1.0 and run([3, 2, 1], mode="max", patience=0) == 0.25
    assert run([1.0, 0.95], patience=0, threshold=0.1) == 0.5 and run([1.0, 0.95], patience=0, threshold=0.01) == 1.0
    assert run([10.0, 9.95], patience=0, threshold=0.1, threshold_mode="abs") == 0.5
    assert run([1, 1, 1, 1], patience=0, cooldown=2) == 0.5
    assert run([1] * 9, patience=0, min_lr=0.3) == 0.3
    assert run([math.nan, math.nan], patience=0) == 0.25
    assert run([cg.tensor(1.0), cg.tensor(1.0)], patience=0) == 0.5
    schedule = S.ReduceLROnPlateau(optimizer(), patience=2)
    for metric in (2.0, 3.0, 3.0):
        schedule.step(metric)
    again = S.ReduceLROnPlateau(optimizer())
    again.load_state_dict(pickle.loads(pickle.dumps(schedule.state_dict())))
    again.step(3.0)
    assert again.get_last_lr() == [pytest.approx(0.08)]


def test_the_order_of_calls_is_watched():
    opt = optimizer()
    schedule = S.StepLR(opt, 1)
    with pytest.warns(UserWarning, match=r"StepLR: call optimizer.step\(\) before scheduler.step\(\)"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
        opt = optimizer()
        schedule = S.StepLR(opt, 1)
        opt.step()
        schedule.step()


@pytest.mark.parametrize(("make", "error"), [
    (lambda o: S.StepLR(o, 0), ValueError), (lambda o: S.CosineAnnealingLR(o, 0), ValueError), (lambda o: S.LinearLR(o, 0.0), ValueError),
    (lambda o: S.LinearLR(o, total_iters=0), ValueError), (lambda o: S.StepLR(3, 1), TypeError), (lambda o: S.LRScheduler(o), NotImplementedError),
    (lambda o: S.StepLR(o, 1, last_epoch=3), KeyError), (lambda o: S.ConstantLR(o, 1.5), ValueError), (lambda o: S.PolynomialLR(o, 0), ValueError),
    (lambda o: S.CosineAnnealingWarmRestarts(o, 0), ValueError), (lambda o: S.CosineAnnealingWarmRestarts(o, 1, 0), ValueError),
    (lambda o: S.CyclicLR(o, 0.1, 1.0, mode="square"), ValueError), (lambda o: S.CyclicLR(o, 0.1, 1.0, 0), ValueError),
    (lambda o: S.OneCycleLR(o, 1.0), ValueError), (lambda o: S.OneCycleLR(o, 1.0, -1), ValueError), (lambda o: S.OneCycleLR(o, 1.0, 9, pct_start=2), ValueError),
    (lambda o: S.OneCycleLR(o, 1.0, 9, anneal_strategy="log"), ValueError), (lambda o: S.ReduceLROnPlateau(o, factor=1.0), ValueError),
    (lambda o: S.ReduceLROnPlateau(o, mode="low"), ValueError), (lambda o: S.LambdaLR(o, 0.5), TypeError),
    (lambda o: S.SequentialLR(o, [], []), ValueError), (lambda o: S.SequentialLR(o, [S.StepLR(o, 1)], [1]), ValueError),
    (lambda o: S.ChainedScheduler([S.ReduceLROnPlateau(o)]), ValueError), (lambda o: S.ChainedScheduler([S.StepLR(o, 1)], optimizer()), ValueError),
    (lambda o: swa_utils.SWALR(o, 0.1, anneal_strategy="log"), ValueError), (lambda o: swa_utils.SWALR(o, 0.1, -1), ValueError),
])
def test_bad_schedules_are_refused(make, error):
    with pytest.raises(error):
        make(optimizer())


# ------------------------------------------------------------------ averages of weights
def weights(net, values, average):
    for value in values:
        with cg.no_grad():
            net.weight.fill_(value)
        average.update_parameters(net)
    return average.module.weight.item()


def test_averages():
    def net():
        return nn.Linear(1, 1, bias=False)

    a = swa_utils.AveragedModel
    values = [1.0, 2.0, 6.0]
    assert weights(*(lambda n: (n, values, a(n)))(net())) == pytest.approx(3.0)
    ema = 0.75 * (0.75 * 1 + 0.25 * 2) + 0.25 * 6
    for options in ({"avg_fn": swa_utils.get_ema_avg_fn(0.75)}, {"multi_avg_fn": swa_utils.get_ema_multi_avg_fn(0.75)}):
        n = net()
        average = a(n, **options)
        assert weights(n, values, average) == pytest.approx(ema) and average.n_averaged.item() == 3
    assert weights(*(lambda n: (n, values, a(n, multi_avg_fn=swa_utils.get_swa_multi_avg_fn())))(net())) == pytest.approx(3.0)
    own = lambda average, new, n: cg.maximum(average, new)   # noqa: E731
    assert weights(*(lambda n: (n, [3.0, 1.0], a(n, avg_fn=own)))(net())) == 3.0
    with pytest.raises(ValueError, match="not both"):
        a(net(), avg_fn=own, multi_avg_fn=own)
    with pytest.raises(ValueError, match="decay"):
        swa_utils.get_ema_avg_fn(1.5)


def test_an_average_goes_on_from_its_state_dict():
    net = nn.Linear(1, 1, bias=False)
    average = swa_utils.AveragedModel(net)
    weights(net, [1.0, 3.0], average)
    again = swa_utils.AveragedModel(net)
    again.load_state_dict(average.state_dict())
    assert weights(net, [5.0], again) == pytest.approx(3.0) and again.n_averaged.item() == 3


def test_buffers_are_copied_or_averaged():
    for use, want in ((False, 3.0), (True, 2.0)):
        net = nn.BatchNorm1d(1)
        average = swa_utils.AveragedModel(net, use_buffers=use)
        for value in (1.0, 3.0):
            net.running_mean.fill_(value)
            net.num_batches_tracked.fill_(int(value))
            average.update_parameters(net)
        assert average.module.running_mean.item() == want and average.module.num_batches_tracked.item() == 3


def test_update_bn_leaves_mode_and_momentum():
    net = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.Linear(2, 2)).eval()
    batches = np.random.default_rng(0).standard_normal((3, 8, 2)).astype(np.float32)
    swa_utils.update_bn([(cg.tensor(batch), None) for batch in batches], net)
    np.testing.assert_allclose(net[0].running_mean.numpy(), batches.mean((0, 1)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(net[0].running_var.numpy(), batches.var(axis=1, ddof=1).mean(0), rtol=1e-5)
    assert net[0].momentum == 0.3 and not net.training and not net[0].training
    swa_utils.update_bn([], nn.Linear(1, 1))
