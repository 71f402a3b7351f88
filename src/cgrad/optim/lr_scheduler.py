"""Schedules of the learning rate; call ``scheduler.step()`` after ``optimizer.step()``, once an epoch (or once a batch)."""
from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, SupportsFloat

from cgrad.core.source import warn
from cgrad.core.tensor import Tensor
from cgrad.ops.define import open_doors
from cgrad.optim.optimizer import Optimizer, check_numbers

__all__ = ["LRScheduler", "LambdaLR", "MultiplicativeLR", "StepLR", "MultiStepLR", "ConstantLR", "LinearLR", "ExponentialLR", "PolynomialLR",
           "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR", "ReduceLROnPlateau", "SequentialLR", "ChainedScheduler"]


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
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _functions: ClassVar[tuple[str, ...]] = ()     # attributes that are lists of functions, of which `state_dict` takes the attributes

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self._take(optimizer)
        check_numbers(self, {**self.__dict__, "last_epoch": last_epoch})
        before, rates = [dict(group) for group in optimizer.param_groups], self._now()
        try:
            self._begin(last_epoch == -1)
            for i, group in enumerate(optimizer.param_groups):
                if last_epoch == -1:
                    group.setdefault("initial_lr", float(group["lr"]))
                elif "initial_lr" not in group:
                    raise KeyError(f"{type(self).__name__}: to go on from epoch {last_epoch}, parameter group {i} must have 'initial_lr'; "
                                   "load the optimizer's state dict first")
            self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
            self.last_epoch = last_epoch
            self._first_step()
        except BaseException:
            for group, old, lr in zip(optimizer.param_groups, before, rates, strict=True):
                group.clear()
                group.update(old)
                _put(group, lr)
            raise

    def _begin(self, new):
        """Put what a schedule needs into the parameter groups."""

    def _take(self, optimizer):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: expected an Optimizer, got {type(optimizer).__name__}")
        self.optimizer = optimizer

    def _first_step(self):
        """The step that the constructor takes: it sets the rates of the first epoch."""
        self._step_count = 0
        self._is_initial = True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of all groups for the epoch `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__}: a schedule needs a get_lr method")

    def _lr_from_start(self):
        """The same from nothing but the epoch, for a schedule that starts anew."""
        return self.get_lr()

    def step(self) -> None:
        """Go to the next epoch and set the rates.

        Warns
        -----
        UserWarning
            If the optimizer has taken no step before the first epoch ends: its rate would be skipped.
        """
        if self._step_count == 1 and not self.optimizer._stepped and type(self.optimizer).step is Optimizer.step:
            warn(f"{type(self).__name__}: call optimizer.step() before scheduler.step(), or the first learning rate ({self._last_lr[0]:g}) is skipped")
        self._step_count += 1
        self.last_epoch += 1
        self._set(self.get_lr())

    def _restart(self):
        self.last_epoch = 0
        self._set(self._lr_from_start())

    def _set(self, rates):
        groups = self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ValueError(f"{type(self).__name__}: the optimizer has {len(groups)} parameter groups, the schedule was made for {len(rates)}; "
                             "make schedules after the last add_param_group")
        for group, lr in zip(groups, rates, strict=True):
            _put(group, lr)
        self._last_lr = self._now()

    def get_last_lr(self) -> list[float]:
        """The rates that `step` set last."""
        return list(self._last_lr)

    def _now(self):
        return [float(group["lr"]) for group in self.optimizer.param_groups]

    def _for_groups(self, name, value):
        """One value for each parameter group."""
        n = len(self.optimizer.param_groups)
        values = list(value) if isinstance(value, (list, tuple)) else [value] * n
        if len(values) != n:
            raise ValueError(f"{type(self).__name__}: expected one {name} or {n}, one for each parameter group, got {len(values)}")
        return values

    def state_dict(self) -> dict[str, Any]:
        """All of the schedule but the optimizer; functions are not saved, of callable objects their attributes are."""
        state = {key: value for key, value in self.__dict__.items() if key != "optimizer"}
        for name in self._functions:
            state[name] = [None if f is None or isinstance(f, types.FunctionType) else dict(f.__dict__) for f in state[name]]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        state = {key: value for key, value in state_dict.items() if key != "optimizer"}
        for name in self._functions:
            for function, attributes in zip(getattr(self, name), state.pop(name, ()), strict=False):
                if attributes is not None:
                    function.__dict__.update(attributes)
        self.__dict__.update(state)


def _put(group, lr):
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callable
        One for all groups or one for each; functions are not saved in `state_dict`.
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.LambdaLR(opt, lambda epoch: 1 / (1 + epoch))
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _functions = ("lr_lambdas",)
    lr_lambdas: list[Callable[..., Any]]

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1) -> None:
        self._take(optimizer)
        self.lr_lambdas = self._for_groups("function", lr_lambda)
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"{type(self).__name__}: lr_lambda must be a function of the epoch, got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(LambdaLR):
    """Multiply the present rate by a function of the epoch, from the second epoch on.

    Parameters
    ----------
    optimizer : Optimizer
    lr_lambda : callable or list of callable
        One for all groups or one for each; functions are not saved in `state_dict`.
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.MultiplicativeLR(opt, lambda epoch: 0.5)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._now()
        return [lr * f(self.last_epoch) for lr, f in zip(self._now(), self.lr_lambdas, strict=True)]


class _FactorLR(LRScheduler):
    """The initial rate times `_factor_at(epoch)`, done as a factor on the present rate so that schedules can be combined."""

    _keeps_rate_on_resuming = False

    def get_lr(self) -> list[float]:
        t = self.last_epoch
        if t == 0:
            return [lr * self._factor_at(0) for lr in self._now()]
        if self._is_initial and self._keeps_rate_on_resuming:
            return self._now()
        ratio = self._ratio_at(t)
        return self._lr_from_start() if ratio is None else [lr * ratio for lr in self._now()]

    def _lr_from_start(self):
        return [base * self._factor_at(self.last_epoch) for base in self.base_lrs]

    def _ratio_at(self, t):
        """_factor_at(t) / _factor_at(t - 1); None where there is none."""
        before, now = self._factor_at(t - 1), self._factor_at(t)
        return 1.0 if before == now else now / before if before else None


class StepLR(_FactorLR):
    """Multiply the rate by `gamma` every `step_size` epochs.

    Parameters
    ----------
    optimizer : Optimizer
    step_size : int
    gamma : float, default 0.1
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
    >>> opt.step()
    >>> for _ in range(4):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size <= 0:
            raise ValueError(f"StepLR: step_size must be positive, got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return self.gamma ** (t // self.step_size)

    def _ratio_at(self, t):
        return 1.0 if t % self.step_size else self.gamma


class MultiStepLR(_FactorLR):
    """Multiply the rate by `gamma` at each epoch in `milestones`.

    Parameters
    ----------
    optimizer : Optimizer
    milestones : iterable of int
        One that is given twice counts twice.
    gamma : float, default 0.1
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.MultiStepLR(opt, [1, 3], gamma=0.5)
    >>> opt.step()
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return self.gamma ** sum(n for milestone, n in self.milestones.items() if milestone <= t)

    def _ratio_at(self, t):
        return self.gamma ** self.milestones.get(t, 0)


class ConstantLR(_FactorLR):
    """`factor` times the rate for `total_iters` epochs, then the rate itself.

    Parameters
    ----------
    optimizer : Optimizer
    factor : float, default 1/3
        In [0, 1].
    total_iters : int, default 5
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.ConstantLR(opt, factor=0.5, total_iters=4)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: the factor must lie in [0, 1], got {factor}")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return self.factor if t < self.total_iters else 1.0


class LinearLR(_FactorLR):
    """Go in a straight line from `start_factor` to `end_factor` times the initial rate within `total_iters` epochs.

    Parameters
    ----------
    optimizer : Optimizer
    start_factor : float, default 1/3
        In (0, 1].
    end_factor : float, default 1.0
        In [0, 1].
    total_iters : int, default 5
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=4)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.625]
    """

    _keeps_rate_on_resuming = True

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: the factors must lie in [0, 1] and the first not be 0, got {start_factor} and {end_factor}")
        if total_iters < 1:
            raise ValueError(f"LinearLR: total_iters must be at least 1, got {total_iters}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return self.start_factor + (self.end_factor - self.start_factor) * min(t, self.total_iters) / self.total_iters


class ExponentialLR(_FactorLR):
    """Multiply the rate by `gamma` every epoch.

    Parameters
    ----------
    optimizer : Optimizer
    gamma : float
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    _keeps_rate_on_resuming = True

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return self.gamma ** t

    def _ratio_at(self, t):
        return self.gamma


class PolynomialLR(_FactorLR):
    """Fall to zero as ``(1 - t / total_iters)**power``.

    Parameters
    ----------
    optimizer : Optimizer
    total_iters : int, default 5
    power : float, default 1.0
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.PolynomialLR(opt, total_iters=2, power=2.0)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    _keeps_rate_on_resuming = True

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        if total_iters < 1:
            raise ValueError(f"PolynomialLR: total_iters must be at least 1, got {total_iters}")
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _factor_at(self, t):
        return (1.0 - min(t, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Half a cosine wave from the initial rate down to `eta_min` within `T_max` epochs, then up again, and so on.

    Parameters
    ----------
    optimizer : Optimizer
    T_max : int
    eta_min : float, default 0
    last_epoch : int, default -1

    Notes
    -----
    ``eta_min + (base - eta_min) * (1 + cos(pi * t / T_max)) / 2``, written as a factor on the present rate so that schedules can be
    combined; Loshchilov and Hutter, arXiv:1608.03983.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max <= 0:
            raise ValueError(f"CosineAnnealingLR: T_max must be positive, got {T_max}")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, period, low = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._now()
        if (t - 1 - period) % (2 * period) == 0:     # the way up again starts from eta_min, where a factor cannot
            rise = (1 - math.cos(math.pi / period)) / 2
            return [lr + (base - low) * rise for lr, base in zip(self._now(), self.base_lrs, strict=True)]
        ratio = (1 + math.cos(math.pi * t / period)) / (1 + math.cos(math.pi * (t - 1) / period))
        return [low + (lr - low) * ratio for lr in self._now()]

    def _lr_from_start(self):
        return [self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine wave from the initial rate down to `eta_min`, again and again, each `T_mult` times as long as the last.

    Parameters
    ----------
    optimizer : Optimizer
    T_0 : int
        Epochs of the first wave.
    T_mult : int, default 1
    eta_min : float, default 0
    last_epoch : int, default -1

    Notes
    -----
    Loshchilov and Hutter, arXiv:1608.03983.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=2)
    >>> opt.step()
    >>> schedule.step(1.0)          # may be a part of an epoch, as in ``epoch + i / batches``
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"CosineAnnealingWarmRestarts: T_0 must be a positive integer, got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"CosineAnnealingWarmRestarts: T_mult must be an integer of at least 1, got {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        wave = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * wave for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to any one, and set the rates."""
        if epoch is None:
            epoch = self.last_epoch + 1
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: an epoch is not negative, got {epoch}")
        self.T_cur, self.T_i = epoch, self.T_0
        if self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            while self.T_cur >= self.T_i:
                self.T_cur, self.T_i = self.T_cur - self.T_i, self.T_i * self.T_mult
        self._step_count += 1
        self.last_epoch = math.floor(epoch)
        self._set(self.get_lr())

    def _restart(self):
        self.step(0)


class _MomentumLR(LRScheduler):
    """What CyclicLR and OneCycleLR share: momentum (or beta1) that goes against the rate."""

    def _set_momentum(self, wanted, base_momentum, max_momentum):
        self.cycle_momentum = wanted
        if not wanted:
            return
        options = self.optimizer.defaults
        if "momentum" not in options and "betas" not in options:
            raise ValueError(f"{type(self).__name__}: {type(self.optimizer).__name__} has neither momentum nor betas; set cycle_momentum=False")
        self.use_beta1 = "betas" in options
        self.base_momentums = self._for_groups("base_momentum", base_momentum)
        self.max_momentums = self._for_groups("max_momentum", max_momentum)

    def _begin(self, new):
        if new and self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                group["base_momentum"], group["max_momentum"] = low, high
                self._put_momentum(group, high)

    def _put_momentum(self, group, value):
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_MomentumLR):
    """Go up and down between two rates, a step each batch.

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : float or list of float
        The bounds; for all groups or one for each.
    step_size_up : int, default 2000
        Steps of the way up.
    step_size_down : int, optional
        Steps of the way down; as many if not given.
    mode : {'triangular', 'triangular2', 'exp_range'}
        The same height each time, half the last, or ``gamma**t``.
    gamma : float, default 1.0
    scale_fn : callable, optional
        Height as a function of the number of the cycle (from 1) or of the step, instead of a mode.
    scale_mode : {'cycle', 'iterations'}
    cycle_momentum : bool, default True
        Let the momentum (or beta1) go against the rate.
    base_momentum, max_momentum : float or list of float, default 0.8 and 0.9
    last_epoch : int, default -1

    Notes
    -----
    Smith, arXiv:1506.01186.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = cg.optim.lr_scheduler.CyclicLR(opt, base_lr=0.5, max_lr=1.0, step_size_up=2)
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    _functions = ("_scale_fn",)

    def __init__(self, optimizer: Optimizer, base_lr: float | Sequence[float], max_lr: float | Sequence[float], step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
                 scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: float | Sequence[float] = 0.8,
                 max_momentum: float | Sequence[float] = 0.9, last_epoch: int = -1) -> None:
        self._take(optimizer)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError(f"CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got {mode!r}")
        self._bottom = self._for_groups("base_lr", base_lr)
        self.max_lrs = self._for_groups("max_lr", max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        if not step_size_up > 0 or not down > 0:
            raise ValueError(f"CyclicLR: the step sizes must be positive, got {step_size_up} and {down}")
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self._scale_fn = [scale_fn]
        self._set_momentum(cycle_momentum, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = self._bottom

    def _begin(self, new):
        super()._begin(new)
        for group, lr in zip(self.optimizer.param_groups, self._bottom if new else (), strict=new):
            _put(group, lr)

    def scale_fn(self, x: float) -> float:
        """Height of a cycle."""
        (own,) = self._scale_fn
        if own is not None:
            return own(x)
        return 1.0 if self.mode == "triangular" else 0.5 ** (x - 1) if self.mode == "triangular2" else self.gamma ** x

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for group, low, high in zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True):
                self._put_momentum(group, high - (high - low) * height)
        return [low + (high - low) * height for low, high in zip(self._bottom, self.max_lrs, strict=True)]


class OneCycleLR(_MomentumLR):
    """Up to `max_lr` and down to nearly nothing, once in the whole training, a step each batch.

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : float or list of float
    total_steps : int, optional
        All steps of the training; or give `epochs` and `steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
    pct_start : float, default 0.3
        Part of the steps in which the rate rises.
    anneal_strategy : {'cos', 'linear'}
    cycle_momentum : bool, default True
        Let the momentum (or beta1) go against the rate.
    base_momentum, max_momentum : float or list of float, default 0.85 and 0.95
    div_factor : float, default 25
        The first rate is ``max_lr / div_factor``.
    final_div_factor : float, default 1e4
        The last rate is the first one divided by this.
    three_phase : bool, default False
        Come down to the first rate symmetrically, then to the last.
    last_epoch : int, default -1

    Raises
    ------
    ValueError
        From `step`, when there were more than `total_steps`.

    Notes
    -----
    Smith and Topin, arXiv:1708.07120.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> schedule = cg.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    >>> opt.step()
    >>> for _ in range(2):
    ...     schedule.step()
    >>> schedule.get_last_lr()
    [1.0]
    """

    def __init__(self, optimizer: Optimizer, max_lr: float | Sequence[float], total_steps: int | None = None, epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
                 base_momentum: float | Sequence[float] = 0.85, max_momentum: float | Sequence[float] = 0.95, div_factor: float = 25.0,
                 final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1) -> None:
        self._take(optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR: give total_steps, or both epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"OneCycleLR: the number of steps must be a positive integer, got {total_steps}")
        if not 0 <= pct_start <= 1:
            raise ValueError(f"OneCycleLR: pct_start must lie in [0, 1], got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = total_steps
        self._anneal_func_type = anneal_strategy
        rise = pct_start * total_steps
        # Where each phase ends, and the keys of a group between which rate and momentum go in it.
        self._schedule_phases = [(rise - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
        if three_phase:
            self._schedule_phases += [(2 * rise - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                                      (total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")]
        else:
            self._schedule_phases += [(total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        self._peaks = [(high, high / div_factor, high / div_factor / final_div_factor) for high in self._for_groups("max_lr", max_lr)]
        self._set_momentum(cycle_momentum, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _begin(self, new):
        super()._begin(new)
        for group, rates in zip(self.optimizer.param_groups, self._peaks if new else (), strict=new):
            group["max_lr"], group["initial_lr"], group["min_lr"] = rates

    def get_lr(self) -> list[float]:
        step, start = self.last_epoch, 0.0
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: this is step {step}, the schedule was made for {self.total_steps}")
        for phase in self._schedule_phases[:-1]:
            if step <= phase[0]:
                break
            start = phase[0]
        else:
            phase = self._schedule_phases[-1]       # it may be one step longer than the schedule
        end, *keys = phase
        t = (step - start) / (end - start) if end != start else 1.0
        if self._anneal_func_type == "cos":
            t = (1 - math.cos(math.pi * t)) / 2
        lr_from, lr_to, momentum_from, momentum_to = keys
        groups = self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                self._put_momentum(group, group[momentum_from] + (group[momentum_to] - group[momentum_from]) * t)
        return [group[lr_from] + (group[lr_to] - group[lr_from]) * t for group in groups]


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rate by `factor` when a metric has not become better for more than `patience` epochs.

    Parameters
    ----------
    optimizer : Optimizer
    mode : {'min', 'max'}
        Whether the metric is to fall or to rise.
    factor : float, default 0.1
        Less than 1.
    patience : int, default 10
    threshold : float, default 1e-4
        By how much better is better.
    threshold_mode : {'rel', 'abs'}
    cooldown : int, default 0
        Epochs after a change in which nothing is counted.
    min_lr : float or list of float, default 0
    eps : float, default 1e-8
        A smaller change is not made.

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1, factor=0.5)
    >>> for loss in [3.0, 2.0, 2.0, 2.0]:
    ...     schedule.step(loss)
    >>> schedule.get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4,
                 threshold_mode: str = "rel", cooldown: int = 0, min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8) -> None:
        self._take(optimizer)
        if not factor < 1:
            raise ValueError(f"ReduceLROnPlateau: the factor must be less than 1, got {factor}")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"ReduceLROnPlateau: mode must be 'min' or 'max' and threshold_mode 'rel' or 'abs', got {mode!r} and {threshold_mode!r}")
        self.mode = mode
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.cooldown = cooldown
        self.min_lrs = self._for_groups("min_lr", min_lr)
        self.eps = eps
        check_numbers(self, self.__dict__)
        self.last_epoch = 0
        self.best = math.inf if mode == "min" else -math.inf
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = self._now()

    def step(self, metrics: SupportsFloat) -> None:  # type: ignore[override]
        """Look at the metric of an epoch and set the rates.

        Parameters
        ----------
        metrics : float or 0-d Tensor
        """
        current = float(metrics)
        self.last_epoch += 1
        self.num_bad_epochs += 1
        if self._is_better(current):
            self.best = current
            self.num_bad_epochs = 0
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            self._set([new if old - new > self.eps else old
                       for old, new in ((lr, max(lr * self.factor, low)) for lr, low in zip(self._now(), self.min_lrs, strict=False))])
        self._last_lr = self._now()

    def _is_better(self, value):
        margin = self.threshold if self.threshold_mode == "abs" else self.threshold * self.best if math.isfinite(self.best) else 0.0
        return value < self.best - margin if self.mode == "min" else value > self.best + margin


class _Several(LRScheduler):
    """A schedule made of schedules."""

    _schedulers: list[LRScheduler]

    def _check(self, optimizer, schedulers):
        if not schedulers:
            raise ValueError(f"{type(self).__name__}: there must be at least one schedule")
        self._schedulers = list(schedulers)
        self._take(schedulers[0].optimizer if optimizer is None else optimizer)
        for i, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"{type(self).__name__}: schedule {i} is a ReduceLROnPlateau, whose step needs a metric; step it by itself")
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(f"{type(self).__name__}: schedule {i} belongs to another optimizer")

    def state_dict(self) -> dict[str, Any]:
        """All of the schedules but the optimizer."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        states = state_dict["_schedulers"]
        if len(states) != len(self._schedulers):
            raise ValueError(f"{type(self).__name__}.load_state_dict: there are {len(self._schedulers)} schedules, the state dict has {len(states)}")
        for scheduler, state in zip(self._schedulers, states, strict=True):
            scheduler.load_state_dict(state)
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})


