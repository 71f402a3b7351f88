"""Errors that teach: which function, what was wrong, the shapes, dtypes or values that were met, and what would work."""
import ast
import contextlib
import doctest
import importlib
import inspect
import io
import re
import sys
import warnings

import cases
import network_cases  # noqa: F401, adds its rows to those of cases
import numpy as np
import pytest
from numpy.exceptions import AxisError

import cgrad as cg
from cgrad import func, nn, optim
from cgrad.nn import functional as F


class Odd:
    def __repr__(self):
        return "<odd>"


def x():
    return cg.ones(2, 3)


def w():
    return cg.ones(2, 3, requires_grad=True)


def read_only():
    array = np.ones(3)
    array.flags.writeable = False
    return cg.from_numpy(array)


def augmented(symbol, x, y):
    names = {"x": x, "y": y}
    exec(f"x {symbol} y", names)
    return names["x"]


def adam(**options):
    return optim.Adam([w()], **options)


# what is called, the type of the error, and what its text says (spaces stand for anything)
SIGNATURES = [
    (lambda: cg.sum(x(), axs=0), TypeError, "sum: no argument is called 'axs'; did you mean 'axis'?; call it as sum(x, axis=None"),
    (lambda: cg.sum(x(), keepdimz=True), TypeError, "sum: no argument is called 'keepdimz'; did you mean 'keepdim'?"),
    (lambda: x().sum(axes=1), TypeError, "sum: no argument is called 'axes'; did you mean 'axis'?"),
    (lambda: cg.exp(x(), base=2), TypeError, "exp: no argument is called 'base'; call it as exp(x"),
    (lambda: cg.exp(), TypeError, "exp: missing a required argument: 'x'; call it as exp(x"),
    (lambda: cg.exp(x(), 1, 2), TypeError, "exp: too many positional arguments (3 given by position); call it as exp(x"),
    (lambda: x().exp(1), TypeError, "exp: too many positional arguments (2 given by position)"),
    (lambda: cg.add(x(), x(), bata=1), TypeError, "add: no argument is called 'bata'"),
    (lambda: cg.zeros(2, dtyp=cg.float64), TypeError, "zeros: no argument is called 'dtyp'; did you mean 'dtype'?"),
    (lambda: F.mse_loss(x(), x(), reductions="sum"), TypeError, "mse_loss: no argument is called 'reductions'; did you mean 'reduction'?"),
    (lambda: F.conv2d(x()), TypeError, "conv2d: missing a required argument: 'weight'"),
    (lambda: cg.sum(x(), 0, axis=1), TypeError, "sum: multiple values for argument 'axis'"),
    (lambda: nn.Linear(3, 4, baias=True), TypeError, "Linear: no argument is called 'baias'; did you mean 'bias'?; call it as Linear(in_features, out_features"),
    (lambda: nn.Linear(3), TypeError, "Linear: missing a required argument: 'out_features'"),
    (lambda: adam(lrr=1), TypeError, "Adam: no argument is called 'lrr'; did you mean 'lr'?; call it as Adam(params, lr=0.001"),
]
OPERANDS = [
    (lambda: cg.exp(None), TypeError, "exp: operands are tensors, arrays or numbers, got NoneType"),
    (lambda: cg.clone(None), TypeError, "clone: got NoneType"),
    (lambda: cg.concat([x(), None]), TypeError, "concat: NoneType"),
    (lambda: F.conv1d(None, cg.ones(1, 1, 1)), TypeError, "conv1d: cannot make a tensor from NoneType"),
    (lambda: F.layer_norm("a", (2,)), TypeError, "layer_norm: input must be a tensor, got 'a' (str)"),
    (lambda: F.dropout(np.array(["a"])), TypeError, "dropout: expected a tensor, got input = an array of shape (1,) and dtype <U1"),
    (lambda: x() + np.array(["a"]), TypeError, "add: arrays of dtype <U1 are not supported"),
    (lambda: cg.sort(Odd()), TypeError, "sort: cannot make a tensor from Odd"),
    (lambda: cg.tensor("a"), TypeError, "tensor: cannot make a tensor from str"),
    (lambda: cg.tensor([[1, 2], [3]]), ValueError, "tensor: ragged nested sequence: data[1] is a sequence of length 1, but data[0] is a sequence of length 2"),
    (lambda: cg.asarray(np.array([Odd()])), TypeError, "asarray: arrays of dtype object are not supported"),
    (lambda: F.pixel_shuffle(cg.ones(1, 4, 2, 2), (0, 0)), TypeError,
     "pixel_shuffle: cannot work with upscale_factor = (0, 0) (tuple): '<' not supported"),
    (lambda: -cg.tensor([True]), TypeError, "negative: not defined for bool tensors; convert them first"),
]
SHAPES_AND_AXES = [
    (lambda: x() + cg.ones(4), ValueError, "add: shapes (2, 3), (4,) do not broadcast"),
    (lambda: cg.dist(x(), cg.ones(7)), ValueError, "dist: shapes (2, 3), (7,) do not broadcast"),
    (lambda: x() @ cg.ones(2, 2), ValueError, "matmul: (3) must equal (2); got shapes (2, 3) and (2, 2)"),
    (lambda: cg.sum(x(), axis=7), AxisError, "sum: axis 7 is out of range for a tensor with 2 axes; use -2 to 1"),
    (lambda: cg.sum(x(), axis=(0, 0)), ValueError, "sum: axis 0 is named twice in (0, 0)"),
    (lambda: cg.sum(x(), axis="a"), TypeError, "sum: axis must be an integer, got 'a'"),
    (lambda: F.softmin(x(), 5), AxisError, "softmin: axis 5 is out of range for a tensor with 2 axes"),
    (lambda: cg.concat([x(), cg.ones(2, 4)]), ValueError, "concat: shapes must agree except along axis 0; number 0 has (2, 3), number 1 (2, 4)"),
    (lambda: cg.zeros(-1), ValueError, "zeros: an axis cannot have a negative length; got shape (-1,)"),
    (lambda: x().reshape(5), ValueError, "reshape: 6 elements of shape (2, 3) do not fit into (5,)"),
    (lambda: F.linear(x(), cg.ones(4, 5)), ValueError, "linear: got input (2, 3) and weight (4, 5)"),
    (lambda: nn.Conv2d(3, 4, 3)(cg.ones(1, 2, 5, 5)), ValueError, "conv2d: weight of shape (4, 3, 3, 3) does not fit an input of shape (1, 2, 5, 5)"),
    (lambda: nn.MSELoss()(x(), cg.ones(3, 2)), ValueError, "mse_loss: same shape, got (2, 3) and (3, 2); target.reshape(2, 3) would fit"),
    (lambda: cg.linalg.inv(x()), ValueError, "inv: x must be square in its last two axes, got shape (2, 3)"),
    (lambda: cg.linalg.inv(cg.zeros(2, 2)), np.linalg.LinAlgError, "inv: the 2 x 2 matrix is singular"),
]
INDICES = [
    (lambda: x()[5], IndexError, "getitem: index 5 is out of bounds for axis 0 with size 2; the tensor has shape (2, 3)"),
    (lambda: x()[0, 0, 0], IndexError, "getitem: too many indices: 3 for 2 axes; the tensor has shape (2, 3)"),
    (lambda: x()["a"], IndexError, "getitem: only integers, slices got str ('a')"),
    (lambda: x()[cg.tensor([0.5])], IndexError, "getitem: must hold integers or bools, not float32"),
    (lambda: x().__setitem__(0, cg.ones(5)), ValueError, "setitem: a value of shape (5,) does not broadcast to the indexed shape (3,)"),
    (lambda: cg.gather(x(), 0, cg.tensor([[9]])), IndexError, "gather: index 9 is out of bounds for axis 0 with size 2"),
    (lambda: nn.Embedding(3, 4)(cg.tensor([5])), IndexError, "embedding: index 5 is out of range for a table of 3 rows"),
    (lambda: nn.CrossEntropyLoss()(x(), cg.tensor([5, 0])), IndexError, "cross_entropy: class indices must lie in [0, 3) got 5"),
]
OPTIONS = [
    (lambda: nn.Linear(-1, 3), ValueError, "Linear: in_features must be an int of at least 0, got -1"),
    (lambda: nn.Conv2d(3, 5, 3, groups=2), ValueError, "Conv2d: in_channels=3 cannot be divided into 2 groups"),
    (lambda: nn.Dropout(2.0), ValueError, "Dropout: the probability p must lie in [0, 1], got 2.0"),
    (lambda: nn.Dropout("a"), TypeError, "Dropout: the probability p must be a number, got 'a'"),
    (lambda: nn.MSELoss(reduction="avg"), ValueError, "MSELoss: reduction must be one of mean, sum, none, got 'avg'"),
    (lambda: adam(lr=-1), ValueError, "Adam: lr must be at least 0, got -1"),
    (lambda: adam(lr="a"), TypeError, "Adam: lr must be a number, got 'a'"),
    (lambda: adam(lr=None), TypeError, "Adam: lr must be a number, got None"),
    (lambda: adam(betas=3), TypeError, "Adam: betas must be 2 numbers, got 3"),
    (lambda: adam(betas=(2, 3)), ValueError, "Adam: betas must be in [0, 1), got (2, 3)"),
    (lambda: optim.SGD(nn.Linear(2, 2)), TypeError, "SGD: params must be an iterable of tensors or dicts, got Linear; pass its parameters()"),
    (lambda: optim.SGD(3), TypeError, "SGD: params must be an iterable of tensors or dicts, got int"),
    (lambda: optim.SGD([]), ValueError, "SGD: got an empty parameter list"),
    (lambda: optim.lr_scheduler.StepLR(adam(), 0), ValueError, "StepLR: step_size must be positive, got 0"),
    (lambda: cg.zeros(2, device="cuda"), ValueError, "zeros: device must be 'cpu' or None, got 'cuda'"),
    (lambda: nn.Linear(2, 2).to("cuda"), ValueError, "to: device must be 'cpu' or None, got 'cuda'"),
    (lambda: cg.zeros(2, dtype="x"), TypeError, "zeros: 'x' is not a type that tensors can have; use one of bool"),
    (lambda: cg.set_num_threads("a"), TypeError, "set_num_threads: the number of threads must be an integer, got 'a'"),
    (lambda: cg.memory.set_limit("a"), TypeError, "set_limit: the limit must be an integer, got 'a'"),
    (lambda: cg.data.DataLoader(x(), batch_size=0), ValueError, "DataLoader: batch_size must be a positive int or None, got 0"),
    (lambda: cg.data.TensorDataset(x(), cg.ones(5)), ValueError, "TensorDataset: the same length got shapes (2, 3), (5,)"),
    (lambda: cg.load(3), TypeError, "load: expected a path or a binary file object to read, got int"),
    (lambda: nn.utils.clip_grad_norm_(3, 1.0), TypeError, "clip_grad_norm_: parameters = 3 (int)"),
    (lambda: nn.utils.rnn.pad_sequence(3), TypeError, "pad_sequence: sequences = 3 (int)"),
]
DERIVATIVES = [
    (lambda: w().backward(), RuntimeError, "backward: only for a scalar result, this one has shape (2, 3); reduce it to a scalar first"),
    (lambda: w().sum().backward(cg.ones(3)), RuntimeError, "backward: the gradient for result 0 has shape (3,), but the result has shape ()"),
    (lambda: cg.tensor([1, 2], requires_grad=True), RuntimeError, "requires_grad: only floating-point tensors have gradients, this one is int64"),
    (lambda: cg.autograd.grad(3, w()), TypeError, "grad: outputs must be a tensor or a sequence of tensors, got int"),
    (lambda: cg.autograd.grad(w().sum(), 3), TypeError, "grad: inputs must be a tensor or a sequence of tensors, got int"),
    (lambda: cg.autograd.checkpoint(3, x()), TypeError, "checkpoint: expected a function, got int"),
    (lambda: func.grad(3), TypeError, "grad: expected a function, got int"),
    (lambda: func.grad(lambda v: v)(x()), ValueError, "grad: the function must return one number, got a tensor of shape (2, 3)"),
    (lambda: func.grad(lambda v: v.sum(), argnums=3)(x()), ValueError, "grad: there is no argument 3"),
    (lambda: func.vmap(lambda a, b: a)(x(), cg.ones(3)), ValueError, "vmap: different numbers of examples: 2 3"),
    (lambda: func.functional_call(3, {}, x()), TypeError, "functional_call: expected a Module, got int"),
    (lambda: func.functional_call(nn.Linear(2, 2), {"wight": x()}, x()), KeyError, "functional_call: there is no parameter or buffer 'wight' in Linear"),
    (lambda: w().add_(1), RuntimeError, "add_: a leaf tensor that requires grad cannot be changed in place cgrad.no_grad()"),
    (lambda: w().numpy(), RuntimeError, "numpy: the tensor requires grad use x.detach().numpy()"),
    (lambda: x().item(), ValueError, "item: only a tensor with one element this one has shape (2, 3)"),
    (lambda: bool(x()), ValueError, "bool: the truth of a tensor of shape (2, 3) is ambiguous; use any() or all()"),
]
SETTINGS = [
    (lambda: cg.set_default_dtype(cg.int64), TypeError, "set_default_dtype: the default must be a floating dtype, got int64"),
    (lambda: cg.set_default_dtype(3), TypeError, "set_default_dtype: 3 is not a type that tensors can have"),
    (lambda: cg.set_printoptions(precison=3), TypeError, "set_printoptions: no argument is called 'precison'; did you mean 'precision'?"),
    (lambda: cg.set_printoptions(precision=-1), ValueError, "set_printoptions: precision must be a non-negative int, got -1"),
    (lambda: cg.set_num_threads(2.5), TypeError, "set_num_threads: the number of threads must be an integer, got 2.5"),
    (lambda: cg.set_num_threads(), TypeError, "set_num_threads: missing a required argument: 'n'"),
    (lambda: cg.manual_seed("a"), TypeError, "manual_seed: the seed must be an int, got 'a'"),
    (lambda: cg.manual_seed(10**30), ValueError, "manual_seed: the seed must fit 64 bits"),
    (lambda: cg.set_rng_state(3), TypeError, "set_rng_state: set_state: expected a uint8 tensor made by get_state"),
    (lambda: cg.memory.set_limit(-1), ValueError, "set_limit: the limit must not be negative, got -1"),
    (lambda: cg.memory.trim(1.5), TypeError, "trim: keep must be an integer, got 1.5"),
    (lambda: cg.finfo(cg.int8), TypeError, "finfo: int8 is not a floating dtype; use iinfo for integers"),
    (lambda: cg.can_cast("a", cg.int8), TypeError, "can_cast: 'a' is not a type that tensors can have"),
    (lambda: cg.fork_rng("a").__enter__(), TypeError, "the seed must be an int, got 'a'"),
    (lambda: cg.func.jacobian(3), TypeError, "jacobian: expected a function, got int"),
    (lambda: cg.func.hessian(3), TypeError, "hessian: expected a function, got int"),
    (lambda: cg.func.vjp(1, 2, bad=3), TypeError, "vjp: no argument is called 'bad'"),
    (lambda: cg.checkpoint(), TypeError, "checkpoint: missing a required argument: 'function'"),
]
OPERATORS = [
    (lambda: x() @ "a", TypeError, "for @: 'cgrad.core.tensor.Tensor' and 'str'"),
    (lambda: x() + Odd(), TypeError, "for +: 'cgrad.core.tensor.Tensor' and 'Odd'"),
    (lambda: x() < None, TypeError, "'<' not supported between instances of 'cgrad.core.tensor.Tensor' and 'NoneType'"),
    (lambda: x() ** "a", TypeError, "** or pow(): 'cgrad.core.tensor.Tensor' and 'str'"),
    (lambda: ~x(), TypeError, "bitwise_not: not defined for tensors of dtype float32"),
    (lambda: cg.ones(2, dtype=cg.uint8) + 300, OverflowError, "add: 300 is out of range for uint8"),
    (lambda: cg.arange(2) * 10**30, OverflowError, "multiply: 1000000000000000000000000000000 is out of range for int64"),
    (lambda: augmented("+=", x(), cg.ones(4, 2, 3)), ValueError, "add: the result has shape (4, 2, 3) cannot be written in place into shape (2, 3)"),
    (lambda: augmented("@=", x(), cg.ones(3, 2)), ValueError, "matmul: the result has shape (2, 2) cannot be written in place into shape (2, 3)"),
    (lambda: augmented("+=", cg.arange(3), 1.5), TypeError, "add: the result is float32 cannot be written in place into a tensor of int64"),
    (lambda: augmented("+=", x(), "a"), TypeError, "for +=: 'cgrad.core.tensor.Tensor' and 'str'"),
    (lambda: augmented("+=", read_only(), 1), ValueError, "add: the tensor's memory is read-only take x.clone() first"),
    (lambda: int(x()), TypeError, "int: only a tensor with one element can become a number, this one has shape (2, 3)"),
    (lambda: float(x()), TypeError, "float: only a tensor with one element can become a number, this one has shape (2, 3)"),
    (lambda: len(cg.tensor(1.0)), TypeError, "len: a 0-d tensor has no length"),
    (lambda: list(cg.tensor(1.0)), TypeError, "iter: a 0-d tensor cannot be iterated over"),
    (lambda: [1, 2][x()], TypeError, "index: only a 0-d tensor of integers can be an index, this one has shape (2, 3) and dtype float32"),
    (lambda: f"{x():.2f}", ValueError, "format: '.2f' is for one number, and the tensor has shape (2, 3)"),
    (lambda: setattr(x(), "grad", 3), TypeError, "grad: a gradient is a Tensor or None, got int"),
    (lambda: setattr(x(), "grad", cg.ones(4)), RuntimeError, "grad: must have shape (2, 3) and dtype float32 like its tensor, got (4,) and float32"),
    (lambda: setattr(x(), "data", 3), TypeError, "data: expected a Tensor, got int"),
    (lambda: setattr(x(), "requires_grad", "no"), TypeError, "requires_grad: must be True or False, got 'no'"),
    (lambda: setattr(x(), "shape", (3, 2)), AttributeError, "'shape' of 'cgrad.core.tensor.Tensor' objects is not writable"),
    (lambda: setattr(x(), "T", x()), AttributeError, "'T'"),
    (lambda: x().shap, AttributeError, "'shap'"),
    (lambda: cg.ones(3).mT, ValueError, "matrix_transpose: needs at least 2 axes, got shape (3,)"),
    (lambda: x().stride(7), AxisError, "stride: axis 7 is out of range for a tensor with 2 axes"),
    (lambda: x().item(0, "a"), IndexError, "item: index 'a' is out of bounds for axis 1 with size 3; give an int for each axis"),
]
IN_PLACE = [
    (lambda: x().sub_(None), TypeError, "sub_: operands are tensors, arrays or numbers, got NoneType"),
    (lambda: x().sub_(1, bata=2), TypeError, "sub_: no argument is called 'bata'"),
    (lambda: cg.Tensor.exp_(3), TypeError, "exp_: writes into a tensor, got 3"),
    (lambda: read_only().zero_(), ValueError, "zero_: the tensor's memory is read-only"),
    (lambda: x().copy_(cg.ones(7)), ValueError, "copy_: a value of shape (7,) cannot be broadcast to shape (2, 3)"),
    (lambda: cg.arange(3).fill_(2.5), TypeError, "fill_: 2.5 cannot be stored in a tensor of int64 without loss"),
    (lambda: cg.exp(x(), out=3), TypeError, "exp: out= must be a Tensor, got int"),
    (lambda: cg.exp(x(), out=cg.ones(2)), ValueError, "exp: the result has shape (2, 3), out= has (2,); give a tensor of the result's shape"),
    (lambda: cg.exp(cg.ones(3), out=read_only()), ValueError, "exp: the tensor's memory is read-only"),
    (lambda: cg.max(x(), out=(x(), x())), TypeError, "max: gives one result, so out= must be one tensor, got a tuple of 2"),
    (lambda: x().__setitem__(0, "a"), TypeError, "setitem: cannot make a tensor from str"),
    (lambda: x().__setitem__(slice(None, None, 0), 1), ValueError, "setitem: slice step cannot be zero; the tensor has shape (2, 3)"),
    (lambda: cg.arange(3).__setitem__(0, float("nan")), TypeError, "setitem: nan cannot be stored in a tensor of int64"),
    (lambda: read_only().__setitem__(0, 1), ValueError, "setitem: the tensor's memory is read-only"),
]
NO_SILENT_NUMBER = [
    (lambda: cg.sum(x(), axis=True), TypeError, "sum: axis must be an integer, got the bool True"),
    (lambda: cg.sum(x(), axis=1.0), TypeError, "sum: axis must be an integer, got 1.0"),
    (lambda: cg.sum(x(), axis=2**70), AxisError, "sum: axis 1180591620717411303424 is out of range"),
    (lambda: cg.zeros("23"), TypeError, "zeros: a length must be an integer, got '23'"),
    (lambda: cg.zeros(float("nan")), TypeError, "zeros: a length must be an integer, got nan"),
    (lambda: cg.zeros(True), TypeError, "zeros: a length must be an integer, got True"),
    (lambda: cg.zeros(10**30), ValueError, "zeros: shape (1000000000000000000000000000000,) is too large"),
    (lambda: cg.zeros(2**40, 2**40), ValueError, "zeros: shape (1099511627776, 1099511627776) of float32 is too large"),
    (lambda: cg.full((2,), 300, dtype=cg.uint8), OverflowError, "full: int 300 does not fit uint8"),
    (lambda: cg.arange(0, 10, float("nan")), ValueError, "arange: start, stop and step must be finite"),
    (lambda: cg.tensor("12"), TypeError, "tensor: cannot make a tensor from str"),
    (lambda: cg.tensor_split(x(), 10**30), OverflowError, "tensor_split: the number of parts must fit 64 bits"),
    (lambda: cg.mvlgamma(x(), 10**30), OverflowError, "mvlgamma: the dimension p must fit 64 bits"),
    (lambda: cg.repeat(x(), 1.5), TypeError, "repeat: repeats must be an integer, got 1.5"),
    (lambda: cg.permute_dims(x(), "10"), ValueError, "permute_dims: 1 axes given for a tensor of shape (2, 3)"),
    (lambda: x().astype(None), TypeError, "astype: None is not a type that tensors can have"),
    (lambda: x()[1.0], IndexError, "getitem: got a float (1.0)"),
    (lambda: x()[10**30], IndexError, "getitem: index 1000000000000000000000000000000 is out of bounds"),
    (lambda: cg.is_complex("a"), TypeError, "is_complex: x must be a tensor, got 'a' (str)"),
]
NAMES = [
    (lambda: cg.logsumexq, AttributeError, "module 'cgrad' has no attribute 'logsumexq'; did you mean 'logsumexp'?"),
    (lambda: cg.vmap, AttributeError, "module 'cgrad' has no attribute 'vmap'; it is cgrad.func.vmap"),
    (lambda: cg.func.gradd, AttributeError, "module 'cgrad.func' has no attribute 'gradd'; did you mean 'grad'?"),
    (lambda: F.rleu, AttributeError, "module 'cgrad.nn.functional' has no attribute 'rleu'; did you mean 'relu'?"),
    (lambda: nn.Liner, AttributeError, "module 'cgrad.nn' has no attribute 'Liner'; did you mean 'Linear'?"),
    (lambda: optim.Adm, AttributeError, "module 'cgrad.optim' has no attribute 'Adm'; did you mean 'Adam'?"),
    (lambda: cg.memory.reprot, AttributeError, "module 'cgrad.memory' has no attribute 'reprot'; did you mean 'report'?"),
    (lambda: cg.autograd.gradchek, AttributeError, "module 'cgrad.autograd' has no attribute 'gradchek'; did you mean 'gradcheck'?"),
    (lambda: cg.linalg.eig, AttributeError, "module 'cgrad.linalg' has no attribute 'eig'; use eigh or eigvalsh"),
    (lambda: cg.random.xyz, AttributeError, "module 'cgrad.random' has no attribute 'xyz'"),
]
TABLE = [*SETTINGS, *OPERATORS, *IN_PLACE, *NO_SILENT_NUMBER, *NAMES, *SIGNATURES, *OPERANDS, *SHAPES_AND_AXES, *INDICES, *OPTIONS, *DERIVATIVES]


