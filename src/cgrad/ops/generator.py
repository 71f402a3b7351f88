"""Generators of random numbers, and the state of the process-wide one.

A generator is NumPy's PCG64 with its state within reach.  The default one starts from the operating system's entropy;
`manual_seed` sets it.  Next: random.py.
"""
import contextlib
import operator

import numpy as np

from cgrad.core import convert
from cgrad.core.device import check_device
from cgrad.core.forward.random import Stream
from cgrad.core.tensor import Tensor

__all__ = [
    "Generator", "manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng", "default_generator",
]

_STATE_BYTES = 48


def _seed_number(name, value):
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name}: the seed must be an int, got {value!r}")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: the seed must be an int, got {value!r}") from None
    if not -(1 << 63) <= value < 1 << 64:
        raise ValueError(f"{name}: the seed must fit 64 bits, got {value}")
    return value & ((1 << 64) - 1)


class Generator:
    """
    A stream of random numbers.

    Parameters
    ----------
    seed : int, optional
        64 bits; from the operating system's entropy if left out.
    device : {"cpu", None}
        Accepted for compatibility.

    Examples
    --------
    >>> import cgrad as cg
    >>> g = cg.Generator(7)
    >>> a = cg.rand(3, generator=g)
    >>> bool((cg.rand(3, generator=cg.Generator(7)) == a).all())
    True
    """

    def __init__(self, seed=None, *, device=None):
        if isinstance(seed, str):      # PyTorch's first argument is the device
            seed, device = None, seed
        check_device("Generator", device)
        self._start(None if seed is None else _seed_number("Generator", seed))

    def _start(self, seed):
        from numpy.random import PCG64  # importing numpy.random takes 10 ms, which a program without random numbers saves
        if seed is None:
            import secrets
            seed = secrets.randbits(63)
        self._seed = seed
        self._bits = PCG64(seed)
        self.stream = Stream(self._bits)

    def manual_seed(self, seed):
        """
        Start anew from a seed.

        Parameters
        ----------
        seed : int

        Returns
        -------
        Generator
            Itself.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.Generator().manual_seed(1).initial_seed()
        1
        """
        self._start(_seed_number("manual_seed", seed))
        return self

    def seed(self):
        """
        Start anew from the operating system's entropy.

        Returns
        -------
        int
            The new seed.

        Examples
        --------
        >>> import cgrad as cg
        >>> g = cg.Generator(1)
        >>> g.seed() == g.initial_seed()
        True
        """
        self._start(None)
        return self._seed

    def initial_seed(self):
        """
        The seed that the stream started from.

        Examples
        --------
        >>> import cgrad as cg
        >>> cg.Generator(3).initial_seed()
        3
        """
        return self._seed

    def get_state(self):
        """
        Where the stream is, for `set_state`.

        Returns
        -------
        Tensor
            48 bytes (uint8), which can be saved like any tensor.

        Examples
        --------
        >>> import cgrad as cg
        >>> g = cg.Generator(3)
        >>> state = g.get_state()
        >>> a = cg.rand(2, generator=g)
        >>> g.set_state(state)
        >>> bool((cg.rand(2, generator=g) == a).all())
        True
        """
        state = self._bits.state
        parts = (state["state"]["state"].to_bytes(16, "little"), state["state"]["inc"].to_bytes(16, "little"),
                 state["has_uint32"].to_bytes(4, "little"), state["uinteger"].to_bytes(4, "little"),
                 self._seed.to_bytes(8, "little"))
        return convert.tensor_from(b"".join(parts))

    def set_state(self, state):
        """
        Go back to where the stream was.

        Parameters
        ----------
        state : Tensor
            From `get_state`.

        Raises
        ------
        TypeError, ValueError
            Not such a state; the generator stays as it was.
        """
        if not isinstance(state, Tensor) or state.dtype.name != "uint8":
            raise TypeError("set_state: expected a uint8 tensor made by get_state")
        if state.shape != (_STATE_BYTES,):
            raise ValueError(f"set_state: expected {_STATE_BYTES} bytes made by get_state, got shape {state.shape}")
        data = bytes(state.tolist())
        new = {"bit_generator": "PCG64", "has_uint32": int.from_bytes(data[32:36], "little"),
               "uinteger": int.from_bytes(data[36:40], "little"),
               "state": {"state": int.from_bytes(data[:16], "little"), "inc": int.from_bytes(data[16:32], "little")}}
        if new["state"]["inc"] % 2 == 0 or new["has_uint32"] > 1:
            raise ValueError("set_state: these bytes are not a state made by get_state")
        self._bits.state = new
        self._seed = int.from_bytes(data[40:], "little")

    def __getstate__(self):
        return self.get_state().tolist()

    def __setstate__(self, state):
        self._start(0)
        self.set_state(convert.tensor_from(state, "uint8"))

    def __repr__(self):
        return f"Generator(seed={self._seed})"


_default = None


def default_generator():
    """
    The generator that is used where none is named.

    Returns
    -------
    Generator
        One for each process.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.random.default_generator() is cg.random.default_generator()
    True
    """
    global _default
    if _default is None:
        _default = Generator()
    return _default


def manual_seed(seed):
    """
    Start the default generator from a seed.

    Parameters
    ----------
    seed : int
        64 bits.

    Returns
    -------
    Generator
        The default generator.

    Raises
    ------
    TypeError, ValueError
        Not an int of 64 bits.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.manual_seed(0)
    >>> a = cg.rand(2)
    >>> _ = cg.manual_seed(0)
    >>> bool((cg.rand(2) == a).all())
    True
    """
    return default_generator().manual_seed(seed)


def seed():
    """
    Start the default generator from the operating system's entropy.

    Returns
    -------
    int
        The new seed.

    Examples
    --------
    >>> import cgrad as cg
    >>> cg.seed() == cg.initial_seed()
    True
    """
    return default_generator().seed()


def initial_seed():
    """
    The seed that the default generator started from.

    Returns
    -------
    int

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.manual_seed(3)
    >>> cg.initial_seed()
    3
    """
    return default_generator().initial_seed()


def get_rng_state():
    """
    Where the default generator is.

    Returns
    -------
    Tensor
        For `set_rng_state`.

    Examples
    --------
    >>> import cgrad as cg
    >>> state = cg.random.get_rng_state()
    >>> a = cg.rand(2)
    >>> cg.random.set_rng_state(state)
    >>> bool((cg.rand(2) == a).all())
    True
    """
    return default_generator().get_state()


def set_rng_state(state):
    """
    Take the default generator back to where it was.

    Parameters
    ----------
    state : Tensor
        From `get_rng_state`.

    Raises
    ------
    TypeError, ValueError
        Not such a state.

    Examples
    --------
    >>> import cgrad as cg
    >>> _ = cg.manual_seed(3)
    >>> state, a = cg.get_rng_state(), cg.rand(())
    >>> cg.set_rng_state(state)
    >>> (cg.rand(()) == a).item()
    True
    """
    default_generator().set_state(state)


@contextlib.contextmanager
def fork_rng(seed=None):
    """
    A ``with`` block after which the default generator is where it was before.

    Parameters
    ----------
    seed : int, optional
        Start of the numbers within the block.

    Examples
    --------
    >>> import cgrad as cg
    >>> with cg.random.fork_rng(1):
    ...     a = cg.rand(2)
    """
    generator = default_generator()
    state = generator.get_state()
    try:
        if seed is not None:
            generator.manual_seed(seed)
        yield generator
    finally:
        generator.set_state(state)
