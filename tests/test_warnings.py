"""Every warning: its text and category, that it points at the user's line, and that as an error it leaves everything as it was."""
import inspect
import itertools
import threading
import warnings

import pytest

import cgrad as cg
from cgrad import nn, optim

S = optim.lr_scheduler
numbers = itertools.count()


def leaf(value=2.0):
    return cg.tensor(value, requires_grad=True)


def gather(optimizer, schedules):
    return S.ChainedScheduler([make(optimizer) for make in schedules])


class Quiet(nn.GRU):
    def __init__(self):
        super().__init__(2, 3, dropout=0.5)


class NoRule(cg.Op):
    def forward(self, x):
        return x * x

    def backward(self, grads):
        return grads


def fresh_op():
    """An Op without a rule for batches, under a name of its own: the warning comes once for a name."""
    return type(f"NoRule{next(numbers)}", (NoRule,), {})


def stepped(x, make):
    """Backward and step once; what is to be warned of is the next."""
    opt = make([x])
    (x * 1.0).sum().backward()
    opt.step()
    (x * 1.0).sum().backward()
    return opt


def closure(x):
    def evaluate():
        loss = (x * 1.0).sum()
        loss.backward()
        return loss
    return evaluate


# Each: what is prepared, the call that warns of it, the category and the text.
CASES = {
    "grad of a result": (lambda: leaf() * 3, lambda y: y.grad, UserWarning,
                         r"grad: a tensor of shape \(\) has none, for it is no leaf but a result of multiply, .*: call retain_grad\(\) on it before backward$"),
    "tensor of a tensor": (lambda: leaf([1.0, 2.0]), lambda x: cg.tensor(x), UserWarning,
                           r"tensor: the numbers of a tracked tensor of shape \(2,\) are copied out of its graph, .*stack\(\[x, y\]\) and x.clone\(\) keep it"),
    "tensor of a list": (lambda: leaf() * 2, lambda x: cg.tensor([[x, 1.0]]), UserWarning, r"tensor: the numbers of a tracked tensor of shape \(\)"),
    "var": (lambda: cg.ones(3, 1), lambda x: x.var(dim=1, correction=1), RuntimeWarning,
            r"var, std: 1 elements \(of shape \(3, 1\)\) with correction=1 leave 0 to divide by, so the result is NaN or infinite; take more elements or"),
    "std through NumPy": (lambda: cg.ones(0), lambda x: __import__("numpy").std(x), RuntimeWarning, r"var, std: 0 elements"),
    "gradient of a std": (lambda: cg.ones(1), lambda x: cg.func.grad(lambda x: x.std(correction=1))(x), RuntimeWarning, r"var, std: 1 elements"),
    "zero_grad": (lambda: stepped(leaf(), optim.SGD), lambda opt: opt.step(), UserWarning,
                  r"SGD.step: these gradients still hold those of an earlier step, .*; call zero_grad\(\) before each backward\(\) \(this is said once\)"),
    "zero_grad in a closure": (lambda: stepped(leaf(), optim.Adam), lambda opt: opt.step(closure(opt.param_groups[0]["params"][0])), UserWarning, r"Adam.step: these"),
    "zero_grad of LBFGS": (lambda: (x := leaf(), optim.LBFGS([x]), closure(x)), lambda given: [given[1].step(given[2]) for _ in range(2)], UserWarning,
                           r"LBFGS.step: these"),
    "order of steps": (lambda: S.StepLR(optim.SGD([leaf()], lr=0.5), 1), lambda schedule: schedule.step(), UserWarning,
                       r"StepLR: call optimizer.step\(\) before scheduler.step\(\), or the first learning rate \(0.5\) is skipped"),
    "order of steps in a chain": (lambda: gather(optim.SGD([leaf()], lr=0.5), [lambda o: S.ExponentialLR(o, 0.5)]), lambda schedule: schedule.step(), UserWarning,
                                  r"ExponentialLR: call optimizer.step\(\) before"),
    "dropout of one layer": (lambda: nn.LSTM, lambda kind: kind(2, 3, dropout=0.5), UserWarning,
                             r"LSTM: dropout acts between layers, so dropout=0.5 does nothing with num_layers=1"),
    "gradcheck": (lambda: leaf([1.0]), lambda x: cg.autograd.gradcheck(lambda x: x * 2, x, atol=0.1), UserWarning,
                  r"gradcheck: input 0 is float32; differences need float64 to be exact enough, for instance input.double\(\)"),
    "gradgradcheck": (lambda: leaf([1.0]), lambda x: cg.autograd.gradgradcheck(lambda x: x * x, x, atol=0.1), UserWarning, r"gradgradcheck: input \d is float32"),
    "vmap": (fresh_op, lambda op: cg.func.vmap(lambda x: op()(x))(cg.ones(4, 2)), RuntimeWarning,
             r"vmap: NoRule\d+ has no rule for batches and is computed example by example \(4 of them\), which is right but slow; an operation of your own can have one"),
    "vmap of a gradient": (fresh_op, lambda op: cg.func.vmap(cg.func.grad(lambda x: op()(x).sum()))(cg.ones(4, 2)), RuntimeWarning,
                           r"vmap: NoRule\d+ has no rule"),
}