@pytest.mark.parametrize(("call", "kind", "says"), TABLE, ids=[re.sub(r"\W+", "-", says[:40]) for _, _, says in TABLE])
def test_the_text_says_what_was_wrong(call, kind, says):
    with pytest.raises(kind) as caught:
        call()
    parts = [re.escape(part) for part in says.split(" ")]
    assert re.search(".*?".join(parts), str(caught.value)), str(caught.value)


def test_methods_of_compiled_classes_look_at_what_they_are_called_with():
    """Cython's own functions (binding=True) read the memory of any `self` as that of a tensor, and crash."""
    compiled = {c for name, module in list(sys.modules.items()) if name.startswith("cgrad.core.") for c in vars(module).values()
                if isinstance(c, type) and c.__module__.startswith("cgrad.") and not c.__flags__ & 1 << 9}
    assert len(compiled) > 15
    assert not [(c, name) for c in compiled for name, f in vars(c).items() if type(f).__name__ == "cython_function_or_method" and not hasattr(f, "primitive")]
    for name in dir(cg.Tensor):
        for wrong in (5, None, Odd()):
            if name not in dir(object) and callable(getattr(cg.Tensor, name)):
                with contextlib.suppress(TypeError, ValueError, AttributeError, RuntimeError):
                    getattr(cg.Tensor, name)(wrong)


