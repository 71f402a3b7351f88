"""Errors that teach, of classes: every public class made wrongly in many ways, every layer called wrongly, every method given a wrong keyword."""
import contextlib
import copy
import gc
import inspect
import pickle
import re
import traceback
import warnings
import weakref

import numpy as np
import pytest

import cgrad as cg
from cgrad import data, nn, optim
from cgrad.nn.utils import parametrize, rnn
from cgrad.optim import lr_scheduler, swa_utils


class Odd:
    def __repr__(self):
        return "<odd>"


def w():
    return cg.ones(2, 3, requires_grad=True)


def sgd():
    return optim.SGD([w()], lr=0.1, momentum=0.9)


def rows():
    return data.TensorDataset(cg.ones(4, 2), cg.ones(4))


# ------------------------------------------------------------------------------------------------ one right call of each class
def decoder_layer():
    return nn.TransformerDecoderLayer(2, 1, 2)


def encoder_layer():
    return nn.TransformerEncoderLayer(2, 1, 2)


SIZES = {"in_features": 2, "in1_features": 2, "in2_features": 2, "out_features": 2, "in_channels": 2, "out_channels": 2, "kernel_size": 2, "num_features": 2,
         "num_embeddings": 5, "embedding_dim": 2, "normalized_shape": 2, "num_groups": 1, "num_channels": 2, "input_size": 2, "hidden_size": 2,
         "embed_dim": 2, "num_heads": 1, "d_model": 2, "nhead": 1, "n_classes": 4, "cutoffs": [2], "mode": "LSTM", "bias": True, "num_chunks": 4,
         "upscale_factor": 2, "downscale_factor": 2, "output_size": 1, "padding": 1, "value": 0.5, "threshold": 0.1, "size": 2, "groups": 2, "dim": 1,
         "unflattened_size": (1, 2), "norm_type": 2, "num_layers": 1, "params": lambda: [w()], "optimizer": sgd, "dataset": rows, "step_size": 2, "milestones": [1],
         "lr_lambda": lambda: (lambda epoch: 0.5), "T_max": 3, "T_0": 3, "base_lr": 0.1, "max_lr": 1.0, "gamma": 0.5, "swa_lr": 0.1, "data_source": rows,
         "indices": [0, 1], "weights": [0.5, 0.5], "num_samples": 2, "batch_size": 2, "drop_last": False, "sampler": lambda: [0, 1], "datasets": lambda: [rows(), rows()],
         "model": lambda: nn.Linear(2, 2), "module": lambda: nn.Linear(2, 2), "function": lambda: (lambda x: x)}
OWN = {nn.FractionalMaxPool2d: {"output_size": 2}, nn.FractionalMaxPool3d: {"output_size": 2}, nn.Fold: {"output_size": 3}, nn.Upsample: {"scale_factor": 2},
       nn.UpsamplingBilinear2d: {"scale_factor": 2}, nn.UpsamplingNearest2d: {"scale_factor": 2}, nn.LocalResponseNorm: {"size": 2},
       nn.TransformerEncoder: {"encoder_layer": encoder_layer}, nn.TransformerDecoder: {"decoder_layer": decoder_layer},
       nn.Transformer: {"d_model": 2, "nhead": 1, "num_encoder_layers": 1, "num_decoder_layers": 1, "dim_feedforward": 2}, nn.Parameter: {"data": lambda: cg.ones(2)},
       lr_scheduler.OneCycleLR: {"total_steps": 5}, nn.CircularPad1d: {}, nn.Softmax: {"dim": 1}, nn.Softmin: {"dim": 1}, nn.LogSoftmax: {"dim": 1},
       nn.ModuleList: {"modules": lambda: [nn.ReLU()]}, nn.ModuleDict: {"modules": lambda: {"a": nn.ReLU()}}, nn.ParameterList: {"values": lambda: [w()]},
       nn.ParameterDict: {"parameters": lambda: {"a": w()}}}
