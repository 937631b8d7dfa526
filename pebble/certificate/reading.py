"""Reading a certificate that nobody vouches for: strict JSON of bounded size and depth, no floats, exact types; and
the files beside it, named by their hash and of bounded size, with the compact tables in them.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from collections.abc import Collection, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

MAX_FILE_BYTES = 32 * 2**20
MAX_DEPTH = 24
MAX_DIGITS = 60
MAX_FRACTION_DIGITS = 1200
MAX_COUNT = 10**40

# an unclosed text ends with the file: if it did not match, each quote in it would be looked at again
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_FRACTION = re.compile(r"(0|[1-9][0-9]*)(?:/([1-9][0-9]*))?")
_SHOWN = 60


class RefusedError(Exception):
    """The certificate proves nothing: the first step that fails, and why. All that reads or checks here raises it.

    Attributes
    ----------
    step : str
        Where in the certificate, such as ``claims[0].proof.shares[1]``.
    why : str
        What is wrong there.
    """

    def __init__(self, step: str, why: str) -> None:
        super().__init__(f"{step}: {why}")
        self.step = step
        self.why = why


class UnreadableError(RefusedError):
    """The file is no document at all: empty, or not JSON."""


def show(value: object) -> str:
    """A value in a message, cut short and without control characters."""
    text = repr(value) if not isinstance(value, int) or abs(value) < MAX_COUNT else "a number of more than 40 digits"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def without_texts(content: bytes) -> bytes:
    """A JSON file's bytes outside its texts, in one pass: not even an unclosed text is left."""
    return _STRINGS.sub(b"", content)


def parse(content: bytes) -> Any:
    """JSON without floats, without repeated keys, not nested deeply.

    Raises
    ------
    UnreadableError
        Not JSON.
    RefusedError
        Anything else.

    Notes
    -----
    Time and memory O(size); nesting is measured before the parser sees the text.
    """
    if len(content) > MAX_FILE_BYTES:
        raise RefusedError("file", f"it is larger than {MAX_FILE_BYTES // 2**20} MiB, too large for a certificate")
    depth = deepest = 0
    for bracket in re.finditer(rb"[\[\]{}]", without_texts(content)):
        depth += 1 if bracket[0] in b"[{" else -1
        deepest = max(deepest, depth)
        if deepest > MAX_DEPTH:
            raise RefusedError("file", f"it is nested more than {MAX_DEPTH} deep")
    try:
        return json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=_int,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except UnicodeDecodeError:
        raise UnreadableError("file", "got bytes that are not UTF-8 text, expected JSON") from None
    except json.JSONDecodeError as error:
        raise UnreadableError("file", f"not JSON, line {error.lineno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise UnreadableError("file", "not JSON that can be read") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise RefusedError("file", "a key occurs twice in one object")
    return result


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise RefusedError("file", f"got a number of {len(text)} digits, expected at most {MAX_DIGITS}")
    return int(text)


def _no_float(text: str) -> NoReturn:
    raise RefusedError("file", f"got the number {show(text)}, expected whole numbers and fractions in quotes only")


def fields(value: Any, at: str, required: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """An object with exactly these keys."""
    if type(value) is not dict:
        raise RefusedError(at, f"got {show(value)}, expected an object")
    for key in required:
        if key not in value:
            raise RefusedError(at, f"{key!r} is missing")
    for key in value:
        if key not in required and key not in optional:
            raise RefusedError(at, f"got the key {show(key)}, which nothing here has")
    return value


def integer(value: Any, at: str, low: int = 0, high: int = MAX_COUNT) -> int:
    """A whole number in a range."""
    if type(value) is not int or not low <= value <= high:
        most = "" if high == MAX_COUNT else f" and at most {high}"
        raise RefusedError(at, f"got {show(value)}, expected a whole number of at least {low}{most}")
    return value


def tagged(value: Any, at: str, key: str, among: Collection[str]) -> str:
    """Which one of some words an object has under a key."""
    if type(value) is not dict:
        raise RefusedError(at, f"got {show(value)}, expected an object")
    return choice(value.get(key), f"{at}.{key}", among)


def flag(value: Any, at: str) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise RefusedError(at, f"got {show(value)}, expected true or false")
    return value


def choice(value: Any, at: str, among: Collection[str]) -> str:
    """One of some words."""
    if type(value) is not str or value not in among:
        raise RefusedError(at, f"got {show(value)}, expected one of {', '.join(among)}")
    return value


def text(value: Any, at: str, longest: int = 200) -> str:
    """A short text."""
    if type(value) is not str or len(value) > longest:
        raise RefusedError(at, f"got {show(value)}, expected a text of at most {longest} characters")
    return value


def array(value: Any, at: str, least: int = 0, most: int = 10**6) -> list[Any]:
    """A list with so many entries."""
    if type(value) is not list or not least <= len(value) <= most:
        got = f"{len(value)} entries" if type(value) is list else show(value)
        raise RefusedError(at, f"got {got}, expected a list of {least} to {most} entries")
    return value


def fraction(value: Any, at: str, signed: bool = False) -> Fraction:
    """``"3"`` or ``"22/7"``: a fraction in quotes, at least 0 unless ``signed``."""
    match = None
    if type(value) is str and len(value) <= MAX_FRACTION_DIGITS:
        match = _FRACTION.fullmatch(value[1:] if signed and value.startswith("-") else value)
    if match is None:
        raise RefusedError(at, f'got {show(value)}, expected a fraction in quotes, such as "22/7"')
    number = Fraction(int(match[1]), int(match[2] or 1))
    return -number if value.startswith("-") else number


def equal(claimed: object, result: object, at: str, what: str) -> None:
    """Refuse a number that is not what the steps give; true is not 1."""
    if type(claimed) is not type(result) or claimed != result:
        raise RefusedError(at, f"{what}: the certificate says {show(claimed)}, the steps give {show(result)}")


MAX_PACKED_BYTES = 256 * 2**20
MAX_BYTES = 768 * 2**20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def referenced(folder: Path | None, value: dict[str, Any], most: int, at: str) -> bytes:
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
    packed = referenced(folder, value, MAX_PACKED_BYTES, at)
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
