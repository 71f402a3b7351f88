"""Optimizer: parameter groups, their options, and the state that is saved.  FusedOptimizer: all parameters in one kernel."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import cgrad as cg
from cgrad.core.convert import writable_or_copied
from cgrad.core.forward.optim import forget, fused_step, spend
from cgrad.core.source import warn
from cgrad.core.tensor import Tensor
from cgrad.nn.hooks import HookTable, RemovableHandle

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

    Notes
    -----
    A step warns, once for each optimizer, if backward has added to gradients that an earlier step had used, which is what happens
    when `zero_grad` was forgotten. Several calls of ``backward`` before one step, gradients that are written by hand, and a second step
    on the same gradients are taken as meant.

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

    scalars: ClassVar[dict[str, Any]] = {"step": 0}     # the parts of a parameter's state that are numbers, and what they start from

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or dicts, got one Tensor; put it into a list")
        if isinstance(params, dict):
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or dicts, got one dict; put it into a list")
        self.defaults = dict(defaults)
        self.state = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._pre_hooks = HookTable()
        self._post_hooks = HookTable()
        self._stepped = False            # schedules ask
        self._warned = False
        if not isinstance(params, Iterable):
            hint = "; pass its parameters()" if hasattr(params, "parameters") else ""
            raise TypeError(f"{type(self).__name__}: params must be an iterable of tensors or dicts, got {type(params).__name__}{hint}")
        groups = list(params)
        if not groups:
            raise ValueError(f"{type(self).__name__}: got an empty parameter list; was a generator used up already?")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for entry in self.state.values():
            entry.update({key: writable_or_copied(value) for key, value in entry.items() if isinstance(value, Tensor)})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, with options of their own if wanted.

        Parameters
        ----------
        param_group : dict
            ``{"params": tensor or tensors, option: value, ...}``

        Raises
        ------
        TypeError
            If a parameter is not a Tensor.
        ValueError
            If one is no leaf, is not floating point, appears twice or shares memory with another; nothing is added then.

        Examples
        --------
        >>> import cgrad as cg
        >>> opt = cg.optim.SGD([cg.zeros(2, requires_grad=True)], lr=0.1)
        >>> opt.add_param_group({"params": cg.zeros(3, requires_grad=True), "lr": 0.01})
        >>> [g["lr"] for g in opt.param_groups]
        [0.1, 0.01]
        """
        name, group = type(self).__name__, param_group
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
        self._check_memory(params)
        group = {**self.defaults, **group, "params": params}
        self._check(group)
        self.param_groups.append(group)

    def _check_memory(self, params):
        """Two tensors in one place would be changed twice by each step."""
        blocks = sorted((p.data_ptr(), p.data_ptr() + p.nbytes, tuple(p.shape)) for group in [*self.param_groups, {"params": params}]
                        for p in group["params"] if p.size and p.is_contiguous())
        for (_, end, shape), (start, _, other) in pairwise(blocks):
            if start < end:
                raise ValueError(f"{type(self).__name__}: two parameters, of shapes {shape} and {other}, share memory; give one of them")

    def _check(self, group):
        check_numbers(self, group)
        self.check_options(group)

    def check_options(self, group: dict[str, Any]) -> None:
        """Raise ValueError if an option of a group makes no sense; subclasses write it."""

    def _not_negative(self, group, *options):
        """Helper of `check_options`."""
        for option in options:
            self._require(group, option, group[option] >= 0, "at least 0")

    def _pair(self, group, option):
        """Helper of `check_options`: an option of two numbers."""
        try:
            first, second = map(float, group[option])
        except (TypeError, ValueError):
            raise TypeError(f"{type(self).__name__}: {option} must be 2 numbers, got {group[option]!r}") from None
        return first, second

    def _require(self, group, option, condition, rule):
        """Helper of `check_options`."""
        if not condition:
            raise ValueError(f"{type(self).__name__}: {option} must be {rule}, got {group[option]!r}")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or with ``set_to_none=False`` fill them with zeros."""
        for group in self.param_groups:
            if set_to_none:
                forget(group["params"])
                continue
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = p.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have a gradient.

        Parameters
        ----------
        closure : callable, optional
            Computes the loss and its gradients once more; what it returns is returned.

        Warns
        -----
        UserWarning
            Once, if backward has added to gradients that an earlier step had used.
        """
        if self._pre_hooks:
            for hook in [*self._pre_hooks.values()]:
                given = hook(self, (closure,), {})
                if given is not None:
                    (closure,) = given[0]
        loss = None
        if closure is not None:
            with cg.enable_grad():
                loss = closure()
        for group in self.param_groups:
            if spend(group["params"]) and not self._warned:
                warn(f"{type(self).__name__}.step: these gradients still hold those of an earlier step, for backward() adds to .grad; "
                     "call zero_grad() before each backward() (this is said once)")
                self._warned = True
        try:
            self._update()
        except (TypeError, ValueError, KeyError):
            for group in self.param_groups:         # options may have been changed since they were checked
                self._check(group)
            raise
        self._stepped = True
        if self._post_hooks:
            for hook in [*self._post_hooks.values()]:
                hook(self, (closure,), {})
        return loss

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return the arguments anew, ``((closure,), {})``.

        Examples
        --------
        >>> import cgrad as cg
        >>> opt, calls = cg.optim.SGD([cg.zeros(2, requires_grad=True)]), []
        >>> with opt.register_step_pre_hook(lambda *_: calls.append("before")), opt.register_step_post_hook(lambda *_: calls.append("after")):
        ...     opt.step()
        >>> calls
        ['before', 'after']
        """
        return self._register(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return self._register(self._post_hooks, hook)

    @staticmethod
    def _register(table, hook):
        if not callable(hook):
            raise TypeError(f"register_step_hook: a hook must be callable, got {type(hook).__name__}")
        handle = RemovableHandle(table)
        table[handle.id] = hook
        return handle

    def _update(self):
        with cg.no_grad():
            for group in self.param_groups:
                self.update(group)

    def update(self, group: dict[str, Any]) -> None:
        """Change the parameters of one group; runs with recording off."""
        raise NotImplementedError(f"{type(self).__name__}: an optimizer needs an update method; write def update(self, group)")

    def state_dict(self) -> dict[str, Any]:
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

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
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
                state[p] = {key: self._restored(key, value, p) for key, value in saved_state[number].items()}
        groups = []
        for group, old in zip(saved_groups, self.param_groups):
            new = {**old, **deepcopy({k: v for k, v in group.items() if k != "params"}), "params": old["params"]}
            self._check(new)
            groups.append(new)
        for old, new in zip(self.param_groups, groups):     # the same dicts, so that schedulers keep seeing them
            old.update(new)
        self.state = state
        self._stepped = True             # in its earlier life

    def _restored(self, key, value, p):
        """A part of a saved state, fit for the parameter it belongs to."""
        if key in self.scalars:
            number = value.item() if isinstance(value, Tensor) else value
            return int(number) if key == "step" else float(number)
        if not isinstance(value, Tensor):
            return deepcopy(value)
        if value.shape != p.shape:
            raise ValueError(f"{type(self).__name__}.load_state_dict: {key} has shape {tuple(value.shape)}, its parameter {tuple(p.shape)}")
        return value.detach().contiguous().astype(computing(p).dtype)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"


def check_numbers(owner, values):
    """Raise TypeError if a value is no number where the constructor of `owner` says that it is one."""
    kinds = type(owner).__init__.__annotations__
    for name, value in values.items():
        if kinds.get(name) in ("float", "int", "float | cg.Tensor") and not hasattr(value, "__float__"):
            raise TypeError(f"{type(owner).__name__}: {name} must be a number, got {value!r}")


class FusedOptimizer(Optimizer):
    """An optimizer whose step is one pass of a compiled rule over all parameters (kernels/optim.pyx).

    A subclass names the rule and writes `tensors` and `plan`.
    """

    rule: ClassVar[str]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any], differentiable: bool = False) -> None:
        if differentiable:
            raise ValueError(f"{type(self).__name__}: steps are not recorded; for a gradient through training, compute new parameters with "
                             "cg.autograd.grad(..., create_graph=True) and run the model on them with cg.func.functional_call")
        super().__init__(params, defaults)

    def tensors(self, group):
        """What the rule remembers, in its order, with the value it starts from; a value of None: this group does without."""
        raise NotImplementedError

    def plan(self, group, first, *scalars):
        """The scalars of a state after the step (`first`: one that begins), and the coefficients of the step."""
        raise NotImplementedError

    def _update(self):                   # nothing in it is recorded
        for group in self.param_groups:
            self.update(group)

    def update(self, group: dict[str, Any]) -> None:
        fused_step(self.rule, group["params"], self.state, self.tensors(group), self.scalars, partial(self.plan, group))


def shared(group):
    """The coefficients that all rules begin with: the sign of the gradient and the weight decay that is added to it."""
    return -1.0 if group["maximize"] else 1.0, group["weight_decay"]


def decoupled(group):
    """The same with the factor on the parameter; the decay is in one of them."""
    sign, decay = shared(group)
    return (sign, 0.0, 1.0 - float(group["lr"]) * decay) if group["decoupled_weight_decay"] else (sign, decay, 1.0)


def computing(x):
    """What an update computes with: float32 for float16 and bfloat16, whose steps are too coarse to add up, else the tensor itself."""
    return x if x.dtype.itemsize >= 4 else x.detach().float()
