"""Training steps of small networks."""
from itertools import pairwise

import numpy as np

import cgrad as cg

from .common import Seeded, require


class MLP(Seeded):
    """Forward, backward and update of a perceptron with two hidden layers."""
    params = [[1, 32, 256], [16, 128, 512], ["SGD", "Adam"]]
    param_names = ["batch", "width", "optimizer"]

    def setup(self, batch, width, optimizer):
        super().setup()
        nn, optim = require("nn"), require("optim")
        self.model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = getattr(optim, optimizer)(self.model.parameters(), lr=1e-3)
        rng = np.random.default_rng(0)
        self.x = cg.tensor(rng.normal(size=(batch, 64)).astype("float32"))
        self.labels = cg.tensor(rng.integers(0, 10, batch))
        self.time_step(batch, width, optimizer)

    def time_forward(self, batch, width, optimizer):
        with cg.no_grad():
            self.model(self.x)

    def time_step(self, batch, width, optimizer):
        loss = self.loss(self.model(self.x), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class OptimizerStep(Seeded):
    """Steps of each fused optimizer with nothing around them: its own cost (10 small parameters) and its memory traffic (3 large ones)."""
    params = [["SGD", "momentum", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"],
              ["10 small", "3 large"]]
    param_names = ["optimizer", "parameters"]

    def setup(self, optimizer, parameters):
        super().setup()
        optim = require("optim")
        if optimizer != "momentum" and not hasattr(optim, optimizer):
            raise NotImplementedError
        count, shape = (10, (16, 16)) if parameters == "10 small" else (3, (1000, 1000))
        tensors = [cg.randn(*shape, requires_grad=True) for _ in range(count)]
        for tensor in tensors:
            tensor.grad = cg.randn(*shape)
        self.optimizer = optim.SGD(tensors, lr=1e-3, momentum=0.9) if optimizer == "momentum" else getattr(optim, optimizer)(tensors, lr=1e-3)
        self.optimizer.step()

    def time_step(self, optimizer, parameters):
        self.optimizer.step()


class MLPInNumPy:
    """The same step written out by hand in NumPy (SGD): the yardstick for MLP."""
    params = [[1, 32, 256], [16, 128, 512]]
    param_names = ["batch", "width"]

    def setup(self, batch, width):
        rng = np.random.default_rng(0)
        sizes = [64, width, width, 10]
        self.weights = [(rng.normal(size=s) / s[0] ** 0.5).astype("float32") for s in pairwise(sizes)]
        self.biases = [np.zeros(n, "float32") for n in sizes[1:]]
        self.x = rng.normal(size=(batch, 64)).astype("float32")
        self.labels = rng.integers(0, 10, batch)

    def time_step(self, batch, width):
        inputs, h = [], self.x
        for k, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            inputs.append(h)
            h = h @ w + b
            if k < 2:
                h = np.maximum(h, 0)
        g = np.exp(h - h.max(axis=1, keepdims=True))
        g /= g.sum(axis=1, keepdims=True)
        g[np.arange(batch), self.labels] -= 1
        g /= batch
        for k in (2, 1, 0):
            gw, gb = inputs[k].T @ g, g.sum(axis=0)
            if k:
                g = (g @ self.weights[k].T) * (inputs[k] > 0)
            self.weights[k] -= 1e-3 * gw
            self.biases[k] -= 1e-3 * gb


class Layers(Seeded):
    """One layer, forward and backward, on a batch of 64 times 256."""
    params = [["Linear", "ReLU", "GELU", "Tanh", "Sigmoid", "Dropout", "LayerNorm", "RMSNorm"]]
    param_names = ["layer"]

    def setup(self, layer):
        super().setup()
        make = require(f"nn.{layer}")
        self.layer = make(256, 256) if layer == "Linear" else make(256) if layer.endswith("Norm") else make()
        self.x = cg.tensor(np.random.default_rng(0).normal(size=(64, 256)).astype("float32"), requires_grad=True)

    def time_forward_backward(self, layer):
        self.layer(self.x).sum().backward()


class LayerNorm(Seeded):
    """Forward and backward with the gradients of input, weight and bias."""
    params = [[(64, 256), (8192, 768)]]
    param_names = ["shape"]

    def setup(self, shape):
        super().setup()
        self.layer = require("nn.LayerNorm")(shape[1])
        self.x = cg.tensor(np.random.default_rng(0).normal(size=shape).astype("float32"), requires_grad=True)
        self.g = cg.ones(shape)

    def time_forward(self, shape):
        with cg.no_grad():
            self.layer(self.x)

    def time_forward_backward(self, shape):
        cg.autograd.grad(self.layer(self.x), [self.x, self.layer.weight, self.layer.bias], self.g)


class Embedding(Seeded):
    """Rows picked at random from a table, and the gradient of the whole table."""
    params = [[(1000, 64, 256), (50_000, 256, 8192)]]
    param_names = ["rows, width, indices"]

    def setup(self, sizes):
        super().setup()
        rows, width, count = sizes
        self.layer = require("nn.Embedding")(rows, width)
        self.index = cg.tensor(np.random.default_rng(0).integers(0, rows, count))
        self.g = cg.ones((count, width))

    def time_forward(self, sizes):
        with cg.no_grad():
            self.layer(self.index)

    def time_forward_backward(self, sizes):
        cg.autograd.grad(self.layer(self.index), [self.layer.weight], self.g)


class Convolution(Seeded):
    """Forward and backward with the gradients of input, weight and bias: images, channels, filters, extent, kernel, stride, groups."""
    params = [[(16, 64, 64, 56, 3, 1, 1), (64, 20, 50, 12, 5, 1, 1), (1, 1, 6, 28, 5, 1, 1), (16, 256, 64, 28, 1, 1, 1), (16, 64, 64, 56, 3, 2, 64)],
              ["Conv2d", "ConvTranspose2d"]]
    param_names = ["sizes", "layer"]

    def setup(self, sizes, layer):
        super().setup()
        images, channels, filters, extent, kernel, stride, groups = sizes
        self.layer = require(f"nn.{layer}")(channels, filters, kernel, stride, groups=groups)
        self.x = cg.tensor(np.random.default_rng(0).normal(size=(images, channels, extent, extent)).astype("float32"), requires_grad=True)
        self.g = cg.ones(self.layer(self.x).shape)

    def time_forward(self, sizes, layer):
        with cg.no_grad():
            self.layer(self.x)

    def time_forward_backward(self, sizes, layer):
        cg.autograd.grad(self.layer(self.x), [self.x, self.layer.weight, self.layer.bias], self.g)


class LeNet(Seeded):
    """A training step of two convolutions, two pools and two affine maps on images of 28 x 28."""
    params = [[1, 64]]
    param_names = ["batch"]

    def setup(self, batch):
        super().setup()
        nn, optim = require("nn"), require("optim")
        self.model = nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.MaxPool2d(2),
                                   nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = optim.SGD(self.model.parameters(), lr=1e-3)
        rng = np.random.default_rng(0)
        self.x = cg.tensor(rng.normal(size=(batch, 1, 28, 28)).astype("float32"))
        self.labels = cg.tensor(rng.integers(0, 10, batch))

    def time_step(self, batch):
        loss = self.loss(self.model(self.x), self.labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


class Pooling(Seeded):
    """Pooling of a batch of images, forward and backward."""
    params = [["max_pool2d", "avg_pool2d", "adaptive_avg_pool2d"], [2, 3]]
    param_names = ["function", "kernel"]

    def setup(self, function, kernel):
        super().setup()
        self.function = require(f"nn.functional.{function}")
        self.x = cg.tensor(np.random.default_rng(0).normal(size=(16, 32, 32, 32)).astype("float32"), requires_grad=True)

    def time_forward(self, function, kernel):
        with cg.no_grad():
            self.function(self.x, kernel)

    def time_forward_backward(self, function, kernel):
        self.function(self.x, kernel).sum().backward()
class ChannelNorm(Seeded):
    """Forward and backward of normalised channels, with the gradients of input, weight and bias."""
    params = [["BatchNorm", "InstanceNorm", "GroupNorm"], [(64, 128), (32, 64, 56, 56)]]
    param_names = ["layer", "shape"]

    def setup(self, layer, shape):
        super().setup()
        if layer == "InstanceNorm" and len(shape) == 2:
            raise NotImplementedError("a single value has no variance")
        dims = f"{len(shape) - 2 or 1}d" if layer != "GroupNorm" else ""
        make = require(f"nn.{layer}{dims}")
        self.layer = make(8, shape[1]) if layer == "GroupNorm" else make(shape[1], affine=True)
        self.x = cg.tensor(np.random.default_rng(0).normal(size=shape).astype("float32"), requires_grad=True)
        self.g = cg.ones(shape)

    def time_forward_backward(self, layer, shape):
        cg.autograd.grad(self.layer(self.x), [self.x, self.layer.weight, self.layer.bias], self.g)


class Attention(Seeded):
    """Forward and backward of scaled_dot_product_attention on (batch, heads, length, width)."""
    params = [[(2, 2, 16, 8), (8, 4, 128, 64), (1, 1, 2048, 64)]]
    param_names = ["shape"]

    def setup(self, shape):
        super().setup()
        self.attend = require("nn.functional.scaled_dot_product_attention")
        rng = np.random.default_rng(0)
        self.inputs = [cg.tensor(rng.normal(size=shape).astype("float32"), requires_grad=True) for _ in range(3)]
        self.g = cg.ones(shape)

    def time_forward(self, shape):
        with cg.no_grad():
            self.attend(*self.inputs)

    def time_forward_backward(self, shape):
        cg.autograd.grad(self.attend(*self.inputs), self.inputs, self.g)


class Recurrent(Seeded):
    """Forward and backward of a recurrent layer, with all gradients: steps, batch, inputs, hidden."""
    params = [["RNN", "LSTM", "GRU"], [(10, 1, 8, 8), (64, 32, 64, 128)]]
    param_names = ["layer", "sizes"]

    def setup(self, layer, sizes):
        super().setup()
        steps, batch, inputs, hidden = sizes
        self.layer = require(f"nn.{layer}")(inputs, hidden)
        self.x = cg.tensor(np.random.default_rng(0).normal(size=(steps, batch, inputs)).astype("float32"), requires_grad=True)
        self.leaves = [self.x, *self.layer.parameters()]
        self.g = cg.ones((steps, batch, hidden))

    def time_forward(self, layer, sizes):
        with cg.no_grad():
            self.layer(self.x)

    def time_forward_backward(self, layer, sizes):
        cg.autograd.grad(self.layer(self.x)[0], self.leaves, self.g)


class EmbeddingBag(Seeded):
    """Sums of rows picked at random from a table, and the gradient of the whole table."""
    params = [[(100, 16, 8, 5), (10_000, 64, 256, 20)], ["sum", "mean", "max"]]
    param_names = ["rows, width, bags, length", "mode"]

    def setup(self, sizes, mode):
        super().setup()
        rows, width, bags, length = sizes
        self.layer = require("nn.EmbeddingBag")(rows, width, mode=mode)
        self.index = cg.tensor(np.random.default_rng(0).integers(0, rows, (bags, length)))
        self.g = cg.ones((bags, width))

    def time_forward(self, sizes, mode):
        with cg.no_grad():
            self.layer(self.index)

    def time_forward_backward(self, sizes, mode):
        cg.autograd.grad(self.layer(self.index), [self.layer.weight], self.g)
