"""Parametrizations: a parameter that is computed from another one each time it is read.

``register_parametrization(layer, "weight", f)`` moves the parameter to ``layer.parametrizations.weight.original``, and ``layer.weight``
becomes a property that gives ``f(original)``. The property needs a class of its own for each such module, which `_inject` makes.
The usual maps are in `cgrad.nn.utils.parametrizations`.
"""
from __future__ import annotations

import contextlib

import cgrad as cg
from cgrad.core.tensor import Tensor
from cgrad.nn.container import ModuleDict, ModuleList
from cgrad.nn.parameter import Parameter
from cgrad.ops.define import open_doors

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]

_cache = {"depth": 0, "values": {}}


@contextlib.contextmanager
def cached():
    """Compute each parametrized tensor only once within the block.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.orthogonal(cg.nn.Linear(3, 3))
    >>> with cg.nn.utils.parametrize.cached():
    ...     layer.weight is layer.weight
    True
    """
    _cache["depth"] += 1
    try:
        yield
    finally:
        _cache["depth"] -= 1
        if not _cache["depth"]:
            _cache["values"] = {}


class ParametrizationList(ModuleList):
    """The maps of one tensor, in the order in which they are applied, and what they start from.

    Attributes
    ----------
    original : Parameter or Tensor
        What is trained; ``original0``, ``original1``, ... where `right_inverse` of the last map gives several tensors.
    is_tensor : bool
        Whether there is one original.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrize.register_parametrization(cg.nn.Linear(2, 2), "weight", cg.nn.Tanh())
    >>> maps = layer.parametrizations.weight
    >>> maps.is_tensor, bool((layer.weight == maps.original.tanh()).all())
    (True, True)
    """

    def __init__(self, modules, original, unsafe=False):
        super().__init__(modules)
        self.unsafe = unsafe
        start = original
        with cg.no_grad():
            for module in reversed(list(self)):
                with contextlib.suppress(NotImplementedError):       # a map may have an inverse with some options only
                    start = module.right_inverse(start) if hasattr(module, "right_inverse") else start
        self.is_tensor = isinstance(start, Tensor)
        self.ntensors = 1 if self.is_tensor else len(start)
        if self.is_tensor:
            self._check_dtype(start, original)
            if start is not original:
                original.data = start.detach()           # the same object, which an optimizer may hold
            self._put("original", original, isinstance(original, Parameter))
        else:
            for i, part in enumerate(start):
                self._check_dtype(part, original)
                parameter = isinstance(original, Parameter)
                self._put(f"original{i}", Parameter(part, original.requires_grad) if parameter else part, parameter)
        if not unsafe:
            with cg.no_grad():
                _same_kind("register_parametrization", "the result", self(), original)

    def _check_dtype(self, value, original):
        if not isinstance(value, Tensor):
            raise ValueError(f"register_parametrization: right_inverse must give a Tensor or a sequence of them, got {type(value).__name__}")
        if value.dtype != original.dtype:
            raise ValueError(f"register_parametrization: right_inverse must keep the dtype {original.dtype}, got {value.dtype}")

    def _put(self, name, value, is_parameter):
        (self.register_parameter if is_parameter else self.register_buffer)(name, value)

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Set the originals so that the maps give `value`, as well as their `right_inverse` can."""
        if not all(hasattr(module, "right_inverse") for module in self):
            raise RuntimeError("right_inverse: a value can only be assigned to a parametrized tensor if each of its maps has a right_inverse")
        with cg.no_grad():
            parts = value
            for module in reversed(list(self)):
                parts = module.right_inverse(parts)
            parts = [parts] if isinstance(parts, Tensor) else list(parts)
            originals = self._originals()
            if len(parts) != len(originals):
                raise ValueError(f"right_inverse: {len(originals)} tensors are needed, got {len(parts)}")
            for own, part in zip(originals, parts):
                if part.dtype != own.dtype:
                    raise ValueError(f"right_inverse: the value must have the dtype {own.dtype}, got {part.dtype}")
            for own, part in zip(originals, parts):
                if own is not part:
                    own.data = part.detach().clone()

    def forward(self):
        out = self[0](*self._originals())
        for module in list(self)[1:]:
            out = module(out)
        return out


def is_parametrized(module, tensor_name=None):
    """Whether a module has parametrizations, or one of the tensor of that name.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.utils.parametrize.is_parametrized(cg.nn.Linear(2, 2))
    False
    """
    table = module._modules.get("parametrizations")
    if not isinstance(table, ModuleDict):
        return False
    return len(table) > 0 if tensor_name is None else tensor_name in table


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Let a parameter or buffer be computed by a map each time it is read.

    Parameters
    ----------
    module : Module
    tensor_name : str
        The parameter or buffer; if it has a parametrization already, the new one is applied to its result.
    parametrization : Module
        Its forward takes the original (or several) and gives the tensor. Where it has ``right_inverse(tensor)``, which gives the original
        (or several), the value stays what it is, and values can be assigned.
    unsafe : bool, default False
        Skip the check that shape and dtype stay as they are.

    Returns
    -------
    Module
        The same module.

    Raises
    ------
    ValueError
        If there is no such tensor, or shape or dtype would change; the module is then as it was.

    Notes
    -----
    In a state dict the original is ``parametrizations.<tensor_name>.original``, as in PyTorch. Unlike there, a parametrized module can be
    pickled.

    Examples
    --------
    >>> import cgrad as cg
    >>> class Symmetric(cg.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = cg.nn.utils.parametrize.register_parametrization(cg.nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.mT).all()), [name for name, _ in layer.named_parameters()]
    (True, ['bias', 'parametrizations.weight.original'])
    """
    if is_parametrized(module, tensor_name):
        entries = module.parametrizations[tensor_name]
        if not unsafe:
            with cg.no_grad():
                value = getattr(module, tensor_name)
                start = parametrization.right_inverse(value) if hasattr(parametrization, "right_inverse") else value
                if not isinstance(start, Tensor):
                    raise ValueError("register_parametrization: right_inverse of a further map must give one Tensor, "
                                     f"got {type(start).__name__}")
                _same_kind("register_parametrization", "the result", parametrization(start), value)
        parametrization.train(module.training)
        entries.append(parametrization)
        entries.unsafe = entries.unsafe or unsafe
    elif tensor_name in module._parameters or tensor_name in module._buffers:
        original = getattr(module, tensor_name)
        if original is None:
            raise ValueError(f"register_parametrization: '{tensor_name}' of {type(module).__name__} is None")
        parametrization.train(module.training)
        before = original.detach()
        try:
            entries = ParametrizationList([parametrization], original, unsafe)
        except BaseException:
            original.data = before
            raise
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _inject(type(module))
            module.parametrizations = ModuleDict()
        _add_property(type(module), tensor_name)
        module.parametrizations[tensor_name] = entries
    else:
        raise ValueError(f"register_parametrization: {type(module).__name__} has no parameter, buffer or parametrized tensor '{tensor_name}'")
    return module


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Take all parametrizations of a tensor off again.

    Parameters
    ----------
    module : Module
    tensor_name : str
    leave_parametrized : bool, default True
        Keep the value that the maps gave; else the original comes back, which is only possible where there is one.

    Returns
    -------
    Module
        The same module, of its old class if nothing else is parametrized.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.weight_norm(cg.nn.Linear(2, 3))
    >>> cg.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"remove_parametrizations: {type(module).__name__} has no parametrization on '{tensor_name}'")
    entries = module.parametrizations[tensor_name]
    if not leave_parametrized and not entries.is_tensor:
        raise ValueError(f"remove_parametrizations: '{tensor_name}' has {entries.ntensors} originals; only leave_parametrized=True is possible")
    first = entries._originals()[0]
    if leave_parametrized:
        with cg.no_grad():
            value = getattr(module, tensor_name).detach().clone()
        if entries.is_tensor:
            first.data = value                           # the same object, which an optimizer may hold
        else:
            first = Parameter(value, first.requires_grad) if isinstance(first, Parameter) else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    (module.register_parameter if isinstance(first, Parameter) else module.register_buffer)(tensor_name, first)
    return module


