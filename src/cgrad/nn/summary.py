"""The table behind `Module.summary`: shapes, parameters, bytes and multiply-adds of each layer."""
from __future__ import annotations

import contextlib
import html
import math
from typing import NamedTuple

import cgrad as cg
from cgrad import tree
from cgrad.core.tensor import Tensor

__all__ = ["LayerSummary", "ModelSummary", "summarize"]


class LayerSummary(NamedTuple):
    """One row of a `ModelSummary`.

    Attributes
    ----------
    path : str
        Where the module is, "" for the whole.
    kind : str
        Its class.
    depth : int
        How many modules it is in.
    output_shapes : list of tuple, or None
        Of the tensors that its first call gave; None if it was not called.
    parameters, trainable : int
        Elements of its own parameters (not of those in its children), of those that require gradients.
    shared : int
        Elements of parameters that are counted at an earlier row.
    nbytes : int
        Bytes of its own parameters and buffers.
    calls : int
    multiply_adds : int or None
        In all its calls, of its own products; None where there is no formula.
    """

    path: str
    kind: str
    depth: int
    output_shapes: list[tuple[int, ...]] | None
    parameters: int
    trainable: int
    shared: int
    nbytes: int
    calls: int
    multiply_adds: int | None


class ModelSummary:
    """What `Module.summary` found; it prints as a table, in notebooks as HTML.

    Attributes
    ----------
    layers : list of LayerSummary
        The module and all below it, parents first, each once.
    parameters, trainable : int
        Elements of all parameters, shared ones once; of those that require gradients.
    parameter_bytes, buffer_bytes : int
    output_bytes : int
        What modules without children gave, in all their calls: about what a recorded call keeps for backward.
    multiply_adds, flops : int
        Of one call with these inputs; flops are twice the multiply-adds.
    """

    def __init__(self, layers, parameter_bytes, buffer_bytes, output_bytes):
        self.layers = layers
        self.parameters = sum(layer.parameters for layer in layers)
        self.trainable = sum(layer.trainable for layer in layers)
        self.parameter_bytes = parameter_bytes
        self.buffer_bytes = buffer_bytes
        self.output_bytes = output_bytes
        self.multiply_adds = sum(layer.multiply_adds or 0 for layer in layers)
        self.flops = 2 * self.multiply_adds

    def _rows(self):
        """(depth, cells) of each layer as text."""
        for layer in self.layers:
            name = layer.path.rpartition(".")[2]
            shapes = "-"
            if layer.output_shapes is not None:
                shapes = ", ".join(map(str, layer.output_shapes[:3])) + (", ..." if len(layer.output_shapes) > 3 else "")
                shapes += f" x{layer.calls}" if layer.calls > 1 else ""
            if layer.parameters:
                parameters, trainable = f"{layer.parameters:,}", _share(layer.trainable, layer.parameters)
            else:
                parameters, trainable = (f"({layer.shared:,})", "shared") if layer.shared else ("-", "-")
            yield layer.depth, (f"{name}: {layer.kind}" if name else layer.kind, shapes, parameters, trainable,
                                f"{layer.nbytes:,}" if layer.nbytes else "-", f"{layer.multiply_adds:,}" if layer.multiply_adds else "-")

    def _totals(self):
        return [
            ("parameters", f"{self.parameters:,} ({self.trainable:,} trainable), {_size(self.parameter_bytes)}"),
            ("buffers", _size(self.buffer_bytes)),
            ("outputs", _size(self.output_bytes)),
            ("multiply-adds", f"{self.multiply_adds:,} ({self.flops:,} flops)"),
        ]

    def __repr__(self):
        rows = [_HEAD] + [("  " * depth + cells[0], *cells[1:]) for depth, cells in self._rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(_HEAD))]
        lines = ["  ".join(cell.ljust(width) if k < 2 else cell.rjust(width) for k, (cell, width) in enumerate(zip(row, widths))).rstrip()
                 for row in rows]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        width = max(len(name) for name, _ in self._totals())
        return "\n".join([lines[0], rule, *lines[1:], rule, *(f"{name.ljust(width)}  {text}" for name, text in self._totals())])

    def _repr_html_(self):
        def line(tag, row, depth=0):
            styles = [f"text-align:left;padding-left:{0.5 + 1.5 * depth}em", "text-align:left", *["text-align:right"] * (len(row) - 2)]
            return "<tr>" + "".join(f'<{tag} style="{style}">{html.escape(text)}</{tag}>' for text, style in zip(row, styles)) + "</tr>"

        body = "".join(line("td", cells, depth) for depth, cells in self._rows())
        totals = "".join(f"<tr><th style=\"text-align:left\">{name}</th><td colspan={len(_HEAD) - 1} style=\"text-align:left\">{html.escape(text)}</td></tr>"
                         for name, text in self._totals())
        return f"<table><thead>{line('th', _HEAD)}</thead><tbody>{body}</tbody><tfoot>{totals}</tfoot></table>"


