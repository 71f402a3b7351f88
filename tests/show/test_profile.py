"""profile measures every operation, forward and backward, and leaves nothing behind."""
import json
import threading

import pytest

import cgrad as cg


def rows(table):
    return {row.name: row for row in table}


def calls(table):
    return {row.name: row.calls for row in table}


def test_operations_are_counted_with_and_without_a_graph():
    x, w = cg.ones((3, 4)), cg.ones((4, 2))
    with cg.profile() as p:
        y = cg.cos(x) + x
        y = y * 2.0 - 1.0
        y = -(y @ w)
        y.sin().sum(dim=1)
        cg.where(x > 0, x, 0.0)
        cg.concatenate([x, x])
        x += 1.0
        x.exp_()
    assert calls(p.by("op")) == {"cos": 1, "exp": 1, "add": 1, "multiply": 1, "subtract": 1, "matmul": 1, "negative": 1, "sin": 1, "sum": 1, "greater": 1,
                                 "where": 1, "concat": 1, "add_": 1, "exp_": 1}
    assert all(row.backward == 0 and row.forward > 0 for row in p.by("op"))
    x.tan()
    assert "tan" not in calls(p.by("op")), "the block has ended"


def test_values_are_those_without_a_profile():
    def step():
        x = cg.tensor([[0.5, -1.0], [2.0, 3.0]], requires_grad=True)
        y = cg.where(x > 0, x, 0.0)
        z = cg.concatenate([y, x], axis=0).var(dim=0, correction=1) @ cg.ones(2) + cg.clip(x, min=0.0, max=1.0).sum()
        z.backward()
        return x.grad.tolist()

    plain = step()
    with cg.profile():
        assert step() == plain


def test_backward_is_that_of_its_nodes():
    x = cg.ones((100, 100), requires_grad=True)
    with cg.profile() as p:
        cg.exp(x * 2.0).sum().backward()
        cg.autograd.grad(cg.tanh(x).sum(), x)
    found = rows(p.by("op"))
    assert set(found) == {"multiply", "exp", "sum", "tanh", "backward"}
    assert all(found[name].backward > 0 for name in ("multiply", "exp", "sum", "tanh"))
    assert found["backward"].calls == 2 and found["backward"].forward == 0


def test_own_times_add_up_to_less_than_the_whole():
    x = cg.ones((50, 50), requires_grad=True)
    with cg.profile() as p:
        for _ in range(5):
            cg.var(cg.exp(x), axis=0).sum().backward()
    for what in ("op", "module", "line"):
        table = p.by(what)
        own = [row.forward + row.backward for row in table]
        assert own == sorted(own, reverse=True) and min(own) >= 0
        assert sum(own) <= p.seconds == table.seconds
        assert all(row.total >= row.forward + row.backward - 1e-12 for row in table)


def test_a_call_within_a_call_counts_for_itself():
    x = cg.ones((10, 10))
    with cg.profile() as p:
        cg.nn.functional.cross_entropy(x, cg.zeros(10, dtype=cg.int64))
        cg.mean(x)
    for event in p.events:
        assert event.own <= event.duration
    roots = [e for e in p.events if len(e.ops) == 1]
    assert sum(e.own for e in p.events) == sum(e.duration for e in roots)


def test_memory():
    x = cg.ones((1000, 1000))
    with cg.profile() as p:
        y = cg.exp(x)
        del y
        y = x * 2.0
        z = y.sum()
    found = rows(p.by("op"))
    for name in ("exp", "multiply"):
        assert 4_000_000 <= found[name].nbytes <= 5_000_000 and 4_000_000 <= found[name].peak <= 5_000_000
    assert found["sum"].nbytes < 1000 and z.shape == ()
    assert p.peak_bytes >= 8_000_000
    assert cg.memory.stats()["peak_bytes"] >= p.peak_bytes, "the peak of the process is not forgotten"


