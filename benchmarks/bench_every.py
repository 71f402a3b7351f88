"""A call of each operation on small operands, forward and backward, with the arguments that the tests have in tests/ops/cases.py.

What is slow here is slow before a kernel begins.  An operation with a row there is measured without more ado; `python -m benchmarks.guard`
names those that no benchmark measures.
"""
import sys
from pathlib import Path

from .common import require

import numpy as np

import cgrad as cg

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "ops"))
from network_cases import ROWS, Draw, Pick

FIRST = {row.name: row for row in reversed(ROWS)}
SHAPE, ONES, ARRAY = (4, 8), cg.ones(4, 8), np.ones((4, 8))
MADE = {
    "empty": (SHAPE,), "rand": (SHAPE,), "eye": SHAPE, "identity": (4,), "tri": (4,), "tril_indices": (4, 4), "triu_indices": (4, 4), "scalar_tensor": (1.5,),
    "randint": (0, 9, SHAPE), "randperm": (32,), "exponential": (1.0, SHAPE), "uniform": (0.0, 1.0, SHAPE), "multinomial": (cg.ones(8), 3),
    "empty_like": (ONES,), "ones_like": (ONES,), "zeros_like": (ONES,), "rand_like": (ONES,), "randn_like": (ONES,), "randint_like": (ONES, 9),
    "bernoulli": (ONES / 2,), "asarray": (ARRAY,), "as_tensor": (ARRAY,), "from_numpy": (ARRAY,), "from_dlpack": (ARRAY,), "frombuffer": (bytes(64),)}


class Brief:
    """Many operations: a fifth of a second for each, in a process of its own, once (others are run twice over)."""
    warmup_time, sample_time, repeat, rounds = 0.02, 0.005, (3, 10, 0.1), 1
    param_names = ["op"]


class Forward(Brief):
    params = [sorted(FIRST)]

    def setup(self, op):
        self.row, rng = FIRST[op], np.random.default_rng(0)
        if self.row.function is None:
            require(op)
        sample = max(self.row.samples, key=worth)
        self.args, self.kwargs = [operand(a, rng, self.requires_grad) for a in sample.args], sample.kwargs

    requires_grad = False

    def time_call(self, op):
        self.row.call(*self.args, **self.kwargs)


class Backward(Forward):
    params = [sorted(name for name, row in FIRST.items() if row.differentiable)]
    requires_grad = True

    def setup(self, op):
        super().setup(op)
        if self.result() is None:
            raise NotImplementedError("this sample has no gradient")

    def result(self):
        out = self.row.call(*self.args, **self.kwargs)
        return next((x for x in (out if isinstance(out, (tuple, list)) else [out]) if isinstance(x, cg.Tensor) and x.requires_grad), None)

    def time_call(self, op):
        self.result().sum().backward()


class Making(Brief):
    params = [sorted(MADE)]

    def time_call(self, op):
        getattr(cg, op)(*MADE[op])


def worth(sample):
    """Samples that can be differentiated before others, and none that are empty or a single number if there are such."""
    sizes = [np.prod(a.shape) for a in sample.args if isinstance(a, Draw)]
    return len(sizes) > 0, min(sizes, default=0) > 1


def operand(value, rng, requires_grad):
    if isinstance(value, list):
        return [operand(v, rng, requires_grad) for v in value]
    if isinstance(value, Draw):
        return cg.tensor(value.make(rng), requires_grad=requires_grad)
    if isinstance(value, Pick):
        return cg.tensor(value.make(rng))
    return cg.tensor(value) if isinstance(value, np.ndarray) else value
