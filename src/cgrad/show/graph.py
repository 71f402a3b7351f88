"""graph: a recorded computation as a picture: SVG, Mermaid, DOT or text."""
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from cgrad.core.graph import result_types
from cgrad.core.tensor import Tensor
from cgrad.show import drawing
from cgrad.show.kept import Kept, size_text
from cgrad.show.names import name_places, variables
from cgrad.show.places import joined, look_at, modules_of
from cgrad.show.steps import Record, place_of

__all__ = ["Graph", "graph"]

MANY = 200           # nodes from which parts are drawn as one
LARGEST = 1000       # boxes up to which a notebook shows a picture by itself: Graphviz takes minutes and gigabytes for ten thousand


class Item(NamedTuple):
    """A box of the picture.

    `kind` is "leaf", "op" or "result"; `group` the path of the module that it lies in, outermost first.
    """

    id: str
    kind: str
    label: str
    detail: str
    group: tuple[str, ...]


def graph(*results: Tensor | Callable[..., Any], args: tuple[Any, ...] = (), collapse: str | None = "auto") -> Graph:
    """The graph of a computation, to look at.

    Parameters
    ----------
    *results : Tensor, or one callable
        Results with a graph; or a function or module, which is called with `args`: then boxes are drawn around modules, and lines of
        code are known.
    args : tuple
        What the callable is called with.
    collapse : {"auto", "module", "line", None}
        Draw what was recorded in one module (the outermost below the called one) or by one line of code as one box. "auto" does so from
        200 operations on, by module where there are any.

    Returns
    -------
    Graph
        ``str`` gives text, ``mermaid()`` and ``dot()`` these languages, ``save("name.svg")`` or ``.png`` a file, and a notebook shows it
        (both by the `graphviz` package and program, ``pip install graphviz`` and graphviz.org; ``.mmd``, ``.dot`` and ``.txt`` need neither).
        ``items`` and ``edges`` are for programs of your own.

    Raises
    ------
    TypeError
        If there is no tensor to look at.
    RuntimeError
        If a tensor has no graph, or a backward has freed it.

    Notes
    -----
    Leaves are drawn as rounded boxes, results with a double border, and operations with what they keep for backward: names of the kept
    values (``out`` is the result) and the bytes that would be free without the operation. To walk a graph yourself, begin with
    ``y.grad_fn``: a node has ``name``, ``next_functions`` (node or leaf, and number of its result, for each input), ``saved_inputs``,
    ``saved_results``, ``arguments`` and ``source``.

    Examples
    --------
    >>> import cgrad as cg
    >>> a, b = cg.tensor(2.0, requires_grad=True), cg.tensor(3.0, requires_grad=True)
    >>> g = cg.exp(a * b + 1)
    >>> print(cg.graph(g))
    a                    leaf ()
    b                    leaf ()
    v1 = multiply(a, b)  ()       keeps x, y
    v2 = add(v1, const)  ()
    g = exp(v2)          ()       keeps out
    """
    if collapse not in ("auto", "module", "line", None):
        raise ValueError(f'graph: collapse must be "auto", "module", "line" or None, got {collapse!r}')
    known, modules = variables(sys._getframe(1)), modules_of(results, sys._getframe(1))
    looked = look_at("graph", results, args, modules)
    if any(y.grad_fn is not None and y.grad_fn.is_freed for y in looked.results):
        raise RuntimeError("graph: the graph was freed by a backward; draw it before, or call that one with retain_graph=True")
    known |= {joined(name, path): p for name, module in modules.items() for path, p in module.named_parameters()}
    return Graph(Record(*looked.results), known, looked.places, collapse)


