"""The error tree. Every message says what was wrong, what was got, what was expected, how to fix it.

``exit_code`` is what the command line returns when the error reaches it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

_OPTION = re.compile(r"`[^`]*`|--([a-z][a-z-]*)")  # outside of commands, which stand in backticks
_KEYWORDS = {"accumulate": "accumulators"}  # of options that a call names otherwise


class PebbleError(Exception):
    """Base of every error that pebble raises on purpose; the command line prints it as one sentence.

    A sentence names options as the command line writes them. A note says what a call from Python names them, below the
    sentence in a traceback, and alone in ``__notes__``.

    Examples
    --------
    >>> InputError("--time-limit: expected --exact with it; see `pebble compare --help`.").__notes__
    ['In Python, options are keyword arguments: time_limit, exact.']
    """

    exit_code = 2

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        options = dict.fromkeys(filter(None, _OPTION.findall(str(self))))
        if options:
            names = ", ".join(_KEYWORDS.get(option, option.replace("-", "_")) for option in options)
            self.add_note(f"In Python, options are keyword arguments: {names}.")

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
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], where: str) -> None:
        names = list(known)
        name = name if isinstance(name, str) else repr(name)
        near = difflib.get_close_matches(name[:200].lower(), names, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"the names are listed by `{where}`."
        told = name if len(name) <= 80 else name[:77] + "..."
        super().__init__(f"unknown {kind} {told!r}: {hint}")
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