@pytest.mark.parametrize("call", [
    lambda: cg.Tensor.fill_(None, 1), lambda: cg.Tensor.zero_(None), lambda: cg.Tensor.clone(None), lambda: cg.Tensor.copy_(None, cg.ones(1)),
    lambda: cg.ones(1).copy_(None), lambda: cg.Tensor.exp_(None), lambda: cg.matmul(cg.ones(2, 2), None), lambda: F.cross_entropy(cg.ones(1, 2), None),
], ids=range(8))
def test_none_in_place_of_a_tensor_does_not_crash(call):
    with pytest.raises((TypeError, AttributeError)):
        call()


def test_the_reason_why_there_is_no_gradient_is_in_the_errors():
    leaf = w()
    with cg.no_grad():
        unrecorded = leaf * 2
    for tensor, reason in ((unrecorded, "computed under no_grad, so nothing was recorded"), (leaf.detach(), "was detached from the graph"),
                           (cg.arange(3), "its dtype is int64"), (x(), "make it with requires_grad=True")):
        assert reason in tensor.why_no_grad()
        for call in (lambda t=tensor: cg.autograd.backward(t, t), tensor.retain_grad, lambda t=tensor: t.register_hook(print), lambda t=tensor: cg.autograd.grad(leaf.sum(), t),
                     lambda t=tensor: t.register_post_accumulate_grad_hook(print), lambda t=tensor: cg.explain(t)):
            with pytest.raises(RuntimeError) as caught:
                call()
            assert reason in str(caught.value)


