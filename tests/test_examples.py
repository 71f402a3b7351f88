"""The examples do what they say."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script, *arguments, cwd):
    environment = os.environ | {"MPLBACKEND": "Agg"}
    command = [sys.executable, str(EXAMPLES / script), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_walkthrough_prints_the_value_and_the_four_partials(tmp_path):
    out = run("walkthrough.py", cwd=tmp_path)
    values = [float(v) for v in re.findall(r"= (\d+\.\d+)$", out, re.MULTILINE)]
    g = 22026.465794806718
    assert out.count("22026.465794806718") == 3
    assert values == pytest.approx([g, 3 * g, 2 * g, 2 * g, 2 * g] * 3, rel=1e-14)


@pytest.mark.slow
def test_the_digits_are_learned_and_drawn(tmp_path):
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package)
    out = run("digits.py", "--epochs", 30, "--png", tmp_path / "curve.png", cwd=tmp_path)
    assert len(re.findall(r"^epoch +\d+ +loss", out, re.MULTILINE)) == 30
    share = float(re.search(r"reads ([\d.]+)% of the held-out digits", out)[1])
    assert share >= 97.0
    assert (tmp_path / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_the_digits_script_refuses_nonsense(tmp_path):
    for package in ("sklearn", "matplotlib", "tqdm"):
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, str(EXAMPLES / "digits.py"), "--epochs", "0"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "must be at least 1" in done.stderr
