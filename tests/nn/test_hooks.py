"""Hooks of modules: around forward, around backward, around saving and loading; extra state."""
import copy
import pickle

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn


class Square(nn.Module):
    def forward(self, x, y=2.0):
        return x * x * y


def test_backward_hooks_see_both_sides():
    layer, seen = nn.Linear(3, 2), []
    handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((module, grad_input, grad_output)))
    x = cg.randn(4, 3, requires_grad=True)
    g = cg.randn(4, 2)
    layer(x).backward(g)
    (module, (grad_input,), (grad_output,)), = seen
    assert module is layer
    np.testing.assert_array_equal(grad_output.numpy(), g.numpy())
    np.testing.assert_allclose(grad_input.numpy(), g.numpy() @ layer.weight.detach().numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x.grad.numpy(), grad_input.numpy())
    handle.remove()
    layer(x).backward(g)
    assert len(seen) == 1


def test_backward_hooks_replace_gradients():
    layer = Square()
    layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] + grad_output[0],))
    x = cg.tensor([1.0, 3.0], requires_grad=True)
    layer(x).sum().backward()
    assert x.grad.tolist() == [2 * 1 * 2 * 10 + 10, 2 * 3 * 2 * 10 + 10]


def test_inputs_without_gradient_are_none():
    seen = []
    layer = nn.Bilinear(2, 2, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input))
    layer(cg.ones(1, 2), cg.ones(1, 2, requires_grad=True)).sum().backward()
    layer(cg.ones(1, 2), cg.ones(1, 2)).sum().backward()
    assert seen[0][0] is None and seen[0][1].shape == (1, 2) and seen[1] == (None, None)
    with cg.no_grad():
        layer(cg.ones(1, 2), cg.ones(1, 2))


def test_backward_hooks_of_several_results_and_second_order():
    class Two(nn.Module):
        def forward(self, x):
            return x ** 2, x ** 3

    layer, seen = Two(), []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(len(grad_output)))
    x = cg.tensor(2.0, requires_grad=True)
    a, b = layer(x)
    g, = cg.autograd.grad(a + b, x, create_graph=True)
    assert g.item() == 4 + 12 and seen == [2]
    assert cg.autograd.grad(g, x)[0].item() == 2 + 12
    a, _ = layer(x)
    a.backward()
    assert x.grad.item() == 4


def test_a_wrong_number_of_gradients_is_refused():
    layer = Square()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (1, 2, 3))
    with pytest.raises(RuntimeError, match="1 gradients, got 3"):
        layer(cg.ones(2, requires_grad=True)).sum().backward()


def test_a_module_that_writes_in_place_behind_the_gate():
    layer = nn.ReLU(inplace=True)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    leaf = cg.tensor([-1.0, 2.0], requires_grad=True)
    x = leaf * 1.0
    layer(x).sum().backward()
    assert leaf.grad.tolist() == [0.0, 1.0]


def test_always_called_hooks_come_after_an_error_as_well():
    class Broken(nn.Module):
        def forward(self, x):
            raise ZeroDivisionError

    layer, seen = Broken(), []
    layer.register_forward_hook(lambda module, args, out: seen.append("never"))
    layer.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    with pytest.raises(ZeroDivisionError):
        layer(1)
    assert seen == [None]


def test_hooks_are_copied_with_the_module():
    layer = Square()
    layer.register_forward_hook(_plus_one)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other(cg.tensor(1.0)).item() == 3.0


def _plus_one(module, args, out):
    return out + 1


def test_hooks_around_the_state_dict():
    net, order = nn.Sequential(nn.Linear(2, 1)), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: order.append(("before", prefix, keep_vars)))
    net[0].register_state_dict_post_hook(lambda module, state, prefix, meta: state.update({prefix + "more": cg.zeros(1)}))
    state = net.state_dict(prefix="net.")
    assert list(state) == ["net.0.weight", "net.0.bias", "net.0.more"] and order == [("before", "net.", False)]
    with pytest.raises(RuntimeError, match='Unexpected key.*"0.more"'):
        net.load_state_dict(net.state_dict())


def test_hooks_before_loading_rename_keys_and_report_problems():
    net = nn.Sequential(nn.Linear(2, 1))

    def rename(module, state, prefix, meta, strict, missing, unexpected, problems):
        state[prefix + "0.weight"] = state.pop(prefix + "0.kernel")

    handle = net.register_load_state_dict_pre_hook(rename)
    old = {"0.kernel": cg.tensor([[1.0, 2.0]]), "0.bias": cg.tensor([3.0])}
    assert not any(net.load_state_dict(old)) and "0.kernel" in old
    assert net[0].weight.tolist() == [[1.0, 2.0]]
    handle.remove()
    net.register_load_state_dict_pre_hook(lambda *args: args[-1].append("the file is too old"))
    with pytest.raises(RuntimeError, match="the file is too old"):
        net.load_state_dict(net.state_dict())


