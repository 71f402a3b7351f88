"""How parameters start: each function fills a tensor in place, outside the graph, and returns it."""
from __future__ import annotations

import math

import cgrad as cg
from cgrad.ops.define import open_doors

__all__ = [
    "calculate_gain", "constant_", "dirac_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "orthogonal_", "sparse_",
    "trunc_normal_", "uniform_", "xavier_normal_", "xavier_uniform_", "zeros_",
]


def calculate_gain(nonlinearity, param=None):
    """The factor by which a layer before this nonlinearity should start larger than one before none.

    Parameters
    ----------
    nonlinearity : str
        "linear", "conv1d" ... "conv_transpose3d", "sigmoid" (1), "tanh" (5/3), "relu" (sqrt 2), "leaky_relu", "selu" (3/4).
    param : float, optional
        The negative slope of "leaky_relu", 0.01 by default.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.calculate_gain("leaky_relu", 0.2)
    1.386...
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, (int, float)):
            raise ValueError(f"calculate_gain: the negative slope must be a number, got {param!r}")
        return math.sqrt(2.0 / (1 + slope ** 2))
    known = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    known.update({f"conv{t}{n}d": 1.0 for t in ("", "_transpose") for n in (1, 2, 3)})
    if nonlinearity not in known:
        raise ValueError(f"calculate_gain: unknown nonlinearity {nonlinearity!r}; known are {', '.join([*known, 'leaky_relu'])}")
    return known[nonlinearity]


def _fans(name, tensor):
    """(fan_in, fan_out) of a weight of shape ``(out, in, *kernel)``."""
    if tensor.ndim < 2:
        raise ValueError(f"{name}: fan in and fan out need a tensor of at least 2 axes, got shape {tuple(tensor.shape)}")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fill(tensor, values):
    with cg.no_grad():
        tensor.copy_(values)
    return tensor


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill with draws from the uniform distribution on [a, b).

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.nn.init.uniform_(cg.empty(100), -1.0, 1.0)
    >>> bool(w.min() >= -1), bool(w.max() < 1)
    (True, True)
    """
    if not a <= b:
        raise ValueError(f"uniform_: a must not be above b, got {a} and {b}")
    return _fill(tensor, cg.rand(*tensor.shape, dtype=tensor.dtype, generator=generator) * (b - a) + a)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill with draws from the normal distribution.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.normal_(cg.empty(2, 3), std=0.1).shape
    (2, 3)
    """
    if std < 0:
        raise ValueError(f"normal_: std must not be negative, got {std}")
    return _fill(tensor, cg.randn(*tensor.shape, dtype=tensor.dtype, generator=generator) * std + mean)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill with draws from the normal distribution cut off at `a` and `b`.

    Notes
    -----
    By rejection: what falls outside is drawn again, so the values follow the truncated distribution exactly.

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.nn.init.trunc_normal_(cg.empty(1000))
    >>> bool(abs(w).max() <= 2)
    True
    """
    if std < 0:
        raise ValueError(f"trunc_normal_: std must not be negative, got {std}")
    if not a < b:
        raise ValueError(f"trunc_normal_: a must be below b, got {a} and {b}")
    if std == 0:
        if not a <= mean <= b:
            raise ValueError(f"trunc_normal_: with std=0 the mean {mean} must lie in [{a}, {b}]")
        return constant_(tensor, mean)
    draws = _truncated(tensor.size, (a - mean) / std, (b - mean) / std, generator)
    values = cg.tensor((draws * std + mean).clip(a, b))
    return _fill(tensor, values.reshape(tensor.shape))


def _truncated(n, low, high, generator):
    """n draws of the standard normal distribution between two bounds, by rejection, as a NumPy array.

    The proposal is normal where enough of it falls inside, uniform on a narrow interval, and the tangent exponential in a tail
    (Robert, 1995), so that at least a few percent of the proposals are kept whatever the bounds.
    """
    import numpy as np

    if high < 0:
        return -_truncated(n, -high, -low, generator)
    nearest, width = max(low, 0.0), high - low
    inside = 0.5 * (math.erfc(-high / math.sqrt(2.0)) - math.erfc(-low / math.sqrt(2.0)))
    kept, count = [], 0
    while count < n:
        m = 2 * (n - count) + 16
        if inside > 0.05:
            x = cg.randn(m, dtype=cg.float64, generator=generator).numpy()
            x = x[(x >= low) & (x <= high)]
        else:
            u, v = cg.rand(2, m, dtype=cg.float64, generator=generator).numpy()
            if width * max(nearest, 1.0) < 2.0:
                x = low + u * width
                x = x[v <= np.exp((nearest - x) * (nearest + x) * 0.5)]
            else:
                x = low + np.log1p(u * np.expm1(-low * width)) / -low
                x = x[v <= np.exp(-0.5 * (x - low) ** 2)]
        kept.append(x)
        count += x.size
    return np.concatenate(kept)[:n] if kept else np.zeros(0)


def constant_(tensor, val):
    """Fill with one value.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.constant_(cg.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with cg.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Fill with ones.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.ones_(cg.empty(2))
    tensor([1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Fill with zeros.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.zeros_(cg.empty(2))
    tensor([0., 0.])
    """
    return constant_(tensor, 0.0)


