"""The safetensors format: the package safetensors writes files and checks them; here the tensors are mapped or read.

A file is 8 bytes (the length of the header, little-endian), the header (JSON: dtype, shape and place of each tensor, and texts under
``__metadata__``), and the elements.  Next: `npz.py`, which needs no other package.
"""
from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable
from io import BytesIO
from typing import IO, Any

import numpy as np

from cgrad.core.dtype import as_dtype
from cgrad.core.tensor import Tensor
from cgrad.files.elements import as_array, as_tensor, read_tensor

__all__ = ["read", "write"]

_STRUCTURE = "cgrad"                        # its name among the texts
_DTYPES = {"BOOL": "bool", "U8": "uint8", "U16": "uint16", "U32": "uint32", "U64": "uint64", "I8": "int8", "I16": "int16", "I32": "int32",
           "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def write(file: str | IO[bytes], tensors: dict[str, Tensor], structure: str) -> None:
    """Write a file by its path, or into an open one."""
    library = _library()
    arrays = {name: np.asarray(as_array(x), order="C") for name, x in tensors.items()}      # alive while the library reads their memory
    specs = {name: library.TensorSpec(dtype=x.dtype.name, shape=x.shape, data_ptr=arrays[name].ctypes.data, data_len=arrays[name].nbytes)
             for name, x in tensors.items()}
    try:
        if isinstance(file, str):
            library.serialize_file(specs, file, {_STRUCTURE: structure})
        else:
            file.write(library.serialize(specs, {_STRUCTURE: structure}))
    except library.SafetensorError as error:
        raise OSError(f"save: {error}") from None


def read(file: IO[bytes], path: str | None, mapped: bool) -> tuple[str | None, list[str], Callable[[str], Tensor]]:
    """The structure (None in a file of another program), the names of the tensors, and a function that reads one."""
    length = int.from_bytes(file.read(8), "little")
    try:
        _library_checks(file, path)
    except ValueError as error:
        raise ValueError(f"no valid safetensors file: {error}{_suspect(file, length)}") from None
    header = json.loads(file.read(length), object_pairs_hook=_unique)
    texts = header.pop("__metadata__", None) or {}
    if mapped and path is None:
        raise ValueError("mmap=True needs a file by its path")
    memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None

    def fetch(name: str) -> Tensor:
        entry = header[name]
        shape, start = tuple(entry["shape"]), 8 + length + entry["data_offsets"][0]
        try:
            if entry["dtype"] not in _DTYPES:
                raise ValueError(f"dtype {entry['dtype']}, which cgrad does not have")
            dtype = as_dtype(_DTYPES[entry["dtype"]])
            if memory is not None:
                array = np.ndarray(shape, dtype.name.replace("bfloat16", "uint16"), buffer=memory, offset=start)
                return as_tensor(array, dtype)
            file.seek(start)
            return read_tensor(file, shape, dtype)
        except (ValueError, TypeError) as error:
            raise ValueError(f"tensor {name!r}: {error}") from None

    return texts.get(_STRUCTURE), list(header), fetch


def _library() -> Any:
    try:
        import safetensors
    except ImportError:
        raise ImportError("files of the format safetensors need the package of that name: pip install safetensors; "
                          "npz files need NumPy alone") from None
    return safetensors


def _library_checks(file: IO[bytes], path: str | None) -> None:
    """Lengths, JSON, dtypes, shapes and places: they fill the file without a gap and without overlapping."""
    library = _library()
    try:
        if path is None:
            assert isinstance(file, BytesIO)
            library.deserialize(file.getvalue())
        else:
            with library.safe_open(path, framework="numpy"):
                pass
    except library.SafetensorError as error:
        raise ValueError(str(error).removeprefix("Error while deserializing header: ").removeprefix("Error while deserializing: ")) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; of two entries with one name the package would take the last."""
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError(f"no valid safetensors file: {next(key for i, (key, _) in enumerate(pairs) if key in dict(pairs[:i]))!r} appears twice")
    return out


def _suspect(file: IO[bytes], length: int) -> str:
    """The first tensor whose place does not fit its shape and dtype, as an addition to the message of an error."""
    size = file.seek(0, 2)
    file.seek(8)
    try:
        for name, entry in json.loads(file.read(min(length, size))).items():
            begin, end = entry["data_offsets"] if name != "__metadata__" else (0, 0)
            if not 0 <= begin <= end <= size - 8 - length:
                return f"; tensor {name!r} lies at {begin} to {end} of {size - 8 - length} bytes"
            nbytes = math.prod(entry["shape"]) * as_dtype(_DTYPES[entry["dtype"]]).itemsize if name != "__metadata__" else 0
            if nbytes != end - begin:
                return f"; tensor {name!r} of shape {entry['shape']} and dtype {entry['dtype']} has {end - begin} bytes"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass                                # the header itself is wrong, which the message tells
    return ""
