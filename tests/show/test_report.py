"""memory.report counts what the tape keeps, by operation, line and module, and what checkpoints would save."""
import math

import pytest

import cgrad as cg


def rows(report):
    return {row.name: row for row in report.rows}


def test_by_operation():
    x = cg.ones((100, 10), requires_grad=True)
    report = cg.memory.report(cg.exp(x * 2.0).tanh().sum())
    found = rows(report)
    assert {name: (row.nodes, row.nbytes) for name, row in found.items()} == {"exp": (1, 4000), "tanh": (1, 4000), "multiply": (1, 0), "sum": (1, 0)}
    assert report.nbytes == 8000
    assert found["exp"].share == 0.5 and report.nodes == 4
    assert all(row.saved is None for row in report.rows)


def test_memory_kept_twice_counts_once_and_held_memory_not_at_all():
    x = cg.ones((1000,), requires_grad=True)
    y = cg.exp(x)                                             # keeps its result, which the product keeps, too
    report = cg.memory.report((y * x).sum())
    assert report.nbytes == 4000 and rows(report)["exp"].nbytes == 4000 and rows(report)["multiply"].nbytes == 0
    assert cg.memory.report(y).nbytes == 0, "a result is held by who asks"


def test_arguments_are_held_by_the_caller():
    layer, x = cg.nn.Linear(100, 3), cg.ones((50, 100))
    assert cg.memory.report(layer, args=(x,)).nbytes == 0
    assert cg.memory.report(layer(x)).nbytes == 50 * 100 * 4, "who knows that x is held"


def test_by_line():
    x = cg.ones((1000,), requires_grad=True)

    def function(x):
        y = cg.exp(x)
        return y.tanh().sum()

    first = function.__code__.co_firstlineno
    report = cg.memory.report(function, args=(x,), by="line")
    assert {name: row.nbytes for name, row in rows(report).items()} == {f"test_report.py:{first + 1}": 4000, f"test_report.py:{first + 2}": 4000}
    assert [row.name for row in cg.memory.report(function(x), by="line").rows] == ["(not known)"]
    with cg.autograd.detect_anomaly():
        y = function(x)
    assert {row.name for row in cg.memory.report(y, by="line").rows} == set(rows(report))


class Block(cg.nn.Module):
    """(20, 100) -> (20, 100), which keeps two results inside that nothing else keeps."""

    def forward(self, x):
        return cg.exp(x).tanh().sin() * 2.0


def test_by_module_and_what_a_checkpoint_saves():
    net = cg.nn.Sequential(Block(), Block())
    x = cg.ones((20, 100), requires_grad=True)
    report = cg.memory.report(net, args=(x,), by="module")
    found = rows(report)
    size = 20 * 100 * 4
    # a block keeps exp's and tanh's results (sin's rule needs tanh's result)
    assert found["0: Block"][1:3] == (4, 2 * size) == found["1: Block"][1:3]
    assert report.nbytes == 4 * size and found["0: Block"].share == 0.5
    assert found["0: Block"].saved == 2 * size, "its argument is held anyway"
    assert found["1: Block"].saved == size, "its argument is kept instead"


def test_the_saving_is_what_a_checkpoint_does_save():
    block, x = Block(), cg.ones((20, 100), requires_grad=True)
    before = cg.memory.report(lambda x: block(x * 2.0), args=(x,), by="module")
    saved = rows(before)["block: Block"].saved
    assert saved == 20 * 100 * 4
    live = cg.memory.stats()["live_bytes"]
    y = block(x * 2.0)
    plain = cg.memory.stats()["live_bytes"] - live
    del y
    live = cg.memory.stats()["live_bytes"]
    y = cg.checkpoint(block, x * 2.0)
    checkpointed = cg.memory.stats()["live_bytes"] - live
    y.sum().backward()
    assert plain - checkpointed == pytest.approx(saved, rel=0.3)          # blocks are rounded up


def test_modules_of_the_callers_variables():
    net, x = cg.nn.Sequential(cg.nn.Linear(3, 4), cg.nn.Tanh()), cg.ones((5, 3))
    found = rows(cg.memory.report(lambda x: cg.exp(net(x)), args=(x,), by="module"))
    assert set(found) == {"net: Sequential", "net.0: Linear", "net.1: Tanh", "(outside)"}
    assert not net[0]._hooks


def test_text_and_html():
    x = cg.ones((1000,), requires_grad=True)
    report = cg.memory.report(cg.exp(x).sum())
    assert str(report).splitlines() == ["operation  nodes   keeps   share", "exp            1  4.0 kB  100.0%",
                                        "sum            1     0 B    0.0%", "in all         2  4.0 kB  100.0%"]
    assert report._repr_html_().count("<tr>") == 4
    by_module = cg.memory.report(cg.nn.Tanh(), args=(x,), by="module")
    assert "checkpoint saves" in str(by_module)


def test_refusals():
    x = cg.ones((3,), requires_grad=True)
    with pytest.raises(ValueError, match="by must be one of"):
        cg.memory.report(cg.exp(x), by="tensor")
    with pytest.raises(ValueError, match="known only of a call"):
        cg.memory.report(cg.exp(x), by="module")
    with pytest.raises(TypeError, match="memory.report: expected tensors"):
        cg.memory.report()
    with pytest.raises(RuntimeError, match="memory.report: .* has no graph"):
        cg.memory.report(cg.ones(3))
    with pytest.raises(ZeroDivisionError):
        cg.memory.report(lambda x: x / 0 if isinstance(x, int) else 1 // 0, args=(x,))
    with pytest.raises(AttributeError, match="cgrad.memory"):
        cg.memory.nothing
    assert "report" in dir(cg.memory)


def test_a_checkpoint_in_the_graph_is_looked_at_like_any_operation():
    x = cg.zeros(1000, requires_grad=True)
    y = cg.checkpoint(lambda x: cg.exp(x).tanh(), x * 2.0).sum()
    assert cg.memory.report(y).nbytes == 4000                             # its argument
    assert "checkpoint" in str(cg.graph(y))
    walk = str(cg.explain(y))
    assert f"{2 / math.cosh(1) ** 2:.4g}" in walk.splitlines()[-1]          # d/dx tanh(exp(2x)) at 0
    assert "rule of checkpoint" in walk and "exp" not in walk         # what it does inside is its own
