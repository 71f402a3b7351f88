"""The example learns the digits on two ranks, and four go on from its checkpoint."""
import re

import pytest
from launch import HERE, run

SCRIPT = HERE.parents[1] / "examples" / "mpi_digits.py"


def losses(out):
    return [float(value) for value in re.findall(r"^epoch +\d+ +loss ([\d.]+)", out, re.MULTILINE)]


@pytest.mark.slow
def test_the_digits_are_learned_together(tmp_path):
    pytest.importorskip("sklearn")
    checkpoint = tmp_path / "digits.npz"
    out = run(2, SCRIPT, "--epochs", 8, "--checkpoint", checkpoint)
    assert "2 ranks" in out and "719 of them on rank 0" in out and len(losses(out)) == 8
    assert out == re.sub(r"trained in \S+ s", re.search(r"trained in \S+ s", out)[0], run(2, SCRIPT, "--epochs", 8))      # the same bits
    more = run(4, SCRIPT, "--epochs", 12, "--checkpoint", checkpoint)
    assert "4 ranks" in more and more.count("epoch") == 4 and "epoch   9" in more
    assert losses(more)[-1] < losses(out)[-1] < losses(out)[0] / 5
    assert float(re.search(r"reads ([\d.]+)% of the held-out digits", more)[1]) >= 96.0
