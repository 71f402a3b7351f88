"""Containers of modules: Sequential, ModuleList, ModuleDict; those of parameters are in `parameter_container.py`."""
from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Mapping

from cgrad.nn.module import Module, indent

__all__ = ["Sequential", "ModuleList", "ModuleDict"]


class _Ordered(Module):
    """Modules under the names "0", "1", ...; the shared part of Sequential and ModuleList."""

    def _position(self, index):
        n = len(self._modules)
        i = operator.index(index)
        if not -n <= i < n:
            raise IndexError(f"{type(self).__name__}: index {i} is out of range for {n} modules")
        return i % n

    def _name(self, index):
        return list(self._modules)[self._position(index)]

    def _renumber(self, modules):
        self._modules.clear()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __contains__(self, module):
        return any(module is own for own in self._modules.values())

    def __setitem__(self, index, module):
        self.add_module(self._name(index), module)

    def __delitem__(self, index):
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name(index)]:
            del self._modules[name]
        if all(name.isdigit() for name in names):
            self._renumber(list(self._modules.values()))

    def append(self, module):
        """Add a module at the end; returns self."""
        name = len(self)
        while str(name) in self._modules:
            name += 1
        self.add_module(str(name), module)
        return self

    def extend(self, modules):
        """Add modules at the end; returns self."""
        modules = list(modules)
        for i, module in enumerate(modules, len(self)):     # all of them before the first is added
            self._check_child(str(i), module)
        for module in modules:
            self.append(module)
        return self

    def insert(self, index, module):
        """Put a module before position `index`; returns self."""
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"{type(self).__name__}.insert: index {index} is out of range for {n} modules")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._check_child("0", module)
        self._renumber(modules)
        return self

    def pop(self, index=-1):
        """Take out the module at `index` and return it."""
        module = self[index]
        del self[index]
        return module


class Sequential(_Ordered):
    """Modules called one after the other, each on the result of the one before.

    Parameters
    ----------
    *modules : Module
        Or one OrderedDict of modules by name.

    Examples
    --------
    >>> import cgrad as cg
    >>> net = cg.nn.Sequential(cg.nn.Linear(4, 8), cg.nn.ReLU(), cg.nn.Linear(8, 2))
    >>> net(cg.ones((3, 4))).shape
    (3, 2)
    >>> net[:2]
    Sequential(
      (0): Linear(in_features=4, out_features=8, bias=True)
      (1): ReLU()
    )
    """

    def __init__(self, *modules):
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.add_module(str(i), module)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def __add__(self, other):
        if not isinstance(other, Sequential):
            return NotImplemented
        return Sequential(*self, *other)

    def forward(self, input):
        for name, module in self._modules.items():
            try:
                input = module(input)
            except Exception as error:
                error.add_note(f"{type(self).__name__}: this happened in layer {name!r}, {repr(module).partition(chr(10))[0]}")
                raise
        return input

    forward.is_chain = True          # for checkpoints of its members; a subclass with another forward is no chain


class ModuleList(_Ordered):
    """A list of modules whose parameters count as the owner's.

    Examples
    --------
    >>> import cgrad as cg
    >>> layers = cg.nn.ModuleList(cg.nn.Linear(2, 2) for _ in range(3))
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules=()):
        super().__init__()
        self.extend(() if modules is None else modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name(index)]

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, modules):
        return type(self)([*self, *modules])

    def _child_lines(self):
        runs = []  # [first, last, text]
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        return [f"({a}): {indent(text)}" if a == b else f"({a}-{b}): {b - a + 1} x {indent(text)}" for a, b, text in runs]


class ModuleDict(Module):
    """A dict of modules whose parameters count as the owner's.

    Examples
    --------
    >>> import cgrad as cg
    >>> heads = cg.nn.ModuleDict({"mean": cg.nn.Linear(2, 1), "scale": cg.nn.Linear(2, 1)})
    >>> heads["mean"](cg.ones((5, 2))).shape
    (5, 1)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def keys(self):
        """The names."""
        return self._modules.keys()

    def values(self):
        """The modules."""
        return self._modules.values()

    def items(self):
        """The pairs (name, module)."""
        return self._modules.items()

    def get(self, key, default=None):
        """The module of that name, or `default`."""
        return self._modules.get(key, default)

    def pop(self, key):
        """Take out the module of that name and return it."""
        return self._modules.pop(key)

    def clear(self):
        """Take out all modules."""
        self._modules.clear()

    def update(self, modules):
        """Add modules from a mapping or from pairs."""
        modules = list(modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules)
        for key, module in modules:
            self._check_child(key, module)
        self._modules.update(modules)
