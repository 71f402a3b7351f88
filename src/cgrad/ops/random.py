"""Random tensors, and tensors filled with random numbers.

NumPy supplies the bits (PCG64, see generator.py), the distributions are our own (core/forward/random.pyx): a seed gives the same
numbers in every process and with every version of NumPy.  Without ``generator=`` the process-wide default generator is used.
Next: the networks in cgrad.nn.
"""
import numpy as np

from cgrad.core import batching
from cgrad.core.device import check_device
from cgrad.core.dtype import as_dtype, get_default_dtype
from cgrad.core.forward import fill
from cgrad.core.forward.random import Stream
from cgrad.core.inplace import check_inplace_target
from cgrad.core.tape import is_grad_enabled
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import asarray, finish, is_followed, length, like, read_size
from cgrad.ops.define import as_method, publish
from cgrad.ops.generator import Generator, default_generator

__all__ = [
    "rand", "randn", "randint", "randperm", "uniform", "normal", "exponential", "bernoulli", "multinomial", "rand_like", "randn_like",
    "randint_like",
]




def _drawn(name, generator, size, dtype, draw, *args):
    """A tensor filled by ``draw(stream, tensor, *args)``; inside vmap each example has its own numbers if they are to be different."""
    stream = _stream(name, generator)
    levels = batching.differing(name)
    out = fill.empty(name, (*[n for _, n in levels], *size), dtype)
    draw(stream, out, *args)
    for level, _ in levels:
        out = batching.make_batched(out, level)
    return out


def _stream(name, generator):
    if generator is None:
        return default_generator().stream
    if not isinstance(generator, Generator):
        raise TypeError(f"{name}: generator must be a cgrad.Generator, got {type(generator).__name__}")
    return generator.stream


def _floating(name, dtype):
    if dtype is None:
        return None
    dtype = as_dtype(dtype)
    if not dtype.is_floating_point:
        raise TypeError(f"{name}: dtype must be a floating one, got {dtype.name}")
    return dtype


def _number(name, what, value):
    if isinstance(value, (Tensor, np.ndarray)):
        if is_followed(value):
            raise TypeError(f"{name}: {what} would leave the graph here; scale what is drawn: low + (high - low) * rand(n), mean + std * randn(n)")
        value = value.item()
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name}: {what} must be a number, got {value!r}") from None


