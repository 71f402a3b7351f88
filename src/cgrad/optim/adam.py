"""Adam and AdamW."""
from __future__ import annotations

import cgrad as cg
from cgrad.core.forward.optim import adam_step
from cgrad.optim.optimizer import Optimizer, computing

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam: steps scaled by running moments of the gradient.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float, default 1e-3
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

    _decoupled = False

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, *, maximize=False):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "maximize": maximize})

    def check_options(self, group):
        for what in ("lr", "eps", "weight_decay"):
            self._require(group, what, group[what] >= 0)
        self._require(group, "betas", len(group["betas"]) == 2 and all(0 <= beta < 1 for beta in group["betas"]))

    def update(self, group):
        params = [p for p in group["params"] if p.grad is not None]
        states = [self.state[p] for p in params]
        for p, state in zip(params, states, strict=True):
            if not state:
                state["step"] = 0
                state["exp_avg"] = cg.zeros_like(computing(p))
                state["exp_avg_sq"] = cg.zeros_like(computing(p))
            if group["amsgrad"] and "max_exp_avg_sq" not in state:
                state["max_exp_avg_sq"] = cg.zeros_like(computing(p))
        largest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else None
        adam_step(params, [p.grad for p in params], [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states],
                  largest, [state["step"] + 1 for state in states], group["lr"], *group["betas"], group["eps"], group["weight_decay"],
                  bool(group["maximize"]), self._decoupled)
        for state in states:
            state["step"] += 1


class AdamW(Adam):
    """Adam with weight decay that shrinks the parameters directly, ``p = p * (1 - lr * weight_decay)``.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float, default 1e-3
    betas : (float, float), default (0.9, 0.999)
    eps : float, default 1e-8
    weight_decay : float, default 1e-2
    amsgrad : bool, default False
    maximize : bool, default False

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

    _decoupled = True

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2, amsgrad=False, *, maximize=False):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)
