"""Adagrad and its kin: steps scaled by squares of the gradient (Adadelta, RMSprop) or by its signs (Rprop)."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import cgrad as cg
from cgrad.optim.optimizer import FusedOptimizer, shared

__all__ = ["Adadelta", "Adagrad", "RMSprop", "Rprop"]


class Adagrad(FusedOptimizer):
    """Steps scaled by the root of the sum of all squared gradients.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-2
    lr_decay : float, default 0
        The rate at step t is ``lr / (1 + (t - 1) * lr_decay)``.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    initial_accumulator_value : float, default 0
        What the sum starts from.
    eps : float, default 1e-10
        Added to the root.
    foreach, fused : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.
    maximize : bool, default False
        Climb instead of descending.

    Notes
    -----
    With gradient g: ``s = s + g**2``, ``p = p - lr * g / (sqrt(s) + eps)``. Duchi, Hazan and Singer (2011).

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.Adagrad([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    rule = "Adagrad"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "eps": eps, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")

    def tensors(self, group):
        return {"sum": group["initial_accumulator_value"]}

    def plan(self, group, first, step):
        return (step + 1,), (*shared(group), float(group["lr"]) / (1 + step * group["lr_decay"]), group["eps"])


class Adadelta(FusedOptimizer):
    """Steps scaled by running means of squared gradients and of squared steps.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1.0
        Factor on the step.
    rho : float, default 0.9
        How slowly the means forget, in [0, 1].
    eps : float, default 1e-6
        Added under the roots.
    weight_decay : float, default 0
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.
    maximize : bool, default False

    Notes
    -----
    With gradient g::

        v = rho * v + (1 - rho) * g**2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d**2
        p = p - lr * d

    Zeiler, arXiv:1212.5701.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.Adadelta([w], lr=100.0)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> round(w.item(), 3)
    0.684
    """

    rule = "Adadelta"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "eps", "weight_decay")
        self._require(group, "rho", 0 <= group["rho"] <= 1, "in [0, 1]")

    def tensors(self, group):
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def plan(self, group, first, step):
        return (step + 1,), (*shared(group), float(group["lr"]), group["rho"], 1 - group["rho"], group["eps"])


class RMSprop(FusedOptimizer):
    """Steps scaled by a running mean of the squared gradient.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-2
    alpha : float, default 0.99
        How slowly the mean forgets.
    eps : float, default 1e-8
        Added to the root of the mean.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    momentum : float, default 0
    centered : bool, default False
        Divide by the standard deviation of the gradient instead.
    maximize : bool, default False
        Climb instead of descending.
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    With gradient g::

        v = alpha * v + (1 - alpha) * g**2
        b = momentum * b + g / (sqrt(v) + eps)
        p = p - lr * b

    Tieleman and Hinton (2012), in PyTorch's form.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.RMSprop([w], lr=0.01)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    rule = "RMSprop"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                                  "centered": centered, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "alpha", "eps", "weight_decay", "momentum")

    def tensors(self, group):
        return {"square_avg": 0.0, "grad_avg": 0.0 if group["centered"] else None, "momentum_buffer": 0.0 if group["momentum"] > 0 else None}

    def plan(self, group, first, step):
        return (step + 1,), (*shared(group), float(group["lr"]), group["alpha"], 1 - group["alpha"], group["eps"], group["momentum"])


class Rprop(FusedOptimizer):
    """Steps of the sign of the gradient, longer while it stays and shorter after it has changed; for full batches.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-2
        Length of the first step.
    etas : (float, float), default (0.5, 1.2)
        Factors on the length after a change of sign and without.
    step_sizes : (float, float), default (1e-6, 50)
        Bounds of the length.
    maximize : bool, default False
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    An element whose gradient has changed its sign waits for one step. Riedmiller and Braun (1993), in PyTorch's form.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.Rprop([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    rule = "Rprop"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50.0), *, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr")
        self._require(group, "etas", len(group["etas"]) == 2 and 0 < group["etas"][0] < 1 < group["etas"][1], "one number in (0, 1) and one above 1")
        sizes = group["step_sizes"]
        self._require(group, "step_sizes", len(sizes) == 2 and 0 <= sizes[0] <= sizes[1], "two numbers, the smaller first")

    def tensors(self, group):
        return {"prev": 0.0, "step_size": float(group["lr"])}

    def plan(self, group, first, step):
        return (step + 1,), (-1.0 if group["maximize"] else 1.0, 0.0, *group["etas"], *group["step_sizes"])
