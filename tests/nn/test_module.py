"""Module: attributes, walking, state, hooks, printing, copying."""
import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 3)
        self.out = nn.Linear(3, 1, bias=False)
        self.register_buffer("scale", cg.tensor([2.0]))
        self.register_buffer("scratch", cg.zeros(2), persistent=False)

    def forward(self, x):
        return self.out(nn.functional.relu(self.hidden(x))) * self.scale


# ------------------------------------------------------------------ parameters
def test_a_parameter_shares_the_memory_of_its_data():
    data = cg.tensor([1.0, 2.0])
    p = nn.Parameter(data)
    data[0] = 5.0
    assert p.tolist() == [5.0, 2.0]
    assert p.requires_grad and p.is_leaf and isinstance(p, cg.Tensor)
    assert (p * 2).requires_grad and type(p * 2) is cg.Tensor


def test_a_parameter_prints_what_it_contains():
    assert repr(nn.Parameter(cg.tensor([1.0]))) == "Parameter containing:\ntensor([1.], requires_grad=True)"


def test_parameters_of_integers_are_refused_unless_frozen():
    with pytest.raises(TypeError, match="int64"):
        nn.Parameter(cg.tensor([1, 2]))
    assert not nn.Parameter(cg.tensor([1, 2]), requires_grad=False).requires_grad


def test_a_parameter_made_of_a_result_is_a_leaf():
    x = cg.tensor([1.0], requires_grad=True)
    p = nn.Parameter(x * 2)
    assert p.is_leaf and p.grad_fn is None


# ------------------------------------------------------------------ attributes
def test_assignment_registers_by_kind():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["hidden.weight", "hidden.bias", "out.weight"]
    assert [n for n, _ in net.named_buffers()] == ["scale", "scratch"]
    assert [n for n, _ in net.named_children()] == ["hidden", "out"]
    assert [n for n, _ in net.named_modules()] == ["", "hidden", "out"]
    assert len(list(net.parameters())) == 3 and len(list(net.modules())) == 3


