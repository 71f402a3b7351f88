"""Schedules of the learning rate; call ``scheduler.step()`` after ``optimizer.step()``, once an epoch."""
from __future__ import annotations

import math
from bisect import bisect_right

from cgrad.optim.optimizer import Optimizer

__all__ = ["LRScheduler", "LambdaLR", "StepLR", "MultiStepLR", "ExponentialLR", "CosineAnnealingLR", "LinearLR"]


class LRScheduler:
    """Base class of schedules; a subclass writes `get_lr`.

    Parameters
    ----------
    optimizer : Optimizer
    last_epoch : int, default -1
        Number of the last epoch done, to go on with; -1 starts anew.

    Attributes
    ----------
    base_lrs : list of float
        The rates of the parameter groups at the start.
    last_epoch : int
        How often `step` was called.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Half(cg.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5 ** self.last_epoch for lr in self.base_lrs]
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = Half(opt)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, last_epoch=-1):
        name = type(self).__name__
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name}: expected an Optimizer, got {type(optimizer).__name__}")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"{name}: to go on from epoch {last_epoch}, parameter group {i} must have 'initial_lr'; "
                               "load the optimizer's state dict first")
        self.optimizer = optimizer
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def get_lr(self):
        """The rates of all groups for the epoch `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}: a schedule needs a get_lr method")

    def step(self):
        """Go to the next epoch and set the rates."""
        self.last_epoch += 1
        self._last_lr = [float(lr) for lr in self.get_lr()]
        for group, lr in zip(self.optimizer.param_groups, self._last_lr):
            group["lr"] = lr

    def get_last_lr(self):
        """The rates that `step` set last."""
        return list(self._last_lr)

    def _now(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        """All of the schedule but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict):
        """Take over what `state_dict` gave."""
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "optimizer"})


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callable
        One for all groups or one for each; not saved in `state_dict`.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch))
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f"LambdaLR: expected one function or {n}, one for each parameter group, got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self):
        return {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}


class StepLR(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` epochs.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        if step_size <= 0:
            raise ValueError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._now()
        return [lr * self.gamma for lr in self._now()]


class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each epoch in `milestones`.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.MultiStepLR(opt, [1, 3], gamma=0.5)
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones = sorted(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        hits = bisect_right(self.milestones, self.last_epoch) - bisect_right(self.milestones, self.last_epoch - 1)
        if self.last_epoch == 0:
            hits = 0
        return [lr * self.gamma ** hits for lr in self._now()]


class ExponentialLR(LRScheduler):
    """Multiply the rate by `gamma` every epoch.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return self._now() if self.last_epoch == 0 else [lr * self.gamma for lr in self._now()]


class LinearLR(LRScheduler):
    """Go in a straight line from `start_factor` to `end_factor` times the initial rate within `total_iters` epochs.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=4)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.625]
    """

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: the factors must lie in [0, 1] and the first not be 0, got {start_factor} and {end_factor}")
        if total_iters < 1:
            raise ValueError(f"LinearLR: total_iters must be at least 1, got {total_iters}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch):
        return self.start_factor + (self.end_factor - self.start_factor) * min(epoch, self.total_iters) / self.total_iters

    def get_lr(self):
        if self.last_epoch > self.total_iters:
            return self._now()
        ratio = self._factor(self.last_epoch) / self._factor(self.last_epoch - 1) if self.last_epoch > 0 else self.start_factor
        return [lr * ratio for lr in self._now()]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave from the initial rate down to `eta_min` within `T_max` epochs.

    Notes
    -----
    ``eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2``, written as a factor on the present rate so that schedules can be
    combined; Loshchilov and Hutter, arXiv:1608.03983.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        if T_max <= 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be positive, got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        t, period, low = self.last_epoch, self.T_max, self.eta_min
        if t == 0:
            return self._now()
        if (t - 1 - period) % (2 * period) == 0:     # the way up again starts from eta_min, where a factor cannot
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - low) * rise for lr, base in zip(self._now(), self.base_lrs)]
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [low + (lr - low) * ratio for lr in self._now()]