@pytest.mark.parametrize("name", CASES)
def test_warnings_say_what_and_where(name):
    prepare, call, category, text = CASES[name]
    given = prepare()
    with pytest.warns(category, match=text) as seen:
        call(given)
    for w in seen:
        assert w.filename == __file__ and w.category is category
    lines = inspect.getsourcelines(call)
    assert any(lines[1] <= w.lineno < lines[1] + len(lines[0]) for w in seen), "the line of the call"


@pytest.mark.parametrize("name", CASES)
def test_warnings_can_be_errors(name):
    prepare, call, category, text = CASES[name]
    given = prepare()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(1 if "zero_grad" in name else 2):                        # what was not said is said the next time
            with pytest.raises(category, match=text):
                call(given)
    assert cg.is_grad_enabled()
    if name == "gradient of a std":
        assert cg.func.grad(lambda x: x * x)(cg.tensor(3.0)).item() == 6.0, "no level is left open"


def test_a_layer_of_ones_own_is_the_users_line():
    with pytest.warns(UserWarning, match="Quiet: dropout acts between layers") as seen:
        Quiet()
    assert [(w.filename, w.lineno) for w in seen] == [(__file__, inspect.getsourcelines(Quiet)[1] + 2)]


def test_a_warning_in_a_hook_stops_backward_before_anything_is_written():
    x, w = leaf(), leaf()
    y = x * w
    z = y * 1.0
    z.register_hook(lambda g: y.grad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="grad: a tensor"):
            z.backward()
    assert x.grad is None and w.grad is None


def test_a_step_that_is_stopped_changes_nothing():
    x = leaf([1.0, 2.0])
    opt = stepped(x, lambda params: optim.SGD(params, lr=0.1, momentum=0.9))
    before, state = x.tolist(), opt.state[x]["momentum_buffer"].tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="zero_grad"):
            opt.step()
        assert x.tolist() == before and opt.state[x]["momentum_buffer"].tolist() == state
        schedule = S.StepLR(optim.SGD([x], lr=1.0), 1)
        with pytest.raises(UserWarning, match="scheduler"):
            schedule.step()
        assert schedule.last_epoch == 0 and schedule.get_last_lr() == [1.0]


def test_right_code_hears_nothing():
    x = leaf([1.0, 2.0])
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1, 1] and x.grad.tolist() == [2, 2] and leaf().grad is None and cg.ones(2).grad is None
    x.grad = None
    assert x.grad is None and x.detach().grad is None
    with cg.no_grad():
        assert (x * 2).grad is None
        cg.tensor(x * 2), cg.tensor([x[0], x[1]])
    cg.tensor(y.detach()), cg.tensor([v.item() for v in y]), cg.asarray(y), cg.as_tensor(y), y.clone(), cg.stack([x, y])
    cg.ones(3).var(), cg.ones(1).var(), cg.ones(0, 3).var(dim=1), cg.ones(2).std(correction=1)


def test_warnings_in_threads_point_there_too():
    def work():
        with pytest.warns(UserWarning, match="grad: a tensor") as seen:
            (leaf() * 2).grad  # noqa: B018
        found.extend((w.filename, w.lineno) for w in seen)

    found = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(__file__, inspect.getsourcelines(work)[1] + 2)]


def test_a_directory_whose_name_begins_alike_is_the_users(tmp_path, monkeypatch):
    from cgrad.core import source
    monkeypatch.setattr(source, "HERE", str(tmp_path / "cgrad") + "/")
    where = {}
    code = compile("def call():\n    return users_line()\n", str(tmp_path / "cgrad_of_mine.py"), "exec")
    exec(code, {"users_line": source.users_line}, where)
    assert where["call"]() == (str(tmp_path / "cgrad_of_mine.py"), 2, "call")
