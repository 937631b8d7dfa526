"""A compact table beside a certificate: named by its hash, read as a stream, of bounded size."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .reading import RefusedError, fields, integer, text

MAX_PACKED_BYTES = 256 * 2**20
MAX_BYTES = 768 * 2**20
_CHUNK = 1 << 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def records(folder: Path | None, value: Any, magic: bytes, size: int, at: str) -> Iterator[bytes]:
    """The records of a side file, after its hash has been checked.

    Parameters
    ----------
    folder : Path
        Where the certificate is.
    value : object
        ``file``, ``sha256`` and ``records``.
    magic : bytes
        What the unpacked file starts with.
    size : int
        Bytes of a record.
    """
    fields(value, at, ("file", "sha256", "records"))
    count = integer(value["records"], f"{at}.records", 1, MAX_BYTES // size)
    name = text(value["file"], f"{at}.file")
    if folder is None or _NAME.fullmatch(name) is None or not (folder / name).is_file():
        raise RefusedError(f"{at}.file", "expected the name of a file beside the certificate")
    path = folder / name
    if path.stat().st_size > MAX_PACKED_BYTES:
        raise RefusedError(f"{at}.file", "it is too large for a table")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != value["sha256"]:
        raise RefusedError(f"{at}.sha256", "the file has another hash")
    unpacked = _unpack(path, len(magic) + count * size, at)
    head = b""
    while len(head) < len(magic):
        head += next(unpacked)
    if head[: len(magic)] != magic:
        raise RefusedError(f"{at}.file", "it is no table of this kind")
    rest = head[len(magic) :]
    for piece in unpacked:
        rest += piece
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            yield rest[start : start + size]
        rest = rest[whole:]
    for start in range(0, len(rest), size):
        yield rest[start : start + size]


def _unpack(path: Path, expected: int, at: str) -> Iterator[bytes]:
    """The unpacked bytes, exactly as many as expected."""
    unpacker = zlib.decompressobj()
    total = 0
    try:
        with path.open("rb") as file:
            data = file.read(_CHUNK)
            while data or unpacker.unconsumed_tail:
                piece = unpacker.decompress(unpacker.unconsumed_tail + data, _CHUNK)
                total += len(piece)
                if total > expected or unpacker.unused_data:
                    raise RefusedError(f"{at}.file", "it holds more than the records announced")
                if piece:
                    yield piece
                data = b"" if unpacker.unconsumed_tail else file.read(_CHUNK)
    except zlib.error:
        raise RefusedError(f"{at}.file", "it cannot be unpacked") from None
    if total != expected or not unpacker.eof:
        raise RefusedError(f"{at}.file", "it holds less than the records announced")
