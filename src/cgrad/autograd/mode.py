"""Switches that say whether operations are recorded: context managers and decorators, per thread."""
from __future__ import annotations

import functools
import inspect
import types

from cgrad.core.tape import is_grad_enabled, swap_grad_enabled

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "is_grad_enabled", "inference_mode"]


class _Mode:
    """A context manager and decorator that sets recording to `self.mode` and restores what was before."""

    def __init__(self):
        self._before = []            # a stack, so that one object may be entered again inside itself

    def __enter__(self):
        self._before.append(swap_grad_enabled(self.mode))
        return self

    def __exit__(self, *exc):
        swap_grad_enabled(self._before.pop())

    def __call__(self, function):
        return _decorate(function, self.mode, type(self).__name__)


class no_grad(_Mode):
    """Do not record operations: inside, results never require gradients.

    Works as a context manager and as a decorator of functions, generators and coroutines, with or without brackets.
    Applies to the calling thread.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> with cg.no_grad():
    ...     y = x * x
    >>> y.requires_grad
    False
    >>> @cg.no_grad
    ... def predict(x):
    ...     return x * x
    >>> predict(x).requires_grad
    False
    """

    mode = False

    def __new__(cls, function=None):
        return super().__new__(cls) if function is None else cls()(function)


class enable_grad(_Mode):
    """Record operations, also inside `no_grad`; a context manager and decorator like it.

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> with cg.no_grad():
    ...     with cg.enable_grad():
    ...         y = x * x
    >>> y.requires_grad
    True
    """

    mode = True

    def __new__(cls, function=None):
        return super().__new__(cls) if function is None else cls()(function)


class inference_mode(_Mode):
    """PyTorch's other word for `no_grad`; with False, for `enable_grad`.

    Parameters
    ----------
    mode : bool, default True

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> with cg.inference_mode():
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __new__(cls, mode=True):
        return super().__new__(cls) if not callable(mode) else cls()(mode)

    def __init__(self, mode=True):
        super().__init__()
        self.mode = not mode


class set_grad_enabled(_Mode):
    """Set at once whether operations are recorded; as a context manager, until its end.

    Parameters
    ----------
    mode : bool

    Examples
    --------
    >>> import cgrad as cg
    >>> x = cg.tensor(2.0, requires_grad=True)
    >>> with cg.set_grad_enabled(False):
    ...     y = x * x
    >>> y.requires_grad
    False
    """

    def __init__(self, mode):
        super().__init__()
        self.mode = bool(mode)
        self._first = swap_grad_enabled(self.mode)
        self._fresh = True

    def __enter__(self):
        if self._fresh:              # the switch was made on construction; leave what was there before it
            self._fresh = False
            self._before.append(self._first)
            swap_grad_enabled(self.mode)
            return self
        return super().__enter__()

    def __call__(self, function):
        swap_grad_enabled(self._first)      # decorating alone changes nothing
        return super().__call__(function)


def _decorate(function, mode, name):
    if inspect.isclass(function):
        raise TypeError(f"{name}: decorate functions or methods; for the class {function.__name__}, decorate the methods that need it")
    if not callable(function):
        raise TypeError(f"{name}: only functions can be decorated, got {type(function).__name__}")
    if inspect.isasyncgenfunction(function):
        raise TypeError(f"{name}: the async generator {function.__name__} cannot be decorated; use the context manager inside it")
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def generator(*args, **kwargs):
            return (yield from _in_steps(function(*args, **kwargs), mode))
        return generator
    if inspect.iscoroutinefunction(function):
        steps = types.coroutine(_in_steps)

        @functools.wraps(function)
        async def coroutine(*args, **kwargs):
            return await steps(function(*args, **kwargs), mode)
        return coroutine

    @functools.wraps(function)
    def decorated(*args, **kwargs):
        before = swap_grad_enabled(mode)
        try:
            return function(*args, **kwargs)
        finally:
            swap_grad_enabled(before)
    return decorated


def _in_steps(inner, mode):
    """Run a generator or coroutine with recording set to `mode`, but only while it runs, not while its user does."""
    resume, value = inner.send, None
    while True:
        before = swap_grad_enabled(mode)
        try:
            out = resume(value)
        except StopIteration as stop:
            return stop.value
        finally:
            swap_grad_enabled(before)
        try:
            resume, value = inner.send, (yield out)
        except GeneratorExit:
            before = swap_grad_enabled(mode)
            try:
                inner.close()
            finally:
                swap_grad_enabled(before)
            raise
        except BaseException as error:
            resume, value = inner.throw, error
