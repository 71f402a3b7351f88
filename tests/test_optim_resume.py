"""A run that goes on from its saved state is bitwise the unbroken run: every optimizer, schedules, dropout's random numbers."""
import pickle

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn, optim
from cgrad.nn import functional as F
from cgrad.optim import lr_scheduler as S

OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01}, "Adam": {"amsgrad": True}, "AdamW": {}, "NAdam": {}, "RAdam": {"betas": (0.9, 0.5)}, "Adamax": {},
    "Adagrad": {"lr_decay": 0.1}, "Adadelta": {}, "RMSprop": {"momentum": 0.9, "centered": True}, "Rprop": {}, "ASGD": {"t0": 2}, "LBFGS": {"max_iter": 3},
    "Muon": {},
}
SCHEDULES = {
    "StepLR": lambda o: S.StepLR(o, 2, 0.5), "MultiStepLR": lambda o: S.MultiStepLR(o, [1, 4]), "ConstantLR": lambda o: S.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda o: S.LinearLR(o, 0.5, total_iters=5), "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9), "PolynomialLR": lambda o: S.PolynomialLR(o, 7),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 3), "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 2, 2),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 0.1, 9), "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1, 2), "LambdaLR": lambda o: S.LambdaLR(o, lambda t: 1 / (1 + t)),
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda t: 0.9), "ReduceLROnPlateau": lambda o: S.ReduceLROnPlateau(o, patience=1, threshold=0.5),
    "SequentialLR": lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.5, total_iters=2), S.CosineAnnealingLR(o, 3)], [2]),
    "ChainedScheduler": lambda o: S.ChainedScheduler([S.ConstantLR(o, 0.5, 2), S.ExponentialLR(o, 0.9)]),
    "SWALR": lambda o: optim.swa_utils.SWALR(o, 0.05, 4),
}
X = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)


class Run:
    def __init__(self, seed, optimizer, schedule, options):
        cg.manual_seed(seed)
        self.net = nn.Sequential(nn.Linear(4, 8, bias=optimizer != "Muon"), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 2, bias=optimizer != "Muon"))
        self.optimizer = getattr(optim, optimizer)(self.net.parameters(), lr=0.02, **options)
        self.schedule = SCHEDULES[schedule](self.optimizer)

    def closure(self):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.net(cg.tensor(X)), cg.tensor(X[:, :2]))
        loss.backward()
        return loss

    def go(self, steps):
        for _ in range(steps):
            loss = self.optimizer.step(self.closure)
            if isinstance(self.schedule, S.ReduceLROnPlateau):
                self.schedule.step(loss)
            else:
                self.schedule.step()

    def save(self):
        return pickle.dumps((self.net.state_dict(), self.optimizer.state_dict(), self.schedule.state_dict(), cg.get_rng_state()))

    def load(self, saved):
        net, optimizer, schedule, numbers = pickle.loads(saved)
        self.net.load_state_dict(net)
        self.optimizer.load_state_dict(optimizer)
        self.schedule.load_state_dict(schedule)
        cg.set_rng_state(numbers)


@pytest.mark.parametrize(("optimizer", "schedule"), [*[(name, "CosineAnnealingLR") for name in OPTIMIZERS], *[("SGD", name) for name in SCHEDULES],
                                                     ("Adam", "OneCycleLR")])
def test_a_resumed_run_is_the_unbroken_run(optimizer, schedule):
    options = OPTIMIZERS[optimizer]
    first = Run(0, optimizer, schedule, options)
    first.go(3)
    saved = first.save()
    first.go(4)
    second = Run(1, optimizer, schedule, options)
    second.load(saved)
    second.go(4)
    for a, b in zip(first.net.parameters(), second.net.parameters(), strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
    assert first.optimizer.param_groups[0]["lr"] == second.optimizer.param_groups[0]["lr"]
    assert first.schedule.state_dict() == second.schedule.state_dict()


def test_states_in_pytorchs_layout_are_read():
    """Steps, products and rates as 0-d tensors, options that are not ours, a buffer of None."""
    extra = {"foreach": None, "capturable": False, "differentiable": False}
    p = cg.tensor([1.0, 2.0], requires_grad=True)
    opt = optim.NAdam([p])
    zeros = cg.zeros(2)
    opt.load_state_dict({"state": {0: {"step": cg.tensor(3.0), "mu_product": cg.tensor(0.5), "exp_avg": zeros, "exp_avg_sq": zeros}},
                         "param_groups": [{**opt.state_dict()["param_groups"][0], **extra}]})
    assert opt.state[p]["step"] == 3 and opt.state[p]["mu_product"] == 0.5 and opt.state[p]["exp_avg"] is not zeros
    p.grad = cg.ones(2)
    opt.step()
    assert opt.state[p]["step"] == 4
    opt = optim.SGD([p], momentum=0.9)
    opt.load_state_dict({"state": {0: {"momentum_buffer": None}}, "param_groups": opt.state_dict()["param_groups"]})
    opt.step()
    assert opt.state[p]["momentum_buffer"].tolist() == [1.0, 1.0]