@pytest.mark.parametrize("assign", [False, True])
def test_hooks_after_loading_forgive_missing_keys_or_everything_is_undone(assign):
    net = nn.Linear(2, 1)
    weight = net.weight.tolist()
    seen = []
    handle = net.register_load_state_dict_post_hook(lambda module, keys: seen.append((module.weight.tolist(), list(keys.missing_keys))))
    with pytest.raises(RuntimeError, match="Missing"):
        net.load_state_dict({"weight": cg.zeros(1, 2)}, assign=assign)
    assert seen == [([[0.0, 0.0]], ["bias"])] and net.weight.tolist() == weight
    handle.remove()
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    net.load_state_dict({"weight": cg.zeros(1, 2)}, assign=assign)
    assert net.weight.tolist() == [[0.0, 0.0]] and isinstance(net.weight, nn.Parameter)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x

    def get_extra_state(self):
        return {"calls": self.calls}

    def set_extra_state(self, state):
        self.calls = state["calls"]


def test_extra_state_travels_with_the_state_dict():
    net, other = nn.Sequential(Counter(), nn.Linear(1, 1)), nn.Sequential(Counter(), nn.Linear(1, 1))
    net(cg.ones(1, 1))
    state = net.state_dict()
    assert state["0._extra_state"] == {"calls": 1}
    other.load_state_dict(state)
    assert other[0].calls == 1
    del state["0._extra_state"]
    with pytest.raises(RuntimeError, match='Missing.*"0._extra_state"'):
        other.load_state_dict(state)


def test_other_state_by_path():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    assert net.get_buffer("0.running_var") is net[0].running_var
    with pytest.raises(AttributeError, match="no buffer"):
        net.get_buffer("0.weight")
    net.set_submodule("1", nn.Identity())
    assert isinstance(net[1], nn.Identity)
    with pytest.raises(AttributeError, match="no child module '7'"):
        net.set_submodule("7", nn.Identity(), strict=True)
    with pytest.raises(ValueError, match="expected a Module"):
        net.set_submodule("1", 3)
    assert net.cpu() is net and net.type(cg.float64)[0].weight.dtype == cg.float64
    shared = nn.ReLU()
    assert len(list(nn.Sequential(shared, shared).modules(remove_duplicate=False))) == 3
    into = {"kept": 1}
    assert net.state_dict(destination=into) is into and "kept" in into and "0.weight" in into


def test_buffers_by_assignment():
    net = nn.Identity()
    net.mean, net.scratch = nn.Buffer(cg.ones(2)), nn.Buffer(cg.zeros(3), persistent=False)
    assert [n for n, _ in net.named_buffers()] == ["mean", "scratch"] and list(net.state_dict()) == ["mean"]
    other = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    assert list(other.state_dict()) == ["mean"] and other.scratch.tolist() == [0.0] * 3
    assert isinstance(net.mean, cg.Tensor) and not net.mean.requires_grad


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(4, bias=False), nn.GroupNorm(2, 4, bias=False), nn.InstanceNorm1d(4, affine=True, bias=False)])
def test_norms_without_a_bias(layer):
    assert layer.bias is None and layer.weight.shape == (4,)
    assert layer(cg.randn(2, 4, 5)).shape == (2, 4, 5)
    layer.reset_parameters()


def test_parameter_list():
    weights = nn.ParameterList([cg.ones(2), nn.Parameter(cg.zeros(3))])
    weights += [cg.ones(4)]
    assert len(weights) == 3 and all(isinstance(w, nn.Parameter) for w in weights) and list(weights.state_dict()) == ["0", "1", "2"]
    weights[0] = cg.zeros(5)
    assert weights[0].shape == (5,) and len(weights[1:]) == 2 and weights.pop(1).shape == (3,) and weights[-1].shape == (4,)
    assert repr(weights) == "ParameterList(\n  (0): Parameter containing: [cgrad.float32 of size 5]\n  (1): Parameter containing: [cgrad.float32 of size 4]\n)"
    with pytest.raises(IndexError, match="out of range"):
        weights[2]
    assert len(copy.deepcopy(weights)) == 2 and "kept" in nn.ParameterList(["kept"])


def test_parameter_dict():
    weights = nn.ParameterDict({"a": cg.ones(2), "b": cg.zeros(3)})
    weights["c"] = nn.Parameter(cg.ones(1))
    assert list(weights) == ["a", "b", "c"] and "b" in weights and len(weights) == 3 and list(reversed(weights)) == ["c", "b", "a"]
    assert [n for n, _ in weights.named_parameters()] == ["a", "b", "c"]
    assert weights.pop("a").tolist() == [1.0, 1.0] and weights.get("a") is None and weights.setdefault("d", cg.ones(1)).shape == (1,)
    assert weights.popitem()[0] == "d"
    assert list((weights | {"e": cg.ones(1)}).keys()) == ["b", "c", "e"] and list(weights.copy()) == ["b", "c"]
    assert list(weights.fromkeys(["x", "y"], cg.ones(1))) == ["x", "y"]
    with pytest.raises(KeyError):
        weights["z"]
    with pytest.raises(KeyError, match="attribute of the class"):
        weights["update"] = cg.ones(1)
    with pytest.raises(TypeError, match="strings"):
        weights[1] = cg.ones(1)
    weights.clear()
    assert not list(weights.parameters()) and repr(weights) == "ParameterDict()"