OWN[data.DistributedSampler] = {"num_replicas": 2, "rank": 0}
BY_POSITION = {lr_scheduler.SequentialLR: lambda: (lambda o: (o, [lr_scheduler.StepLR(o, 1), lr_scheduler.StepLR(o, 1)], [1]))(sgd()),
               lr_scheduler.ChainedScheduler: lambda: ([lr_scheduler.StepLR(sgd(), 1)],), data.StackDataset: lambda: (rows(), rows()),
               data.TensorDataset: lambda: (cg.ones(4, 2), cg.ones(4)), nn.Sequential: lambda: (nn.Linear(2, 2), nn.ReLU()),
               data.BatchSampler: lambda: ([0, 1, 2], 2, False)}
ABSTRACT = {nn.Module, optim.Optimizer, lr_scheduler.LRScheduler, data.Dataset, data.IterableDataset, data.Sampler, data.WorkerInfo, nn.RNNCellBase, rnn.PackedSequence, parametrize.ParametrizationList}


def classes(namespace):
    return [getattr(namespace, name) for name in namespace.__all__ if isinstance(getattr(namespace, name), type)]


CLASSES = {f"{space.__name__.rpartition('.')[2]}.{kind.__name__}": kind for space in (nn, optim, lr_scheduler, swa_utils, data, parametrize, rnn)
           for kind in classes(space) if kind not in ABSTRACT}


def made(value):
    return value() if inspect.isfunction(value) else value


def right(kind):
    """(args, keywords) that make an instance."""
    if kind in BY_POSITION:
        return BY_POSITION[kind](), {}
    own = OWN.get(kind, {})
    named = {key: made(value) for key, value in own.items()}
    for key, p in inspect.signature(kind).parameters.items():
        if key not in named and p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
            named[key] = made(SIZES[key])
    return (), named


WRONG = [None, Odd(), "text", -3, 1.5, (), (1,) * 7, {}, [np.array(["a"])]]