def test_assigning_before_init_says_so():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Early()

    class EarlyParameter(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(cg.zeros(1))

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        EarlyParameter()

    class Forgot(nn.Module):
        def __init__(self):
            self.n = 3

        def forward(self, x):
            return x

    with pytest.raises(AttributeError, match=r"super\(\).__init__"):
        Forgot()(cg.zeros(1))


def test_a_name_means_one_thing():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(cg.zeros(1))
    assert "x" in net._parameters and "x" not in net.__dict__
    with pytest.raises(TypeError, match="parameter 'x'"):
        net.x = cg.zeros(1)
    net.x = None
    assert net.x is None and list(net.parameters()) == []
    net.x = nn.Linear(1, 1)
    assert "x" not in net._parameters and "x" in net._modules
    del net.x
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'x'"):
        _ = net.x
    with pytest.raises(AttributeError):
        del net.x


def test_a_parameter_may_be_replaced_after_deleting_it():
    layer = nn.Linear(2, 1, bias=False)
    del layer.weight
    layer.weight = cg.tensor([[1.0, 2.0]], requires_grad=True) * 2
    assert layer(cg.ones(1, 2)).item() == 6.0
    assert list(layer.parameters()) == []


@pytest.mark.parametrize(("name", "error"), [("a.b", KeyError), ("", KeyError), (3, TypeError), ("training", KeyError), ("forward", KeyError)])
def test_bad_names_are_refused(name, error):
    with pytest.raises(error):
        nn.Module().register_parameter(name, nn.Parameter(cg.zeros(1)))
    with pytest.raises(error):
        nn.Module().register_buffer(name, cg.zeros(1))
    with pytest.raises(error):
        nn.Module().add_module(name, nn.Identity())


def test_bad_values_are_refused():
    net = nn.Module()
    with pytest.raises(TypeError, match="Parameter"):
        net.register_parameter("w", cg.zeros(1))
    with pytest.raises(TypeError, match="Tensor"):
        net.register_buffer("b", 3.0)
    with pytest.raises(TypeError, match="Module"):
        net.add_module("m", 3.0)


def test_dir_names_what_was_registered():
    assert {"hidden", "scale", "forward", "training"} <= set(dir(Net()))


def test_get_by_path():
    net = nn.Sequential(nn.Sequential(nn.Linear(1, 2)))
    assert net.get_submodule("0.0") is net[0][0] and net.get_submodule("") is net
    assert net.get_parameter("0.0.weight") is net[0][0].weight
    with pytest.raises(AttributeError, match="'7'"):
        net.get_submodule("0.7")


def test_shared_parameters_count_once():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    net = nn.Sequential(a, b, a)
    assert [n for n, _ in net.named_parameters()] == ["0.weight", "0.bias", "1.bias"]
    assert len([n for n, _ in net.named_parameters(remove_duplicate=False)]) == 6
    assert len(list(net.modules())) == 3 and len(list(net.children())) == 2


# ------------------------------------------------------------------ switches
def test_train_and_eval_reach_everything():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert net.train() is net and all(m.training for m in net.modules())
    with pytest.raises(ValueError, match="mode"):
        net.train("yes")


def test_requires_grad_and_zero_grad():
    net = Net()
    net(cg.ones(4, 2)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad(set_to_none=False)
    assert all(float(abs(p.grad).sum()) == 0.0 for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())
    assert net.requires_grad_(False) is net and not any(p.requires_grad for p in net.parameters())


def test_apply_goes_from_the_leaves_to_the_root():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_conversion_keeps_parameter_objects_and_integer_buffers():
    net = Net()
    net.register_buffer("count", cg.tensor([3]))
    before = list(net.parameters())
    net(cg.ones(1, 2)).sum().backward()
    assert net.double() is net
    assert all(p is q for p, q in zip(before, net.parameters()))
    assert all(p.dtype == cg.float64 and p.grad.dtype == cg.float64 and p.requires_grad and p.is_leaf for p in net.parameters())
    assert net.scale.dtype == cg.float64 and net.count.dtype == cg.int64
    assert net(cg.ones(1, 2, dtype=cg.float64)).dtype == cg.float64
    assert net.to("cpu").to(cg.float32).hidden.weight.dtype == cg.float32
    with pytest.raises(TypeError, match="int64"):
        net.to(cg.int64)
    with pytest.raises(ValueError, match="CPU"):
        net.to("cuda:0")


# ------------------------------------------------------------------ state
def test_state_dict_holds_parameters_and_persistent_buffers():
    net = Net()
    state = net.state_dict()
    assert list(state) == ["scale", "hidden.weight", "hidden.bias", "out.weight"]
    assert not any(t.requires_grad for t in state.values())
    with cg.no_grad():
        net.hidden.weight.fill_(7.0)
    assert state["hidden.weight"].tolist()[0] == [7.0, 7.0]     # shares memory
    assert net.state_dict(keep_vars=True)["hidden.weight"] is net.hidden.weight
    assert next(iter(net.state_dict(prefix="net."))) == "net.scale"


def test_load_state_dict_copies_values():
    a, b = Net(), Net()
    with cg.no_grad():
        a.scale.fill_(5.0)
    keys = b.load_state_dict(a.state_dict())
    assert keys.missing_keys == [] and keys.unexpected_keys == [] and "matched" in str(keys)
    x = cg.randn(3, 2)
    np.testing.assert_array_equal(a(x).detach().numpy(), b(x).detach().numpy())
    assert b.hidden.weight.requires_grad and b.hidden.weight is not a.hidden.weight
    assert b.load_state_dict({k: v.numpy() for k, v in a.state_dict().items()}).missing_keys == []


def test_loading_names_everything_that_is_wrong_and_changes_nothing():
    net = Net()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    bad = {k: v + 1 for k, v in before.items()}
    bad["hidden.weight"] = cg.zeros(4, 4)
    bad["surplus"] = cg.zeros(1)
    del bad["out.weight"]
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(bad)
    for part in ("Net", '"surplus"', '"out.weight"', "hidden.weight", "(4, 4)", "(3, 2)"):
        assert part in str(error.value)
    for k, v in net.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), before[k].numpy())
    with pytest.raises(RuntimeError, match="size mismatch"):
        net.load_state_dict(bad, strict=False)
    del bad["hidden.weight"]
    keys = net.load_state_dict(bad, strict=False)
    assert keys.missing_keys == ["hidden.weight", "out.weight"] and keys.unexpected_keys == ["surplus"]
    assert net.scale.tolist() == [3.0]
    with pytest.raises(TypeError, match="dict"):
        net.load_state_dict([1, 2])


