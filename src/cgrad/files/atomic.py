"""Replacing a file at once: after a crash or a kill there is the old file or the new one, never half of one."""
from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Give the name of a temporary file in the same folder; after the block it takes the place of `path`, after an error it is removed."""
    path = os.path.realpath(path)           # through a link, the file behind it
    folder, name = os.path.split(path)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"save: there is no folder {folder}; make it first, as os.makedirs does")
    temporary = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        _to_disk(temporary)                 # before the rename, which may otherwise reach the disk first
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    with contextlib.suppress(OSError):      # not every file system can
        _to_disk(folder)


def _to_disk(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