class SequentialLR(_Several):
    """One schedule after another.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : list of LRScheduler
    milestones : list of int
        The epochs at which the second and further ones begin, each from its own start.
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> S = cg.optim.lr_scheduler
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = S.SequentialLR(opt, [S.LinearLR(opt, 0.5, total_iters=2), S.ExponentialLR(opt, 0.1)], milestones=[2])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates += schedule.get_last_lr()
    ...     opt.step()
    ...     schedule.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.1]
    """

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1) -> None:
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"SequentialLR: {len(schedulers)} schedules need {len(schedulers) - 1} milestones, got {len(milestones)}")
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        first = self._schedulers[bisect_right(self._milestones, 0)]
        for group in optimizer.param_groups:             # undo what making the schedules did
            _put(group, group["initial_lr"])
        _undo(self._schedulers)
        first._first_step()
        self._last_lr = self._now()

    def step(self) -> None:
        """Go to the next epoch and set the rates."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i]._restart()
        else:
            self._schedulers[i].step()
        self._last_lr = self._now()


def _undo(schedulers):
    for scheduler in schedulers:
        if isinstance(scheduler, _Several):
            _undo(scheduler._schedulers)
        else:
            scheduler.last_epoch -= 1


class ChainedScheduler(_Several):
    """Several schedules at once: each changes the rate that the one before has set.

    Parameters
    ----------
    schedulers : list of LRScheduler
    optimizer : Optimizer, optional
        That of the schedules.

    Examples
    --------
    >>> import cgrad as cg
    >>> S = cg.optim.lr_scheduler
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = S.ChainedScheduler([S.ConstantLR(opt, 0.5, total_iters=2), S.ExponentialLR(opt, 0.5)])
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._check(optimizer, schedulers)
        self._last_lr = self._now()

    def step(self) -> None:
        """Go to the next epoch and set the rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._now()


open_doors(globals())
