"""Types of core/dtype.pyx."""
from typing import Any, Literal

import numpy as np
from typing_extensions import disjoint_base

from cgrad.core.tensor import _DTypeLike

@disjoint_base
class DType:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    name: str
    itemsize: int
    kind: Literal["bool", "unsigned integer", "integer", "floating"]
    is_floating_point: bool
    limits: tuple[int, ...]
    @property
    def is_complex(self) -> bool: ...
    @property
    def is_signed(self) -> bool: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __hash__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

bool_: DType
uint8: DType
uint16: DType
uint32: DType
uint64: DType
int8: DType
int16: DType
int32: DType
int64: DType
float16: DType
bfloat16: DType
float32: DType
float64: DType

def as_dtype(dtype: _DTypeLike) -> DType: ...
def to_numpy_dtype(dtype: _DTypeLike) -> Any: ...
def promote_types(a: _DTypeLike, b: _DTypeLike) -> DType: ...
def get_default_dtype() -> DType: ...
def set_default_dtype(dtype: _DTypeLike) -> None: ...
