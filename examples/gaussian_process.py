"""Gaussian process regression: how a disease progresses, with error bars
=========================================================================

The data are the 442 diabetes patients (age, sex, body mass, blood pressure, six blood values) that come with scikit-learn; a fifth is
held out.  The kernel is a squared exponential plus noise.  Its three parameters maximise the marginal likelihood, whose gradient comes
from differentiating through the Cholesky factor.

Run it: ``python examples/gaussian_process.py``
"""
import argparse
import math
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import cgrad as cg

mpl.use("Agg")     # draw into a file; no display needed
import matplotlib.pyplot as plt


def load(seed):
    """Training and test inputs, training and test targets; all of mean 0 and variance 1."""
    x, y = load_diabetes(return_X_y=True)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y = (y - y.mean()) / y.std()
    return [cg.tensor(part) for part in train_test_split(x, y, test_size=0.2, random_state=seed)]


def kernel(a, b, log_amplitude, log_length):
    """``amplitude * exp(-|a - b|**2 / (2 * length**2))`` for each pair of rows."""
    squares = (a * a).sum(axis=1, keepdims=True) - 2 * a @ b.T + (b * b).sum(axis=1)
    return cg.exp(log_amplitude - squares / (2 * cg.exp(2 * log_length)))


def factor(theta, x):
    """The Cholesky factor of the covariance of the noisy targets."""
    log_amplitude, log_length, log_noise = theta.unbind()
    return cg.linalg.cholesky(kernel(x, x, log_amplitude, log_length) + cg.exp(log_noise) * cg.eye(len(x), dtype=x.dtype))


def negative_log_likelihood(theta, x, y):
    """``(y K^-1 y + log det K + n log 2 pi) / 2``, from the Cholesky factor of K."""
    lower = factor(theta, x)
    z = cg.linalg.solve_triangular(lower, y.unsqueeze(1), upper=False)
    return (z * z).sum() / 2 + cg.log(cg.diagonal(lower)).sum() + len(x) / 2 * math.log(2 * math.pi)


def fit_scipy(x, y):
    """The parameters by SciPy's L-BFGS-B, which calls cgrad for value and slope."""
    value_and_grad = cg.func.value_and_grad(lambda theta: negative_log_likelihood(theta, x, y))

    def for_scipy(theta):
        value, slope = value_and_grad(cg.tensor(theta))
        return value.item(), slope.numpy()

    return cg.tensor(minimize(for_scipy, np.zeros(3), jac=True, method="L-BFGS-B").x)


def fit_lbfgs(x, y):
    """The parameters by cgrad's own L-BFGS."""
    theta = cg.zeros(3, dtype=cg.float64, requires_grad=True)
    optimizer = cg.optim.LBFGS([theta], max_iter=100, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        value = negative_log_likelihood(theta, x, y)
        value.backward()
        return value

    optimizer.step(closure)
    return theta.detach()


def predict(theta, x, y, new):
    """Means and standard deviations of the targets at new inputs."""
    lower = factor(theta, x)
    across = kernel(x, new, theta[0], theta[1])
    z = cg.linalg.solve_triangular(lower, cg.concat([y.unsqueeze(1), across], axis=1), upper=False)
    mean = z[:, 1:].T @ z[:, 0]
    variance = cg.exp(theta[0]) + cg.exp(theta[2]) - (z[:, 1:] ** 2).sum(axis=0)
    return mean, cg.sqrt(variance)


def draw(mean, deviation, truth, path):
    """Held-out patients in the order of what is predicted, with the 95 % interval, as a PNG."""
    order = mean.argsort()
    mean, deviation, truth, places = mean[order], deviation[order], truth[order], np.arange(len(mean))
    figure, axes = plt.subplots(figsize=(6, 3.8), layout="constrained")
    axes.fill_between(places, mean - 1.96 * deviation, mean + 1.96 * deviation, color="tab:blue", alpha=0.2, label="95 % interval")
    axes.plot(places, mean, color="tab:blue", label="predicted")
    axes.plot(places, truth, ".", color="tab:orange", label="observed")
    axes.set(xlabel="held-out patients, by prediction", ylabel="progression (standard deviations)", title="Gaussian process with its error bars")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--png", type=Path, default=Path("gaussian_process.png"), help="where the picture goes (default: %(default)s)")
    options = parser.parse_args()

    x, new_x, y, new_y = load(options.seed)
    for name, fit in (("SciPy", fit_scipy), ("cgrad.optim.LBFGS", fit_lbfgs)):
        theta = fit(x, y)
        amplitude, length, noise = cg.exp(theta).tolist()
        print(f"by {name}: log likelihood {-negative_log_likelihood(theta, x, y).item():.6f}, "
              f"amplitude {amplitude:.5f}, length {length:.5f}, noise {noise:.5f}")
    mean, deviation = predict(theta, x, y, new_x)
    explained = 1 - ((new_y - mean) ** 2).mean() / new_y.var(correction=0)
    inside = (abs(new_y - mean) < 1.96 * deviation).double().mean()
    print(f"held-out patients: {explained.item():.1%} of the variance explained, {inside.item():.1%} inside the 95 % interval")
    draw(mean, deviation, new_y, options.png)


if __name__ == "__main__":
    main()
