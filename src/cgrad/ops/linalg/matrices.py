"""What the files of this folder share: checks of matrices, and the small words their rules are written in.  Next: decompositions.py."""
from cgrad.core.arguments import as_floating
from cgrad.ops.batching import with_ndim
from cgrad.ops.compare import where
from cgrad.ops.triangles import eye
from cgrad.ops.define import door
from cgrad.ops.diagonal import _diagonal, _embed
from cgrad.ops.shape import _expand_dims


def linalg(function):
    """Make a function a public name of cgrad.linalg alone."""
    return door(function, module="cgrad.linalg")


def matrix(name, x, what="x"):
    """`x` as a floating-point tensor with at least two axes."""
    x = as_floating(name, x)
    if x.ndim < 2:
        raise ValueError(f"{name}: {what} must have at least 2 axes, a matrix or a batch of them; got shape {tuple(x.shape)}")
    return x


def square(name, x, what="x"):
    """`x` as a floating-point tensor of square matrices."""
    x = matrix(name, x, what)
    if x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: {what} must be square in its last two axes, got shape {tuple(x.shape)}")
    return x


def right_hand_side(name, x, y):
    """(y with the right-hand sides of x as columns, whether they were vectors)."""
    y = as_floating(name, y)
    rows = x.shape[-2]
    # A 1-d y is a vector (Array API); so is each row of a batch of them, where nothing else makes sense of the shape (PyTorch).
    vector = y.ndim == 1 or tuple(y.shape) == tuple(x.shape[:-1]) and y.shape[-2] != rows
    if vector:
        y = _expand_dims(y, (y.ndim,))
    if y.ndim < 2 or y.shape[-2] != rows:
        raise ValueError(f"{name}: a right-hand side of shape {tuple(y.shape[:-1] if vector else y.shape)} does not fit a matrix of shape "
                         f"{tuple(x.shape)}; it should be a vector of length {rows} or have {rows} rows")
    return y, vector


def aligned(operands, batched):
    """Operands of a batch of calls, all with as many axes, so that their leading axes broadcast."""
    ndim = max([x.ndim - b for x, b in zip(operands, batched)])
    return [with_ndim(x, ndim) if b else x for x, b in zip(operands, batched)]


def symmetric(x):
    return (x + x.mT) * 0.5


def skew(x):
    return x - x.mT


def diagonal(x):
    """The main diagonals of the last two axes."""
    return _diagonal(x, 0, (x.ndim - 2, x.ndim - 1))


def diagonal_matrix(x):
    """Square matrices with `x` on their diagonals."""
    n, k = x.shape[-1], x.ndim - 1
    return _embed(x, tuple(x.shape) + (n,), 0, (k, k + 1))


def row(x):
    """Vectors as rows, so that they scale columns."""
    return _expand_dims(x, (x.ndim - 1,))


def column(x):
    """Vectors as columns, so that they scale rows."""
    return _expand_dims(x, (x.ndim,))


def inverse_gaps(values):
    """1 / (values[j] - values[i]) for i != j, 0 on the diagonal; infinite where two values are equal."""
    same = eye(values.shape[-1], dtype="bool")
    return where(same, 0, 1 / where(same, 1, row(values) - column(values)))
