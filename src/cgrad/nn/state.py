"""Reading, writing and converting the tensors of a Module (the work behind its methods of the same names)."""
from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping

import cgrad as cg
from cgrad.core.device import check_device
from cgrad.core.tensor import Tensor
from cgrad.nn import hooks
from cgrad.nn.parameter import Parameter

__all__ = []

EXTRA = "_extra_state"        # the last part of the key of what get_extra_state gives


class IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` did not find on one side or the other."""

    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _tensors(module):
    """(table, name) of every tensor of a module itself that is saved."""
    for name, value in module._parameters.items():
        if value is not None:
            yield module._parameters, name
    for name, value in module._buffers.items():
        if value is not None and name not in module._non_persistent_buffers_set:
            yield module._buffers, name


def _has(module, method):
    """Whether the class of a module writes a method that Module only declares."""
    return getattr(type(module), method).__module__ != "cgrad.nn.module"


def state_dict(module, destination, prefix, keep_vars):
    out = OrderedDict() if destination is None else destination
    for hook, in hooks.of(module, "state_dict_pre"):
        hook(module, prefix, keep_vars)
    for table, name in _tensors(module):
        out[prefix + name] = table[name] if keep_vars else table[name].detach()
    if _has(module, "get_extra_state"):
        out[prefix + EXTRA] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=out, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook, in hooks.of(module, "state_dict_post"):
        hook(module, out, prefix, {})
    return out


def _walk(module, prefix=""):
    """(prefix, module) of a module and all below; shared modules appear under each path, as in a state dict."""
    yield prefix, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _walk(child, f"{prefix}{name}.")


def load_state_dict(module, state, strict, assign):
    if not isinstance(state, Mapping):
        raise TypeError(f"load_state_dict: expected a dict of tensors by name, got {type(state).__name__}")
    state, slots, extras = OrderedDict(state), {}, {}
    keys, problems = IncompatibleKeys([], []), []
    modules = list(_walk(module))
    for prefix, part in modules:
        for hook, in hooks.of(part, "load_state_dict_pre"):
            hook(part, state, prefix, {}, strict, keys.missing_keys, keys.unexpected_keys, problems)
        slots.update((prefix + name, (table, name)) for table, name in _tensors(part))
        if _has(part, "set_extra_state") or _has(part, "get_extra_state"):
            extras[prefix + EXTRA] = part
    keys.missing_keys.extend(key for key in [*slots, *extras] if key not in state)
    keys.unexpected_keys.extend(key for key in state if key not in slots and key not in extras)
    values = _values(state, slots, problems)
    after = [(part, hook) for _, part in reversed(modules) for hook, in hooks.of(part, "load_state_dict_post")]
    if not after:
        problems = _key_problems(keys, strict) + problems
    _raise(module, problems)
    before = {}
    if after and strict and any(keys):          # an error may still come: keep what it must bring back
        before = {key: table[name] if assign else table[name].clone() for key, (table, name) in slots.items() if key in values}
    _write(values, slots, assign)
    for key, part in extras.items():
        if key in state:
            part.set_extra_state(state[key])
    for part, hook in after:
        hook(part, keys)
    problems = _key_problems(keys, strict)
    if problems:
        _write(before, slots, assign)
    _raise(module, problems)
    return keys


def _values(state, slots, problems):
    """{key: Tensor} of what is to be written; what cannot be is added to the problems."""
    values = {}
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
    return values


def _write(values, slots, assign):
    if assign:                       # all of them made before the first is assigned, for one may be refused
        values = {key: value if isinstance(value, Parameter) or not isinstance(old := slots[key][0][slots[key][1]], Parameter)
                  else Parameter(value, old.requires_grad) for key, value in values.items()}
    with cg.no_grad():
        for key, value in values.items():
            table, name = slots[key]
            if assign:
                table[name] = value
            else:
                table[name].copy_(value.detach())


def _key_problems(keys, strict):
    named = (("Unexpected", keys.unexpected_keys), ("Missing", keys.missing_keys))
    return [f"{what} key(s) in state_dict: {_quoted(found)}." for what, found in named if strict and found]


def _raise(module, problems):
    if problems:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t" + "\n\t".join(problems))


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
    check_device("to", device)
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