class Graph:
    """What `graph` gives back.

    Attributes
    ----------
    items : list of Item
        (id, kind, label, detail, group) of each box, in the order of computation.
    edges : list of tuple
        (id, id) of the boxes that an arrow joins.
    """

    def __init__(self, record, known, places, collapse):
        kept = Kept(record)
        names = name_places(record, known, "const", record.constants())
        results = {place_of(y) for y in record.results}
        boxes = _boxes(record, places, collapse)             # node -> (key of its box, title or None)
        self.items, self.edges, self._text = [], [], []
        ids = {}
        for leaf in record.leaves:
            ids[leaf] = f"n{len(ids)}"
            self.items.append(Item(ids[leaf], "leaf", names[leaf], _type_text(leaf.shape, leaf.dtype), ()))
        grouped = {}
        for node in record.nodes:
            grouped.setdefault(boxes[node][0], []).append(node)
        for key, nodes in grouped.items():
            ids[key] = f"n{len(ids)}"
            last = nodes[-1]
            final = any((node, k) in results for node in nodes for k in range(len(result_types(node))))
            nbytes = sum(kept.nbytes[node] for node in nodes)
            saved = ", ".join(what for what, _ in kept.saved[last]) if len(nodes) == 1 else ""
            keeps = f"keeps {saved}".strip() + (f" {size_text(nbytes)}" if nbytes else "") if saved or nbytes else ""
            detail = "\n".join(filter(None, [", ".join(_type_text(*t) for t in result_types(last)), keeps]))
            name = next((names[p] for p in ((last, k) for k in range(len(result_types(last)))) if p in names), "")
            label = f"{name} = {last.name}" if boxes[last][1] is None else f"{boxes[last][1]}\n{len(nodes)} operations"
            group = () if boxes[last][1] is not None else places.get(last, ((), None))[0]
            self.items.append(Item(ids[key], "result" if final else "op", label, detail, group))
            inputs = [(place, ids[place] if isinstance(place, Tensor) else ids.get(boxes[place[0]][0]) if len(place) == 2 else None)
                      for node in nodes for place in record.inputs(node)]
            self.edges += list({(source, ids[key]): None for _, source in inputs if source not in (None, ids[key])})
            title = boxes[last][1]
            self._text.append((f"{name} = {last.name}({', '.join(names[p] for p, _ in inputs)})" if title is None else f"{title}: {len(nodes)} operations",
                               ", ".join(_type_text(*t) for t in result_types(last)), keeps))

    def mermaid(self):
        """The graph in Mermaid's language, which GitHub, MyST and notebooks show."""
        return drawing.mermaid(self.items, self.edges)

    def dot(self):
        """The graph in Graphviz's language."""
        return drawing.dot(self.items, self.edges)

    def save(self, path):
        """Write a file; its ending says what: .svg, .png, .pdf (by Graphviz), .dot, .mmd or .txt."""
        ending = os.path.splitext(path)[1].lower()
        texts = {".dot": self.dot, ".gv": self.dot, ".mmd": self.mermaid, ".txt": self.__str__}
        content = texts[ending]().encode() if ending in texts else drawing.render(self.dot(), ending.lstrip("."))
        with open(path, "wb") as file:
            file.write(content)

    def __str__(self):
        rows = [(item.label, "leaf " + item.detail, "") for item in self.items if item.kind == "leaf"] + self._text
        widths = [max(len(row[k]) for row in rows) for k in range(2)]
        return "\n".join(f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}".rstrip() for a, b, c in rows)

    def __repr__(self):
        return f"<Graph of {len(self.items)} boxes and {len(self.edges)} arrows>"

    def _repr_svg_(self):
        if len(self.items) > LARGEST:
            return None
        try:
            return drawing.render(self.dot(), "svg").decode()
        except RuntimeError:
            return None

    def _repr_mimebundle_(self, include=None, exclude=None):
        svg = self._repr_svg_()
        return {"text/plain": str(self), **({"image/svg+xml": svg} if svg else {})}


def _boxes(record, places, collapse):
    """For each node the key of the box that it is drawn in, and the title if that box stands for several."""
    if collapse == "auto":
        collapse = None if len(record.nodes) < MANY else "module" if any(stack for stack, _ in places.values()) else "line"
    out = {}
    for node in record.nodes:
        stack, line = places.get(node, ((), node.source))
        if collapse == "module" and stack:
            out[node] = ("module", stack[0]), stack[0]
        elif collapse == "line" and line:
            out[node] = ("line", *line), f"{os.path.basename(line[0])}:{line[1]}"
        else:
            out[node] = node, None
    return out


def _type_text(shape, dtype):
    shape = tuple(shape)
    return str(shape) if dtype.name == "float32" else f"{dtype.name} {shape}"
