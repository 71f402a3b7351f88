"""L-BFGS: a quasi-Newton method with a limited memory, for smooth problems without noise."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.optim.optimizer import Optimizer, computing

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS; each step takes several iterations and needs a closure.

    Parameters
    ----------
    params : iterable of Tensor
        One group only.
    lr : float or 0-d Tensor, default 1
    max_iter : int, default 20
        Iterations of a step.
    max_eval : int, optional
        Calls of the closure in a step; ``max_iter * 1.25`` if not given.
    tolerance_grad : float, default 1e-7
        A step ends where no element of the gradient is larger.
    tolerance_change : float, default 1e-9
        A step ends where the loss, or all parameters, change by less.
    history_size : int, default 100
        Pairs of changes that are remembered.
    line_search_fn : {None, 'strong_wolfe'}
        With None every iteration goes `lr` times the direction.
    maximize : bool, default False
        Climb instead of descending; the memory is that of the negative loss.

    Notes
    -----
    Nocedal and Wright, Numerical Optimization (2006), algorithms 7.4, 3.5 and 3.6; the state is kept under the first parameter.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor([-1.2, 1.0], dtype=cg.float64, requires_grad=True)
    >>> opt = cg.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    ...     loss.backward()
    ...     return loss
    >>> loss = opt.step(closure)
    >>> [round(v, 4) for v in x.tolist()]
    [1.0, 1.0]
    """

    def __init__(self, params: Iterable[Any], lr: float | cg.Tensor = 1.0, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None, *, maximize: bool = False) -> None:
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                                  "line_search_fn": line_search_fn, "maximize": maximize})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Only the first group; LBFGS measures one direction for all parameters."""
        if self.param_groups:
            raise ValueError("LBFGS: there can be only one parameter group")
        super().add_param_group(param_group)

    def check_options(self, group: dict[str, Any]) -> None:
        self._not_negative(group, "lr")
        self._require(group, "history_size", group["history_size"] >= 1, "at least 1")
        self._require(group, "line_search_fn", group["line_search_fn"] in (None, "strong_wolfe"), "None or 'strong_wolfe'")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` iterations.

        Parameters
        ----------
        closure : callable
            Zeroes the gradients, computes the loss, calls its ``backward`` and returns it.

        Returns
        -------
        The first loss.
        """
        if closure is None:
            raise TypeError("LBFGS.step: a closure is needed, which computes the loss and its gradients anew")

        def evaluate():
            loss = closure()
            self._loss = -float(loss) if self.param_groups[0]["maximize"] else float(loss)
            return loss

        self._closure = evaluate
        try:
            return super().step(evaluate)
        finally:
            del self._closure

    def update(self, group: dict[str, Any]) -> None:
        params = group["params"]
        loss, grad, state = self._loss, self._gradient(params), self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        state["func_evals"] += 1
        evaluations = 1
        if not grad.size or largest(grad) <= group["tolerance_grad"]:
            return
        lr, d, t = float(group["lr"]), state.get("d"), state.get("t")
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            d = self._direction(state, group["history_size"], grad, d, t)
            t = min(1.0, 1.0 / float(abs(grad).sum())) * lr if state["n_iter"] == 1 else lr
            state.update(d=d, t=t, prev_flat_grad=grad, prev_loss=loss)
            before, slope = loss, float(grad @ d)
            if slope > -group["tolerance_change"]:
                break
            start = [p.clone() for p in params]
            used = 0
            if group["line_search_fn"] is not None:
                best, used = strong_wolfe(lambda t, start=start, d=d: self._try(params, start, t, d), _Point(0.0, loss, grad, slope), t,
                                          float(largest(d)), group["tolerance_change"], max(group["max_eval"] - evaluations, 0))
                t, loss, grad = best.t, best.loss, best.grad
                state["t"] = t
                self._move(params, start, t, d)
            else:
                self._move(params, start, t, d)
                if iteration < group["max_iter"]:            # the next step begins with an evaluation of its own
                    point = self._try(params, start, t, d)
                    loss, grad, used = point.loss, point.grad, 1
            evaluations += used
            state["func_evals"] += used
            if evaluations >= group["max_eval"] or largest(grad) <= group["tolerance_grad"] \
                    or largest(d) * t <= group["tolerance_change"] or abs(loss - before) < group["tolerance_change"]:
                break

    def _direction(self, state, history_size, grad, d, t):
        """Minus the gradient times the approximate inverse of the Hessian."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -grad
        ys, steps, rho = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad - state["prev_flat_grad"], d * t
        curvature = float(y @ s)
        if curvature > 1e-10:
            if len(ys) == history_size:
                for memory in (ys, steps, rho):
                    memory.pop(0)
            ys.append(y)
            steps.append(s)
            rho.append(1.0 / curvature)
            state["H_diag"] = curvature / float(y @ y)
        r, alphas = -grad, []
        for y, s, factor in zip(reversed(ys), reversed(steps), reversed(rho), strict=True):
            alphas.append(float(s @ r) * factor)
            r = r - y * alphas[-1]
        r = r * state["H_diag"]
        for y, s, factor, alpha in zip(ys, steps, rho, reversed(alphas), strict=True):
            r = r + s * (alpha - float(y @ r) * factor)
        return r

    def _gradient(self, params):
        grad = cg.concat([computing(cg.zeros_like(p) if p.grad is None else p.grad.detach()).reshape(-1) for p in params])
        return -grad if self.param_groups[0]["maximize"] else grad

    def _move(self, params, start, t, d):
        """Parameters at start + t d."""
        place = 0
        for p, x in zip(params, start, strict=True):
            p.copy_(x + (d[place:place + p.size] * t).reshape(p.shape))
            place += p.size

    def _try(self, params, start, t, d):
        self._move(params, start, t, d)
        with cg.enable_grad():
            self._closure()
        grad = self._gradient(params)
        return _Point(t, self._loss, grad, float(grad @ d))

    def _restored(self, key, value, p):
        if isinstance(value, (list, tuple)):
            return [self._restored(key, v, p) for v in value]
        if key in ("func_evals", "n_iter"):
            return int(value)
        if key not in ("d", "prev_flat_grad", "old_dirs", "old_stps"):
            return value if value is None else float(value)
        params = self.param_groups[0]["params"]
        size = sum(p.size for p in params)
        if not isinstance(value, Tensor) or value.shape != (size,):
            raise ValueError(f"LBFGS.load_state_dict: {key} must be a vector of {size} elements, as many as the parameters have")
        return value.detach().astype(cg.result_type(*[computing(p) for p in params]))


def largest(x):
    return float(abs(x).max())


class _Point(NamedTuple):
    """A point on the line along which is searched: its place, loss, gradient, and slope along the line."""
    t: float
    loss: float
    grad: Tensor
    slope: float


def strong_wolfe(at, start, t, size, tolerance, most, c1=1e-4, c2=0.9):
    """Search along a line until the loss has fallen enough and its slope is flat enough.

    `at` gives the point at a place, `start` is the point at 0, `t` the first place to try, `size` the largest element of the direction.
    Returns the best point and how often `at` was called: once, and `most` times more at most.
    """
    def too_high(new):
        return new.loss > start.loss + c1 * new.t * start.slope

    def flat(new):
        return abs(new.slope) <= -c2 * start.slope

    # Go on until the minimum is bracketed.
    before, new, tried = start, at(t), 0
    while True:
        if tried == most:
            bracket = [start, new]
            break
        if too_high(new) or tried > 1 and new.loss >= before.loss:
            bracket = [before, new]
            break
        if flat(new):
            return new, tried + 1
        if new.slope >= 0:
            bracket = [before, new]
            break
        t = cubic_minimum(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new, tried = new, at(t), tried + 1

    # Make the bracket smaller.
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stuck = False
    while tried < most:
        left, right = sorted(point.t for point in bracket)
        if (right - left) * size < tolerance:
            break
        t = cubic_minimum(*bracket, left, right)
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin         # too near to an end of the bracket, for the second time: away from it
        if near and (stuck or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            near = False
        stuck = near
        new, tried = at(t), tried + 1
        if too_high(new) or new.loss >= bracket[low].loss:
            bracket[1 - low] = new
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if flat(new):
            return new, tried + 1
        if new.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = new
    return bracket[low], tried + 1


def cubic_minimum(a, b, low, high):
    """Where the cubic through two points, with their slopes, is least, within bounds; the middle if nothing is."""
    if a.t > b.t:
        a, b = b, a
    if a.t != b.t:
        d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
        square = d1 * d1 - a.slope * b.slope
        if square >= 0:
            d2 = math.sqrt(square)
            if b.slope - a.slope + 2 * d2:
                return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)), low), high)
    return (low + high) / 2
