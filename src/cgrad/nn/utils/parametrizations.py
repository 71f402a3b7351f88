"""The usual parametrizations of weights: orthogonal matrices, spectral norm 1, length and direction apart."""
from __future__ import annotations

import functools

import numpy as np

import cgrad as cg
from cgrad.nn import functional as F
from cgrad.nn.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from cgrad.nn.module import Module
from cgrad.nn.utils.parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor(function, module, name):
    value = getattr(module, name, None)
    if not isinstance(value, cg.Tensor):
        raise ValueError(f"{function}: {type(module).__name__} has no parameter or buffer '{name}'")
    return value


# ------------------------------------------------------------------ length and direction
def weight_norm(module, name="weight", dim=0):
    """Write a weight as ``g * v / norm(v)``, with lengths and directions that are trained apart.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    dim : int or None, default 0
        There is one length for each index of this axis; None for one length in all.

    Returns
    -------
    Module
        The same module, with g as ``parametrizations.weight.original0`` and v as ``original1``.

    Notes
    -----
    Salimans and Kingma, "Weight Normalization", 2016. State dicts with PyTorch's older names, weight_g and weight_v, are loaded as well.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.weight_norm(cg.nn.Linear(20, 40))
    >>> layer.parametrizations.weight.original0.shape, layer.parametrizations.weight.original1.shape
    ((40, 1), (40, 20))
    """
    _tensor("weight_norm", module, name)
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(functools.partial(_old_names, name, {"g": "original0", "v": "original1"}))
    return module


def _old_names(name, names, module, state, prefix, *rest):
    if all(f"{prefix}{name}_{old}" in state for old in names):
        for old, new in names.items():
            state[f"{prefix}parametrizations.{name}.{new}"] = state.pop(f"{prefix}{name}_{old}")


class _WeightNorm(Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def norm(self, v):
        if self.dim is None or self.dim == -1:           # -1 is PyTorch's other word for None
            return cg.vector_norm(v)
        axes = tuple(axis for axis in range(v.ndim) if axis != _axis("weight_norm", self.dim, v))
        return cg.vector_norm(v, axis=axes, keepdims=True) if axes else abs(v)

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / self.norm(weight_v))

    def right_inverse(self, weight):
        return self.norm(weight), weight

    def extra_repr(self):
        return f"dim={self.dim}"