# ------------------------------------------------------------------------------------------------------------------ of a size
def rand(*lengths, shape=None, size=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Uniform random numbers in [0, 1).

    Parameters
    ----------
    *lengths : int, or one tuple of int
        The shape; `shape` and `size` are keywords for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        A floating one; the default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        1 itself never appears, in float32 neither: the numbers are multiples of 2**-24 (float64: 2**-53).

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.rand(2, 3).shape
    (2, 3)
    """
    if device is not None:
        check_device("rand", device)
    out = _drawn("rand", generator, read_size("rand", lengths, shape, size), _floating("rand", dtype), Stream.uniform, 0.0, 1.0)
    return finish(out, requires_grad)


def randn(*lengths, shape=None, size=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Random numbers of the standard normal distribution.

    Parameters
    ----------
    *lengths : int, or one tuple of int
        The shape; `shape` and `size` are keywords for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        A floating one; the default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative length, or more elements than can be addressed.

    Notes
    -----
    Marsaglia and Tsang, "The ziggurat method for generating random variables", J. Stat. Softw. 5 (2000).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.randn(2, 3).shape
    (2, 3)
    """
    if device is not None:
        check_device("randn", device)
    out = _drawn("randn", generator, read_size("randn", lengths, shape, size), _floating("randn", dtype), Stream.normal, 0.0, 1.0)
    return finish(out, requires_grad)


def randint(low, high=None, size=None, *, shape=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Random integers from `low` up to but not including `high`.

    Parameters
    ----------
    low : int
        Smallest integer; with two arguments, ``randint(high, size)``, it is 0.
    high : int
        One above the largest.
    size : int or tuple of int
        The shape; `shape` is a keyword for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, default int64
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result (floating dtypes only).

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        `low` is not below `high`, or the dtype cannot hold the range.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.randint(0, 10, (3,))
    >>> bool((x >= 0).all() and (x < 10).all())
    True
    """
    if device is not None:
        check_device("randint", device)
    size = shape if size is None else size
    if isinstance(high, (tuple, list)) and size is None:
        high, size = None, high
    if high is None:
        low, high = 0, low
    return _integers("randint", low, high, read_size("randint", () if size is None else (size,)),
                     as_dtype("int64") if dtype is None else as_dtype(dtype), generator, requires_grad)


_WHOLE = {"bfloat16": 1 << 8, "float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53}      # below are all integers


def _integers(name, low, high, size, dtype, generator, requires_grad):
    low, high = length(name, low), length(name, high)
    if low >= high:
        raise ValueError(f"{name}: low must be below high, got {low} and {high}")
    least, most = dtype.limits or (-_WHOLE[dtype.name], _WHOLE[dtype.name])
    if low < least or high - 1 > most:
        raise ValueError(f"{name}: {dtype.name} cannot hold all integers from {low} to {high - 1}")
    return finish(_drawn(name, generator, size, dtype, Stream.integers, low % (1 << 64), (high - 1) % (1 << 64)), requires_grad)


def randperm(n, *, generator=None, dtype=None, device=None, requires_grad=False):
    """
    The integers 0 to n-1 in random order.

    Parameters
    ----------
    n : int
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, default int64
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result (floating dtypes only).

    Returns
    -------
    Tensor
        1-d.

    Raises
    ------
    ValueError
        A negative `n`.

    Notes
    -----
    Fisher and Yates' shuffle: all orders are equally likely.

    Examples
    --------
    >>> import cgrad as cg
    >>> sorted(cg.randperm(4).tolist())
    [0, 1, 2, 3]
    """
    if device is not None:
        check_device("randperm", device)
    out = _drawn("randperm", generator, (length("randperm", n),), "int64", _permutations)
    return finish(out if dtype is None else out.astype(dtype), requires_grad)


def _permutations(stream, out):
    for row in out.reshape(-1, out.shape[-1]) if out.ndim > 1 else (out,):
        stream.permutation(row)


def uniform(low=0.0, high=1.0, size=(), *, shape=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Uniform random numbers in [low, high).

    Parameters
    ----------
    low, high : number
    size : int or tuple of int, default ()
        The shape; `shape` is a keyword for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        A floating one; the default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        `low` above `high`, or bounds that are not finite.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.uniform(-1, 1, (2,)).shape
    (2,)
    """
    if device is not None:
        check_device("uniform", device)
    low, high = _bounds("uniform", low, high)
    out = _drawn("uniform", generator, read_size("uniform", (size if shape is None else shape,)), _floating("uniform", dtype), Stream.uniform, low, high)
    return finish(out, requires_grad)


def _bounds(name, low, high):
    low, high = _number(name, "low", low), _number(name, "high", high)
    if not low <= high or high - low == float("inf"):
        raise ValueError(f"{name}: low must be at most high and both finite, got {low} and {high}")
    return low, high


def normal(mean=0.0, std=1.0, size=None, *, shape=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Normally distributed random numbers.

    Parameters
    ----------
    mean, std : number or Tensor
        Tensors broadcast against each other and against `size`.
    size : int or tuple of int, optional
        The shape; by default the broadcast shape of `mean` and `std`.  `shape` is a keyword for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        A floating one; the default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        A negative `std`.

    Notes
    -----
    With Tensors the result is ``mean + std * randn(...)``, and gradients flow to both (the reparametrisation trick).

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.normal(0.0, 2.0, (3,)).shape
    (3,)
    """
    if device is not None:
        check_device("normal", device)
    size = shape if size is None else size
    if not isinstance(mean, (Tensor, np.ndarray)) and not isinstance(std, (Tensor, np.ndarray)):
        mean, std = _number("normal", "mean", mean), _number("normal", "std", std)
        if not std >= 0:
            raise ValueError(f"normal: std must not be negative, got {std}")
        out = _drawn("normal", generator, read_size("normal", () if size is None else (size,)), _floating("normal", dtype), Stream.normal, mean, std)
        return finish(out, requires_grad)
    if not batching.is_batched(std) and (bool((std < 0).any()) if isinstance(std, (Tensor, np.ndarray)) else not std >= 0):
        raise ValueError("normal: std must not be negative")
    mean = asarray(mean) if isinstance(mean, np.ndarray) else mean
    std = asarray(std) if isinstance(std, np.ndarray) else std
    tensors = [x for x in (mean, std) if isinstance(x, Tensor)]
    if size is None:
        size = np.broadcast_shapes(*(x.shape for x in tensors))
    if dtype is None:
        dtype = tensors[0].dtype if tensors[0].dtype.is_floating_point else None
    return finish(randn(read_size("normal", (size,)), generator=generator, dtype=dtype) * std + mean, requires_grad)


def exponential(rate=1.0, size=(), *, shape=None, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Exponentially distributed random numbers.

    Parameters
    ----------
    rate : number, default 1
        The mean is ``1 / rate``.
    size : int or tuple of int, default ()
        The shape; `shape` is a keyword for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        A floating one; the default float if left out.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        `rate` is not positive.

    Examples
    --------
    >>> import cgrad as cg
    >>> bool((cg.exponential(2.0, (5,)) >= 0).all())
    True
    """
    if device is not None:
        check_device("exponential", device)
    rate = _positive("exponential", rate)
    out = _drawn("exponential", generator, read_size("exponential", (size if shape is None else shape,)), _floating("exponential", dtype),
                 Stream.exponential, rate)
    return finish(out, requires_grad)


def _positive(name, rate):
    rate = _number(name, "rate", rate)
    if not 0 < rate < float("inf"):
        raise ValueError(f"{name}: rate must be positive and finite, got {rate}")
    return rate


def bernoulli(p, size=None, *, shape=None, generator=None, dtype=None, requires_grad=False):
    """
    1 with a given probability, else 0.

    Parameters
    ----------
    p : Tensor, array or number
        Probabilities.
    size : int or tuple of int, optional
        The shape if `p` is a number; `shape` is a keyword for the same.
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        By default that of `p` if it is floating, else the default float.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor
        In the shape of `p` or `size`.

    Raises
    ------
    ValueError
        A probability outside [0, 1].

    Notes
    -----
    No gradient reaches `p`.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.bernoulli(cg.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    p = like(p).detach()
    if dtype is None:
        dtype = p.dtype if p.dtype.is_floating_point else get_default_dtype()
    size = shape if size is None else size
    size = p.shape if size is None else read_size("bernoulli", (size,))
    if batching.is_batched(p):
        out = (rand(size, generator=generator, dtype="float64") < p).astype(dtype)
    else:
        out = _drawn("bernoulli", generator, size, dtype, _coins, p)
    return finish(out, requires_grad)


def _coins(stream, out, p):
    stream.bernoulli(out, p if p.numel() == 1 or p.shape == out.shape else p.broadcast_to(out.shape))


def multinomial(weights, num_samples, replacement=False, *, generator=None):
    """
    Indices drawn with chances proportional to weights.

    Parameters
    ----------
    weights : Tensor
        Shape (m,) or (rows, m); not negative, they need not sum to 1.
    num_samples : int
        How many indices for each row.
    replacement : bool, default False
        Whether an index may be drawn again.
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        int64, shape (num_samples,) or (rows, num_samples).

    Raises
    ------
    ValueError
        Negative or infinite weights, a row without positive ones, or too many samples without replacement.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.multinomial(cg.tensor([0.0, 1.0]), 3, replacement=True)
    tensor([1, 1, 1])
    """
    weights = like(weights).detach()
    if weights.ndim not in (1, 2):
        raise ValueError(f"multinomial: weights must have 1 or 2 axes, got shape {weights.shape}")
    n = length("multinomial", num_samples)
    if batching.is_batched(weights) or batching.differing("multinomial"):
        raise RuntimeError("multinomial: not inside vmap with weights or draws that differ between the examples; give it all weights as rows, outside")
    rows = weights.reshape(1, -1) if weights.ndim == 1 else weights
    out = _drawn("multinomial", generator, (rows.shape[0], n), "int64", Stream.multinomial, rows, bool(replacement))
    return out.reshape(n) if weights.ndim == 1 else out


# ------------------------------------------------------------------------------------------------------------------ like another
def rand_like(x, *, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Uniform random numbers in [0, 1), in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        Instead of that of `x`; a floating one.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.rand_like(cg.zeros(2, 3)).shape
    (2, 3)
    """
    x = like(x)
    return rand(x.shape, generator=generator, dtype=x.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


def randn_like(x, *, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Random numbers of the standard normal distribution, in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        Instead of that of `x`; a floating one.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.randn_like(cg.zeros(2, 3)).shape
    (2, 3)
    """
    x = like(x)
    return randn(x.shape, generator=generator, dtype=x.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


def randint_like(x, low, high=None, *, generator=None, dtype=None, device=None, requires_grad=False):
    """
    Random integers from `low` up to but not including `high`, in the shape and dtype of another tensor.

    Parameters
    ----------
    x : Tensor or array
    low : int
        Smallest integer; alone, it is `high`, and the smallest is 0.
    high : int, optional
    generator : Generator, optional
        Instead of the default one.
    dtype : DType, optional
        Instead of that of `x`.
    device : {"cpu", None}
        Accepted for compatibility.
    requires_grad : bool, default False
        Record what is computed from the result (floating dtypes only).

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.randint_like(cg.zeros(2, 3), 5).shape
    (2, 3)
    """
    x = like(x)
    return randint(low, high, x.shape if high is not None else None, shape=x.shape, generator=generator,
                   dtype=x.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad)


# ------------------------------------------------------------------------------------------------------------------ in place
def _draw_into(name, x, draw):
    """Fill `x` by ``draw(tensor)``; while it is recorded, through `copy_`, so that its history ends here."""
    check_inplace_target(x, name)
    if batching.is_batched(x) or batching.differing(name):
        return x.copy_(_drawn(name, None, x.shape, x.dtype, lambda _, out: draw(out)))
    if x.requires_grad and is_grad_enabled():
        fresh = fill.empty(name, x.shape, x.dtype)
        draw(fresh)
        return x.copy_(fresh)
    draw(x)
    return x


def uniform_(x, low=0.0, high=1.0, *, generator=None):
    """
    Write uniform random numbers in [low, high) into every element.

    Parameters
    ----------
    low, high : number
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3).uniform_(-1, 1).shape
    (2, 3)
    """
    low, high = _bounds("uniform_", low, high)
    stream = _stream("uniform_", generator)
    return _draw_into("uniform_", x, lambda out: stream.uniform(out, low, high))


def normal_(x, mean=0.0, std=1.0, *, generator=None):
    """
    Write normally distributed random numbers into every element.

    Parameters
    ----------
    mean, std : number
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3).normal_(0, 0.1).shape
    (2, 3)
    """
    mean, std = _number("normal_", "mean", mean), _number("normal_", "std", std)
    if not std >= 0:
        raise ValueError(f"normal_: std must not be negative, got {std}")
    stream = _stream("normal_", generator)
    return _draw_into("normal_", x, lambda out: stream.normal(out, mean, std))


def exponential_(x, rate=1.0, *, generator=None):
    """
    Write exponentially distributed random numbers into every element.

    Parameters
    ----------
    rate : number, default 1
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2, 3).exponential_().shape
    (2, 3)
    """
    rate = _positive("exponential_", rate)
    stream = _stream("exponential_", generator)
    return _draw_into("exponential_", x, lambda out: stream.exponential(out, rate))


def bernoulli_(x, p=0.5, *, generator=None):
    """
    Write 1 with a given probability, else 0, into every element.

    Parameters
    ----------
    p : Tensor or number, default 0.5
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.zeros(2).bernoulli_(1.0)
    tensor([1., 1.])
    """
    p = like(p).detach()
    if p.numel() != 1 and p.shape != x.shape:
        p = p.broadcast_to(x.shape)
    stream = _stream("bernoulli_", generator)
    return _draw_into("bernoulli_", x, lambda out: stream.bernoulli(out, p))


def random_(x, low, high=None, *, generator=None):
    """
    Write random integers from `low` up to but not including `high` into every element.

    Parameters
    ----------
    low : int
        Smallest integer; alone, it is `high`, and the smallest is 0.
    high : int, optional
    generator : Generator, optional
        Instead of the default one.

    Returns
    -------
    Tensor
        The tensor itself.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.empty(3, dtype=cg.long).random_(1)
    tensor([0, 0, 0])
    """
    low, high = (0, low) if high is None else (low, high)
    return x.copy_(_integers("random_", low, high, x.shape, x.dtype, generator, False))


for _name in ("rand", "randn", "randint", "randperm", "uniform", "normal", "exponential", "bernoulli", "multinomial", "rand_like",
              "randn_like", "randint_like"):
    publish(_name, globals()[_name], method=False)
for _function in (uniform_, normal_, exponential_, bernoulli_, random_, bernoulli, multinomial):
    as_method(_function)
