"""The model of costs in benchmarks/mpi: what must hold of it whatever the numbers."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks" / "mpi"))
from model import Network, all_reduce, buckets_of, rabenseifner, recursive_doubling, ring, simulate  # noqa: E402

NET = Network(1e-5, 1e-9)


@pytest.mark.parametrize("p", [2, 8, 1024])
def test_formulas_of_the_all_reduce(p):
    n, rounds = 1e6, p.bit_length() - 1
    assert sum(map(NET.time, recursive_doubling(p, n))) == pytest.approx(rounds * (1e-5 + n * 1e-9))
    assert sum(map(NET.time, rabenseifner(p, n))) == pytest.approx(2 * rounds * 1e-5 + 2 * (p - 1) / p * n * 1e-9)
    assert sum(map(NET.time, ring(p, n))) == pytest.approx(2 * (p - 1) * 1e-5 + 2 * (p - 1) / p * n * 1e-9)
    assert all_reduce(p, 4, NET)[0] == recursive_doubling(p, 4)


def test_a_backward_by_hand():
    assert buckets_of([3, 3, 3, 1], 5) == [(6, 1), (4, 3)]
    seconds, sizes = [1.0, 1.0, 1.0], [1e9, 1e9, 1e9]                # a message takes a second on two ranks, both ways 1 + 1/2 + ...
    slow = Network(0.0, 1e-9, float("inf"))
    one = all_reduce(2, 1e9, slow)[1]
    assert one == pytest.approx(1.0) and simulate(1, seconds, sizes, slow) == 3.0
    assert simulate(2, seconds, sizes, slow, limit=1) == pytest.approx(4.0)          # each hidden behind the next gradient but the last
    assert simulate(2, seconds, sizes, slow, progress="end") == pytest.approx(6.0)
    assert simulate(2, seconds, sizes, slow, limit=1e10) == pytest.approx(6.0)
    assert 4.0 <= simulate(2, seconds, sizes, slow._replace(window=1e8), limit=1, progress="hooks") <= 6.0
