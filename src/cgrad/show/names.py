"""Names for the values of a record: those that the caller's variables have, else numbers."""
from __future__ import annotations

import itertools

from cgrad.core.tensor import Tensor
from cgrad.show.steps import place_of

__all__ = ["modules_in", "name_places", "variables"]


def variables(frame):
    """Tensors by the names of the variables of a frame; parameters of modules by their paths."""
    found = {}
    for name, x in itertools.chain(frame.f_globals.items(), frame.f_locals.items()):
        if isinstance(x, Tensor) and name.isidentifier() and not name.startswith("_"):
            found[name] = x
        elif hasattr(type(x), "named_parameters"):
            found |= {f"{name}.{path}": p for path, p in x.named_parameters()}
    return found


def modules_in(frame):
    """Modules by the names of the variables of a frame."""
    return {name: x for name, x in itertools.chain(frame.f_globals.items(), frame.f_locals.items())
            if hasattr(type(x), "named_modules") and not name.startswith("_")}


def name_places(record, known, constant, values):
    """A name for every place: that of the caller's variable, else a number; for constants what they are, if `values` has them."""
    names = {place_of(x): name for name, x in known.items()}
    plain = {(x.data_ptr(), x.shape): name for name, x in known.items() if not x.requires_grad}
    inner, leaf_names = [map(f"{letter}{{}}".format, itertools.count(1)) for letter in "vx"]
    out = {leaf: names.get(leaf) or next(n for n in leaf_names if n not in known) for leaf in record.leaves}
    used = {place for node in record.nodes for place in record.inputs(node)} | set(map(place_of, record.results))
    results = {}
    for place in used:
        if not isinstance(place, Tensor) and len(place) == 2:
            results.setdefault(place[0], []).append(place)
    for node in record.nodes:
        for place in record.inputs(node):
            if not isinstance(place, Tensor) and len(place) == 3:
                out[place] = _constant(values.get(place), plain) or constant
        for place in sorted(results[node], key=lambda place: place[1]):
            out[place] = names.get(place) or next(n for n in inner if n not in known)
    return out


def _constant(value, plain):
    """The name or the digits of something without gradient, if it has any."""
    if isinstance(value, Tensor):
        name = plain.get((value.data_ptr(), value.shape))
        return name if name or value.size != 1 else f"{value.item():.6g}"
    return None if value is None else f"{value:.6g}"