def test_modules():
    net = cg.nn.Sequential(cg.nn.Linear(4, 8), cg.nn.Tanh(), cg.nn.Sequential(cg.nn.Linear(8, 2)))
    plain = cg.nn.Module.__call__
    with cg.profile() as p:
        net(cg.ones((3, 4))).sum().backward()
        net(cg.ones((3, 4)))
    assert cg.nn.Module.__call__ is plain
    found = rows(p.by("module"))
    assert {name: row.calls for name, row in found.items()} == {
        "Sequential": 2, "Sequential.0: Linear": 2, "Sequential.1: Tanh": 2, "Sequential.2: Sequential": 2, "Sequential.2.0: Linear": 2, "(outside)": 0}
    assert all(found[name].backward > 0 for name in ("Sequential.0: Linear", "Sequential.1: Tanh", "Sequential.2.0: Linear", "(outside)"))
    assert found["Sequential.2: Sequential"].total > found["Sequential.2.0: Linear"].total > 0
    inside = [row for name, row in found.items() if name != "(outside)"]
    assert found["Sequential"].total == pytest.approx(sum(row.forward + row.backward for row in inside))


def test_lines():
    x = cg.ones((3, 4), requires_grad=True)
    first = test_lines.__code__.co_firstlineno
    with cg.profile() as p:
        y = cg.var(cg.exp(x))
        y.backward()
    assert calls(p.by("line")) == {f"test_profile.py:{first + 4}": 2, f"test_profile.py:{first + 5}": 1}
    assert rows(p.by("line"))[f"test_profile.py:{first + 4}"].backward > 0, "the rules belong to the line that recorded them"


def test_what_a_checkpoint_computes_again_is_its_backward():
    x = cg.ones((20, 20), requires_grad=True)
    with cg.profile() as p:
        cg.checkpoint(lambda x: cg.exp(x).tanh(), x * 1.0).sum().backward()
    found = rows(p.by("op"))
    assert found["exp"].calls == found["tanh"].calls == 1
    assert found["exp"].backward > 0 and x.grad is not None
    assert sum(row.forward + row.backward for row in found.values()) <= p.seconds


def test_trace(tmp_path):
    net = cg.nn.Sequential(cg.nn.Linear(4, 8), cg.nn.Tanh())
    with cg.profile() as p:
        net(cg.ones((3, 4))).sum().backward()
    p.save(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    by_phase = {}
    for event in trace["traceEvents"]:
        by_phase.setdefault(event["ph"], []).append(event)
    assert set(by_phase) == {"M", "X", "C"}
    for event in by_phase["X"]:
        assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["pid"], int) and isinstance(event["tid"], int)
        assert isinstance(event["name"], str) and isinstance(event["cat"], str)
    linear = next(e for e in by_phase["X"] if e["name"] == "linear")
    assert linear["args"]["shapes"] == [[3, 4], [8, 4], [8]] and "test_profile.py:" in linear["args"]["line"]
    assert {"Sequential", "Sequential.0: Linear", "tanh", "tanh backward", "backward"} <= {e["name"] for e in by_phase["X"]}
    assert all(e["args"]["bytes"] >= 0 for e in by_phase["C"])
    spans = sorted((e["ts"], -e["dur"]) for e in by_phase["X"])                 # one thread: any two are apart or one within the other
    ends = []
    for start, minus in spans:
        while ends and ends[-1] <= start + 1e-6:
            ends.pop()
        assert not ends or start - minus <= ends[-1] + 1e-6
        ends.append(start - minus)


