"""The frame of a ``.ncu-rep``: whether the file is whole, and the command line that made it.

NVIDIA's reader takes what it can of a file that is cut off, and does not give the command line. The frame is simple:
the four bytes NVR and 0, then records of a length (32 bits, little-endian) and a protocol-buffer message. The first is
the file's; each further one heads a block: field 5 is the length of the payload that follows it, field 3 describes the
session, and in that field 11 begins with the command line.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap

MAGIC = b"NVR\0"
_SESSION, _PAYLOAD, _COMMAND = 3, 5, 11
_VARINT, _DOUBLE, _TEXT, _FLOAT = 0, 1, 2, 5


@dataclass(frozen=True)
class Container:
    """What the frame says.

    Attributes
    ----------
    whole : bool
        Every block is there to its end.
    command : str
        The ``ncu`` command line; empty where none was found.
    """

    whole: bool
    command: str = ""

    def option(self, name: str) -> str | None:
        """The value of an option of ncu, such as ``cache-control``; None where it was not given."""
        try:
            words = shlex.split(self.command)
        except ValueError:
            words = self.command.split()
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == f"--{name}":
                return following
            if word.startswith(f"--{name}="):
                return word.partition("=")[2]
        return None


class _BrokenError(Exception):
    """The bytes are no such message."""


def read_container(content: bytes | mmap) -> Container:
    """The frame of a file; one that is damaged is not whole.

    Examples
    --------
    >>> read_container(MAGIC + bytes([2, 0, 0, 0, 8, 7])), read_container(b"NVR").whole
    (Container(whole=True, command=''), False)
    """
    command = ""
    try:
        at = _record(content, len(MAGIC)) if content[: len(MAGIC)] == MAGIC else -1
        while 0 <= at < len(content):
            end = _record(content, at)
            head = content[at + 4 : end]
            payload = 0
            for number, value in _fields(head):
                if number == _PAYLOAD and isinstance(value, int):
                    payload = value
                elif number == _SESSION and isinstance(value, bytes):
                    command = command or _command(value)
            at = end + payload
        return Container(at == len(content), command)
    except _BrokenError:
        return Container(False, command)


def _record(content: bytes | mmap, at: int) -> int:
    """Where a record ends."""
    end = at + 4 + int.from_bytes(content[at : at + 4], "little")
    if at + 4 > len(content) or end > len(content):
        raise _BrokenError
    return end


def _command(session: bytes) -> str:
    for number, value in _fields(session):
        if number == _COMMAND and isinstance(value, bytes):
            result = re.search(rb"[ -~]*\bncu(?:\.exe)?\b[ -~]*", value)
            return result[0].decode("ascii") if result else ""
    return ""


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protocol-buffer message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if kind == _TEXT:
            size, at = _varint(message, at)
        elif kind in (_DOUBLE, _FLOAT):
            size = 8 if kind == _DOUBLE else 4
        else:
            raise _BrokenError
        if at + size > len(message):
            raise _BrokenError
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise _BrokenError
        value |= (message[at] & 127) << shift
        at += 1
        if message[at - 1] < 128:
            return value, at
    raise _BrokenError
