"""Stochastic gradient descent, plain and averaged."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

import cgrad as cg
from cgrad.core.forward.optim import fused_step
from cgrad.optim.optimizer import FusedOptimizer, shared

__all__ = ["ASGD", "SGD"]


class SGD(FusedOptimizer):
    """Stochastic gradient descent with momentum.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-3
    momentum : float, default 0
    dampening : float, default 0
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    nesterov : bool, default False
        Needs momentum and no dampening.
    maximize : bool, default False
        Climb instead of descending.
    foreach, fused : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    With gradient g and momentum buffer b, which starts as the first g::

        b = momentum * b + (1 - dampening) * g
        p = p - lr * (g + momentum * b if nesterov else b)

    Sutskever et al. (2013), in PyTorch's form, where the rate multiplies the buffer.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w.tolist()
    [0.699...]
    """

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "momentum", "weight_decay")
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(f"SGD: nesterov needs a positive momentum and no dampening, got momentum={group['momentum']} "
                             f"and dampening={group['dampening']}")

    def update(self, group: dict[str, Any]) -> None:
        head, lr, momentum = shared(group), float(group["lr"]), group["momentum"]
        if not momentum:
            fused_step("SGD", group["params"], self.state, {}, {}, lambda first: ((), (*head, lr)))
            return
        # The buffer starts as the first gradient: as if from zeros, without dampening.
        fused_step("momentum", group["params"], self.state, {"momentum_buffer": 0.0}, {}, lambda first: (
            (), (*head, lr, momentum, 1.0 if first else 1.0 - group["dampening"], group["nesterov"])))


class ASGD(FusedOptimizer):
    """Averaged stochastic gradient descent: a rate that falls, and in ``state[p]["ax"]`` the mean of the parameters from step `t0` on.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-2
    lambd : float, default 1e-4
        How much each step shrinks the parameters.
    alpha : float, default 0.75
        How the rate falls.
    t0 : float, default 1e6
        When averaging begins.
    weight_decay : float, default 0
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.
    maximize : bool, default False

    Notes
    -----
    At step t, with gradient g::

        p = p * (1 - lambd * eta) - eta * g
        ax = ax + (p - ax) * mu
        eta = lr / (1 + lambd * lr * t)**alpha;  mu = 1 / max(1, t - t0)        (for the next step)

    Polyak and Juditsky, SIAM J. Control Optim. 30 (1992), in PyTorch's form.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.ASGD([w], lr=0.1, lambd=0.0)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    rule = "ASGD"
    scalars: ClassVar[dict[str, Any]] = {"step": 0, "eta": None, "mu": 1.0}

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
                 weight_decay: float = 0.0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize},
                         differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "weight_decay")

    def tensors(self, group):
        return {"ax": 0.0}

    def plan(self, group, first, step, eta, mu):
        lr, step = float(group["lr"]), step + 1
        eta = lr if eta is None else eta
        scalars = step, lr / (1 + group["lambd"] * lr * step) ** group["alpha"], 1 / max(1, step - group["t0"])
        return scalars, (*shared(group), 1 - group["lambd"] * eta, eta, mu)
