"""graph draws what was recorded: leaves, operations, results, what they keep, the modules they belong to."""
import re
import shutil

import pytest

import cgrad as cg


def leaves(*values):
    return [cg.tensor(v, requires_grad=True) for v in values]


def net_and_input():
    net = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.Tanh(), cg.nn.Sequential(cg.nn.Linear(4, 2)))
    return net, cg.ones((5, 3))


def test_as_text():
    a, b = leaves(2.0, 3.0)
    g = cg.exp(a * b + 1)
    assert str(cg.graph(g)) == """\
a                    leaf ()
b                    leaf ()
v1 = multiply(a, b)  ()       keeps x, y
v2 = add(v1, const)  ()
g = exp(v2)          ()       keeps out"""


def test_boxes_and_arrows():
    a, b = leaves(2.0, 3.0)
    y = a * b
    z = y + a
    drawn = cg.graph(y, z)
    kinds = {item.label: item.kind for item in drawn.items}
    assert kinds == {"a": "leaf", "b": "leaf", "y = multiply": "result", "z = add": "result"}
    ids = {item.label: item.id for item in drawn.items}
    assert set(drawn.edges) == {(ids["a"], ids["y = multiply"]), (ids["b"], ids["y = multiply"]),
                                (ids["y = multiply"], ids["z = add"]), (ids["a"], ids["z = add"])}


def test_bytes_that_the_tape_keeps():
    (x,) = [cg.ones((100, 10), requires_grad=True)]
    y = cg.exp(x * 2.0).sum()
    text = str(cg.graph(y))
    assert re.search(r"exp\(v1\) .*keeps out 4\.0 kB", text)            # nobody else holds them
    assert re.search(r"multiply\(x, 2\) +\(100, 10\)$", text, re.MULTILINE), "a number is no memory"


def test_modules_are_drawn_around_their_operations():
    net, x = net_and_input()
    drawn = cg.graph(net, args=(x,))
    groups = {item.label: item.group for item in drawn.items}
    assert groups["v1 = linear"] == ("0: Linear",)
    assert groups["v3 = linear"] == ("2: Sequential", "2.0: Linear")
    assert "0.weight" in groups
    assert not net[0]._hooks, "the hooks of the drawing are gone"
    mermaid = drawn.mermaid()
    assert mermaid.startswith("flowchart TD\n") and mermaid.count("subgraph ") == 4 == mermaid.count("    end\n")
    dot = drawn.dot()
    assert dot.startswith("digraph {") and dot.count("{") == dot.count("}") == 5


def test_modules_of_the_caller_are_found_in_a_function():
    net, x = net_and_input()
    drawn = cg.graph(lambda x: net(x).sum(), args=(x,))
    assert ("net: Sequential", "net.0: Linear") in {item.group for item in drawn.items}
    assert any(item.label == "net.0.weight" for item in drawn.items)


def test_many_operations_are_drawn_by_module_or_line():
    net, x = net_and_input()

    def steps(x):
        y = net(x).sum()
        for _ in range(300):
            y = y * 1.5
        return y

    drawn = cg.graph(steps, args=(x,), collapse="line")
    assert any(re.fullmatch(r"test_graph\.py:\d+\n300 operations", item.label) for item in drawn.items)
    assert len(drawn.items) < 10
    drawn = cg.graph(steps, args=(x,), collapse="module")
    assert any(item.label == "net: Sequential\n3 operations" for item in drawn.items)
    assert len(cg.graph(steps, args=(x,), collapse=None).items) == 4 + 3 + 1 + 300


def test_deep_graphs_are_walked_without_recursion():
    (x,) = leaves(1.0)
    y = x
    for _ in range(20_000):
        y = y + x
    assert len(cg.graph(y).items) == 20_001


def test_a_notebook_is_not_made_to_wait_for_a_picture_of_thousands(monkeypatch):
    monkeypatch.setattr("cgrad.show.drawing.render", lambda source, form: pytest.fail("nobody asked for it"))
    (x,) = leaves(1.0)
    y = x
    for _ in range(2000):
        y = y + x
    shown = cg.graph(y, collapse=None)._repr_mimebundle_()
    assert set(shown) == {"text/plain"} and shown["text/plain"].count("\n") == 2000


def test_names_are_escaped():
    module = cg.nn.ModuleDict({'a"<b>': cg.nn.Linear(1, 1)})
    drawn = cg.graph(lambda: module['a"<b>'](cg.ones((1, 1))))
    assert "<b>" not in drawn.mermaid() and '\\"' in drawn.dot()


@pytest.mark.parametrize("ending", ["dot", "mmd", "txt"])
def test_files_without_graphviz(tmp_path, ending):
    (x,) = leaves(1.0)
    y = x * x
    drawn = cg.graph(y)
    drawn.save(tmp_path / f"g.{ending}")
    assert (tmp_path / f"g.{ending}").read_text() == {"dot": drawn.dot(), "mmd": drawn.mermaid(), "txt": str(drawn)}[ending]


def test_pictures(tmp_path):
    pytest.importorskip("graphviz")
    if shutil.which("dot") is None:
        pytest.skip("the Graphviz program is not installed")
    (x,) = leaves(1.0)
    y = x * x
    cg.graph(y).save(tmp_path / "g.svg")
    cg.graph(y).save(tmp_path / "g.png")
    assert "<svg" in (tmp_path / "g.svg").read_text()
    assert (tmp_path / "g.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in cg.graph(y)._repr_mimebundle_()["image/svg+xml"]


def test_what_cannot_be_drawn():
    (x,) = leaves(1.0)
    with pytest.raises(TypeError, match="graph: expected tensors, or a function that returns tensors, got int"):
        cg.graph(3)
    with pytest.raises(TypeError, match="graph: expected tensors"):
        cg.graph()
    with pytest.raises(RuntimeError, match=r"graph: a result of shape \(\) has no graph"):
        cg.graph(x.detach())
    y = x * x
    y.backward()
    with pytest.raises(RuntimeError, match="graph: the graph was freed by a backward; draw it before"):
        cg.graph(y)
    with pytest.raises(ValueError, match=r'collapse must be "auto", "module", "line" or None'):
        cg.graph(x * x, collapse="all")