def eye_(tensor):
    """Fill a matrix with the identity.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.eye_(cg.empty(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if tensor.ndim != 2:
        raise ValueError(f"eye_: the tensor must have 2 axes, got shape {tuple(tensor.shape)}")
    return _fill(tensor, cg.eye(*tensor.shape))


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform with bound ``gain * sqrt(6 / (fan_in + fan_out))``.

    Notes
    -----
    Glorot and Bengio (2010).

    Examples
    --------
    >>> import cgrad as cg
    >>> bool(abs(cg.nn.init.xavier_uniform_(cg.empty(3, 3))).max() <= 1)
    True
    """
    bound = gain * math.sqrt(6.0 / max(sum(_fans("xavier_uniform_", tensor)), 1))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with standard deviation ``gain * sqrt(2 / (fan_in + fan_out))``.

    Notes
    -----
    Glorot and Bengio (2010).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.xavier_normal_(cg.empty(3, 5)).shape
    (3, 5)
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / max(sum(_fans("xavier_normal_", tensor)), 1)), generator)


def _kaiming_std(name, tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'{name}: mode must be "fan_in" or "fan_out", got {mode!r}')
    fan = _fans(name, tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform with bound ``gain * sqrt(3 / fan)``.

    Parameters
    ----------
    tensor : Tensor, shape ``(out, in, *kernel)``
    a : float, default 0
        The negative slope of "leaky_relu".
    mode : {"fan_in", "fan_out"}
        Keep the variance in the forward or in the backward pass.
    nonlinearity : str
        As for `calculate_gain`.

    Notes
    -----
    He et al. (2015).

    Examples
    --------
    >>> import cgrad as cg
    >>> bool(abs(cg.nn.init.kaiming_uniform_(cg.empty(4, 6))).max() <= 1)
    True
    """
    bound = math.sqrt(3.0) * _kaiming_std("kaiming_uniform_", tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with standard deviation ``gain / sqrt(fan)``; parameters as for `kaiming_uniform_`.

    Notes
    -----
    He et al. (2015).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.kaiming_normal_(cg.empty(3, 5), mode="fan_out", nonlinearity="relu").shape
    (3, 5)
    """
    return normal_(tensor, 0.0, _kaiming_std("kaiming_normal_", tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor, gain=1.0, generator=None):
    """Rows (or columns, if there are fewer) orthonormal, times `gain`; axes from the second on count as one.

    Notes
    -----
    The Q of a QR decomposition of normal draws, with signs that make it uniform (Haar); Saxe et al. (2013).

    Examples
    --------
    >>> import cgrad as cg
    >>> w = cg.nn.init.orthogonal_(cg.empty(2, 3, dtype=cg.float64))
    >>> (w @ w.T).round(decimals=6).tolist()
    [[1.0, ...0.0], [...0.0, 1.0]]
    """
    import numpy as np

    if tensor.ndim < 2:
        raise ValueError(f"orthogonal_: the tensor must have at least 2 axes, got shape {tuple(tensor.shape)}")
    if tensor.size == 0:
        return tensor
    rows = tensor.shape[0]
    columns = tensor.size // rows
    draw = cg.randn(max(rows, columns), min(rows, columns), dtype=cg.float64, generator=generator).numpy()
    q, r = np.linalg.qr(draw)
    q = q * np.sign(np.diag(r))
    values = (q if rows >= columns else q.T) * gain
    return _fill(tensor, cg.tensor(np.ascontiguousarray(values)).reshape(tensor.shape))


def dirac_(tensor, groups=1):
    """Fill the weight of a convolution so that it hands on as many channels as it can, unchanged.

    Parameters
    ----------
    tensor : Tensor, shape ``(out, in / groups, *kernel)``, with 1 to 3 axes of the kernel
    groups : int, default 1
        Divides the number of output channels; each group hands on its own channels.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.nn.init.dirac_(cg.empty(2, 2, 3)).tolist()
    [[[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError(f"dirac_: the tensor must have 3, 4 or 5 axes, got shape {tuple(tensor.shape)}")
    if groups < 1 or tensor.shape[0] % groups:
        raise ValueError(f"dirac_: groups={groups} must divide the {tensor.shape[0]} output channels")
    per_group = tensor.shape[0] // groups
    centre = tuple(n // 2 for n in tensor.shape[2:])
    with cg.no_grad():
        tensor.fill_(0.0)
        diagonal = cg.arange(min(per_group, tensor.shape[1]))
        for group in range(groups if tensor.size else 0):
            tensor[(group * per_group + diagonal, diagonal, *centre)] = 1.0
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a matrix with normal draws, and in each column set the share `sparsity` of the elements, rounded up, to 0.

    Notes
    -----
    Martens, "Deep learning via Hessian-free optimization", 2010.

    Examples
    --------
    >>> import cgrad as cg
    >>> (cg.nn.init.sparse_(cg.empty(4, 2), sparsity=0.5) == 0).sum(axis=0)
    tensor([2, 2])
    """
    if tensor.ndim != 2:
        raise ValueError(f"sparse_: the tensor must have 2 axes, got shape {tuple(tensor.shape)}")
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparse_: the sparsity must lie in [0, 1], got {sparsity}")
    zeros = math.ceil(sparsity * tensor.shape[0])
    normal_(tensor, 0.0, std, generator)
    order = cg.rand(*tensor.shape, generator=generator).argsort(axis=0)
    with cg.no_grad():
        return tensor.masked_fill_(order.argsort(axis=0) < zeros, 0.0)


open_doors(globals())
