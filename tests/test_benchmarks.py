"""Every public operation is measured by a benchmark, and the benchmarks of single operations run."""
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("scipy")
ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def benchmarks():
    before, path = dict(os.environ), sys.path[:]           # the package pins the number of threads
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import bench_every, guard
    finally:
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)
    return bench_every, guard


def test_every_operation_is_measured(benchmarks):
    assert not benchmarks[1].unmeasured(), "add rows to tests/ops/cases.py, or a benchmark"


@pytest.mark.parametrize("kind", ["Forward", "Backward", "Making"])
def test_the_benchmarks_of_single_operations_run(benchmarks, kind):
    cls, skipped = getattr(benchmarks[0], kind), []
    for op in cls.params[0]:
        benchmark = cls()
        try:
            getattr(benchmark, "setup", id)(op)
        except NotImplementedError:
            skipped.append(op)
        else:
            benchmark.time_call(op)
    assert len(skipped) <= 3, skipped
