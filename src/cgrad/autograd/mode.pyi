"""Types of autograd/mode.py: the decorators keep the type of what they decorate."""
from collections.abc import Callable
from typing import Any, Self, TypeVar, overload

from cgrad.core.tape import is_grad_enabled as is_grad_enabled

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled"]

class _Mode:
    mode: bool
    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def __call__(self, function: _F) -> _F: ...

class no_grad(_Mode):
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]

class enable_grad(_Mode):
    @overload
    def __new__(cls, function: None = None) -> Self: ...
    @overload
    def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]

class inference_mode(_Mode):
    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]
    def __init__(self, mode: bool = True) -> None: ...

class set_grad_enabled(_Mode):
    def __init__(self, mode: bool) -> None: ...
