"""functional_call: call a module with other parameters than its own; stack_module_state: those of several modules as a batch."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cgrad.core.tensor import Tensor
from cgrad.ops.joining import stack

__all__ = ["functional_call", "stack_module_state"]


def functional_call(module: Any, parameters: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]], args: Any = (), kwargs: Mapping[str, Any] | None = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:
    """Call a module with tensors in the place of its parameters and buffers.

    Parameters
    ----------
    module : Module
        Is unchanged afterwards, also if the call raises.
    parameters : dict of str to Tensor, or tuple of such dicts
        By path, as in ``module.state_dict()``; what is not named stays the module's own.
    args : tuple or anything else
        The positional arguments; what is no tuple is the only one.
    kwargs : dict, optional
    tie_weights : bool, default True
        Replace a parameter that several modules share wherever it is; else only where it is named.
    strict : bool, default False
        Every parameter and buffer must be named (of a shared one, one name will do).

    Raises
    ------
    KeyError
        If the module has no parameter or buffer of a name, or with `strict` more of them than are named.

    Examples
    --------
    >>> import cgrad as cg
    >>> net, x = cg.nn.Linear(2, 1), cg.ones((1, 2))
    >>> p = {"weight": cg.tensor([[1.0, 2.0]]), "bias": cg.tensor([0.5])}
    >>> cg.func.functional_call(net, p, x)
    tensor([[3.5000]])
    >>> cg.func.grad(lambda p: cg.func.functional_call(net, p, x).sum())(p)
    {'weight': tensor([[1., 1.]]), 'bias': tensor([1.])}
    """
    if not hasattr(module, "get_submodule"):
        raise TypeError(f"functional_call: expected a Module, got {type(module).__name__}")
    if isinstance(parameters, (tuple, list)):
        parameters = _joined(parameters)
    places = []
    for path, value in parameters.items():
        owner, _, name = path.rpartition(".")
        try:
            part = module.get_submodule(owner)
        except AttributeError as error:
            raise KeyError(f"functional_call: there is no parameter or buffer '{path}': {error}") from None
        for table in (part._parameters, part._buffers):
            if name in table:
                places.append((table, name, value))
                break
        else:
            raise KeyError(f"functional_call: there is no parameter or buffer '{path}' in {type(module).__name__}")
    before = [(table, name, table[name]) for table, name, _ in places]
    shared = {id(old): value for (_, _, old), (_, _, value) in zip(before, places)}
    if strict:
        missing = [path for path, value in (*module.named_parameters(), *module.named_buffers()) if id(value) not in shared]
        if missing:
            raise KeyError(f"functional_call: strict=True, but there are no values for {missing} of {type(module).__name__}")
    for part in module.modules() if tie_weights else ():
        for table in (part._parameters, part._buffers):
            for name, old in table.items():
                if old is not None and id(old) in shared and not any(t is table and n == name for t, n, _ in before):
                    before.append((table, name, old))
                    places.append((table, name, shared[id(old)]))
    try:
        for table, name, value in places:
            table[name] = value
        return module(*(args if isinstance(args, tuple) else (args,)), **(kwargs or {}))
    finally:
        for table, name, old in before:
            table[name] = old


def _joined(dicts):
    out = {}
    for part in dicts:
        for path, value in part.items():
            if path in out:
                raise ValueError(f"functional_call: '{path}' was given twice")
            out[path] = value
    return out


def stack_module_state(modules: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and buffers of several modules of one kind, each stacked along a new first axis: an ensemble for `cgrad.func.vmap`.

    Parameters
    ----------
    modules : sequence of Module
        At least one; all of the same class, with parameters and buffers of the same names and shapes.

    Returns
    -------
    parameters, buffers : dict of str to Tensor
        By path. Parameters are leaves that require grad where those of all modules do.

    Raises
    ------
    ValueError
        If there is no module, or the modules differ in class, mode (train or eval), names or shapes.

    Examples
    --------
    >>> import cgrad as cg
    >>> nets = [cg.nn.Linear(2, 1) for _ in range(3)]
    >>> parameters, buffers = cg.func.stack_module_state(nets)
    >>> parameters["weight"].shape
    (3, 1, 2)
    >>> call = lambda p, x: cg.func.functional_call(nets[0], (p, buffers), x)
    >>> cg.func.vmap(call, (0, None))(parameters, cg.ones(4, 2)).shape
    (3, 4, 1)
    """
    modules = list(modules)
    if not modules:
        raise ValueError("stack_module_state: there must be at least one module")
    for k, other in enumerate(modules):
        if type(other) is not type(modules[0]):
            raise ValueError(f"stack_module_state: the modules must be of one class, got {type(modules[0]).__name__} and, as number {k}, "
                             f"{type(other).__name__}")
        if other.training != modules[0].training:
            raise ValueError(f"stack_module_state: the modules must all be in train mode or all in eval mode; number {k} differs from the first")
    parameters = _stacked([dict(m.named_parameters()) for m in modules])
    for path, value in parameters.items():
        if all([dict(m.named_parameters())[path].requires_grad for m in modules]):
            value.requires_grad_()
    return parameters, _stacked([dict(m.named_buffers()) for m in modules])


def _stacked(states):
    out = {}
    for k, state in enumerate(states):
        if state.keys() != states[0].keys():
            raise ValueError(f"stack_module_state: module {k} has other parameters or buffers than the first: {sorted(state.keys() ^ states[0].keys())}")
    for path, first in states[0].items():
        for k, state in enumerate(states):
            if state[path].shape != first.shape or state[path].dtype != first.dtype:
                raise ValueError(f"stack_module_state: '{path}' of module {k} has shape {tuple(state[path].shape)} and dtype {state[path].dtype}, "
                                 f"that of the first {tuple(first.shape)} and {first.dtype}")
        out[path] = stack([state[path].detach() for state in states], 0)
    return out
