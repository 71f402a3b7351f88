"""explain: the way of a result, forward and backward, step by step with the numbers."""
from __future__ import annotations

import collections
import html
import inspect
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

from cgrad.autograd.mode import enable_grad
from cgrad.core import watchers
from cgrad.core.tensor import Tensor
from cgrad.core.untracked import untracked_text
from cgrad.ops import PUBLIC
from cgrad.show.formulas import call_text, documented_rule, rule_text
from cgrad.show.names import name_places, variables
from cgrad.show.steps import Walk
from cgrad.tree import flatten, unflatten

__all__ = ["Explanation", "explain"]

WORDS = {
    "en": {"forward": "Forward: from the inputs to the result", "backward": "Backward: from the result to the inputs",
           "leaves": "Gradients of the leaves", "leaf": "leaf", "constant": "const", "start": "the start: a change of the result by itself",
           "sum": "the sum of {n} parts", "unknown": "not kept", "omitted": "... {n} more steps; explain(..., limit=None) shows all",
           "rule": "rule of {name}", "none": "no gradient reaches it", "range": "from {low} to {high}, norm {norm}"},
    "zh": {"forward": "前向：从输入到结果", "backward": "反向：从结果到输入",
           "leaves": "叶子节点的梯度", "leaf": "叶子节点", "constant": "常数", "start": "起点：结果对自身的变化率",
           "sum": "{n} 条路径之和", "unknown": "未保存", "omitted": "……另有 {n} 步；explain(..., limit=None) 显示全部",
           "rule": "{name} 的反向规则", "none": "没有梯度到达", "range": "从 {low} 到 {high}，范数 {norm}"},
}


def explain(result: Tensor | Callable[..., Tensor], *args: Any, gradient: Tensor | None = None, names: dict[str, Tensor] | None = None,
            limit: int | None = 40, lang: str = "en") -> Explanation:
    """Walk through a computation forward and backward, step by step with the numbers.

    Parameters
    ----------
    result : Tensor or callable
        A result with a graph that no backward has freed; or a function, which is called with `args` and so shows also those numbers that
        the tape does not keep.
    *args
        What the function is called with.
    gradient : Tensor, optional
        The gradient that flows into the result. Default: ones.
    names : dict of str to Tensor, optional
        Names of tensors, before those of the variables of the caller.
    limit : int or None, default 40
        How many steps to show, from both ends; None for all.
    lang : {"en", "zh"}, default "en"

    Returns
    -------
    Explanation
        Prints as an aligned table, shows as HTML in a notebook; ``lines`` has the rows.

    Raises
    ------
    TypeError
        If there is no tensor to explain.
    RuntimeError
        If the tensor has no graph, or a backward has freed it.

    Notes
    -----
    ``.grad`` is not touched. ``δx`` stands for the gradient of the result with respect to ``x``; a value that is used several times gets
    the sum of what comes back (``+=``). Tensors of several elements are summarised by their range and norm.

    Examples
    --------
    >>> import cgrad as cg
    >>> a, b = cg.tensor(2.0, requires_grad=True), cg.tensor(3.0, requires_grad=True)
    >>> y = a * b + a
    >>> cg.explain(y)
    Forward: from the inputs to the result
         a = 2            leaf
         b = 3            leaf
      1  v1 = a · b       2 · 3 = 6
      2  y = v1 + a       6 + 2 = 8
    <BLANKLINE>
    Backward: from the result to the inputs
         δy = 1           the start: a change of the result by itself
      2  δv1 = δy         1
         δa += δy         1
      1  δa += δv1 · b    1 · 3 = 3
         δb = δv1 · a     1 · 2 = 2
    <BLANKLINE>
    Gradients of the leaves
         δa = 4           the sum of 2 parts
         δb = 2
    """
    if lang not in WORDS:
        raise ValueError(f"explain: lang must be one of {', '.join(map(repr, WORDS))}, got {lang!r}")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 2):
        raise ValueError(f"explain: limit must be a number of steps from 2 on, or None for all, got {limit!r}")
    noted = {}
    known = variables(sys._getframe(1)) if isinstance(result, Tensor) else {}
    if callable(result) and not isinstance(result, Tensor):
        result, known, noted = _call(result, args)
    elif args:
        raise TypeError("explain: arguments are for a function; a tensor is explained by itself")
    if not isinstance(result, Tensor):
        raise TypeError(f"explain: expected a tensor, or a function that returns one, got {type(result).__name__}")
    if not result.requires_grad:
        raise RuntimeError(f"explain: the tensor has no graph: {untracked_text(result)}")
    if gradient is None:
        from cgrad.ops.creation import ones_like
        gradient = ones_like(result.detach())
    if result.grad_fn is not None and result.grad_fn.is_freed:
        raise RuntimeError("explain: the graph was freed by another backward; explain before it, or call that one with retain_graph=True")
    walk = Walk(result, gradient, noted)
    return Explanation(walk, {**known, **(names or {})}, limit, WORDS[lang])


