"""Formulas: an operation and its backward rules in the notation of a textbook.

The rules are read, not repeated: a rule is a short Python function (ops/define.py), whose expression is taken from its source, or else
from the docstring of the operation, and written with the names, or the numbers, of the values at hand.
"""
from __future__ import annotations

import ast
import functools
import re

__all__ = ["call_text", "documented_rule", "rule_text"]

INFIX = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@", "less": "<", "greater": ">"}
PREFIX = {"negative": "-"}
_INTERNAL = re.compile(r"(?<![\w.])(_\w|shape_|shapes\b|dtype_|needs\b)")      # what no textbook would write
_GRADIENT = re.compile(r"Gradient:(.*?)(?:[.;:]\s|\.$|\n\n|$)", re.DOTALL)
_NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?")


def call_text(operation, inputs, arguments=()):
    """An operation applied to named values: ``a · b``, ``exp(s)``, ``sum(x, axis=1)``."""
    if operation in INFIX and len(inputs) == 2:
        return _typeset(f"{_operand(inputs[0])} {INFIX[operation]} {_operand(inputs[1])}")
    if operation in PREFIX:
        return PREFIX[operation] + _operand(inputs[0])
    given = [f"{name}={value!r}" for name, value in arguments if value is not None and value is not False]
    return f"{operation}({', '.join([*inputs, *given])})"


def rule_text(function, names):
    """The expression of a rule with other names in it, or None if it is not one short expression.

    Parameters
    ----------
    function : callable
        A rule: its parameters are ``g``, ``out``, names of inputs and options.
    names : dict of str to str
        What to write in the place of parameters: names or numbers.
    """
    text = _expression(getattr(function, "__code__", None))
    return None if text is None else _renamed(text, names)


def documented_rule(doc, i, count, names):
    """What a docstring says of the gradient of input `i`, or None.

    The sentence that begins with "Gradient:" has one formula for each of `count` inputs ("``g * y`` and ``g * x``"), or one for the
    only input ("``g`` repeated along the axes").
    """
    found = _GRADIENT.search(doc or "")
    if found is None:
        return None
    sentence = " ".join(found[1].split())
    formulas = re.findall(r"``(.+?)``", sentence)
    if len(formulas) == count > 1:
        return _renamed(formulas[i], names)
    if count != 1 or len(sentence) > 90:
        return None
    return re.sub(r"``(.+?)``|`(\w+)`", lambda match: _renamed(match[1], names) or match[1] if match[1] else names.get(match[2], match[2]), sentence)


def _renamed(text, names):
    try:
        text = ast.unparse(_Renamed(names).visit(ast.parse(text, mode="eval").body))
    except SyntaxError:
        return None
    return None if _INTERNAL.search(text) or len(text) > 90 else _typeset(text)


class _Renamed(ast.NodeTransformer):
    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        text = self.names.get(node.id)
        if text is None:
            return node
        return ast.parse(text, mode="eval").body if _NUMBER.fullmatch(text) else ast.Name(text)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id not in self.names:
            return ast.Name(node.attr)              # elementwise.cos -> cos
        return self.generic_visit(node)


@functools.cache
def _expression(code):
    """The expression of a lambda, or of a function that only returns one; None otherwise."""
    tree = None if code is None else _parsed(code.co_filename)
    if tree is None:
        return None
    first = next(((line, column) for line, _, column, _ in code.co_positions() if column), (code.co_firstlineno, None))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno <= first[0] <= node.end_lineno:
            body = node.body
            if first[1] is not None and ((body.lineno, body.col_offset) <= first <= (body.end_lineno, body.end_col_offset)):
                found.append(body)
        elif isinstance(node, ast.FunctionDef) and node.name == code.co_name and node.lineno == code.co_firstlineno:
            body = [part for part in node.body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))]
            if len(body) == 1 and isinstance(body[0], ast.Return):
                found.append(body[0].value)
    return ast.unparse(found[-1]) if found else None             # the innermost of nested ones comes last


@functools.cache
def _parsed(file):
    try:
        with open(file, encoding="utf-8") as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError):
        return None


def _operand(text):
    return f"({text})" if text.startswith("-") else text


def _typeset(text):
    for old, new in ((" ** 2", "²"), (" ** 3", "³"), (" ** ", "^"), (" * ", " · "), (".mT", "ᵀ"), (".T", "ᵀ")):
        text = text.replace(old, new)
    return re.sub(r"--([\d.]+)", r"-(-\1)", text)
