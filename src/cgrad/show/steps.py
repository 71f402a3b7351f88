"""Steps: the nodes behind results in the order in which they were recorded, and every number of them that can be known.

A value is named by its place: a leaf by the tensor, a result by (node, number), a constant by (node, "input", i).  The tape keeps only
what backward needs.  What it does not keep is computed again from what it keeps, where that is possible.
"""
from __future__ import annotations

import threading

from cgrad.autograd.grad import grad
from cgrad.autograd.mode import no_grad
from cgrad.core import watchers
from cgrad.core.tape import Node
from cgrad.core.tensor import Tensor

__all__ = ["Record", "Walk", "nodes_behind", "place_of"]


def nodes_behind(*results):
    """All nodes that results were computed by, in the order of recording; without recursion.

    Parameters
    ----------
    *results : Tensor

    Returns
    -------
    list of Node
    """
    stack = [y.grad_fn for y in results if y.grad_fn is not None]
    seen = set(stack)
    while stack:
        for edge, _ in stack.pop().next_functions:
            if isinstance(edge, Node) and edge not in seen:
                seen.add(edge)
                stack.append(edge)
    return sorted(seen, key=lambda node: node.sequence_number)


class Record:
    """What lies behind results.

    Attributes
    ----------
    results : tuple of Tensor
    nodes : list of Node
        In the order of recording.
    leaves : list of Tensor
        In the order in which they are first used.
    """

    def __init__(self, *results):
        self.results = results
        self.nodes = nodes_behind(*results)
        edges = [edge for node in self.nodes for edge, _ in node.next_functions] + [y for y in results if y.grad_fn is None]
        self.leaves = list({edge: None for edge in edges if isinstance(edge, Tensor)})

    def inputs(self, node):
        """The places of a node's inputs."""
        return [edge if isinstance(edge, Tensor) else (node, "input", i) if edge is None else (edge, number)
                for i, (edge, number) in enumerate(node.next_functions)]

    def constants(self):
        """What is kept of inputs without gradient, by place."""
        return {place: value for node in self.nodes for place, value in zip(self.inputs(node), node.saved_inputs)
                if value is not None and not isinstance(place, Tensor) and len(place) == 3}


class Walk(Record):
    """Forward and backward through the graph of a result, with the numbers.

    Attributes
    ----------
    values : dict
        Place -> tensor or number, for what is known.
    parts : list
        In the order of backward: (node, input number, place of the input, contribution to its gradient).
    totals : dict
        Place -> the sum of the contributions to its gradient.
    """

    def __init__(self, result, gradient, noted=None):
        super().__init__(result)
        self.result, self.place = result, place_of(result)
        self.values = self._forward(noted or {})
        self.parts, self.totals = self._backward(gradient)

    def _forward(self, noted):
        values = {leaf: leaf.detach() for leaf in self.leaves}
        for node in self.nodes:
            if node in noted:
                given, results = noted[node]
            elif not hasattr(node.operation, "input_names"):          # a user's Op; a checkpoint, which keeps neither
                given, results = getattr(node.operation, "args", ()), getattr(node.operation, "result", ())
            else:
                given, results = node.saved_inputs, node.saved_results
            for place, value in zip(self.inputs(node), given):
                if isinstance(value, (Tensor, int, float)) and not isinstance(place, Tensor):
                    values.setdefault(place, value)
            for k, value in enumerate(results if isinstance(results, tuple) else (results,)):
                if isinstance(value, (Tensor, int, float)):
                    values.setdefault((node, k), value)
        values[self.place] = self.result.detach()
        with no_grad():
            for node in self.nodes:
                self._compute_again(node, values)
        return {place: value.detach() if isinstance(value, Tensor) else value for place, value in values.items()}

    def _compute_again(self, node, values):
        inputs = self.inputs(node)
        if (node, 0) in values or getattr(node.operation, "function", None) is None or getattr(node.operation, "n_inputs", -1) < 0 \
                or any(place not in values for place in inputs):
            return
        out = node.operation.function(*[values[place] for place in inputs], *node.arguments.values())
        for k, value in enumerate(out if isinstance(out, tuple) else (out,)):
            values[node, k] = value

    def _backward(self, gradient):
        parts = []
        thread, nodes = threading.get_ident(), set(self.nodes)

        def note(node, i, g):
            if threading.get_ident() == thread and node in nodes:      # a checkpoint goes backward through a graph of its own
                edge, number = node.next_functions[i]
                parts.append((node, i, edge if isinstance(edge, Tensor) else (edge, number), g))

        watchers.add("gradient", note)
        try:
            found = grad((self.result,), self.leaves, (gradient,), retain_graph=True, allow_unused=True)
        finally:
            watchers.remove("gradient", note)
        totals = {self.place: gradient}
        with no_grad():
            for _, _, place, g in parts:
                totals[place] = totals[place] + g if place in totals else g
        totals.update({leaf: g for leaf, g in zip(self.leaves, found) if g is not None})
        return parts, totals


def place_of(x):
    """Where a tensor stands in its graph."""
    return x if x.grad_fn is None else (x.grad_fn, x.output_nr)