def type_before_parametrizations(module):
    """The class of a module without its parametrizations.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.weight_norm(cg.nn.Linear(2, 3))
    >>> cg.nn.utils.parametrize.type_before_parametrizations(layer) is cg.nn.Linear
    True
    """
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copy the parametrizations of a module, with their parameters, to another one; returns that.

    Examples
    --------
    >>> import cgrad as cg
    >>> a, b = cg.nn.utils.parametrizations.weight_norm(cg.nn.Linear(2, 3)), cg.nn.Linear(2, 3)
    >>> b = cg.nn.utils.parametrize.transfer_parametrizations_and_params(a, b)
    >>> bool((a.weight == b.weight).all())
    True
    """
    import copy

    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        if not is_parametrized(to_module, name) and not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        source = copy.deepcopy(from_module.parametrizations[name])
        if not is_parametrized(to_module, name):
            register_parametrization(to_module, name, source[0], unsafe=True)
        to_module.parametrizations[name] = source
    return to_module


def _same_kind(function, what, value, like):
    if not isinstance(value, Tensor):
        raise ValueError(f"{function}: {what} of a parametrization must be a Tensor, got {type(value).__name__}")
    for attribute in ("dtype", "shape"):
        if getattr(value, attribute) != getattr(like, attribute):
            raise ValueError(f"{function}: {what} must keep the {attribute} {getattr(like, attribute)}, got {getattr(value, attribute)}; "
                             "unsafe=True allows it")


def _inject(base):
    """A subclass for one module, which may have properties of its own; copies and pickles of the module get another."""

    def reduce(self, protocol):
        return _rebuild, (base, list(self.parametrizations)), self.__dict__

    return type(f"Parametrized{base.__name__}", (base,), {"__reduce_ex__": reduce, "__module__": base.__module__, "__doc__": base.__doc__})


def _rebuild(base, names):
    """What copy and pickle call to make a parametrized module again."""
    cls = _inject(base)
    for name in names:
        _add_property(cls, name)
    return cls.__new__(cls)


def _add_property(cls, name):
    def read(self):
        entries = self.parametrizations[name]
        if not _cache["depth"]:
            return entries()
        if entries not in _cache["values"]:
            _cache["values"][entries] = entries()
        return _cache["values"][entries]

    def write(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(cls, name, property(read, write))


open_doors(globals())
