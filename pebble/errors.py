"""The error tree. Every message says what was wrong, what was got, what was expected, how to fix it.

``exit_code`` is what the command line returns when the error reaches it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_OPTION = re.compile(r"`pebble ([^`]*)`|--([a-z][a-z0-9-]*)(?: (\w(?:[\w:.-]*\w)?)(?![\w/'=({]))?")
_PROSE = re.compile("a|alone|and|beside|each|is|it|makes|may|missing|needs|of|once|or|out|says|than|that|to|too|with")
_KEYWORDS = {"accumulate": "accumulators", "from": "least", "to": "most"}  # of options that a call names otherwise
_LISTS = ("machines", "schedules", "workloads")  # commands that list names, and calls of the same name


class _Speech:
    """Whom errors speak to: whoever calls from Python, or, inside of `to_a_terminal`, who typed a command."""

    command = False


@contextmanager
def to_a_terminal() -> Iterator[None]:
    """Errors name options as the command line writes them, ``--cache SIZE``; elsewhere as keywords, ``cache=SIZE``."""
    before, _Speech.command = _Speech.command, True
    try:
        yield
    finally:
        _Speech.command = before


def in_python(sentence: str) -> str:
    """A sentence that names options of the command line, in the words of a call.

    Examples
    --------
    >>> in_python("--time-limit: expected --cache SIZE with it; see `pebble compare --help`.")
    'time_limit: expected cache=SIZE with it; see `help(pebble.compare)`.'
    >>> in_python("--omega: got it with --buffers sm-local, expected --buffers connected; leave it out.")
    "omega: got it with buffers='sm-local', expected buffers='connected'; leave it out."
    """

    def call(result: re.Match[str]) -> str:
        command, option, value = result.groups()
        if option is not None:
            name = _KEYWORDS.get(option, option.replace("-", "_"))
            if value is None or _PROSE.fullmatch(value):
                return name if value is None else f"{name} {value}"
            plain = value.isdigit() or value[0].isupper()  # a number, or what stands for a value
            return f"{name}={value}" if plain else f"{name}={value!r}"
        name, _, rest = command.partition(" ")
        if rest == "--help" and name not in _LISTS:
            return f"`help(pebble.{name})`"
        return f"`pebble.{name}()`" if name in _LISTS and rest in ("", "--help") else result[0]

    return _OPTION.sub(call, sentence)


class PebbleError(Exception):
    """Base of every error that pebble raises on purpose; the command line prints it as one sentence.

    A sentence names options as its reader does: ``--time-limit`` on the command line, ``time_limit`` in Python.

    Examples
    --------
    >>> print(InputError("--time-limit: expected --exact with it; see `pebble compare --help`."))
    time_limit: expected exact with it; see `help(pebble.compare)`.
    """

    exit_code = 2

    def __str__(self) -> str:
        sentence = super().__str__()
        return sentence if _Speech.command else in_python(sentence)

    def __reduce__(self) -> tuple[Any, ...]:
        # by its text and attributes, since the arguments of some errors are not those of Exception
        return _rebuilt, (type(self), self.args), self.__dict__


def _rebuilt(kind: type[PebbleError], arguments: tuple[Any, ...]) -> PebbleError:
    error = kind.__new__(kind)
    error.args = arguments
    return error


class InputError(PebbleError):
    """The input is not usable: wrong unit, wrong range, malformed file."""


class UnknownNameError(InputError):
    """A name that no registry knows; the message offers the nearest ones.

    Parameters
    ----------
    kind : str
        What was looked up, for example ``"schedule"``.
    name : str
        The name that was asked for.
    known : iterable of str
        All valid names.
    where : str
        The command that lists them.
    instead : str
        What it is called here, where that is known.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str, instead: str = "") -> None:
        names = list(known)
        name = name if isinstance(name, str) else repr(name)
        near = difflib.get_close_matches(name[:200].lower(), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the names are listed by `{where}`."
        if instead:
            hint = f"here it is {instead}."
        spec = name if len(name) <= 80 else name[:77] + "..."
        super().__init__(f"unknown {kind} {spec!r}: {hint}")
        self.name = name
        self.nearest = near


def check_text(what: str, value: object, expected: str) -> str:
    """A text, or one clear sentence.

    Parameters
    ----------
    what : str
        What it is, for the message.
    value : object
        What was given.
    expected : str
        An example, or what it should be.

    Raises
    ------
    InputError
        Not a text.
    """
    if not isinstance(value, str):
        raise InputError(f"{what}: got {repr(value)[:80]}, expected {expected}.")
    return value


def check_flag(what: str, value: object) -> bool:
    """True or False, or one clear sentence: a text such as ``"no"`` must not count as true.

    Raises
    ------
    InputError
        Not True or False.
    """
    if not isinstance(value, bool):
        raise InputError(f"{what}: got {repr(value)[:80]}, expected True or False.")
    return value


class InfeasibleError(PebbleError):
    """No schedule exists: the capacity is below the least that works, which the message names."""

    exit_code = 4


class GapOpenError(PebbleError):
    """A proof was asked for and the solver stopped with a gap open.

    Attributes
    ----------
    reason : str
        Where there was no game to solve yet: why it ended.
    seconds : float
        And when.
    """

    exit_code = 3
    reason: str = ""
    seconds: float = 0.0


class VerificationError(PebbleError):
    """A pebbling, schedule or certificate failed its independent check.

    Attributes
    ----------
    refusal : object
        For a certificate: the step that failed, and why.
    """

    exit_code = 5
    refusal: object = None


class IllegalMoveError(VerificationError):
    """A pebbling breaks a rule; names the first move that does.

    Parameters
    ----------
    step : int
        Number of the move, counted from 1; one more than the number of moves when the game ended too early.
    rule : str
        Short name of the broken rule, such as ``"not-blue"`` (see :mod:`pebble.game.referee`).
    node : str
        The value or task that the move names.
    detail : str
        The rest of the sentence: what was done and what the rule asks.
    """

    def __init__(self, step: int, rule: str, node: str, detail: str) -> None:
        super().__init__(f"illegal pebbling at step {step}, node {node!r}, rule {rule}: {detail}.")
        self.step = step
        self.rule = rule
        self.node = node


class SolverDisagreementError(PebbleError):
    """Two solvers proved different optima for one instance: at least one of them is wrong."""

    exit_code = 5
