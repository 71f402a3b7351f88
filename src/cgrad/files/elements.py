"""The elements of tensors as bytes, which both formats read and write."""
from __future__ import annotations

from typing import IO, Any

import numpy as np

from cgrad.core import convert
from cgrad.core.dtype import DType, bfloat16, uint16
from cgrad.core.tensor import Tensor
from cgrad.ops.creation import empty

__all__ = ["NO_PICKLES", "as_array", "as_tensor", "read_tensor"]

NO_PICKLES = ("a pickle runs code when it is read, so cgrad neither reads nor writes any; in PyTorch, "
              "safetensors.torch.save_file(model.state_dict(), 'model.safetensors') makes a file for cgrad.load")

_AT_A_TIME = 1 << 20                        # by a buffer in cache: 200 MB take 0.06 s, straight into the memory of tensors 0.7 s


def as_array(x: Tensor) -> np.ndarray[Any, Any]:
    """An array over the memory of a tensor; of uint16 for bfloat16, which NumPy lacks."""
    return convert.numpy(convert.retyped(x, uint16) if x.dtype is bfloat16 else x)


def as_tensor(array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
    """A tensor over the memory of an array where that can be addressed (else a copy), with the dtype that `as_array` may have hidden."""
    x = convert.tensor_from(array, None, None)
    return _checked(convert.retyped(x, dtype) if dtype is bfloat16 else x)


def read_tensor(file: IO[bytes], shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A new tensor, filled from where the file stands."""
    x = empty(shape, dtype=dtype)
    rest = as_array(x).reshape(-1).view(np.uint8)
    buffer = np.empty(min(rest.size, _AT_A_TIME), np.uint8)
    while rest.size:
        n = file.readinto(buffer[:rest.size])      # type: ignore[attr-defined]
        if not n:
            raise ValueError(f"the file ends {rest.size} bytes too early")
        rest[:n] = buffer[:n]
        rest = rest[n:]
    return _checked(x)


def _checked(x: Tensor) -> Tensor:
    """Bytes other than 0 and 1 are no bools: what is computed from them would be wrong without a word."""
    if x.dtype.kind == "bool" and x.size and as_array(x).view(np.uint8).max() > 1:
        raise ValueError("bools must be bytes of 0 and 1, but there are others")
    return x
