"""Nested state as JSON and tensors by name, and back.

In the JSON, lists, numbers, strings, None and bools stand for themselves; everything else is an object with one entry that says what it is:
``{"dict": [[key, value], ...]}``, ``{"tuple": [...]}``, and ``{"tensor": name}``, ``{"array": name}`` or ``{"scalar": name}`` for a Tensor,
a NumPy array or a NumPy scalar.  Next: `safetensors.py`, where both go.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cgrad.core.tensor import Tensor
from cgrad.ops.creation import asarray

__all__ = ["pack", "unpack"]

VERSION = 1
_PLAIN = (str, int, float, type(None))          # bool is an int


def pack(obj: Any) -> tuple[str, dict[str, Tensor]]:
    """The structure of nested state as JSON, and its tensors by name; each view of memory once."""
    tensors: dict[str, Tensor] = {}
    names: dict[tuple[Any, ...], str] = {}
    above: list[int] = []                   # containers around the value, to notice one that contains itself

    def stored(value: Any, keys: tuple[Any, ...]) -> str:
        try:
            x = value.detach() if isinstance(value, Tensor) else asarray(value)
        except (TypeError, ValueError, RuntimeError) as error:
            raise type(error)(f"save: {_place(keys)}: {error}") from None
        memory = (x.data_ptr(), x.shape, x.strides, x.dtype.name)
        if x.size and memory in names:
            return names[memory]
        name = _name(keys)
        while name in tensors:
            name += "_"
        names[memory] = name
        tensors[name] = x
        return name

    def visit(value: Any, keys: tuple[Any, ...]) -> Any:
        if isinstance(value, Tensor):
            return {"tensor": stored(value, keys)}
        if isinstance(value, np.ndarray):
            return {"array": stored(value, keys)}
        if isinstance(value, np.generic):
            return {"scalar": stored(value, keys)}
        if isinstance(value, _PLAIN):
            return value
        if not isinstance(value, (dict, list, tuple)):
            hint = "; save its state_dict()" if hasattr(value, "state_dict") else ""
            raise TypeError(f"save: {_place(keys)} is a {type(value).__name__}, which cannot be saved; tensors, arrays, numbers, strings, None "
                            f"and dicts, lists and tuples of them can{hint}")
        if id(value) in above:
            raise ValueError(f"save: {_place(keys)} contains itself")
        above.append(id(value))
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, _PLAIN):
                    raise TypeError(f"save: {_place(keys)} has a key of type {type(key).__name__}; keys must be strings, numbers or None")
            out: Any = {"dict": [[key, visit(item, (*keys, key))] for key, item in value.items()]}
        else:
            out = [visit(item, (*keys, i)) for i, item in enumerate(value)]
            if isinstance(value, tuple):
                out = {"tuple": out}
        above.pop()
        return out

    try:
        return json.dumps({"version": VERSION, "state": visit(obj, ())}), tensors
    except RecursionError:
        raise ValueError("save: the state is nested too deeply") from None


def unpack(structure: str | None, names: Iterable[str], fetch: Callable[[str], Tensor], keys: Iterable[Any] | None = None) -> Any:
    """Nested state from its structure and a function that reads a tensor by name; without a structure a dict of all tensors."""
    fetched: dict[str, Tensor] = {}
    names = dict.fromkeys(names)

    def read(name: Any) -> Tensor:
        if name not in fetched:
            if name not in names:
                raise ValueError(f"the tensor {name!r} is missing")
            fetched[name] = fetch(name)
        return fetched[name]

    def build(value: Any) -> Any:
        if isinstance(value, list):
            return [build(item) for item in value]
        if not isinstance(value, dict):
            return value
        match list(value.items()):
            case [("tensor", str(name))]:
                return read(name)
            case [("array", str(name))]:
                return read(name).numpy()
            case [("scalar", str(name))]:
                return read(name).numpy()[()]
            case [("tuple", list(items))]:
                return tuple(map(build, items))
            case [("dict", _)]:
                return {key: build(item) for key, item in _pairs(value).items()}
        raise ValueError(f"the structure beside the tensors has an unknown part with {', '.join(value) or 'nothing'}")

    state = {"dict": [[name, {"tensor": name}] for name in names]} if structure is None else _parsed(structure)
    try:
        if keys is not None:
            pairs, keys = _pairs(state), list(keys)
            for key in keys:
                if key not in pairs:
                    raise KeyError(f"there is no key {key!r}; there are {', '.join(map(repr, pairs))}")
            state = {"dict": [[key, pairs[key]] for key in keys]}
        return build(state)
    except RecursionError:
        raise ValueError("the structure beside the tensors is nested too deeply") from None


def _parsed(structure: str) -> Any:
    try:
        parsed = json.loads(structure)
        version, state = parsed["version"], parsed["state"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError("the structure beside the tensors cannot be read") from None
    if version != VERSION:
        raise ValueError(f"written in version {version!r} of the structure, this cgrad reads version {VERSION}")
    return state


def _pairs(state: Any) -> dict[Any, Any]:
    """The entries of a dict that was saved."""
    match state:
        case {"dict": list(pairs)} if all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], _PLAIN) for pair in pairs):
            return dict(pairs)
    raise ValueError("the structure beside the tensors holds no dict of keys and values")


def _name(keys: tuple[Any, ...]) -> str:
    """What a tensor is called in the file; the keys themselves are in the structure, so that the name may differ where a format needs it."""
    name = ".".join(map(str, keys)).encode(errors="replace").decode().replace("\0", "?")[:10_000] or "tensor"
    return name + "_" if name.startswith("__") else name        # names of the formats and of ours


def _place(keys: tuple[Any, ...]) -> str:
    return "obj" + "".join(f"[{key!r}]" for key in keys)
