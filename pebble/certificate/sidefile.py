"""Files beside a certificate, named by their hash and of bounded size; compact tables in them."""

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
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def beside(folder: Path | None, value: dict[str, Any], most: int, at: str) -> bytes:
    """What a file beside the certificate holds, after its hash has been checked.

    Parameters
    ----------
    folder : Path
        Where the certificate is.
    value : dict
        ``file`` and ``sha256``.
    most : int
        Bytes that are read at the most.
    """
    name = text(value["file"], f"{at}.file")
    if folder is None or _NAME.fullmatch(name) is None or not (folder / name).is_file():
        raise RefusedError(f"{at}.file", "expected the name of a file beside the certificate")
    with (folder / name).open("rb") as file:  # read once: what is hashed is what is used
        content = file.read(most + 1)
    if len(content) > most:
        raise RefusedError(f"{at}.file", "it is too large to be checked")
    if hashlib.sha256(content).hexdigest() != value["sha256"]:
        raise RefusedError(f"{at}.sha256", "the file has another hash")
    return content


def records(folder: Path | None, value: Any, magic: bytes, size: int, most: int, at: str) -> Iterator[bytes]:
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
    most : int
        Records that are read at the most.
    """
    fields(value, at, ("file", "sha256", "records"))
    count = integer(value["records"], f"{at}.records", 1, min(most, MAX_BYTES // size))
    packed = beside(folder, value, MAX_PACKED_BYTES, at)
    expected = len(magic) + count * size
    unpacker = zlib.decompressobj()
    try:
        table = unpacker.decompress(packed, expected + 1)  # never more than that, whatever is packed
    except zlib.error:
        raise RefusedError(f"{at}.file", "it cannot be unpacked") from None
    if len(table) != expected or not unpacker.eof or unpacker.unused_data:
        raise RefusedError(f"{at}.file", "it does not hold exactly the records announced")
    if not table.startswith(magic):
        raise RefusedError(f"{at}.file", "it is no table of this kind")
    for start in range(len(magic), expected, size):
        yield table[start : start + size]
