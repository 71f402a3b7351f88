"""Reading, writing and converting the tensors of a Module (the work behind its methods of the same names)."""
from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.nn.parameter import Parameter

__all__ = []


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` did not find on one side or the other."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _slots(module, prefix=""):
    """(key, table, name) of every tensor that is saved, in saving order; shared modules appear under each path."""
    for name, value in module._parameters.items():
        if value is not None:
            yield prefix + name, module._parameters, name
    for name, value in module._buffers.items():
        if value is not None and name not in module._non_persistent_buffers_set:
            yield prefix + name, module._buffers, name
    for name, child in module._modules.items():
        if child is not None:
            yield from _slots(child, f"{prefix}{name}.")


def state_dict(module, prefix, keep_vars):
    out = OrderedDict()
    for key, table, name in _slots(module, prefix):
        out[key] = table[name] if keep_vars else table[name].detach()
    return out


def load_state_dict(module, state, strict, assign):
    if not isinstance(state, Mapping):
        raise TypeError(f"load_state_dict: expected a dict of tensors by name, got {type(state).__name__}")
    slots = {key: (table, name) for key, table, name in _slots(module)}
    missing = [key for key in slots if key not in state]
    unexpected = [key for key in state if key not in slots]
    problems, values = [], {}
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}.")
    if strict and missing:
        problems.append(f"Missing key(s) in state_dict: {_quoted(missing)}.")
    for key, (table, name) in slots.items():
        if key not in state:
            continue
        try:
            value = state[key] if isinstance(state[key], Tensor) else cg.asarray(state[key])
        except (TypeError, ValueError) as error:
            problems.append(f"{key}: cannot be read as a tensor ({error}).")
            continue
        if value.shape != table[name].shape:
            problems.append(f"size mismatch for {key}: the state_dict has shape {tuple(value.shape)}, "
                            f"the module has shape {tuple(table[name].shape)}.")
        values[key] = value
    if problems:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    with cg.no_grad():
        for key, value in values.items():
            table, name = slots[key]
            if not assign:
                table[name].copy_(value.detach())
            elif isinstance(table[name], Parameter):
                own = isinstance(value, Parameter)
                table[name] = value if own else Parameter(value, table[name].requires_grad)
            else:
                table[name] = value
    return IncompatibleKeys(missing, unexpected)


def _quoted(keys):
    return ", ".join(f'"{key}"' for key in keys)


def parse_to(args, kwargs):
    """The dtype that the arguments of ``to`` ask for, or None."""
    found = kwargs.pop("dtype", None)
    device = kwargs.pop("device", None)
    kwargs.pop("non_blocking", None)
    kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"to: unknown keyword {next(iter(kwargs))!r}")
    for arg in args:
        if isinstance(arg, Tensor):
            found = arg.dtype
        elif isinstance(arg, str) and (arg.startswith(("cpu", "cuda", "mps")) or ":" in arg):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            found = arg
    if device is not None and str(device) != "cpu":
        raise ValueError(f"to: cgrad computes on the CPU only, got device {device!r}")
    if found is None:
        return None
    dtype = cg.empty((0,), dtype=found).dtype
    if not dtype.is_floating_point:
        raise TypeError(f"to: parameters can only be converted to a floating point dtype, got {dtype}")
    return dtype


def convert(module, dtype):
    if dtype is None:
        return module
    done = {}
    for part in module.modules():
        for table in (part._parameters, part._buffers):
            for name, value in table.items():
                if value is not None and value.dtype.is_floating_point and value.dtype != dtype:
                    table[name] = _converted(value, dtype, done)
    return module


def _converted(value, dtype, done):
    """The same tensor object with another dtype, so that optimizers and shared places keep seeing it."""
    if id(value) not in done:
        grad = value.grad
        value.grad = None
        value.data = value.detach().astype(dtype)
        if grad is not None:
            value.grad = grad.detach().astype(dtype)
        done[id(value)] = value
    return value
