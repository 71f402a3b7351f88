"""RMSprop."""
from __future__ import annotations

import cgrad as cg
from cgrad.optim.optimizer import Optimizer, computing

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """Steps scaled by a running mean of the squared gradient.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float, default 1e-2
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

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, *, maximize=False):
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum,
                                  "centered": centered, "maximize": maximize})

    def check_options(self, group):
        for what in ("lr", "alpha", "eps", "weight_decay", "momentum"):
            self._require(group, what, group[what] >= 0)

    def update(self, group):
        alpha, momentum = group["alpha"], group["momentum"]
        for p in group["params"]:
            if p.grad is None:
                continue
            g = computing(p.grad)
            state = self.state[p]
            if not state:
                state["step"] = 0
                state["square_avg"] = cg.zeros_like(g)
            state["step"] += 1
            if group["maximize"]:
                g = -g
            if group["weight_decay"]:
                g = g + p * group["weight_decay"]
            v = state["square_avg"].mul_(alpha).add_(g * g * (1 - alpha))
            if group["centered"]:
                if "grad_avg" not in state:
                    state["grad_avg"] = cg.zeros_like(g)
                mean = state["grad_avg"].mul_(alpha).add_(g * (1 - alpha))
                v = v - mean * mean
            step = g / (cg.sqrt(v) + group["eps"])
            if momentum > 0:
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = cg.zeros_like(g)
                step = state["momentum_buffer"].mul_(momentum).add_(step)
            p.sub_(step * group["lr"])
