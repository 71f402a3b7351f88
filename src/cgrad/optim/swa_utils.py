"""Averages of a model's weights over the training: the mean (SWA) or one that forgets (EMA)."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Any

import cgrad as cg
from cgrad.nn.batch_norm import _BatchNorm
from cgrad.nn.module import Module
from cgrad.ops.define import open_doors
from cgrad.optim.lr_scheduler import LRScheduler
from cgrad.optim.optimizer import Optimizer

__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """``decay * average + (1 - decay) * new``, for `AveragedModel`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.optim.swa_utils.get_ema_avg_fn(0.75)(cg.tensor(1.0), cg.tensor(2.0), 5)
    tensor(1.2500)
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"get_ema_avg_fn: the decay must lie in [0, 1], got {decay}")
    return lambda average, new, n: cg.lerp(average, new, 1 - decay)


def get_swa_avg_fn() -> Callable[..., Any]:
    """The mean of all so far, for `AveragedModel`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.optim.swa_utils.get_swa_avg_fn()(cg.tensor(1.0), cg.tensor(2.0), 3)
    tensor(1.2500)
    """
    return lambda average, new, n: average + (new - average) / (n + 1)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """`get_ema_avg_fn` for lists of tensors, in place.

    Examples
    --------
    >>> import cgrad as cg
    >>> averages = [cg.tensor(1.0)]
    >>> cg.optim.swa_utils.get_ema_multi_avg_fn(0.75)(averages, [cg.tensor(2.0)], 5)
    >>> averages
    [tensor(1.2500)]
    """
    return _in_place(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., Any]:
    """`get_swa_avg_fn` for lists of tensors, in place.

    Examples
    --------
    >>> import cgrad as cg
    >>> averages = [cg.tensor(1.0)]
    >>> cg.optim.swa_utils.get_swa_multi_avg_fn()(averages, [cg.tensor(2.0)], 3)
    >>> averages
    [tensor(1.2500)]
    """
    return _in_place(get_swa_avg_fn())


def _in_place(function):
    def update(averages, new, n):
        with cg.no_grad():
            for average, x in zip(averages, new, strict=True):
                average.copy_(function(average, x, n))
    return update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that the model has had.

    Parameters
    ----------
    model : Module
    device : optional
        Read for PyTorch's sake.
    avg_fn : callable, optional
        ``avg_fn(average, new, n)`` gives the new average of one tensor, n of which are in it; the mean (`get_swa_avg_fn`) if not given.
    multi_avg_fn : callable, optional
        The same for lists of tensors, in place.
    use_buffers : bool, default False
        Average floating-point buffers as well; else all buffers are copied.

    Notes
    -----
    Izmailov et al., arXiv:1803.05407. `update_parameters` copies at first and averages from the second call on. Functions are not
    in `state_dict`, ``n_averaged`` is.

    Examples
    --------
    >>> import cgrad as cg
    >>> from cgrad.optim.swa_utils import AveragedModel, get_ema_avg_fn
    >>> net = cg.nn.Linear(1, 1, bias=False)
    >>> average = AveragedModel(net, avg_fn=get_ema_avg_fn(0.5))
    >>> for value in [1.0, 2.0, 3.0]:
    ...     _ = cg.nn.init.constant_(net.weight, value)
    ...     average.update_parameters(net)
    >>> average(cg.ones((1, 1))).item()
    2.25
    """

    n_averaged: cg.Tensor
    avg_fn: Callable[..., Any] | None
    multi_avg_fn: Callable[..., Any] | None

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
                 multi_avg_fn: Callable[..., Any] | None = None, use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", cg.tensor(0, dtype=cg.int64))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the model's present parameters into the average."""
        parts = [(own.detach(), new.detach()) for own, new in zip(self.module.parameters(), model.parameters(), strict=True)]
        buffers = [(own.detach(), new.detach()) for own, new in zip(self.module.buffers(), model.buffers(), strict=True)]
        for own, new in (*parts, *buffers):
            if own.shape != new.shape:
                raise ValueError(f"AveragedModel: the model has a tensor of shape {tuple(new.shape)} where the average has {tuple(own.shape)}")
        copied = [pair for pair in buffers if not (self.use_buffers and pair[0].dtype.is_floating_point)]
        if self.use_buffers:
            parts += [pair for pair in buffers if pair[0].dtype.is_floating_point]
        n = self.n_averaged.item()
        for own, new in parts + copied if n == 0 else copied:
            own.copy_(new)
        if n > 0 and parts:
            update = self.multi_avg_fn or _in_place(self.avg_fn or get_swa_avg_fn())
            averages, new = zip(*parts, strict=True)
            update(list(averages), list(new), n)
        self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Take the running statistics of all batch norms anew from the data.

    Parameters
    ----------
    loader : iterable
        Gives batches: tensors, or tuples and lists whose first element is one.
    model : Module
    device : optional
        Read for PyTorch's sake.

    Examples
    --------
    >>> import cgrad as cg
    >>> net = cg.nn.BatchNorm1d(1)
    >>> cg.optim.swa_utils.update_bn([cg.tensor([[1.0], [3.0]]), cg.tensor([[5.0], [7.0]])], net)
    >>> net.running_mean
    tensor([4.])
    """
    norms = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not norms:
        return
    training = model.training
    model.train()
    try:
        for module in norms:
            module.reset_running_stats()
            module.momentum = None               # the plain mean over all batches
        with cg.no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    finally:
        for module, momentum in norms.items():
            module.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """Go from the present rate to a constant one within some epochs, for the time of averaging.

    Parameters
    ----------
    optimizer : Optimizer
    swa_lr : float or list of float
        The rate at the end; for all groups or one for each.
    anneal_epochs : int, default 10
    anneal_strategy : {'cos', 'linear'}
    last_epoch : int, default -1

    Examples
    --------
    >>> import cgrad as cg
    >>> opt = cg.optim.SGD([cg.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = cg.optim.swa_utils.SWALR(opt, swa_lr=0.5, anneal_epochs=2, anneal_strategy="linear")
    >>> opt.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.75]
    """

    def __init__(self, optimizer: Optimizer, swa_lr: float | Sequence[float], anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1) -> None:
        self._take(optimizer)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"SWALR: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"SWALR: anneal_epochs must be an integer that is not negative, got {anneal_epochs!r}")
        self._swa_lrs = self._for_groups("swa_lr", swa_lr)
        self.anneal_epochs = anneal_epochs
        self._anneal_strategy = anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _begin(self, new):
        for group, lr in zip(self.optimizer.param_groups, self._swa_lrs, strict=True):
            group["swa_lr"] = lr

    def _part(self, step):
        """How much of the final rate there is after a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        # Another schedule may have changed the rate since, so the start of the way is worked out from where we are.
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._now(), strict=True):
            end = group["swa_lr"]
            start = end if before == 1 else (lr - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


open_doors(globals())