def test_errors_of_the_users_own_code_stay_as_they_are():
    class Mine(cg.Op):
        def forward(self, x):
            return {}["nothing"]

    for call in (lambda: Mine()(cg.ones(1)), lambda: func.vmap(lambda v: {}["nothing"])(cg.ones(2)), lambda: cg.autograd.checkpoint(Mine(), cg.ones(1))):
        with pytest.raises(KeyError, match="^'nothing'$"):
            call()
    with pytest.raises(AttributeError, match="has no attribute 'colour'"):
        func.grad(lambda v: v.colour)(cg.ones(1))


# ------------------------------------------------------------------------------------------------ every function and method, by rule
INTERNAL = re.compile(r"<locals>|<lambda>|Buffer dtype|an integer is required|incorrect type \(expected|(?<![\w.])_[a-z]\w*\(\) |must not be None|Cannot convert"
                      r"|^(?!.*(cannot work with|doesn't apply)).*(' object |truth value)", re.DOTALL)
MODULES = ["cgrad", "cgrad.autograd", "cgrad.func", "cgrad.linalg", "cgrad.fft", "cgrad.special", "cgrad.random", "cgrad.memory", "cgrad.nn.functional"]
NOT_CALLED = {
    "load", "save",                                                  # of files
    "checkpoint", "checkpoint_budget", "checkpoint_sequential", "once_differentiable", "op", "where_fn",    # of functions, called with what these take
    "show_config", "seed", "is_tensor", "set_grad_enabled",          # take anything, or nothing
    "set_default_dtype", "set_printoptions", "set_num_threads", "manual_seed", "set_rng_state", "set_limit", "set_detect_anomaly", "threads", "fork_rng",
    "cuda", "is_grad_enabled", "default_generator", "initial_seed", "get_rng_state", "get_default_dtype", "get_num_threads",
}


