"""Containers of parameters: ParameterList, ParameterDict."""
from __future__ import annotations

import operator
from collections.abc import Mapping

from cgrad.core.tensor import Tensor
from cgrad.nn.module import Module
from cgrad.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


def _line(key, value):
    if not isinstance(value, Tensor):
        return f"({key}): Object of type: {type(value).__name__}"
    return f"({key}): {type(value).__name__} containing: [{value.dtype} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """A list of parameters that count as the owner's.

    Parameters
    ----------
    values : iterable, optional
        Tensors become parameters; anything else is kept as it is.

    Examples
    --------
    >>> import cgrad as cg
    >>> weights = cg.nn.ParameterList(cg.zeros(2, n) for n in (3, 4))
    >>> [name for name, _ in weights.named_parameters()]
    ['0', '1']
    >>> weights[-1].shape
    (2, 4)
    """

    def __init__(self, values=None):
        super().__init__()
        self._length = 0
        if values is not None:
            self.extend(values)

    def _name(self, index):
        i = operator.index(index)
        if not -self._length <= i < self._length:
            raise IndexError(f"ParameterList: index {i} is out of range for {self._length} values")
        return str(i % self._length)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return getattr(self, self._name(index))

    def __setitem__(self, index, value):
        setattr(self, self._name(index), _as_parameter(value))

    def __len__(self):
        return self._length

    def __iter__(self):
        return (getattr(self, str(i)) for i in range(self._length))

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        """Add a value at the end; returns self."""
        setattr(self, str(self._length), _as_parameter(value))
        self._length += 1
        return self

    def extend(self, values):
        """Add values at the end; returns self."""
        for value in list(values):
            self.append(value)
        return self

    def pop(self, index=-1):
        """Take out the value at `index` and return it."""
        kept = list(self)
        value = kept.pop(int(self._name(index)))
        for i in range(self._length):
            delattr(self, str(i))
        self._length = 0
        self.extend(kept)
        return value

    def _child_lines(self):
        return [_line(i, value) for i, value in enumerate(self)]


class ParameterDict(Module):
    """A dict of parameters that count as the owner's.

    Parameters
    ----------
    parameters : mapping or iterable of (str, value), optional
        Tensors become parameters; anything else is kept as it is.

    Examples
    --------
    >>> import cgrad as cg
    >>> weights = cg.nn.ParameterDict({"left": cg.zeros(2, 3), "right": cg.zeros(2, 4)})
    >>> [name for name, _ in weights.named_parameters()]
    ['left', 'right']
    >>> weights["right"].shape
    (2, 4)
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key, value):
        self._check_key(key)
        setattr(self, key, _as_parameter(value))
        self._keys[key] = None

    def _check_key(self, key):
        if not isinstance(key, str):
            raise TypeError(f"ParameterDict: the keys must be strings, got {type(key).__name__}")
        if key not in self._keys and hasattr(self, key):
            raise KeyError(f"ParameterDict: '{key}' is an attribute of the class; take another key")

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, key)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def __or__(self, other):
        return self.copy().__ior__(other)

    def __ror__(self, other):
        return type(self)(other).__ior__(self)

    def __ior__(self, other):
        self.update(other)
        return self

    def keys(self):
        """The names."""
        return self._keys.keys()

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def items(self):
        """The pairs (name, value)."""
        return ((key, self[key]) for key in self._keys)

    def get(self, key, default=None):
        """The value of that name, or `default`."""
        return self[key] if key in self._keys else default

    def setdefault(self, key, default=None):
        """The value of that name, which becomes `default` if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Take out the value of that name and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take out the last pair (name, value) and return it."""
        key, _ = self._keys.popitem()
        value = getattr(self, key)
        delattr(self, key)
        return key, value

    def clear(self):
        """Take out all values."""
        for key in list(self._keys):
            del self[key]

    def update(self, parameters):
        """Add values from a mapping or from pairs."""
        parameters = list(parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters)
        for key, _ in parameters:
            self._check_key(key)
        for key, value in parameters:
            self[key] = value

    def fromkeys(self, keys, default=None):
        """A new ParameterDict with these names and one value for all."""
        return type(self)((key, default) for key in keys)

    def copy(self):
        """A new ParameterDict with the same parameters."""
        return type(self)(self)

    def _child_lines(self):
        return [_line(key, value) for key, value in self.items()]


def _as_parameter(value):
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value
