"""The parameters of a family, of workloads or of DAGs: one table for the command line and for keywords."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

from pebble.errors import InputError, UnknownNameError, check_text

Kind = Literal["count", "counts", "extents", "sizes", "names", "text", "choice", "flag"]
_LONGEST = 400  # digits of a number; how large it may be, the shape says
_MOST_COUNTS = 4096
_THOUSANDS = re.compile(r"(-?[0-9]+)([kK]?)")  # 4k is 4096
_SHOWN = {"count": "N", "counts": "N,N,...", "extents": "NxN...", "choice": "NAME"}
_SHOWN |= {"sizes": "I=N,J=N,...", "names": "NAME,NAME,...", "text": "TEXT"}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a family.

    Attributes
    ----------
    option : str
        As on the command line: ``"--head-dim"``, ``"-m"``.
    kind : str
        ``count`` (a whole number), ``counts`` (whole numbers, ``128,256``), ``extents`` (``2x2x3``), ``sizes``
        (whole numbers by name, ``m=128,k=64``), ``names`` (``A,B``), ``text``, ``choice`` or ``flag``.
    help : str
    required : bool
    choices : tuple of str
        For a choice.
    keyword : str
        What the shape calls it, where that is not the option.
    default : int, optional
        What it is where it is not given and the shape has no default of its own.
    """

    option: str
    kind: Kind
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()
    keyword: str = ""
    default: int | None = None

    @property
    def name(self) -> str:
        """The keyword: ``head_dim``."""
        return self.keyword or self.option.lstrip("-").replace("-", "_")

    @property
    def metavar(self) -> str:
        """What stands for the value in a help text."""
        return _SHOWN.get(self.kind, "")

    def read(self, value: object) -> Any:
        """A value from the command line or from a keyword, checked for its kind.

        Raises
        ------
        InputError
            No value of this kind.
        UnknownNameError
            Not one of the choices.
        """
        if self.kind == "flag":
            if not isinstance(value, bool):
                raise InputError(f"{self.option}: got {str(value)[:40]!r}, expected true or false.")
            return value
        if self.kind == "choice":
            if value not in self.choices:
                raise UnknownNameError(self.option, str(value)[:80], self.choices, "pebble workloads")
            return value
        if self.kind == "count":
            return self._whole(value)
        if self.kind == "text":
            return check_text(self.option, value, "text")
        if self.kind == "sizes":
            return self._sizes(value)
        if self.kind == "names":
            names = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
            if not isinstance(names, Iterable) or not all(isinstance(word, str) and word for word in names):
                raise InputError(f"{self.option}: got {str(value)[:40]!r}, expected names such as A,B.")
            return tuple(names)
        separator, example = ("x", "2x2x3") if self.kind == "extents" else (",", "128,256,64")
        words = value.split(separator) if isinstance(value, str) else value
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise InputError(f"{self.option}: got {value!r}, expected whole numbers such as {example}.")
        numbers = tuple(words)
        if isinstance(value, str) and not all(_THOUSANDS.fullmatch(word.strip()) for word in numbers):
            raise InputError(f"{self.option}: got {value[:40]!r}, expected whole numbers such as {example}.")
        if not 1 <= len(numbers) <= _MOST_COUNTS:
            raise InputError(f"{self.option}: got {len(numbers)} numbers, expected 1 to {_MOST_COUNTS}.")
        least = 0 if self.kind == "counts" else 1  # an expert may get no token
        return tuple(self._whole(word, f"whole numbers such as {example}", least) for word in numbers)

    def _sizes(self, value: object) -> tuple[tuple[str, int], ...]:
        expected = "a whole number for each name, such as m=128,k=64"
        if isinstance(value, str):
            pairs = [(name.strip(), size.strip()) for name, _, size in (w.partition("=") for w in value.split(","))]
            if any(not name or not size for name, size in pairs):
                raise InputError(f"{self.option}: got {value[:60]!r}, expected {expected}.")
        elif isinstance(value, Mapping):
            pairs = list(value.items())
        else:
            raise InputError(f"{self.option}: got {str(value)[:60]!r}, expected {expected}.")
        if len(dict(pairs)) < len(pairs):
            raise InputError(f"{self.option}: got a name twice in {str(value)[:60]!r}, expected {expected}.")
        return tuple((str(name), self._whole(size, expected)) for name, size in pairs)

    def words(self, value: Any) -> list[str]:
        """A value as it is written on the command line, with the option before it."""
        if self.kind == "flag":
            return [self.option] if value else []
        if self.kind == "sizes":
            value = tuple(f"{name}={size}" for name, size in value)
        if isinstance(value, tuple | list):
            value = ("x" if self.kind == "extents" else ",").join(map(str, value))
        return [self.option, str(value)]

    def _whole(self, value: object, expected: str = "a whole number such as 4096", least: int = 1) -> int:
        if isinstance(value, str):
            digits = _THOUSANDS.fullmatch(value.strip())
            if digits is None or len(value) > _LONGEST:
                raise InputError(f"{self.option}: got {value[:40]!r}, expected {expected}.")
            value = int(digits[1]) * (1024 if digits[2] else 1)
        try:
            if isinstance(value, bool) or not isinstance(value, SupportsIndex):
                raise TypeError
            number = operator.index(value)
        except TypeError:
            raise InputError(f"{self.option}: got {value!r}, expected {expected}.") from None
        if number < least:
            raise InputError(f"{self.option}: got {number}, expected a whole number of at least {least}.")
        return number


def needed(**options: str) -> tuple[Parameter, ...]:
    """Required counts: ``needed(m="rows of A")``."""
    return tuple(Parameter(_option(name), "count", text, required=True) for name, text in options.items())


def optional(**options: str) -> tuple[Parameter, ...]:
    """Counts that have a default."""
    return tuple(Parameter(_option(name), "count", text) for name, text in options.items())


def flag(option: str, text: str, keyword: str = "") -> Parameter:
    """A yes or no."""
    return Parameter(option, "flag", text, keyword=keyword)


def _option(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def read_values(owner: str, parameters: Iterable[Parameter], values: Mapping[str, object]) -> dict[str, Any]:
    """The values of a family's parameters, by keyword, each read for its kind; those not given are left out.

    Parameters
    ----------
    owner : str
        Whose parameters they are, for messages.
    parameters : iterable of Parameter
    values : mapping
        By keyword; None and False count as not given.

    Raises
    ------
    InputError
        One is missing, foreign, or malformed.
    UnknownNameError
        Not one of the choices.
    """
    known = {parameter.name: parameter for parameter in parameters}
    named = {name: value for name, value in values.items() if value is not None and value is not False}
    missing = [p.option for p in known.values() if p.required and p.name not in named]
    if missing:
        required = [p for p in known.values() if p.required]
        expected = " ".join(f"{p.option} {'NUMBER' if p.kind == 'count' else p.metavar}" for p in required)
        raise InputError(f"{owner}: {', '.join(missing)} missing, expected {expected}.")
    extra = [_option(name) for name in named if name not in known]
    if extra:
        options = f"only {', '.join(p.option for p in known.values())}" if known else "none"
        raise InputError(f"{owner}: got {' and '.join(sorted(extra))}, expected {options}; leave it out.")
    defaults = {name: p.default for name, p in known.items() if p.default is not None}
    return {name: known[name].read(value) for name, value in (defaults | named).items()}