def _call(function, args):
    """The result of a function, the names of its arguments, and the inputs and results of every node."""
    noted = {}

    def note(node, inputs, results):
        noted[node] = list(inputs), tuple(results)

    leaves, shape = flatten(list(args))
    with enable_grad():
        tracked = {id(x): x.detach().requires_grad_() for x in leaves if isinstance(x, Tensor) and x.dtype.is_floating_point and not x.requires_grad}
        args = unflatten(shape, [tracked.get(id(x), x) for x in leaves])
        watchers.add("record", note)
        try:
            result = function(*args)
        finally:
            watchers.remove("record", note)
    code = getattr(function, "__code__", None)
    names = code.co_varnames[:code.co_argcount] if code is not None else ()
    return result, {name: x for name, x in zip(names, args) if isinstance(x, Tensor)}, noted


class Explanation:
    """What `explain` gives back.

    Attributes
    ----------
    lines : list of tuple
        (number of the step or "", formula, numbers); a section begins with a line of which only the formula is not empty.
    walk : Walk
        The values and gradients behind the lines.
    """

    def __init__(self, walk, known, limit, words):
        self.walk, self._words = walk, words
        self._names = name_places(walk, known, words["constant"], walk.values)
        self._results = {}
        for place in self._names:
            if not isinstance(place, Tensor) and len(place) == 2:
                self._results.setdefault(place[0], []).append(place)
        self._counts = collections.Counter(place for _, _, place, _ in walk.parts)
        steps = {node: k + 1 for k, node in enumerate(walk.nodes)}
        shown = walk.nodes if limit is None or len(walk.nodes) <= limit else [*walk.nodes[:limit // 2], None, *walk.nodes[len(walk.nodes) - limit // 2:]]
        omitted = ("", words["omitted"].format(n=len(walk.nodes) - len(shown) + 1), "")
        self.lines = [(None, words["forward"], "")]
        self.lines += [("", f"{self._names[leaf]} = {self._value(leaf)}", words["leaf"]) for leaf in walk.leaves]
        for node in shown:
            self.lines.append(omitted if node is None else (steps[node], *self._forward(node)))
        self.lines += [(None, words["backward"], ""),
                       ("", f"δ{self._names[walk.place]} = {self._number(walk.totals[walk.place])}", words["start"])]
        parts = {}
        for part in walk.parts:
            parts.setdefault(part[0], []).append(part)
        for node in reversed(shown):
            if node is None:
                self.lines.append(omitted)
                continue
            for k, (_, i, place, g) in enumerate(parts.get(node, ())):
                self.lines.append(("" if k else steps[node], *self._backward(node, i, place, g)))
        self.lines.append((None, words["leaves"], ""))
        for leaf in walk.leaves:
            total, several = walk.totals.get(leaf), self._counts[leaf]
            self.lines.append(("", f"δ{self._names[leaf]} = {'0' if total is None else self._number(total)}",
                               words["none"] if total is None else words["sum"].format(n=several) if several > 1 else ""))

    def _number(self, value):
        """A scalar by its digits, anything larger by shape, range and norm."""
        if not isinstance(value, Tensor):
            return f"{value:.6g}" if isinstance(value, float) else str(value)
        if value.size == 1:
            item = value.item()
            return f"{item:.6g}" if isinstance(item, float) else str(item)
        shape = "×".join(map(str, value.shape))
        if value.size == 0 or not value.dtype.is_floating_point:
            return f"{value.dtype.name} {shape}"
        x = value.detach()
        return f"{shape}: " + self._words["range"].format(low=f"{x.min().item():.4g}", high=f"{x.max().item():.4g}", norm=f"{x.norm().item():.4g}")

    def _value(self, place):
        return self._number(self.walk.values[place]) if place in self.walk.values else self._words["unknown"]

    def _is_number(self, place):
        value = self.walk.values.get(place)
        return isinstance(value, (int, float)) or isinstance(value, Tensor) and value.size == 1

    def _forward(self, node):
        inputs, arguments = self.walk.inputs(node), list(node.arguments.items())
        results = self._results[node]
        formula = f"{', '.join(self._names[r] for r in results)} = {call_text(node.name, [self._names[p] for p in inputs], arguments)}"
        value = self._value(results[0]) if len(results) == 1 else ", ".join(self._value(r) for r in results)
        if inputs and all(self._is_number(p) for p in inputs):
            return formula, f"{call_text(node.name, [self._value(p) for p in inputs], arguments)} = {value}"
        return formula, value

    def _backward(self, node, i, place, g):
        target = f"δ{self._names[place]} {'+=' if self._counts[place] > 1 else '='} "
        names, numbers = self._meanings(node)
        text = self._rule(node, i, names)
        if text is None:
            return target + self._words["rule"].format(name=node.name), self._number(g)
        value = self._number(g)
        with_numbers = None if numbers is None else self._rule(node, i, numbers)
        return target + text, value if with_numbers in (value, None) else f"{with_numbers} = {value}"

    def _rule(self, node, i, meanings):
        operation = node.operation
        if not hasattr(operation, "input_names"):           # a user's Op
            return None
        text = rule_text(operation.rule_function(i), meanings) if i < len(operation.rules) and operation.rules[i] is not None else None
        if text is None:
            function, meanings = _public_function(operation), dict(meanings)
            for name, own in zip(inspect.signature(function).parameters if function else (), operation.input_names):
                if own in meanings:
                    meanings[name] = meanings[own]
            text = documented_rule(function.__doc__ if function else None, i, len(operation.input_names), meanings)
        return text

    def _meanings(self, node):
        """What the parameters of a rule stand for: names, and numbers where all are numbers (else None)."""
        operation, out = node.operation, (node, 0)
        places = {**dict(zip(getattr(operation, "input_names", ()), self.walk.inputs(node))), "out": out}
        total = self.walk.totals.get(out)
        names = {name: self._names[place] for name, place in places.items()} | {"g": "δ" + self._names[out]}
        arguments = {name: repr(value) for name, value in node.arguments.items()}
        if total is None or total.size != 1 or not all(self._is_number(place) for place in places.values()):
            return names | arguments, None
        return names | arguments, {name: self._value(place) for name, place in places.items()} | {"g": self._number(total)} | arguments

    def __repr__(self):
        lines = [line for line in self.lines if line[0] is not None]
        digits = max([len(str(line[0])) for line in lines] + [3])
        width = max([_width(line[1]) for line in lines if line[2]] + [0])
        out = []
        for step, formula, numbers in self.lines:
            if step is None:
                out += ["", formula] if out else [formula]
            else:
                out.append(f"{step!s:>{digits}}  {formula}{' ' * (width - _width(formula) + 4) if numbers else ''}{numbers}")
        return "\n".join(out)

    def _repr_html_(self):
        rows = []
        for step, formula, numbers in self.lines:
            if step is None:
                rows.append(f'<tr><th colspan="3" style="text-align:left;padding-top:0.8em">{html.escape(formula)}</th></tr>')
            else:
                rows.append(f'<tr><td style="text-align:right;opacity:0.75">{step}</td><td style="text-align:left"><code>{html.escape(formula)}</code></td>'
                            f'<td style="text-align:left">{html.escape(numbers)}</td></tr>')
        return f"<table>{''.join(rows)}</table>"


def _public_function(operation):
    """The public function of an operation, whose docstring tells its rules, or None."""
    from cgrad import linalg
    from cgrad.nn import functional
    owner = next((owner for owner in (PUBLIC, vars(functional), vars(linalg)) if operation.name in owner), {})
    return owner.get(operation.name)


def _width(text):
    """Columns of a terminal that a text takes."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
