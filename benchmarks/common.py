"""What the benchmarks share.  Import this module before NumPy: it pins the number of threads.

Every figure of interest has a NumPy twin in the same class (a `lib` parameter, "cgrad" or "numpy"): compare the two from one run,
since a busy machine shifts both.
"""
import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

import numpy as np

import cgrad as cg

SIZES = [1, 1_000, 100_000, 4_000_000]     # call cost; first cache; second cache; memory
DTYPES = ["float32", "float64"]
LIBS = ["cgrad", "numpy"]


def require(path):
    """The attribute of cgrad at a dotted path; a benchmark of a name that this version lacks is skipped."""
    found = cg
    for part in path.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise NotImplementedError(f"this cgrad has no {path}")
    return found


def arrays(count, shape, dtype="float32", low=0.5, high=1.5, seed=0):
    """`count` NumPy arrays of uniform numbers, written once so that their pages are there before anything is timed."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(low, high, shape).astype(dtype) for _ in range(count)]


def tensors(count, shape, dtype="float32", requires_grad=False, **options):
    return [cg.tensor(array, requires_grad=requires_grad) for array in arrays(count, shape, dtype, **options)]


class Seeded:
    """Base class: the same random numbers in every run."""

    def setup(self, *params):
        cg.manual_seed(0)
