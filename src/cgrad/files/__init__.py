"""Saving and loading: nested state in safetensors and npz files.

`structure.py` takes the tensors out of a nested state and puts them back; `safetensors.py` and `npz.py` are the two formats, `atomic.py` how
a file is replaced.  Nothing here runs code from a file: pickles are refused.  Next: `structure.py`.
"""
from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import IO, Any

from cgrad.files import npz, safetensors
from cgrad.files.atomic import replacing
from cgrad.files.elements import NO_PICKLES
from cgrad.files.structure import pack, unpack
from cgrad.ops.define import open_doors

__all__ = ["load", "save"]

_FORMATS = {"safetensors": safetensors, "npz": npz}
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def save(obj: Any, file: str | os.PathLike[str] | IO[bytes], *, format: str | None = None) -> None:
    """Write nested state to a file.

    Parameters
    ----------
    obj : dict, list, tuple, Tensor, numpy.ndarray, NumPy scalar, number, str or None, nested in any way
        Such as a ``state_dict()``, or a dict of the states of a model, an optimizer, a scheduler and a loader.
    file : str, os.PathLike or binary file object
        A file at a path is replaced at once when everything is written: no half file is ever seen under its name.
    format : {"safetensors", "npz"}, optional
        Default: the suffix of the path; safetensors for a file object.

    Raises
    ------
    TypeError
        Something that cannot be saved, with its place in `obj`.
    ValueError
        The suffix tells no format, or the state contains itself.
    ImportError
        A safetensors file without the package safetensors (``pip install safetensors``); npz needs NumPy alone.

    Notes
    -----
    A safetensors file holds the tensors by the path of their keys (``model.weight``), for every program that reads the format, and beside
    them the structure as JSON.  Values are saved, not the wish for gradients.  Tensors that are the same view of the same memory
    (tied weights) are stored once and loaded as one tensor.  Subclasses of dict, list and tuple come back as the plain types.

    Examples
    --------
    >>> import cgrad as cg, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "state.npz")
    >>> cg.save({"step": 3, "w": cg.tensor([1.0, 2.0])}, path)
    >>> cg.load(path)
    {'step': 3, 'w': tensor([1., 2.])}
    """
    path = _path("save", file, "write")
    writer = _FORMATS[_chosen("save", path, format)]
    structure, tensors = pack(obj)
    if path is None:
        writer.write(file, tensors, structure)
    else:
        with replacing(path) as temporary:
            writer.write(temporary, tensors, structure)


def load(file: str | os.PathLike[str] | IO[bytes], *, keys: Iterable[Any] | None = None, format: str | None = None, mmap: bool = False) -> Any:
    """Read what `save` wrote, or any other safetensors or npz file as a dict of tensors.

    Parameters
    ----------
    file : str, os.PathLike or binary file object
    keys : iterable, optional
        Only these keys of the dict that was saved; the tensors of the others are not read.
    format : {"safetensors", "npz"}, optional
        Default: what the first bytes of the file say.
    mmap : bool, default False
        Leave the tensors of a safetensors file where they are and let the system bring in the pages that are used.  Writing to such a
        tensor changes a copy in memory, never the file.  The file may be replaced meanwhile (by `save`, for one) but not be cut
        short, which ends the process at the next read.

    Raises
    ------
    ValueError
        The file is damaged or of another format, with the name of the file and of the tensor.  Pickles (PyTorch's .pt) are never read.
    KeyError
        A key that was not saved.

    Examples
    --------
    >>> import cgrad as cg, io
    >>> file = io.BytesIO()
    >>> cg.save({"epoch": 2, "state": [cg.tensor([1, 2]), (None, 0.5)]}, file, format="npz")
    >>> _ = file.seek(0)
    >>> cg.load(file)
    {'epoch': 2, 'state': [tensor([1, 2]), (None, 0.5)]}
    """
    path = _path("load", file, "read")
    if isinstance(keys, str):
        raise TypeError(f"load: keys must be a list of keys, got the string {keys!r}")
    content = file.read() if path is None else b""      # type: ignore[union-attr]
    if isinstance(content, str):
        raise TypeError("load: the file is open for text; a binary file object is needed, as open(path, 'rb') gives")
    with open(path, "rb") if path is not None else io.BytesIO(content) as opened:
        start, size = opened.read(8), opened.seek(0, os.SEEK_END)
        opened.seek(0)
        if format is None:
            format = "npz" if start[:2] == b"PK" else "safetensors"
        reader = _FORMATS[_chosen("load", path, format)]
        try:
            if start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5") and int.from_bytes(start, "little") > size:
                raise ValueError(f"this is a pickle; {NO_PICKLES}")
            structure, names, fetch = reader.read(opened, path, mmap)
            return unpack(structure, names, fetch, keys)
        except (ValueError, TypeError, KeyError) as error:
            raise type(error)(f"load: {getattr(file, 'name', type(file).__name__) if path is None else path}: {error.args[0]}") from None


def _path(action: str, file: Any, method: str) -> str | None:
    if isinstance(file, (str, os.PathLike)):
        return os.fsdecode(file)
    if not hasattr(file, method):
        raise TypeError(f"{action}: expected a path or a binary file object to {method}, got {type(file).__name__}")
    return None


def _chosen(action: str, path: str | None, format: str | None) -> str:
    suffix = ".safetensors" if path is None else os.path.splitext(path)[1].lower()
    if format is None and suffix in _PICKLES:
        raise ValueError(f"{action}: {path}: the suffix {suffix} is that of pickles; {NO_PICKLES}")
    format = suffix[1:] if format is None else format
    if format not in _FORMATS:
        raise ValueError(f"{action}: no format {format!r}; there are .safetensors and .npz (or format='safetensors', format='npz' with any name)")
    return format


open_doors(globals())