# ------------------------------------------------------------------ spectral norm
def _axis(name, dim, weight):
    if not -weight.ndim <= dim < weight.ndim:
        raise IndexError(f"{name}: there is no axis {dim} in a weight of shape {tuple(weight.shape)}")
    return dim % weight.ndim


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, so that the layer is 1-Lipschitz.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    n_power_iterations : int, default 1
        Steps of the power method each time the weight is read in training; 15 are made at the start.
    eps : float, default 1e-12
        The least norm that is divided by.
    dim : int, optional
        The axis that counts as rows; all others are columns. 0, but 1 for transposed convolutions.

    Returns
    -------
    Module
        The same module, with the vectors of the power method as buffers ``parametrizations.weight.0._u`` and ``_v``.

    Notes
    -----
    The vectors are constants for the gradient. A vector is divided by its norm. Miyato et al., "Spectral Normalization", 2018.
    State dicts with PyTorch's older names, weight_orig, weight_u and weight_v, are loaded as well.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.spectral_norm(cg.nn.Linear(3, 4), n_power_iterations=30)
    >>> round(cg.linalg.matrix_norm(layer.weight.detach(), 2).item(), 4)
    1.0
    """
    weight = _tensor("spectral_norm", module, name)
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    module.register_load_state_dict_pre_hook(functools.partial(_old_names, name, {"orig": "original", "u": "0._u", "v": "0._v"}))
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations, dim, eps):
        super().__init__()
        if n_power_iterations < 1:
            raise ValueError(f"spectral_norm: n_power_iterations must be at least 1, got {n_power_iterations}")
        self.dim = _axis("spectral_norm", dim, weight)
        self.eps = eps
        self.n_power_iterations = n_power_iterations
        if weight.ndim > 1:
            with cg.no_grad():
                matrix = self.matrix(weight)
                for key, n in zip(("_u", "_v"), matrix.shape):
                    self.register_buffer(key, F.normalize(cg.randn(n, dtype=weight.dtype), dim=0, eps=eps))
            self.iterate(matrix, 15)

    def matrix(self, weight):
        return cg.moveaxis(weight, self.dim, 0).reshape(weight.shape[self.dim], -1)

    def iterate(self, matrix, n):
        with cg.no_grad():
            matrix = matrix.detach()
            for _ in range(n):
                self._u.copy_(F.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(F.normalize(matrix.mT @ self._u, dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self.matrix(weight)
        if self.training:
            self.iterate(matrix, self.n_power_iterations)
        # copies, since the vectors change with the next reading, perhaps before backward
        return weight / (self._u.clone() @ (matrix @ self._v.clone()))

    def right_inverse(self, value):
        return value


# ------------------------------------------------------------------ orthogonal matrices
def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a weight, or each of a batch of them, orthogonal: its rows or its columns, whichever are fewer, are orthonormal.

    Parameters
    ----------
    module : Module
    name : str, default "weight"
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        How a free matrix becomes an orthogonal one; the first for square weights, the last for others.
    use_trivialization : bool, default True
        Multiply by a fixed orthogonal matrix, the buffer ``base``, so that the free matrix starts at 0; otherwise a value can be assigned
        for "householder" only.

    Returns
    -------
    Module
        The same module; the weight starts as the orthogonal factor of what it was.

    Notes
    -----
    With A = X - X.T: ``exp(A)``; ``(I - A/2)^-1 (I + A/2)``; or a product of Householder reflections. Lezcano-Casado, "Trivializations for
    Gradient-Based Optimization on Manifolds", 2019.

    Examples
    --------
    >>> import cgrad as cg
    >>> layer = cg.nn.utils.parametrizations.orthogonal(cg.nn.Linear(4, 2, dtype=cg.float64))
    >>> bool(cg.allclose(layer.weight @ layer.weight.mT, cg.eye(2, dtype=cg.float64)))
    True
    """
    weight = _tensor("orthogonal", module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: the weight must have at least 2 axes, got shape {tuple(weight.shape)}")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.shape[-2] == weight.shape[-1] else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(f'orthogonal: orthogonal_map must be "matrix_exp", "cayley" or "householder", got {orthogonal_map!r}')
    return register_parametrization(module, name, _Orthogonal(weight.shape, orthogonal_map, use_trivialization), unsafe=True)


class _Orthogonal(Module):
    def __init__(self, shape, orthogonal_map, use_trivialization):
        super().__init__()
        self.shape = tuple(shape)
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        n, k = x.shape[-2:]
        if self.orthogonal_map == "householder":
            reflections = x.tril(-1)
            q = cg.linalg.householder_product(reflections, 2.0 / (1.0 + (reflections * reflections).sum(axis=-2)))
            q = q * cg.sign(cg.diagonal(x.detach(), 0, -2, -1)).unsqueeze(-2)
        else:
            x = x.tril()
            if n != k:
                x = cg.concat([x, cg.zeros((*x.shape[:-2], n, n - k), dtype=x.dtype)], axis=-1)
            a = x - x.mT
            if self.orthogonal_map == "matrix_exp":
                q = cg.linalg.matrix_exp(a)
            else:
                eye = cg.eye(n, dtype=a.dtype)
                q = cg.linalg.solve(eye - 0.5 * a, eye + 0.5 * a)
            q = q[..., :k]
        if self.use_trivialization:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, q):
        if tuple(q.shape) != self.shape:
            raise ValueError(f"orthogonal: the value must have shape {self.shape}, got {tuple(q.shape)}")
        q = q.detach()
        wide = q.shape[-2] < q.shape[-1]
        tall = q.mT if wide else q
        n, k = tall.shape[-2:]
        if not self.use_trivialization:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(f'orthogonal: no value can be assigned with "{self.orthogonal_map}" and use_trivialization=False')
            x = _reflections(tall)
            return x.mT if wide else x
        if n != k:
            tall = cg.concat([tall, cg.randn(*tall.shape[:-2], n, n - k, dtype=q.dtype)], axis=-1)
        tolerance = 10 * n * cg.finfo(q.dtype).eps
        is_orthogonal = n == k and cg.allclose(tall.mT @ tall, cg.eye(n, dtype=q.dtype).expand(tall.shape), atol=tolerance)
        self.base = tall.clone() if is_orthogonal else _orthogonal_factor(tall)
        return -cg.eye(*q.shape[-2:], dtype=q.dtype).expand(q.shape).clone()     # of which "householder" takes the signs, too


def _orthogonal_factor(x):
    """The Q of x = QR with a positive diagonal of R."""
    q, r = cg.linalg.qr(x)
    signs = cg.sign(cg.diagonal(r, 0, -2, -1))
    return q * cg.where(signs == 0, 1.0, signs).astype(q.dtype).unsqueeze(-2)


def _reflections(x):
    """The Householder vectors of x below the diagonal, and on it the signs that make their product the Q with a positive diagonal of R."""
    h, tau = np.linalg.qr(x.numpy(), mode="raw")         # LAPACK's geqrf; h is transposed
    packed = np.swapaxes(h, -1, -2).copy()
    k = packed.shape[-1]
    signs = np.sign(packed[..., range(k), range(k)])
    packed[..., range(k), range(k)] = np.where(tau == 0, -signs, signs)
    return cg.tensor(packed)
