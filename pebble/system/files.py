"""The files that users name: every fault of a name or a file is one sentence that says which."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pebble.errors import InputError

MAX_BYTES = 256 * 2**20
_LONGEST_SHOWN = 120
_LONGEST_LINE = 2**20


def shown(path: str | Path) -> str:
    """A name for a message: what cannot be printed is escaped, what is long is cut.

    Examples
    --------
    >>> shown("a" * 300) == "a" * 117 + "..."
    True
    """
    text = str(path)
    if not text.isprintable():
        text = ascii(text)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def check_path(what: str, path: object) -> str | Path:
    """A name of a file, or InputError: a number would be taken for an open file."""
    if not isinstance(path, str | Path):
        raise InputError(f"{what}: got {repr(path)[:80]}, expected the name of a file.")
    return path


@contextmanager
def faults(path: str | Path, what: str, verb: str, expected: str = "") -> Iterator[None]:
    """Turn what the system says of a file into an InputError.

    ``what`` stands before the file's name, ``expected`` after the reason; the verb is ``read`` or ``written``.
    """
    try:
        if "\0" in str(path):
            raise InputError(f"{what}{shown(path)}: cannot be {verb}: its name has a null character{expected}.")
        yield
    except OSError as error:
        raise InputError(f"{what}{shown(path)}: cannot be {verb}: {error.strerror or error}{expected}.") from None


def read_bytes(path: str | Path, what: str = "", most: int = MAX_BYTES, expected: str = "") -> bytes:
    """The content of a file; InputError where it cannot be read, or has more than ``most`` bytes."""
    with faults(path, what, "read", expected), open(path, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise InputError(f"{what}{shown(path)}: it is larger than {most // 2**20} MiB, too large{expected}.")
    return content


def parse_toml(content: bytes, path: str | Path, what: str = "", see: str = "") -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and its tables; InputError with the line where it is none.

    ``what`` stands before the file's name, ``see`` says where the format is told.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        label = "cannot be read: it is not UTF-8 text; expected a TOML file"
        raise InputError(f"{what}{shown(path)}: {label}.") from None
    try:
        return text, tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error), re.DOTALL)
        reason = match.group(1) if match else str(error)
        line = int(match.group(2)) if match and match.group(2) else max(1, text.count("\n"))
        raise InputError(f"{path}, line {line}: not TOML: {reason}{see and f'; {see}'}.") from None


def lines_of(file: IO[str], where: str) -> Iterator[str]:
    """The lines of an open text file; InputError, which begins with ``where``, at one too long for a line."""
    number = 0
    while line := file.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise InputError(f"{where}, line {number}: it has {_LONGEST_LINE} characters or more, too many for a line.")
        yield line


def write_bytes(path: str | Path, content: bytes, what: str = "") -> None:
    """Write a file; InputError where it cannot be written."""
    with faults(path, what, "written"), open(path, "wb") as file:
        file.write(content)


def write_text(path: str | Path, text: str, what: str = "") -> None:
    """Write a text in UTF-8; errors as for `write_bytes`."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"), what)


def exists(path: str | Path) -> bool:
    """Whether there is such a file or folder; False for a name that none can have."""
    try:
        return os.path.exists(path)
    except (OSError, ValueError):
        return False


def check_output(path: str | Path, what: str, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a file that could not be written, before any work is done for it.

    InputError: another suffix than those, a folder, or a place where nothing can be written.
    """
    target = Path(path)
    if suffixes and target.suffix.lower() not in suffixes:
        endings = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise InputError(f"{what}: got {shown(path)!r}, expected a name that ends in {endings}.")
    with faults(path, f"{what}: ", "written"):
        folder = target.parent
        if not target.name or target.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(
                f"{what}: {shown(path)!r} cannot be written; expected a file in a writable folder that exists."
            )
        target.exists()  # a name that is too long shows here