_HEAD = ("layer", "output shape", "parameters", "trainable", "bytes", "multiply-adds")


def summarize(module, inputs, input_size, dtype, kwargs):
    """The work of `Module.summary`."""
    sizes = [input_size] if _is_shape(input_size) else list(input_size or ())
    if inputs and sizes:
        raise ValueError("summary: give inputs or input_size, not both")
    if dtype is None:
        dtype = next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), None)
    args = [cg.zeros(x, dtype=dtype) if _is_shape(x) else x for x in inputs or sizes]
    calls = {}
    if args or kwargs:
        _run(module, args, kwargs, calls)
    layers, seen, parameter_bytes, buffer_bytes = [], set(), 0, 0
    for path, part in module.named_modules():
        counts = {"parameters": 0, "trainable": 0, "shared": 0, "nbytes": 0}
        for p in part.parameters(recurse=False):
            if id(p) in seen:
                counts["shared"] += p.size
                continue
            seen.add(id(p))
            counts["parameters"] += p.size
            counts["trainable"] += p.size if p.requires_grad else 0
            counts["nbytes"] += p.nbytes
            parameter_bytes += p.nbytes
        for b in part.buffers(recurse=False):
            if id(b) not in seen:
                seen.add(id(b))
                counts["nbytes"] += b.nbytes
                buffer_bytes += b.nbytes
        call = calls.get(part, {"shapes": None, "n": 0, "multiply_adds": None})
        layers.append(LayerSummary(path, part._get_name(), path.count(".") + 1 if path else 0, call["shapes"], **counts, calls=call["n"],
                                   multiply_adds=call["multiply_adds"]))
    return ModelSummary(layers, parameter_bytes, buffer_bytes, sum(call["nbytes"] for part, call in calls.items() if not part._modules))


def _run(module, args, kwargs, calls):
    """Call a module once in evaluation mode, unrecorded, and note what each part does; all is then as before."""
    def note(part, args, kwargs, out):
        tensors = [x for x in tree.flatten(out)[0] if isinstance(x, Tensor)]
        call = calls.setdefault(part, {"shapes": [tuple(x.shape) for x in tensors], "n": 0, "nbytes": 0, "multiply_adds": None})
        call["n"] += 1
        call["nbytes"] += sum(x.nbytes for x in tensors)
        formula = next((_FORMULAS[cls.__name__] for cls in type(part).__mro__ if cls.__name__ in _FORMULAS), None)
        if formula is not None and tensors:
            call["multiply_adds"] = (call["multiply_adds"] or 0) + formula(part, args, kwargs, tensors[0])

    parts = list(module.modules())
    modes = [part.training for part in parts]
    with contextlib.ExitStack() as after:
        for part in parts:
            after.enter_context(part.register_forward_hook(note, with_kwargs=True))
        after.callback(lambda: [setattr(part, "training", mode) for part, mode in zip(parts, modes)])
        after.enter_context(cg.random.fork_rng())
        after.enter_context(cg.no_grad())
        module.eval()
        module(*args, **kwargs)


def _attention(part, args, kwargs, out):
    """The projections and the two products of attention; the projection of the result is a layer of its own."""
    query, key = [*args[:2], *(kwargs[name] for name in ("query", "key")[len(args):])]
    e, rows, keys = part.embed_dim, query.size // query.shape[-1], key.size // key.shape[-1]
    length = key.shape[-2 if key.ndim == 2 or part.batch_first else 0]
    return rows * e * e + keys * e * (part.kdim + part.vdim) + 2 * rows * length * e


def _recurrent(part, args, kwargs, out):
    """Each matrix of weights meets each step of each sequence once."""
    x = args[0] if args else kwargs["input"]
    return x.size // x.shape[-1] * sum(p.size for p in part.parameters() if p.ndim == 2)


# By the name of the class that writes the layer, since not all are loaded.
_FORMULAS = {
    "Linear": lambda part, args, kwargs, out: out.size * part.in_features,
    "Bilinear": lambda part, args, kwargs, out: out.size * part.in1_features * part.in2_features,
    "_Conv": lambda part, args, kwargs, out: out.size * math.prod(part.weight.shape[1:]),
    "_ConvTranspose": lambda part, args, kwargs, out: (args[0] if args else kwargs["input"]).size * math.prod(part.weight.shape[1:]),
    "MultiheadAttention": _attention,
    "RNNBase": _recurrent,
    "RNNCellBase": _recurrent,
}


def _is_shape(x):
    return isinstance(x, (tuple, list)) and all(type(n) is int for n in x)


def _share(trainable, parameters):
    return "yes" if trainable == parameters else "no" if not trainable else f"{trainable:,}"


def _size(nbytes):
    if nbytes < 1024:
        return f"{nbytes:,} B"
    power = min((int(nbytes).bit_length() - 1) // 10, 3)
    return f"{nbytes / 1024 ** power:.1f} {'_KMG'[power]}iB"