def calls_of_tables():
    """One call of each function of the tables of cases, as {name: (arguments, keywords)}."""
    rng = np.random.default_rng(0)

    def made(a):
        if isinstance(a, cases.Draw):
            return cg.tensor(a.make(rng, np.float32))
        if isinstance(a, cases.Pick):
            return cg.tensor(a.make(rng))
        return type(a)(made(b) for b in a) if type(a) in (list, tuple) else a

    found = {}
    for row in cases.ROWS:
        if row.name not in found and "Tensor." not in row.name and row.name not in ("foreign_op", "setitem"):
            sample = row.samples[-1]
            found[row.name] = made(sample.args), {key: made(value) for key, value in sample.kwargs.items()}
    return found


def call_in_example(name, text):
    """The arguments and keywords with which an example calls a function or method, or None."""
    names = {}

    def value(node):
        return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "example", "eval"), names)

    for example in doctest.DocTestParser().get_examples(text or ""):
        tree = ast.parse(example.source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name == getattr(node.func, "attr", getattr(node.func, "id", None)):
                with contextlib.suppress(Exception):
                    args = value(ast.List(node.args, ast.Load()))
                    kwargs = {k.arg: value(k.value) for k in node.keywords}
                    owner = value(node.func.value) if isinstance(node.func, ast.Attribute) else None
                    return [owner, *args] if isinstance(owner, cg.Tensor) else args, kwargs
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
            exec(compile(example.source, "example", "single"), names)
    return None


def right_calls():
    """{name: (function, arguments, keywords)} of public functions and of the methods of Tensor, those that raise nothing."""
    tables, found = calls_of_tables(), {}
    for module in MODULES:
        owner = importlib.import_module(module)
        for name in getattr(owner, "__all__", None) or dir(owner):
            function = getattr(owner, name)
            key = f"{module}.{name}".removeprefix("cgrad.")
            if not name.startswith("_") and callable(function) and not isinstance(function, type) and name not in NOT_CALLED:
                own = getattr(function, "__name__", "")
                found[key] = function, [tables.get(key), tables.get(own), call_in_example(name, function.__doc__), call_in_example(own, function.__doc__)]
    for name in dir(cg.Tensor):
        method = getattr(cg.Tensor, name)
        if not name.startswith("_") and callable(method) and name not in NOT_CALLED:
            plain = found.get(name.rstrip("_"), (None, []))[1]
            found[f"Tensor.{name}"] = method, [call_in_example(name, method.__doc__), *plain, *((made, {}) for x in (cg.ones(2, 3), cg.ones(2, 3, dtype=cg.int64))
                                                                                             for made in ([x], [x, x], [x, x, x], [x, 0]))]
    found["Tensor.addmm_"][1].append(([cg.ones(2, 2)] * 3, {}))
    found["Tensor.new_full"][1].append(([cg.ones(1), (2,), 3.0], {}))
    right = {}
    for key, (function, calls) in found.items():
        for call in calls:
            if key not in right and call is not None:
                with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                    function(*map(fresh, call[0]), **call[1])
                    right[key] = function, *call
    return right, sorted(found.keys() - right.keys())


def fresh(a):
    """A tensor of its own, for what writes in place."""
    return a.detach().clone() if isinstance(a, cg.Tensor) and not a.requires_grad else a


def wrong_calls(args, kwargs):
    """The same with one thing wrong."""
    for i, a in enumerate(args):
        wrong = [Odd(), "text", {}, np.array([Odd()])]
        if isinstance(a, cg.Tensor):
            wrong += [None, cg.zeros(2, 3, 1, 7, 5, dtype=a.dtype), cg.zeros((), dtype=a.dtype), [[1.0, 2.0], [3.0]], np.array(["a"])]
        else:
            wrong += [-99, 1.5, (0, 0), [99], float("nan"), b"bytes", 10**30]
        for value in wrong:
            yield (*args[:i], value, *args[i + 1:]), kwargs
    for key in kwargs:
        yield args, {**kwargs, key: Odd()}
        yield args, {key + "s" if name == key else name: value for name, value in kwargs.items()}
    yield args, {**kwargs, "nonsense": 1}
    yield (), {}
    yield (*args, *[1] * 12), kwargs


CALLS, UNCALLED = right_calls()


def test_there_are_calls_of_nearly_all_functions():
    assert len(CALLS) > 1000
    assert not UNCALLED


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_are_refused_by_name(name):
    function, args, kwargs = CALLS[name]
    short = {name.rpartition(".")[2], getattr(function, "__name__", name)}
    weak = []
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for wrong_args, wrong_kwargs in wrong_calls(args, kwargs):
            wrong_args = [fresh(a) for a in wrong_args]
            before = repr(wrong_args)
            try:
                function(*wrong_args, **wrong_kwargs)
            except (TypeError, ValueError, IndexError, RuntimeError, OverflowError, BufferError) as error:
                text = str(error)
                if text.startswith("unsupported operand"):              # raised by a function that was given
                    continue
                if not any(n in text for n in short) or len(text) < len(name) + 10 or INTERNAL.search(text):
                    weak.append(f"{type(error).__name__}: {text}")
                assert repr(wrong_args) == before, f"half changed: {text}"
    assert not weak, "\n".join(weak)


LAYERS_ON_A_DEVICE = sorted(name for name in dir(nn) if isinstance(getattr(nn, name), type) and issubclass(getattr(nn, name), nn.Module)
                            and "device" in inspect.signature(getattr(nn, name).__init__).parameters)
SIZES = {"in_features": 2, "in1_features": 2, "in2_features": 2, "out_features": 2, "in_channels": 2, "out_channels": 2, "kernel_size": 1, "num_features": 2,
         "num_embeddings": 2, "embedding_dim": 2, "normalized_shape": 2, "num_groups": 1, "num_channels": 2, "input_size": 2, "hidden_size": 2,
         "embed_dim": 2, "num_heads": 1, "d_model": 2, "nhead": 1, "n_classes": 4, "cutoffs": [2], "mode": "LSTM", "bias": True, "num_chunks": 4}


@pytest.mark.parametrize("name", LAYERS_ON_A_DEVICE)
def test_layers_are_made_on_the_cpu(name):
    layer = getattr(nn, name)
    needed = {key: SIZES[key] for key, p in inspect.signature(layer.__init__).parameters.items()
              if key != "self" and p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    assert isinstance(layer(**needed, device=cg.device("cpu")), layer)
    with pytest.raises(ValueError, match=f"^{name}: {'TransformerEncoderLayer: ' * (name == 'Transformer')}device must be 'cpu' or None, got 'cuda'"):
        layer(**needed, device="cuda")
