"""Matplotlib draws tensors as they are, also those that require grad: it looks at their values."""
import numpy as np
import pytest

import cgrad as cg

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402

DRAWINGS = {
    "plot": lambda ax, x, y, image: ax.plot(x, y), "plot with arrays": lambda ax, x, y, image: ax.plot(np.asarray(x), y, "r--"),
    "columns": lambda ax, x, y, image: ax.plot(image), "scatter": lambda ax, x, y, image: ax.scatter(x, y, c=y, s=20 * y),
    "imshow": lambda ax, x, y, image: ax.imshow(image), "rgb": lambda ax, x, y, image: ax.imshow(cg.stack([image] * 3, axis=-1)),
    "hist": lambda ax, x, y, image: ax.hist(y, bins=5), "several hists": lambda ax, x, y, image: ax.hist([x, y]),
    "hist2d": lambda ax, x, y, image: ax.hist2d(x, y, bins=4), "errorbar": lambda ax, x, y, image: ax.errorbar(x, y, yerr=y, xerr=0.1 * y),
    "bar": lambda ax, x, y, image: ax.bar(x, y, width=0.1), "fill_between": lambda ax, x, y, image: ax.fill_between(x, y, 2 * y, where=y > 0.1),
    "contourf": lambda ax, x, y, image: ax.contourf(image, levels=4), "pcolormesh": lambda ax, x, y, image: ax.pcolormesh(cg.arange(9), cg.arange(6), image),
    "quiver": lambda ax, x, y, image: ax.quiver(x, y, x, y), "boxplot": lambda ax, x, y, image: ax.boxplot(y), "step": lambda ax, x, y, image: ax.step(x, y),
    "axhline": lambda ax, x, y, image: ax.axhline(y.mean()), "annotate": lambda ax, x, y, image: ax.annotate("a", (x[0], y[1])),
    "limits": lambda ax, x, y, image: ax.set_xlim(x[0], x[-1]), "ticks": lambda ax, x, y, image: ax.set_xticks(x[:3]),
    "log": lambda ax, x, y, image: ax.loglog(x + 1, y + 1),
}


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    figure.canvas.draw()
    plt.close(figure)


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "requires_grad"])
@pytest.mark.parametrize("name", DRAWINGS)
def test_drawing(axes, name, tracked):
    x = cg.linspace(0, 1, 20).requires_grad_(tracked)
    DRAWINGS[name](axes, x, x * x, cg.arange(40).reshape(5, 8) * x[3])


def test_the_line_has_the_values(axes):
    x = cg.linspace(0, 1, 5, requires_grad=True)
    line, = axes.plot(x, x.exp())
    np.testing.assert_array_equal(line.get_ydata(), x.exp().numpy(force=True))