def test_loading_converts_the_dtype_of_the_values():
    layer = nn.Linear(1, 1)
    layer.load_state_dict({"weight": np.array([[0.5]]), "bias": np.array([1.0])})
    assert layer.weight.dtype == cg.float32 and layer.weight.item() == 0.5


def test_assign_takes_the_tensors_themselves():
    layer = nn.Linear(1, 1)
    w = cg.tensor([[2.0]], dtype=cg.float64)
    layer.load_state_dict({"weight": w, "bias": cg.zeros(1)}, assign=True)
    w[0, 0] = 3.0
    assert layer.weight.item() == 3.0 and isinstance(layer.weight, nn.Parameter) and layer.weight.requires_grad


def test_deepcopy_and_pickle_make_independent_equal_modules():
    net = Net()
    net(cg.ones(1, 2)).sum().backward()
    x = cg.randn(3, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        np.testing.assert_array_equal(net(x).detach().numpy(), other(x).detach().numpy())
        assert isinstance(other.hidden.weight, nn.Parameter) and other.hidden.weight.requires_grad
        with cg.no_grad():
            other.hidden.weight.fill_(0.0)
        assert float(abs(net.hidden.weight).sum()) > 0
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    twin = copy.deepcopy(tied)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not tied[0].weight


# ------------------------------------------------------------------ hooks
def test_hooks_see_and_replace():
    layer, seen = nn.Linear(1, 1, bias=False), []
    first = layer.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    layer.register_forward_hook(lambda m, args, out: seen.append((args[0].item(), out.item())))
    second = layer.register_forward_hook(lambda m, args, out: out + 100)
    w = layer.weight.item()
    assert layer(cg.tensor([[1.0]])).item() == pytest.approx(2 * w + 100)
    assert seen == [(2.0, pytest.approx(2 * w))]
    first.remove()
    second.remove()
    second.remove()
    assert layer(cg.tensor([[1.0]])).item() == pytest.approx(w)


def test_hooks_with_keywords_and_order():
    class Shift(nn.Module):
        def forward(self, x, by=0.0):
            return x + by

    m, order = Shift(), []
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"by": kwargs["by"] + 1}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: order.append("second"))
    with m.register_forward_hook(lambda mod, args, kwargs, out: order.append(kwargs["by"]), prepend=True, with_kwargs=True):
        assert m(cg.tensor(1.0), by=2.0).item() == 4.0
    m(cg.tensor(1.0), by=0.0)
    assert order == [3.0, "second", "second"]
    with pytest.raises(TypeError, match="callable"):
        m.register_forward_hook(3)


# ------------------------------------------------------------------ printing
def test_repr_is_indented():
    net = nn.Sequential(OrderedDict(a=nn.Linear(1, 2), b=nn.Sequential(nn.ReLU(), nn.Dropout(0.1))))
    assert repr(net) == """Sequential(
  (a): Linear(in_features=1, out_features=2, bias=True)
  (b): Sequential(
    (0): ReLU()
    (1): Dropout(p=0.1, inplace=False)
  )
)"""
    assert repr(nn.Module()) == "Module()"


def test_forward_must_be_written():
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)


# ------------------------------------------------------------------ containers
def test_sequential():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3 and isinstance(net[-1], nn.Linear) and [type(m).__name__ for m in net[:2]] == ["Linear", "ReLU"]
    assert net[1:][0] is net[1]
    net.append(nn.Tanh())
    assert list(net.state_dict())[-1] == "2.bias" and isinstance(net[3], nn.Tanh)
    net[1] = nn.Sigmoid()
    assert isinstance(net[1], nn.Sigmoid)
    del net[1]
    assert list(net._modules) == ["0", "1", "2"]
    net.insert(0, nn.Identity())
    assert [type(m).__name__ for m in net] == ["Identity", "Linear", "Linear", "Tanh"]
    assert isinstance(net.pop(), nn.Tanh) and len(net) == 3
    assert len(net + nn.Sequential(nn.ReLU())) == 4
    with pytest.raises(IndexError, match="3"):
        net[3]
    with pytest.raises(TypeError):
        nn.Sequential(3)


