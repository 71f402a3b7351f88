"""Stochastic gradient descent."""
from __future__ import annotations

from cgrad.core.forward.optim import sgd_step
from cgrad.optim.optimizer import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    Parameters
    ----------
    params : iterable of Tensor or dict
    lr : float, default 1e-3
    momentum : float, default 0
    dampening : float, default 0
    weight_decay : float, default 0
        Adds ``weight_decay * p`` to the gradient.
    nesterov : bool, default False
        Needs momentum and no dampening.
    maximize : bool, default False
        Climb instead of descending.

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

    def __init__(self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, *, maximize=False):
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize})

    def check_options(self, group):
        for what in ("lr", "momentum", "weight_decay"):
            self._require(group, what, group[what] >= 0)
        if group["nesterov"] and (group["momentum"] <= 0 or group["dampening"] != 0):
            raise ValueError(f"SGD: nesterov needs a positive momentum and no dampening, got momentum={group['momentum']} "
                             f"and dampening={group['dampening']}")

    def update(self, group):
        params = [p for p in group["params"] if p.grad is not None]
        momentum = group["momentum"]
        buffers = [self.state[p].get("momentum_buffer") for p in params] if momentum else None
        sgd_step(params, [p.grad for p in params], buffers, group["lr"], momentum, group["dampening"], bool(group["nesterov"]),
                 group["weight_decay"], bool(group["maximize"]))
        if momentum:
            for p, buffer in zip(params, buffers, strict=True):
                self.state[p]["momentum_buffer"] = buffer
