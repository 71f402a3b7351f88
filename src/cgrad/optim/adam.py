"""Adam and its kin: AdamW, NAdam, RAdam, Adamax."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

import cgrad as cg
from cgrad.optim.optimizer import FusedOptimizer, decoupled, shared

__all__ = ["Adam", "AdamW", "Adamax", "NAdam", "RAdam"]


class _Moments(FusedOptimizer):
    """What all have in common: options, and running means of the gradient and of its square."""

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "eps", "weight_decay")
        self._require(group, "betas", all([0 <= beta < 1 for beta in self._pair(group, "betas")]), "in [0, 1)")

    def tensors(self, group):
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    @staticmethod
    def means(group):
        """Coefficients of the running means."""
        beta1, beta2 = group["betas"]
        return 1 - beta1, beta2, 1 - beta2


class Adam(_Moments):
    """Adam: steps scaled by running moments of the gradient.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-3
    betas : (float, float), default (0.9, 0.999)
        How slowly the first and second moment forget, in [0, 1).
    eps : float, default 1e-8
        Added to the root of the second moment after the correction of its bias.
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    amsgrad : bool, default False
        Divide by the largest second moment so far (Reddi et al., 2018).
    maximize : bool, default False
        Climb instead of descending.
    foreach, fused, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.
    decoupled_weight_decay : bool, default False
        Decay as `AdamW` does.

    Notes
    -----
    At step t, with gradient g::

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        p = p - lr * (m / (1 - beta1**t)) / (sqrt(v / (1 - beta2**t)) + eps)

    Kingma and Ba, arXiv:1412.6980.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.Adam([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    rule = "Adam"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize, "decoupled_weight_decay": decoupled_weight_decay}, differentiable)

    def tensors(self, group):
        return {**super().tensors(group), "max_exp_avg_sq": 0.0 if group["amsgrad"] else None}

    def plan(self, group, first, step):
        step += 1
        beta1, beta2 = group["betas"]
        return (step,), (*decoupled(group), *self.means(group), float(group["lr"]) / (1 - beta1 ** step),
                         math.sqrt(1 - beta2 ** step), group["eps"])


class AdamW(Adam):
    """Adam with weight decay that shrinks the parameters directly, ``p = p * (1 - lr * weight_decay)``.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    weight_decay : float, default 1e-2
    amsgrad : bool, default False
    maximize : bool, default False
    foreach, fused, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    Loshchilov and Hutter, arXiv:1711.05101.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8500], requires_grad=True)
    """

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, differentiable=differentiable,
                         decoupled_weight_decay=True)


class NAdam(_Moments):
    """Adam with Nesterov's momentum.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 2e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    weight_decay : float, default 0
    momentum_decay : float, default 4e-3
    decoupled_weight_decay : bool, default False
        Decay as `AdamW` does.
    maximize : bool, default False
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    With the moments m and v of `Adam` and ``mu(t) = beta1 * (1 - 0.96**(t * momentum_decay) / 2)``::

        p = p - lr * ((1 - mu(t)) * g / (1 - mu(1)...mu(t)) + mu(t+1) * m / (1 - mu(1)...mu(t+1))) / (sqrt(v / (1 - beta2**t)) + eps)

    Dozat (2016).

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.NAdam([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> round(w.item(), 3)
    0.894
    """

    rule = "NAdam"
    scalars: ClassVar[dict[str, Any]] = {"step": 0, "mu_product": 1.0}

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}, differentiable)

    def check_options(self, group: dict[str, Any]) -> None:
        super().check_options(group)
        self._not_negative(group, "momentum_decay")

    def plan(self, group, first, step, mu_product):
        lr, step = float(group["lr"]), step + 1
        beta1, beta2 = group["betas"]
        mu, mu_next = (beta1 * (1 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        mu_product *= mu
        return (step, mu_product), (*decoupled(group), *self.means(group), lr * (1 - mu) / (1 - mu_product),
                                    lr * mu_next / (1 - mu_product * mu_next), 1 - beta2 ** step, group["eps"])


class RAdam(_Moments):
    """Adam that starts with plain momentum, until the variance of its second moment is known well enough.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 1e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    weight_decay : float, default 0
    decoupled_weight_decay : bool, default False
        Decay as `AdamW` does.
    maximize : bool, default False
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.

    Notes
    -----
    With the moments m and v of `Adam`, ``rho = 2 / (1 - beta2) - 1`` and ``r = rho - 2 t beta2**t / (1 - beta2**t)``::

        p = p - lr * m / (1 - beta1**t) * (sqrt((r - 4) (r - 2) rho / ((rho - 4) (rho - 2) r) * (1 - beta2**t)) / (sqrt(v) + eps) if r > 5 else 1)

    Liu et al., arXiv:1908.03265.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.RAdam([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.7000], requires_grad=True)
    """

    rule = "RAdam"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize}, differentiable)

    def plan(self, group, first, step):
        step += 1
        beta1, beta2 = group["betas"]
        correction = 1 - beta2 ** step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2 ** step / correction
        numerator = 0.0
        if length > 5:
            numerator = math.sqrt(correction * (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        return (step,), (*decoupled(group), *self.means(group), 1 - beta1 ** step, float(group["lr"]),
                         numerator, group["eps"])


class Adamax(_Moments):
    """Adam with the largest gradient, which fades, in place of the root of the second moment.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float or 0-d Tensor, default 2e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
        Added to the absolute gradient.
    weight_decay : float, default 0
    foreach, capturable : optional
        Read for PyTorch's sake; steps are always fused.
    differentiable : bool
        Only False: steps are not recorded.
    maximize : bool, default False

    Notes
    -----
    At step t, with gradient g::

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, abs(g) + eps)
        p = p - lr / (1 - beta1**t) * m / u

    Kingma and Ba, arXiv:1412.6980.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.tensor([1.0], requires_grad=True)
    >>> opt = cg.optim.Adamax([w], lr=0.1)
    >>> (3.0 * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.9000], requires_grad=True)
    """

    rule = "Adamax"

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
                 capturable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize}, differentiable)

    def tensors(self, group):
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def plan(self, group, first, step):
        step += 1
        beta1, beta2 = group["betas"]
        return (step,), (*shared(group), 1 - beta1, beta2, float(group["lr"]) / (1 - beta1 ** step), group["eps"])
