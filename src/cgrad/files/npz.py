"""The npz format: a zip file of arrays in NumPy's format, read and written with NumPy alone and without pickles.

The structure is one more array, of bytes.  Sizes are compared before anything is allocated.  On a damaged file, zipfile and NumPy's reader
of headers raise errors of a dozen types, which all become ValueError here.
"""
from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Callable
from typing import IO

import numpy as np
from numpy.lib import format as npy

from cgrad.core.dtype import as_dtype, bfloat16, uint16
from cgrad.core.tensor import Tensor
from cgrad.files.elements import NO_PICKLES, as_array, as_tensor, read_tensor

__all__ = ["read", "write"]

_STRUCTURE = "__cgrad__"                    # the name of its array
_SMALL = 1 << 30                            # unpacked bytes that any file may have; beyond, no more than 100 times those of the file


def write(file: str | IO[bytes], tensors: dict[str, Tensor], structure: str) -> None:
    """Write a file by its path, or into an open one."""
    halves = [name for name, x in tensors.items() if x.dtype is bfloat16]
    about = json.dumps({"structure": structure, "bfloat16": halves}).encode()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in ((_STRUCTURE, np.frombuffer(about, np.uint8)), *((name, as_array(x)) for name, x in tensors.items())):
            with archive.open(name + ".npy", "w", force_zip64=True) as member:
                npy.write_array(member, np.asarray(array, order="C"), allow_pickle=False)


def read(file: IO[bytes], path: str | None, mapped: bool) -> tuple[str | None, list[str], Callable[[str], Tensor]]:
    """The structure (None in a file of another program), the names of the tensors, and a function that reads one."""
    if mapped:
        raise ValueError("mmap=True is for safetensors files; the arrays of an npz file are not aligned")
    try:
        archive = zipfile.ZipFile(file)
        members = archive.infolist()
    except Exception as error:
        raise ValueError(f"no valid npz file: {error}") from None
    file_size, unpacked = file.seek(0, 2), sum(member.file_size for member in members)
    if unpacked > max(_SMALL, 100 * file_size):
        raise ValueError(f"the file has {file_size} bytes and its arrays would take {unpacked}; if that is right, numpy.load reads it")
    by_name: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if name == member.filename:
            torch = "; " + NO_PICKLES if name.endswith("data.pkl") else ""
            raise ValueError(f"no valid npz file: {name!r} is no array{torch}")
        if name in by_name:
            raise ValueError(f"no valid npz file: {name!r} appears twice")
        by_name[name] = member

    def fetch(name: str) -> Tensor:
        try:
            return _read_member(archive, by_name[name])
        except Exception as error:
            raise ValueError(f"array {name!r}: {error}") from None

    beside = by_name.pop(_STRUCTURE, None)
    if beside is None:
        return None, list(by_name), fetch
    try:
        about = json.loads(_read_member(archive, beside).tobytes())
        structure, halves = str(about["structure"]), set(about["bfloat16"])
    except Exception as error:
        raise ValueError(f"the structure beside the arrays cannot be read: {error}") from None

    def fetch_half(name: str) -> Tensor:
        x = fetch(name)
        return as_tensor(as_array(x), bfloat16) if name in halves and x.dtype is uint16 else x

    return structure, list(by_name), fetch_half


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Tensor:
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("neither stored nor deflated")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version} of NumPy's format, which is for records only")
        shape, fortran, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(file)
        if dtype.hasobject:
            raise ValueError(f"Python objects, which only pickle reads; {NO_PICKLES}")
        nbytes = member.file_size - file.tell()
        if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != nbytes:
            raise ValueError(f"shape {shape} and dtype {dtype} do not make the {nbytes} bytes that there are")
        x = read_tensor(file, shape[::-1] if fortran else shape, as_dtype(dtype))
        if not dtype.isnative:
            as_array(x).byteswap(inplace=True)
    return x.permute(tuple(range(x.ndim))[::-1]) if fortran else x