def test_sequential_of_named_modules():
    net = nn.Sequential(OrderedDict(first=nn.Linear(1, 1), second=nn.ReLU()))
    assert list(net.state_dict()) == ["first.weight", "first.bias"] and net.first is net[0]
    assert list(net[:1]._modules) == ["first"]


def test_module_list():
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.ReLU(), nn.ReLU()])
    layers += [nn.Tanh()]
    assert len(layers) == 5 and layers[1] in layers and nn.ReLU() not in layers
    assert [type(m).__name__ for m in layers[1:3]] == ["ReLU", "ReLU"]
    assert repr(layers).splitlines()[2] == "  (1-3): 3 x ReLU()"
    with pytest.raises(NotImplementedError):
        layers(cg.zeros(1))


def test_module_dict():
    heads = nn.ModuleDict({"a": nn.Linear(1, 1)})
    heads["b"] = nn.ReLU()
    heads.update([("c", nn.Tanh())])
    assert list(heads) == ["a", "b", "c"] and "b" in heads and len(heads) == 3
    assert isinstance(heads.pop("b"), nn.ReLU) and list(heads.keys()) == ["a", "c"]
    del heads["c"]
    assert [k for k, _ in heads.items()] == ["a"] and heads.get("z") is None
    with pytest.raises(KeyError):
        heads["b"]


# ------------------------------------------------------------------ layers
def test_linear_starts_as_documented_and_computes():
    cg.manual_seed(0)
    layer = nn.Linear(100, 50)
    bound = 1 / 10
    for p in (layer.weight, layer.bias):
        v = p.detach().numpy()
        assert np.abs(v).max() <= bound and np.abs(v).max() > 0.8 * bound
    x = cg.randn(3, 4, 100)
    want = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    np.testing.assert_allclose(layer(x).detach().numpy(), want, rtol=1e-4, atol=1e-5)
    assert nn.Linear(2, 3, dtype=cg.float64).weight.dtype == cg.float64
    assert nn.Linear(2, 3, bias=False).bias is None
    with pytest.raises(ValueError, match=r"\(3, 4\).*\(50, 100\)"):
        layer(cg.zeros(3, 4))
    with pytest.raises(ValueError, match="in_features"):
        nn.Linear(-1, 2)


def test_flatten_and_unflatten():
    x = cg.zeros(2, 3, 4, 5)
    assert nn.Flatten()(x).shape == (2, 60)
    assert nn.Flatten(0, 1)(x).shape == (6, 4, 5)
    assert nn.Flatten()(cg.zeros(0, 3, 2)).shape == (0, 6)
    assert nn.Unflatten(1, (3, -1))(cg.zeros(2, 6)).shape == (2, 3, 2)
    with pytest.raises(ValueError, match="Unflatten"):
        nn.Unflatten(1, (4, -1))(cg.zeros(2, 6))
    with pytest.raises(ValueError, match="Flatten"):
        nn.Flatten(3, 1)(x)


def test_a_module_has_the_methods_that_programs_for_pytorch_call():
    names = """add_module apply bfloat16 buffers children cpu double eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule
        half load_state_dict modules named_buffers named_children named_modules named_parameters parameters register_buffer register_forward_hook
        register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook register_load_state_dict_post_hook
        register_load_state_dict_pre_hook register_module register_parameter register_state_dict_post_hook register_state_dict_pre_hook requires_grad_
        set_extra_state set_submodule state_dict to train type zero_grad"""
    assert [name for name in names.split() if not callable(getattr(nn.Module, name, None))] == []
    assert {"parametrize", "fuse_conv_bn_eval"} <= set(dir(nn.utils))
