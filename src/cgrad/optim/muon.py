"""Muon: momentum whose matrix is made orthogonal, for the weight matrices of hidden layers."""
from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import cgrad as cg
from cgrad.optim.optimizer import Optimizer, computing

__all__ = ["Muon"]


class Muon(Optimizer):
    """Momentum, made orthogonal by Newton and Schulz' iteration: all directions of a matrix move at about the same speed.

    Parameters
    ----------
    params : iterable of Tensor or dict
        Matrices (2-d). Biases, norms, embeddings and usually the last layer belong into an optimizer of their own, say `AdamW`.
    lr : float or 0-d Tensor, default 1e-3
    weight_decay : float, default 0.1
        Shrinks the parameters directly, as in `AdamW`.
    momentum : float, default 0.95
    nesterov : bool, default True
    ns_coefficients : (float, float, float), default (3.4445, -4.775, 2.0315)
    eps : float, default 1e-7
        The least norm that is divided by.
    ns_steps : int, default 5
    adjust_lr_fn : {None, 'original', 'match_rms_adamw'}
        For a matrix of shape (m, n) the rate is multiplied by ``sqrt(max(1, m / n))`` or, so that rates of AdamW fit,
        ``0.2 * sqrt(max(m, n))``.
    maximize : bool, default False
        Climb instead of descending.

    Raises
    ------
    ValueError
        If a parameter is not a matrix.

    Notes
    -----
    With gradient g: ``b = momentum * b + (1 - momentum) * g``, then the iteration ``x = a x + (b x x' + c (x x')**2) x`` from
    ``x = b / norm(b)``, whose singular values end between about 0.7 and 1.2. It is computed in the dtype of the parameter (PyTorch:
    bfloat16). Jordan (2024), https://kellerjordan.github.io/posts/muon; Liu et al., arXiv:2502.16982.

    Examples
    --------
    >>> import cgrad as cg
    >>> net = cg.nn.Sequential(cg.nn.Linear(4, 8), cg.nn.ReLU(), cg.nn.Linear(8, 2))
    >>> matrices = [p for p in net.parameters() if p.ndim == 2]
    >>> others = [p for p in net.parameters() if p.ndim != 2]
    >>> optimizers = [cg.optim.Muon(matrices, lr=0.02), cg.optim.AdamW(others, lr=3e-4)]
    >>> net(cg.ones((3, 4))).sum().backward()
    >>> for opt in optimizers:
    ...     opt.step()
    """

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
                 nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
                 ns_steps: int = 5, adjust_lr_fn: str | None = None, *, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
                                  "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
                                  "maximize": maximize})

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr", "weight_decay", "momentum")
        self._require(group, "ns_coefficients", len(group["ns_coefficients"]) == 3, "3 numbers")
        self._require(group, "ns_steps", 0 <= group["ns_steps"] < 100, "from 0 to 99")
        self._require(group, "adjust_lr_fn", group["adjust_lr_fn"] in (None, "original", "match_rms_adamw"), "None, 'original' or 'match_rms_adamw'")
        for p in group["params"]:
            if p.ndim != 2:
                raise ValueError(f"Muon: parameters must be matrices, got one of shape {tuple(p.shape)}; give others to AdamW, say")

    def update(self, group: dict[str, Any]) -> None:
        lr, momentum = float(group["lr"]), group["momentum"]
        for p in group["params"]:
            if p.grad is None:
                continue
            g, state = computing(p.grad.detach()), self.state[p]
            if group["maximize"]:
                g = -g
            old = state.get("momentum_buffer")
            b = g * (1 - momentum) if old is None else old + (g - old) * (1 - momentum)
            x = orthogonal(g + (b - g) * momentum if group["nesterov"] else b, group["ns_coefficients"], group["ns_steps"], group["eps"])
            m, n = p.shape
            rate = lr * (0.2 * math.sqrt(max(m, n)) if group["adjust_lr_fn"] == "match_rms_adamw" else math.sqrt(max(1, m / max(n, 1))))
            p.copy_(p * (1 - lr * group["weight_decay"]) - x * rate)
            state["momentum_buffer"] = b


def orthogonal(x, coefficients, steps, eps):
    """Newton and Schulz' iteration."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    x = x.mT if tall else x                 # the smaller Gram matrix
    x = x / max(math.sqrt(float((x * x).sum())), eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = x * a + (gram * b + (gram @ gram) * c) @ x
    return x.mT if tall else x