def test_a_trace_of_threads_is_one_track_each(tmp_path):
    """Perfetto reads numbers of threads as 32 bits and puts what does not fit on one track; of two events that begin at once the outer comes first."""
    x = cg.ones((30, 30), requires_grad=True)

    def work():
        cg.checkpoint(lambda x: cg.exp(x).tanh(), x * 1.0).sum().backward()
        barrier.wait()

    barrier = threading.Barrier(3)
    with cg.profile() as p:
        threads = [threading.Thread(target=work, name=f"worker {k}") for k in range(3)]
        for thread in threads:
            thread.start()
        cg.sin(x)
        for thread in threads:
            thread.join()
    p.save(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(names.values()) == [threading.current_thread().name, "worker 0", "worker 1", "worker 2"]
    assert all(0 < tid < 2**32 for tid in names) and {e["tid"] for e in events if e["ph"] == "X"} == set(names)
    assert [e["name"] for e in events if e["ph"] == "X" and names[e["tid"]] == threading.current_thread().name] == ["sin"]
    for tid in names:
        ends, begins = [], -1.0
        for e in (e for e in events if e["ph"] == "X" and e["tid"] == tid):
            assert e["ts"] >= begins
            begins = e["ts"]
            while ends and ends[-1] <= e["ts"]:
                ends.pop()
            assert not ends or e["ts"] + e["dur"] <= ends[-1] + 1e-6, "in the event around it"
            ends.append(e["ts"] + e["dur"])


def test_own_operations_have_rows_of_their_own():
    class Cube(cg.Op):
        def forward(self, x):
            self.x = x
            return x * x * x

        def backward(self, grads):
            return grads * 3.0 * self.x * self.x

    x, plain = cg.ones((20, 20), requires_grad=True), cg.Op.__call__
    with cg.profile() as p:
        Cube()(x).sum().backward()
        Cube()(2.0)
        with cg.no_grad():
            Cube()(x)
    assert cg.Op.__call__ is plain
    found = rows(p.by("op"))
    assert found["Cube"].calls == 3 and found["Cube"].forward > 0 and found["Cube"].backward > 0
    assert found["multiply"].calls == 4 and found["Cube"].total > found["Cube"].forward
    assert sum(row.forward + row.backward for row in found.values()) <= p.seconds


@pytest.mark.parametrize("run", [
    lambda x: cg.func.vmap(lambda a: (a * 2).sin().sum())(x),
    lambda x: cg.func.vmap(cg.func.grad(lambda a: (a * 2).sin().sum()))(x),
    lambda x: cg.func.jvp(lambda a: (a * 2).sin().sum(), (x,), (x,)),
    lambda x: cg.func.hessian(lambda a: (a * 2).sin().sum())(x[0]),
    lambda x: cg.autograd.grad((x.requires_grad_() ** 3).sum(), x, create_graph=True)[0].sum().backward(),
    lambda x: cg.checkpoint(lambda x: (cg.checkpoint(cg.exp, x) * 2).tanh(), x.requires_grad_() * 1.0).sum().backward(),
])
def test_every_way_to_a_derivative_is_seen_whole(run):
    with cg.profile() as p:
        run(cg.ones(3, 4))
    assert p.events and not p._thread.stack
    assert all(event.duration >= 0 and (event.own is None or event.own >= 0) for event in p.events)
    assert 0 < sum(row.forward + row.backward for row in p.by("op")) <= p.seconds


def test_only_what_is_for_users_is_public():
    assert [name for name in dir(cg.profile()) if not name.startswith("_")] == ["by", "events", "peak_bytes", "save", "seconds"]


def test_errors_inside_leave_nothing_behind():
    x, plain = cg.ones((3, 4)), cg.nn.Module.__call__
    with pytest.raises(ValueError, match="matmul"), cg.profile() as p:
        x @ x
    assert calls(p.by("op")) == {"matmul": 1} and cg.nn.Module.__call__ is plain
    with p:
        with pytest.raises(ValueError, match="matmul"):
            x @ x
        with pytest.raises(TypeError):
            cg.exp(x, 1, 2, 3)
        cg.exp(x)
    assert calls(p.by("op")) == {"matmul": 2, "exp": 2}, "entered again, it goes on"
    assert not p._thread.stack
    cg.exp(x)
    assert calls(p.by("op"))["exp"] == 2


def test_one_at_a_time():
    with cg.profile(), pytest.raises(RuntimeError, match="another profile is on"), cg.profile():
        pass
    with cg.profile():
        pass


def test_each_thread_has_its_own_calls():
    x = cg.ones((30, 30), requires_grad=True)

    def work():
        for _ in range(20):
            cg.exp(x).sum().backward()

    with cg.profile() as p:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert calls(p.by("op")) == {"exp": 60, "sum": 60, "backward": 60}
    assert len({event.thread for event in p.events}) >= 1


def test_tables():
    with cg.profile() as p:
        cg.exp(cg.ones(3))
    lines = str(p).splitlines()
    assert lines[0].split() == ["operation", "calls", "forward", "backward", "total", "memory", "peak"]
    assert [line.split()[0] for line in lines[1:]] == ["exp", "in", "elsewhere"]
    assert p._repr_html_().count("<tr>") == 4 and len(p.by("op")) == 1
    with pytest.raises(ValueError, match="profile.by: expected one of"):
        p.by("tensor")
