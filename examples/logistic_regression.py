"""Logistic regression with standard errors: tell benign from malignant breast tumours
======================================================================================

The data are the 569 tumours of the Wisconsin diagnostic data set (30 measurements each) that come with scikit-learn.  The penalised
negative log-likelihood is written once; `cgrad.func.value_and_grad` gives SciPy's optimiser value and slope, cgrad's own L-BFGS finds the
same minimum, and the Hessian at the minimum gives the standard errors of the coefficients.

Run it: ``python examples/logistic_regression.py``
"""
import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_breast_cancer

import cgrad as cg
from cgrad.nn import functional as F

mpl.use("Agg")     # draw into a file; no display needed
import matplotlib.pyplot as plt


def load():
    """Measurements as columns of mean 0 and variance 1, class (0 malignant, 1 benign), names of the measurements."""
    data = load_breast_cancer()
    x = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
    return cg.tensor(x), cg.tensor(data.target, dtype=cg.float64), [str(name) for name in data.feature_names]


def objective(x, y, penalty):
    """The function of (coefficients, intercept) that is to be minimised: -log likelihood + penalty / 2 * |coefficients|**2."""
    def loss(theta):
        logits = x @ theta[:-1] + theta[-1]
        return F.binary_cross_entropy_with_logits(logits, y, reduction="sum") + penalty / 2 * (theta[:-1] ** 2).sum()
    return loss


def fit_scipy(loss, n):
    """The minimum by SciPy's BFGS, which calls cgrad for value and slope."""
    value_and_grad = cg.func.value_and_grad(loss)

    def for_scipy(theta):
        value, slope = value_and_grad(cg.tensor(theta))
        return value.item(), slope.numpy()

    return cg.tensor(minimize(for_scipy, np.zeros(n), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 1000}).x)


def fit_lbfgs(loss, n):
    """The minimum by cgrad's own L-BFGS."""
    theta = cg.zeros(n, dtype=cg.float64, requires_grad=True)
    optimizer = cg.optim.LBFGS([theta], max_iter=1000, tolerance_grad=1e-8, tolerance_change=1e-15, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = loss(theta)
        value.backward()
        return value

    optimizer.step(closure)
    return theta.detach()


def draw(rows, path):
    """The largest coefficients with their 95 % intervals as a PNG."""
    names, values, errors = zip(*rows, strict=True)
    figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
    axes.errorbar(values, names, xerr=[1.96 * error for error in errors], fmt="o", color="tab:blue", ecolor="tab:grey", capsize=3)
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.invert_yaxis()
    axes.set(xlabel="coefficient and 95 % interval", title="Benign (right) or malignant (left)")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--penalty", type=float, default=1.0, help="weight of the squared coefficients (default: %(default)s)")
    parser.add_argument("--png", type=Path, default=Path("logistic_regression.png"), help="where the picture goes (default: %(default)s)")
    options = parser.parse_args()

    x, y, names = load()
    loss = objective(x, y, options.penalty)
    n = x.shape[1] + 1
    theta = fit_scipy(loss, n)
    same = fit_lbfgs(loss, n)
    errors = cg.sqrt(cg.diagonal(cg.linalg.inv(cg.func.hessian(loss)(theta))))
    right = ((x @ theta[:-1] + theta[-1] > 0) == (y == 1)).double().mean().item()

    print(f"loss {loss(theta).item():.8f} by SciPy, {loss(same).item():.8f} by cgrad.optim.LBFGS; "
          f"coefficients differ by {abs(theta - same).max().item():.1e}")
    print(f"{right:.2%} of the tumours are told right\n")
    print(f"{'measurement':24}  coefficient  standard error")
    rows = sorted(zip([*names, "intercept"], theta.tolist(), errors.tolist(), strict=True), key=lambda row: -abs(row[1]))
    for name, value, error in rows:
        print(f"{name:24}  {value:11.6f}  {error:14.6f}")
    draw(rows[:12], options.png)


if __name__ == "__main__":
    main()
