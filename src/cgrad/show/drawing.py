"""The languages that a graph is drawn in: Mermaid, and Graphviz's DOT with its program."""
from __future__ import annotations

import html

__all__ = ["dot", "mermaid", "render"]

COLOURS = {"leaf": "#cfe8d5", "op": "#e8e8f4", "result": "#f9dfb8"}          # legible on light and dark pages, text is always dark


def mermaid(items, edges):
    lines = ["flowchart TD"]
    shapes = {"leaf": ('(["', '"])'), "op": ('["', '"]'), "result": ('[["', '"]]')}

    def box(item, indent):
        opening, closing = shapes[item.kind]
        text = "<br>".join(html.escape(line) for line in [*item.label.split("\n"), *item.detail.split("\n")] if line)
        lines.append(f"{indent}{item.id}{opening}{text}{closing}:::{item.kind}")

    _grouped(items, box, lambda name, number, indent: lines.append(f'{indent}subgraph g{number}["{html.escape(name)}"]'),
             lambda indent: lines.append(f"{indent}end"))
    lines += [f"    {a} --> {b}" for a, b in edges]
    lines += [f"    classDef {kind} fill:{colour},stroke:#555,color:#111" for kind, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


def dot(items, edges):
    lines = ["digraph {", "    rankdir=TB; bgcolor=transparent;",
             '    node [shape=box, style="filled", fontname="Helvetica", fontsize=11, color="#555555", fontcolor="#111111"];',
             '    edge [color="#808080"];']
    looks = {"leaf": 'style="filled,rounded"', "op": 'style="filled"', "result": 'style="filled", peripheries=2'}

    def box(item, indent):
        text = "\\n".join(_quoted(line) for line in [*item.label.split("\n"), *item.detail.split("\n")] if line)
        lines.append(f'{indent}{item.id} [label="{text}", fillcolor="{COLOURS[item.kind]}", {looks[item.kind]}];')

    def opened(name, number, indent):
        lines.append(f'{indent}subgraph cluster_{number} {{ label="{_quoted(name)}"; fontname="Helvetica"; fontsize=11; labeljust=l; color="#808080"; '
                     'fontcolor="#808080"; style=rounded;')

    _grouped(items, box, opened, lambda indent: lines.append(indent + "}"))
    lines += [f"    {a} -> {b};" for a, b in edges]
    return "\n".join([*lines, "}"]) + "\n"


def render(source, form):
    """A picture of a DOT text."""
    try:
        import graphviz
    except ImportError:
        raise RuntimeError('graph: pictures need the graphviz package (pip install graphviz) and the Graphviz program; .dot, .mmd and .txt '
                           "need neither") from None
    try:
        return graphviz.Source(source).pipe(format=form)
    except graphviz.ExecutableNotFound:
        raise RuntimeError("graph: the Graphviz program `dot` is not installed (https://graphviz.org/download); .dot, .mmd and .txt do without") \
            from None


def _grouped(items, box, opened, closed):
    """Call `box` for each item inside calls of `opened` and `closed` for the groups, which nest."""
    tree = {}
    for item in items:
        inner = tree
        for name in item.group:
            inner = inner.setdefault(("group", name), {})
        inner[item.id] = item
    number = 0
    stack = [(iter(tree.items()), "    ")]
    while stack:
        entries, indent = stack[-1]
        entry = next(entries, None)
        if entry is None:
            stack.pop()
            if stack:
                closed(stack[-1][1])
        elif isinstance(entry[1], dict):
            opened(entry[0][1], number, indent)
            number += 1
            stack.append((iter(entry[1].items()), indent + "    "))
        else:
            box(entry[1], indent)


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')
