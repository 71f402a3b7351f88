"""The textbook's g = exp(a*b + c*d), explained and drawn: the whole outputs, as files that were read and found right."""
from pathlib import Path

import pytest

import cgrad as cg

GOLDEN = Path(__file__).with_name("golden")
OUTPUTS = {
    "explain.en.txt": lambda a, b, c, d, g: str(cg.explain(g)),
    "explain.zh.txt": lambda a, b, c, d, g: str(cg.explain(g, lang="zh")),
    "explain.html.txt": lambda a, b, c, d, g: cg.explain(g)._repr_html_(),
    "graph.txt": lambda a, b, c, d, g: str(cg.graph(g)),
    "graph.dot": lambda a, b, c, d, g: cg.graph(g).dot(),
    "graph.mermaid": lambda a, b, c, d, g: cg.graph(g).mermaid(),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_seed_expression(name):
    a, b, c, d = (cg.tensor(value, requires_grad=True, dtype=cg.float64) for value in (2.0, 3.0, 2.0, 2.0))
    g = cg.exp(a * b + c * d)
    text = OUTPUTS[name](a, b, c, d, g)
    assert text.rstrip("\n") == GOLDEN.joinpath(name).read_text(encoding="utf-8").rstrip("\n")
    assert [x.tolist() for x in cg.autograd.grad(g, (a, b, c, d))] == pytest.approx([66079.39738442016, 44052.93158961344] + [44052.93158961344] * 2)
