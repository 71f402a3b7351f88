"""Lazy layers: what they wait for, what they become, states, copies."""
import copy
import pickle

import numpy as np
import pytest

import cgrad as cg
from cgrad import nn

LAYERS = [
    (lambda: nn.LazyLinear(3, bias=False), nn.Linear, (2, 7), lambda: nn.Linear(7, 3, bias=False)),
    (lambda: nn.LazyConv1d(4, 3, groups=2), nn.Conv1d, (2, 6, 9), lambda: nn.Conv1d(6, 4, 3, groups=2)),
    (lambda: nn.LazyConv2d(4, 3, padding="same"), nn.Conv2d, (2, 6, 9, 5), lambda: nn.Conv2d(6, 4, 3, padding="same")),
    (lambda: nn.LazyConv3d(4, 2), nn.Conv3d, (2, 3, 4, 4, 4), lambda: nn.Conv3d(3, 4, 2)),
    (lambda: nn.LazyConvTranspose1d(4, 3, 2), nn.ConvTranspose1d, (2, 6, 5), lambda: nn.ConvTranspose1d(6, 4, 3, 2)),
    (lambda: nn.LazyConvTranspose2d(4, 3, groups=2), nn.ConvTranspose2d, (2, 6, 5, 4), lambda: nn.ConvTranspose2d(6, 4, 3, groups=2)),
    (lambda: nn.LazyConvTranspose3d(4, 2), nn.ConvTranspose3d, (2, 3, 4, 4, 4), lambda: nn.ConvTranspose3d(3, 4, 2)),
    (nn.LazyBatchNorm1d, nn.BatchNorm1d, (5, 3), lambda: nn.BatchNorm1d(3)),
    (lambda: nn.LazyBatchNorm2d(affine=False), nn.BatchNorm2d, (5, 3, 2, 2), lambda: nn.BatchNorm2d(3, affine=False)),
    (lambda: nn.LazyBatchNorm3d(bias=False), nn.BatchNorm3d, (5, 3, 2, 2, 2), lambda: nn.BatchNorm3d(3, bias=False)),
    (nn.LazyInstanceNorm1d, nn.InstanceNorm1d, (5, 3, 4), lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True)),
    (lambda: nn.LazyInstanceNorm2d(affine=False, track_running_stats=False), nn.InstanceNorm2d, (5, 3, 4, 4), lambda: nn.InstanceNorm2d(3)),
    (lambda: nn.LazyInstanceNorm3d(affine=False), nn.InstanceNorm3d, (5, 3, 2, 2, 2), lambda: nn.InstanceNorm3d(3, track_running_stats=True)),
]


@pytest.mark.parametrize(("lazy", "kind", "shape", "usual"), LAYERS, ids=[kind.__name__ for _, kind, _, _ in LAYERS])
def test_the_first_input_makes_it_an_ordinary_layer(lazy, kind, shape, usual):
    layer, x = lazy(), cg.randn(*shape)
    assert isinstance(layer, kind) and layer.has_uninitialized_params()
    own = dict(layer.named_parameters())
    cg.manual_seed(1)
    out = layer(x)
    cg.manual_seed(1)
    same = usual()
    np.testing.assert_array_equal(out.detach().numpy(), same(x).detach().numpy())
    assert type(layer) is kind and repr(layer) == repr(same) and list(layer.state_dict()) == list(same.state_dict())
    assert all(p is own[name] and type(p) is nn.Parameter for name, p in layer.named_parameters()) and not layer._hooks


@pytest.mark.parametrize(("lazy", "kind", "shape", "usual"), LAYERS, ids=[kind.__name__ for _, kind, _, _ in LAYERS])
def test_a_state_dict_does_so_as_well(lazy, kind, shape, usual):
    layer, given = nn.Sequential(lazy()), nn.Sequential(usual())
    if given.state_dict():
        layer.load_state_dict(given.state_dict())
        assert type(layer[0]) is kind
        for key, value in given.state_dict().items():
            np.testing.assert_array_equal(layer.state_dict()[key].numpy(), value.numpy())


def test_copies_wait_on_their_own():
    layer = nn.LazyLinear(2)
    others = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))]
    layer(cg.ones(1, 3))
    for other in others:
        assert type(other) is nn.LazyLinear and other(cg.ones(1, 5)).shape == (1, 2) and type(other) is nn.Linear
    assert copy.deepcopy(layer)(cg.ones(1, 3)).shape == (1, 2)


def test_an_optimizer_made_before_trains_the_parameters():
    layer = nn.LazyLinear(1)
    optimizer = cg.optim.SGD(layer.parameters(), lr=1.0)
    layer(cg.ones(1, 3)).sum().backward()
    before = layer.weight.tolist()
    optimizer.step()
    np.testing.assert_allclose(layer.weight.tolist(), np.subtract(before, 1.0), rtol=1e-6)


def test_conversion_and_mode_before_the_first_input_hold():
    layer = nn.LazyBatchNorm1d().double().eval()
    out = layer(cg.ones(4, 3, dtype=cg.float64))
    assert layer.weight.dtype == cg.float64 and layer.running_mean.dtype == cg.float64 and not layer.training
    np.testing.assert_allclose(out.detach().numpy(), 1 / np.sqrt(1 + 1e-5))


def test_hooks_of_the_user_stay():
    layer, seen = nn.LazyLinear(2), []
    layer.register_forward_hook(lambda module, args, out: seen.append(type(module)))
    layer(cg.ones(1, 3))
    assert seen == [nn.Linear]
    assert repr(nn.LazyLinear(2)) == "LazyLinear(out_features=2, bias=True)"
    with pytest.raises(ValueError, match="more axes"):
        nn.LazyConv2d(2, 3)(cg.ones(3))
    nn.LazyLinear(2).reset_parameters()