def wrongly_made(kind):
    """(what is wrong, args, keywords)."""
    args, named = right(kind)
    parameters = inspect.signature(kind).parameters
    yield "nonsense", args, {**named, "nonsense": 1}
    if any(p.kind is p.POSITIONAL_ONLY or p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        for i in range(len(args)):
            for value in WRONG:
                yield f"argument {i} = {value!r}", (*args[:i], value, *args[i + 1:]), {}
        return
    yield "nothing", (), {}
    yield "too many", (*right(kind)[0], *[1] * 30), right(kind)[1]
    args, named = (), inspect.signature(kind).bind(*args, **named).arguments
    for key in parameters:
        rest = {k: v for k, v in named.items() if k != key}
        yield f"{key}s", args, {**rest, f"{key}s": 1}
        for value in WRONG[kind is data.DistributedSampler:]:           # None asks the processes
            yield f"{key} = {value!r}", args, {**rest, key: value}


# ------------------------------------------------------------------------------------------------ one right input of each layer
def integers(*shape, below=2):
    return cg.tensor(np.arange(np.prod(shape, dtype=int)).reshape(shape) % below)


def pairs():
    return cg.rand(3, 2), cg.rand(3, 2)


INPUTS = {
    "Bilinear": pairs, "CosineSimilarity": pairs, "PairwiseDistance": pairs, "Softmax2d": lambda: (cg.ones(2, 2, 4, 4),), "Unflatten": lambda: (cg.ones(3, 2),),
    "Embedding": lambda: (integers(3, 2, below=5),), "EmbeddingBag": lambda: (integers(3, 2, below=5),), "ChannelShuffle": lambda: (cg.ones(2, 4, 3, 3),),
    "PixelShuffle": lambda: (cg.ones(2, 4, 3, 3),), "PixelUnshuffle": lambda: (cg.ones(2, 1, 4, 4),), "Fold": lambda: (cg.ones(2, 8, 4),),
    "Unfold": lambda: (cg.ones(2, 2, 4, 4),), "Upsample": lambda: (cg.ones(2, 2, 4, 4),), "UpsamplingBilinear2d": lambda: (cg.ones(2, 2, 4, 4),),
    "UpsamplingNearest2d": lambda: (cg.ones(2, 2, 4, 4),), "GroupNorm": lambda: (cg.ones(2, 2, 4),), "LocalResponseNorm": lambda: (cg.ones(2, 2, 4, 4),),
    "AdaptiveLogSoftmaxWithLoss": lambda: (cg.ones(3, 2), integers(3, below=4)), "MultiheadAttention": lambda: (cg.ones(4, 3, 2),) * 3,
    "Transformer": lambda: (cg.ones(4, 3, 2), cg.ones(5, 3, 2)), "TransformerDecoder": lambda: (cg.ones(4, 3, 2), cg.ones(5, 3, 2)),
    "TransformerDecoderLayer": lambda: (cg.ones(4, 3, 2), cg.ones(5, 3, 2)), "TransformerEncoder": lambda: (cg.ones(4, 3, 2),),
    "TransformerEncoderLayer": lambda: (cg.ones(4, 3, 2),), "RNNBase": lambda: (cg.ones(4, 3, 2),), "RNN": lambda: (cg.ones(4, 3, 2),),
    "LSTM": lambda: (cg.ones(4, 3, 2),), "GRU": lambda: (cg.ones(4, 3, 2),),
    "BCELoss": pairs, "BCEWithLogitsLoss": pairs, "MSELoss": pairs, "L1Loss": pairs, "SmoothL1Loss": pairs, "HuberLoss": pairs, "KLDivLoss": pairs,
    "PoissonNLLLoss": pairs, "SoftMarginLoss": pairs, "HingeEmbeddingLoss": pairs, "MultiLabelSoftMarginLoss": pairs,
    "CTCLoss": lambda: (cg.log_softmax(cg.ones(6, 2, 4), 2), integers(2, 3, below=3) + 1, cg.tensor([6, 6]), cg.tensor([3, 2])),
    "CosineEmbeddingLoss": lambda: (*pairs(), cg.ones(3)), "MarginRankingLoss": lambda: (cg.ones(3), cg.ones(3), cg.ones(3)),
    "CrossEntropyLoss": lambda: (cg.ones(3, 2), integers(3)), "NLLLoss": lambda: (cg.ones(3, 2), integers(3)), "MultiMarginLoss": lambda: (cg.ones(3, 2), integers(3)),
    "MultiLabelMarginLoss": lambda: (cg.ones(3, 2), integers(3, 2)), "GaussianNLLLoss": lambda: (*pairs(), cg.ones(3, 2)),
    "TripletMarginLoss": lambda: (*pairs(), cg.rand(3, 2)), "TripletMarginWithDistanceLoss": lambda: (*pairs(), cg.rand(3, 2)),
    "AveragedModel": lambda: (cg.ones(3, 2),),
}
NOT_CALLED = {"ModuleList", "ModuleDict", "ParameterList", "ParameterDict"}
LAYERS = {name: kind for name, kind in CLASSES.items() if issubclass(kind, nn.Module) and kind.__name__ not in NOT_CALLED}


def inputs_of(kind):
    name = kind.__name__
    if name in INPUTS:
        return INPUTS[name]()
    if name.startswith("MaxUnpool"):
        d = int(name[-2])
        pooled, places = getattr(nn.functional, f"max_pool{d}d")(cg.rand(2, 2, *[4] * d), 2, return_indices=True)
        return pooled, places
    match = re.search(r"([123])d$", name)
    return (cg.rand(2, 2, *[6] * int(match[1])),) if match else (cg.rand(3, 2),)


def wrongly_called(inputs):
    """(what is wrong, args, keywords)."""
    yield "nothing", (), {}
    yield "nonsense", inputs, {"nonsense": 1}
    yield "too many", (*inputs, *[1] * 15), {}
    for i, x in enumerate(inputs):
        wrong = [None, Odd(), "text", 7, {}, (), [x], np.array(["a"]), np.array([Odd()]), cg.zeros(()), cg.zeros(2, 3, 1, 7, 5, 2), cg.zeros(4), cg.zeros(7, 3)]
        wrong += [x[..., :0], x[:0], x.bool(), x.to(cg.int64) if x.dtype.is_floating_point else x + 0.5, cg.concat([x, x, x], -1), x[..., None], x[0]]
        wrong += [cg.concat([x, x, x], 1)] if x.ndim > 1 else []
        for value in wrong:
            yield f"input {i}", (*inputs[:i], value, *inputs[i + 1:]), {}


# ------------------------------------------------------------------------------------------------ the rules
INTERNAL = re.compile(r"<locals>|<lambda>|Buffer dtype|an integer is required|incorrect type \(expected|\w\(\) (?:got|takes|missing)|must not be None|__init__| at 0x")
KINDS = (TypeError, ValueError, IndexError, KeyError, OverflowError)


def failures(calls):
    """(what is wrong, error) of the calls that fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, call in calls:
            try:
                call()
            except Exception as error:          # noqa: BLE001
                yield what, error


def texts(calls, name):
    """(what is wrong, text) of the calls that fail; each error must be of a kind that says whose fault it is, and begin with the name."""
    for what, error in failures(calls):
        text = str(error)
        assert isinstance(error, KINDS), f"{what}: {type(error).__name__}: {text}"
        assert re.match(name, text.strip("\"'")), f"{what}: {text}"
        assert not INTERNAL.search(text), f"{what}: {text}"
        assert len(text) > 25, f"{what}: {text}"
        yield what, text


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_made_wrongly_says_what_was_wrong(name):
    kind = CLASSES[name]
    calls = [(what, lambda args=args, named=named: kind(*args, **named)) for what, args, named in wrongly_made(kind)]
    said = dict(texts(calls, rf"{kind.__name__}: "))
    keywords = any(p.kind is p.VAR_KEYWORD for p in inspect.signature(kind).parameters.values())
    assert keywords or "no argument is called 'nonsense'" in said["nonsense"]
    for key, p in inspect.signature(kind).parameters.items():
        if p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY:
            assert f"no argument is called '{key}s'; did you mean '" in said[f"{key}s"]
        if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty:
            assert "missing a required argument" in said["nothing"]
            assert f"call it as {kind.__name__}({next(iter(inspect.signature(kind).parameters))}" in said["nothing"]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_called_wrongly_says_what_was_wrong(name):
    kind = LAYERS[name]

    def call(args, named):
        made_args, made_named = right(kind)
        kind(*made_args, **made_named)(*args, **named)

    call(inputs_of(kind), {})
    calls = [(what, lambda args=args, named=named: call(args, named)) for what, args, named in wrongly_called(inputs_of(kind))]
    said = dict(texts(calls, rf"{kind.__name__}: |\w+: "))
    if kind not in (nn.Identity, swa_utils.AveragedModel):
        assert re.match(rf"{kind.__name__}: missing a required argument: '\w+'; call the layer with \(", said["nothing"])
        assert "no argument is called 'nonsense'; call the layer with (" in said["nonsense"]


# ------------------------------------------------------------------------------------------------ methods
def instance(kind):
    args, named = right(kind)
    return kind(*args, **named)


OBJECTS = {"Module": lambda: nn.Linear(2, 2), "Sequential": lambda: nn.Sequential(nn.ReLU()), "ModuleList": lambda: nn.ModuleList([nn.ReLU()]),
           "ModuleDict": lambda: nn.ModuleDict({"relu": nn.ReLU()}), "ParameterList": lambda: nn.ParameterList([w()]), "ParameterDict": lambda: nn.ParameterDict({"w": w()}),
           "SGD": sgd, "LBFGS": lambda: optim.LBFGS([w()]), "StepLR": lambda: lr_scheduler.StepLR(sgd(), 1), "ReduceLROnPlateau": lambda: lr_scheduler.ReduceLROnPlateau(sgd()),
           "SequentialLR": lambda: instance(lr_scheduler.SequentialLR), "AveragedModel": lambda: instance(swa_utils.AveragedModel), "Generator": cg.Generator,
           "DataLoader": lambda: data.DataLoader(rows()), "Transformer": lambda: instance(nn.Transformer), "Embedding": lambda: nn.Embedding(3, 2)}


def methods(made):
    for name in dir(made):
        method = getattr(type(made), name, None)
        if name[0] != "_" and callable(method) and not isinstance(method, type) and name not in ("forward", "update", "get_lr", "check_options", "plan", "tensors"):
            parameters = list(inspect.signature(method).parameters.values())
            if len(parameters) > 1 and all(p.kind is p.POSITIONAL_OR_KEYWORD or p.kind is p.KEYWORD_ONLY for p in parameters):
                yield name, [p.name for p in parameters[1:]]


@pytest.mark.parametrize("name", OBJECTS)
def test_methods_say_which_keyword_there_is_not(name):
    made = OBJECTS[name]()
    found = list(methods(made))
    assert found
    for method, parameters in found:
        if isinstance(vars(type(made)).get(method), staticmethod) or isinstance(inspect.getattr_static(made, method), (staticmethod, classmethod)):
            continue
        for wrong in ("nonsense", f"{parameters[0]}s"):
            with pytest.raises(TypeError) as caught:
                getattr(made, method)(**{wrong: 1})
            assert str(caught.value).startswith(f"{type(made).__name__}.{method}: no argument is called {wrong!r}"), str(caught.value)
            assert f"; call it as {method}(" in str(caught.value)


METHODS = [
    (lambda: nn.ModuleList([nn.ReLU()])["a"], TypeError, "ModuleList: cannot work with index = 'a' (str): 'str' object cannot be interpreted as an integer"),
    (lambda: nn.ModuleList([nn.ReLU()])[3], IndexError, "ModuleList: index 3 is out of range for 1 modules"),
    (lambda: nn.ModuleDict({"mean": nn.ReLU()})["mea"], KeyError, "ModuleDict: there is no 'mea', only 'mean'"),
    (lambda: nn.ModuleDict({"mean": nn.ReLU()}).pop("mea"), KeyError, "ModuleDict.pop: there is no 'mea', only 'mean'"),
    (lambda: nn.ParameterDict({"left": w()})["lef"], KeyError, "ParameterDict: there is no 'lef', only 'left'"),
    (lambda: nn.Sequential([nn.ReLU()]), TypeError, "Sequential: add_module: '0' must be a Module or None, got [ReLU()]"),
    (lambda: nn.Sequential(nn.ReLU), TypeError, "Sequential: add_module: '0' must be a Module or None, got <class 'cgrad.nn.activation.ReLU'>"),
    (lambda: nn.Linear(2, 2).get_submodule(3), TypeError, "Linear.get_submodule: cannot work with target = 3 (int)"),
    (lambda: nn.Linear(2, 2).get_submodule("a.b"), AttributeError, "get_submodule: Linear has no child module 'a' (in 'a.b')"),
    (lambda: nn.Linear(2, 2).set_submodule("a.b", nn.ReLU()), AttributeError, "Linear.set_submodule: get_submodule: Linear has no child module 'a'"),
    (lambda: nn.Linear(2, 2).to(3), TypeError, "Linear.to: empty: dtype: 3 is not a type that tensors can have"),
    (lambda: sgd().step(3), TypeError, "SGD.step: cannot work with closure = 3 (int): 'int' object is not callable"),
    (lambda: sgd().register_step_pre_hook(3), TypeError, "SGD.register_step_pre_hook: a hook must be callable, got int"),
    (lambda: sgd().load_state_dict({"state": {}, "param_groups": [{}]}), KeyError, "SGD.load_state_dict: cannot work with state_dict there is no 'params'"),
    (lambda: lr_scheduler.StepLR(sgd(), 1).step(1), TypeError, "StepLR.step: too many positional arguments (1 given by position); call it as step()"),
    (lambda: lr_scheduler.ReduceLROnPlateau(sgd()).step(), TypeError, "ReduceLROnPlateau.step: missing a required argument: 'metrics'"),
    (lambda: rows()[9], IndexError, "TensorDataset: getitem: index 9 is out of bounds for axis 0 with size 4"),
    (lambda: data.DataLoader(3), TypeError, "DataLoader: dataset must have samples, by __getitem__ or __iter__; got 3"),
    (lambda: data.DataLoader(rows(), collate_fn=3), TypeError, "DataLoader: collate_fn must be a function, got 3"),
    (lambda: data.DataLoader(rows(), sampler=3), TypeError, "DataLoader: sampler must be iterable, got 3"),
    (lambda: cg.Generator(sed=3), TypeError, "Generator: no argument is called 'sed'; did you mean 'seed'?"),
    (lambda: cg.autograd.detect_anomaly(chek_nan=True), TypeError, "detect_anomaly: no argument is called 'chek_nan'; did you mean 'check_nan'?"),
    (lambda: cg.no_grad(x=1), TypeError, "no_grad: no argument is called 'x'; call it as no_grad(function=None)"),
    (lambda: cg.save({}, "a.npz", fromat="npz"), TypeError, "save: no argument is called 'fromat'; did you mean 'format'?"),
    (lambda: cg.save({}, "no such folder/a.npz"), FileNotFoundError, "save: there is no folder no such folder; make it first"),
    (lambda: nn.utils.weight_norm(nn.Linear(2, 3), dim=5), IndexError, "weight_norm: there is no axis 5 in a weight of shape (3, 2)"),
]


@pytest.mark.parametrize(("call", "kind", "says"), METHODS, ids=[re.sub(r"\W+", "-", says[:40]) for _, _, says in METHODS])
def test_the_text_says_what_was_wrong(call, kind, says):
    with pytest.raises(kind) as caught:
        call()
    parts = [re.escape(part) for part in says.split(" ")]
    assert re.search(".*?".join(parts), str(caught.value)), str(caught.value)


# ------------------------------------------------------------------------------------------------ what stays as it is
class Mine(nn.Linear):
    def __init__(self, size, *, wrong=None):
        super().__init__(size, size)
        self.wrong = wrong

    def forward(self, input, scale):
        return super().forward({"nothing": input}[self.wrong or "nothing"]) * scale


def test_errors_of_the_users_own_classes_stay_as_they_are():
    class Schedule(lr_scheduler.LRScheduler):
        def get_lr(self):
            raise KeyError("mine")

    class Samples(data.Dataset):
        def __getitem__(self, index):
            return [][index]

    def closure():
        raise KeyError("mine")

    x = cg.ones(2, 2)
    for call, kind, text in (
        (lambda: Mine(), TypeError, r"^Mine.__init__\(\) missing 1 required positional argument: 'size'$"),
        (lambda: Mine(2, 3), TypeError, r"^Mine.__init__\(\) takes 2 positional arguments but 3 were given$"),
        (lambda: Mine(2)(x), TypeError, r"^Mine.forward\(\) missing 1 required positional argument: 'scale'$"),
        (lambda: nn.Sequential(Mine(2))(x), TypeError, r"^Mine.forward\(\) missing 1 required positional argument: 'scale'"),
        (lambda: Mine(2, wrong="odd")(x, 1), KeyError, "^'odd'$"),
        (lambda: nn.Sequential(nn.Identity(), Mine(2, wrong="odd"))(x), TypeError, r"^Mine.forward\(\) missing 1 required positional argument: 'scale'"),
        (lambda: Schedule(sgd()), KeyError, "^'mine'$"),
        (lambda: sgd().step(closure), KeyError, "^'mine'$"),
        (lambda: Samples()[3], IndexError, "^list index out of range$"),
        (lambda: list(data.DataLoader(Samples(), sampler=[3])), IndexError, r"^list index out of range\b"),
        (lambda: nn.ReLU().apply(lambda m: m.colour), AttributeError, "^'ReLU' object has no attribute 'colour'$"),
        (lambda: optim.SGD(1 / (p - p) for p in [2]), ZeroDivisionError, "^division by zero$"),
    ):
        with pytest.raises(kind, match=text):
            call()


def test_the_traceback_leads_to_where_it_happened():
    for call, place in ((lambda: nn.Linear(2, 2)(cg.ones(3, 3)), "linear"), (lambda: nn.ModuleList([nn.ReLU()])["a"], "_position"), (lambda: nn.Conv2d(0, 1, 1), "_channels"),
                        (lambda: Mine(2, wrong="odd")(cg.ones(2, 2), 1), "forward")):
        with pytest.raises((TypeError, ValueError, KeyError)) as caught:
            call()
        assert place in [entry.name for entry in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("call", [lambda odd: nn.Linear(2, 2)(odd), lambda odd: nn.Linear(2, 2)(odd, extra=3), lambda odd: nn.Linear(odd, 2),
                                  lambda odd: nn.Linear(2, 2, wrong=odd), lambda odd: nn.Linear(2, 2).load_state_dict(odd)], ids=range(5))
def test_what_a_failing_call_was_given_is_freed_at_once(call):
    gc.collect()
    gc.disable()
    try:
        odd = Odd()
        seen = weakref.ref(odd)
        with contextlib.suppress(TypeError, ValueError):
            call(odd)
        del odd
        assert seen() is None
    finally:
        gc.enable()


def test_a_chain_tells_in_which_layer_it_was():
    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Linear(2, 3)))
    with pytest.raises(ValueError, match="^linear: ") as caught:
        net(cg.ones(1, 2))
    assert caught.value.__notes__ == ["Sequential: this happened in layer '1', Linear(in_features=2, out_features=3, bias=True)",
                                      "Sequential: this happened in layer '1', Sequential("]


def test_classes_and_methods_look_as_before():
    assert str(inspect.signature(nn.Linear)) == "(in_features, out_features, bias=True, device=None, dtype=None)"
    assert str(inspect.signature(nn.Module.load_state_dict)) == "(self, state_dict, strict=True, assign=False)"
    assert str(inspect.signature(nn.Linear(2, 2).load_state_dict)) == "(state_dict, strict=True, assign=False)"
    assert nn.Module.load_state_dict.__doc__.startswith("Copy values from a state dict") and nn.Module.load_state_dict.__qualname__ == "Module.load_state_dict"
    assert inspect.getsource(nn.Module.load_state_dict).lstrip().startswith("def load_state_dict(")
    layer = nn.Linear(2, 2)
    for value in (nn.Linear, nn.Module.load_state_dict, layer, layer.load_state_dict, sgd(), data.DataLoader(rows()), copy.deepcopy(layer)):
        assert type(pickle.loads(pickle.dumps(value))) is type(value)           # noqa: S301
    assert type("Other", (nn.Linear,), {})(2, 3).weight.shape == (3, 2)


# ------------------------------------------------------------------------------------------------ nothing is half changed
def state_of(optimizer):
    return [{key: value for key, value in group.items() if key != "params"} for group in optimizer.param_groups]


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if issubclass(kind, lr_scheduler.LRScheduler)])
def test_a_schedule_that_cannot_be_made_leaves_the_optimizer_alone(name):
    kind = CLASSES[name]
    args, named = right(kind)
    if "optimizer" not in named:
        return
    for what, _, _ in list(wrongly_made(kind)):
        optimizer = sgd()
        before = state_of(optimizer)
        _, wrong_args, wrong_named = next(call for call in wrongly_made(kind) if call[0] == what)
        if wrong_named.get("optimizer") is not None and isinstance(wrong_named["optimizer"], optim.Optimizer):
            for _, _error in failures([(what, lambda: kind(*wrong_args, **{**wrong_named, "optimizer": optimizer}))]):       # noqa: B023
                assert state_of(optimizer) == before, what


def test_a_failure_changes_no_container_and_no_parameter():
    layers, named, weights = nn.ModuleList([nn.ReLU()]), nn.ModuleDict({"relu": nn.ReLU()}), nn.ParameterDict({"w": w()})
    layer = nn.Linear(2, 2)
    before = layer.weight.tolist()
    for call in (lambda: layers.extend([nn.ReLU(), 3]), lambda: layers.insert(0, 3), lambda: named.update({"a": nn.ReLU(), "b": 3}),
                 lambda: weights.update({"a": w(), 3: w()}), lambda: layer.load_state_dict({"weight": cg.ones(2, 2), "bias": cg.ones(3)}),
                 lambda: layer.load_state_dict({"weight": cg.ones(2, 2), "bias": cg.ones(2, dtype=cg.int64)}, assign=True)):
        with pytest.raises((TypeError, RuntimeError)):
            call()
    assert len(layers) == 1 and list(named) == ["relu"] and list(weights) == ["w"] and layer.weight.tolist() == before


def test_a_group_that_is_refused_is_not_added():
    optimizer = sgd()
    before = state_of(optimizer)
    for group in ({"params": [w(), 3]}, {"params": w(), "lr": -1}, {"params": w(), "lr": "fast"}, [w()], {"param": w()}, {"params": optimizer.param_groups[0]["params"]}, {"params": 3}):
        with pytest.raises((TypeError, ValueError), match="^SGD"):
            optimizer.add_param_group(group)
        assert state_of(optimizer) == before


def test_an_average_takes_all_of_a_model_or_nothing():
    average = swa_utils.AveragedModel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
    before = str(average.state_dict())
    with pytest.raises(ValueError, match=r"^AveragedModel: the model has a tensor of shape \(3, 3\) where the average has \(2, 2\)$"):
        average.update_parameters(nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 3)))
    assert str(average.state_dict()) == before


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if issubclass(kind, optim.Optimizer) and kind is not optim.LBFGS])
def test_a_step_with_an_option_changed_to_nonsense_changes_nothing(name):
    x = w()
    x.grad = cg.ones(2, 3)
    optimizer = CLASSES[name]([x])
    optimizer.step()
    before, state = x.tolist(), str(dict(optimizer.state))
    optimizer.param_groups[0]["lr"] = "fast"
    with pytest.raises(TypeError, match=f"^{CLASSES[name].__name__}: lr must be a number, got 'fast'$"):
        optimizer.step()
    assert x.tolist() == before and str(dict(optimizer.state)) == state


@pytest.mark.parametrize("name", [name for name, kind in CLASSES.items() if issubclass(kind, (optim.Optimizer, lr_scheduler.LRScheduler))])
def test_numbers_of_optimizers_and_schedules_are_numbers(name):
    kind = CLASSES[name]
    args, named = right(kind)
    named = inspect.signature(kind).bind(*args, **named).arguments
    for key, p in inspect.signature(kind).parameters.items():
        if p.annotation in ("float", "int", "float | cg.Tensor"):
            with pytest.raises((TypeError, ValueError), match=rf"^{kind.__name__}: .*{key}.*'text'"):
                kind(**{**named, key: "text"})
