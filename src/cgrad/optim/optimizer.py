"""Optimizer: parameter groups, their options, and the state that is saved."""
from __future__ import annotations

from collections import defaultdict
from copy import deepcopy

import cgrad as cg
from cgrad.core.tensor import Tensor

__all__ = ["Optimizer"]


class Optimizer:
    """Base class of optimizers.

    A subclass passes the defaults of its options to ``super().__init__`` and writes `update`.

    Parameters
    ----------
    params : iterable of Tensor, of (name, Tensor) or of dict
        Leaf tensors that require gradients, or groups ``{"params": [...], "lr": ...}`` with options of their own.
    defaults : dict
        Options of groups that don't set them.

    Attributes
    ----------
    param_groups : list of dict
        Options may be changed between steps: ``opt.param_groups[0]["lr"] = 0.01``.
    state : dict
        What is remembered for each parameter.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Sign(cg.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     def update(self, group):
    ...         for p in group["params"]:
    ...             if p.grad is not None:
    ...                 p.sub_(cg.sign(p.grad) * group["lr"])
    >>> w = cg.tensor([1.0, -1.0], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> Sign([w], lr=0.25).step()
    >>> w.tolist()
    [0.75, -0.75]
    """

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or dicts, got one Tensor; put it into a list")
        if isinstance(params, dict):
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or dicts, got one dict; put it into a list")
        self.defaults = dict(defaults)
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: got an empty parameter list; was a generator used up already?")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, group):
        """Add parameters, with options of their own if wanted.

        Parameters
        ----------
        group : dict
            ``{"params": tensor or tensors, option: value, ...}``

        Raises
        ------
        TypeError
            If a parameter is not a Tensor.
        ValueError
            If one is no leaf, is not floating point, or appears twice; nothing is added then.

        Examples
        --------
        >>> import cgrad as cg
        >>> opt = cg.optim.SGD([cg.zeros(2, requires_grad=True)], lr=0.1)
        >>> opt.add_param_group({"params": cg.zeros(3, requires_grad=True), "lr": 0.01})
        >>> [g["lr"] for g in opt.param_groups]
        [0.1, 0.01]
        """
        name = type(self).__name__
        if not isinstance(group, dict) or "params" not in group:
            raise TypeError(f'{name}: a parameter group is a dict with the key "params", got {group!r}')
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(f"{name}: parameters need an order, which a set does not have; use a list")
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and all(isinstance(p, tuple) and len(p) == 2 for p in params):
            params = [p for _, p in params]
        known = {id(p) for other in self.param_groups for p in other["params"]}
        for i, p in enumerate(params):
            if not isinstance(p, Tensor):
                raise TypeError(f"{name}: an optimizer takes Tensors, parameter {i} is {type(p).__name__}")
            if not p.is_leaf:
                raise ValueError(f"{name}: parameter {i} of shape {tuple(p.shape)} is no leaf: it was computed by {p.grad_fn!r}; "
                                 "optimize the tensors it was computed from, or its detach().requires_grad_()")
            if not p.dtype.is_floating_point:
                raise ValueError(f"{name}: parameter {i} of shape {tuple(p.shape)} is {p.dtype}; only floating point can be optimized")
            if id(p) in known:
                raise ValueError(f"{name}: parameter {i} of shape {tuple(p.shape)} appears twice")
            known.add(id(p))
        group = {**self.defaults, **group, "params": params}
        self.check_options(group)
        self.param_groups.append(group)

    def check_options(self, group):
        """Raise ValueError if an option of a group makes no sense; subclasses write it."""

    def _require(self, group, what, condition):
        """Helper of `check_options`."""
        if not condition:
            raise ValueError(f"{type(self).__name__}: invalid {what}: {group[what]!r}")

    def zero_grad(self, set_to_none=True):
        """Forget all gradients, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        p.grad = p.grad.detach().zero_()

    def step(self, closure=None):
        """Change all parameters that have a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients once more; what it returns is returned.
        """
        loss = None
        if closure is not None:
            with cg.enable_grad():
                loss = closure()
        with cg.no_grad():
            for group in self.param_groups:
                self.update(group)
        return loss

    def update(self, group):
        """Change the parameters of one group; runs with recording off."""
        raise NotImplementedError(f"{type(self).__name__}: an optimizer needs an update method; write def update(self, group)")

    def state_dict(self):
        """State and options with parameters numbered in order: ``{"state": {0: {...}}, "param_groups": [...]}``.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.optim.SGD([cg.zeros(2, requires_grad=True)], lr=0.1).state_dict()["param_groups"][0]["params"]
        [0]
        """
        number = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            groups.append({**group, "params": [number[id(p)] for p in group["params"]]})
        state = {number[id(p)]: dict(entry) for p, entry in self.state.items() if id(p) in number}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict):
        """Take over options and state; parameters are matched by their order.

        Tensors are copied and converted to the dtype of their parameter (float32 for parameters of float16 and bfloat16).

        Raises
        ------
        ValueError
            If the groups or the number of parameters in a group differ, or a state does not fit its parameter; nothing is changed then.
        """
        name = type(self).__name__
        try:
            saved_groups, saved_state = state_dict["param_groups"], state_dict["state"]
        except (KeyError, TypeError):
            raise ValueError(f'{name}.load_state_dict: expected a dict with the keys "state" and "param_groups"') from None
        own, saved = ([len(g["params"]) for g in groups] for groups in (self.param_groups, saved_groups))
        if own != saved:
            raise ValueError(f"{name}.load_state_dict: the optimizer has parameter groups of sizes {own}, the state dict of sizes {saved}")
        params = [p for group in self.param_groups for p in group["params"]]
        numbers = [i for group in saved_groups for i in group["params"]]
        state = defaultdict(dict)
        for number, p in zip(numbers, params):
            if number in saved_state:
                state[p] = {key: _restored(name, key, value, p) for key, value in saved_state[number].items()}
        groups = []
        for group, old in zip(saved_groups, self.param_groups):
            new = {**old, **deepcopy({k: v for k, v in group.items() if k != "params"}), "params": old["params"]}
            self.check_options(new)
            groups.append(new)
        for old, new in zip(self.param_groups, groups):     # the same dicts, so that schedulers keep seeing them
            old.update(new)
        self.state = state

    def __repr__(self):
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"


def computing(x):
    """What an update computes with: float32 for float16 and bfloat16, whose steps are too coarse to add up, else the tensor itself."""
    return x if x.dtype.itemsize >= 4 else x.detach().float()


def _restored(name, key, value, p):
    if key == "step":
        return int(value.item() if isinstance(value, Tensor) else value)
    if not isinstance(value, Tensor):
        return deepcopy(value)
    if value.shape != p.shape:
        raise ValueError(f"{name}.load_state_dict: {key} has shape {tuple(value.shape)}, its parameter {tuple(p.shape)}")
    return value.detach().astype(computing(p).dtype)
