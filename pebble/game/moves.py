"""Moves and pebblings, and how plain data becomes moves."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pebble.errors import InputError
from pebble.game.buffer_model import SINGLE, BufferModel
from pebble.game.variants import Variant

if TYPE_CHECKING:
    from pebble.game.instance import Game

Op = Literal["load", "store", "compute", "delete", "slide", "copy"]
Cost = int | Fraction
"""A whole number, or a fraction where copies cost fractions."""


class Move(NamedTuple):
    """One move.

    Attributes
    ----------
    op : {"load", "store", "compute", "delete", "slide", "copy"}
    node : str
        The value moved or, for compute and slide, the task, which has the name of the value it computes unless that is
        a cell.
    source : str, int or None
        The operand whose pebble a slide takes, or the SM that a copy comes from.
    sm : int or None
        Where the move is made; None where there is one memory only.
    """

    op: Op
    node: str
    source: str | int | None = None
    sm: int | None = None

    def __str__(self) -> str:
        at = "" if self.sm is None else f" at {self.sm}"
        return f"{self.op} {self.node}{at}" + ("" if self.source is None else f" from {self.source}")

    def to_json(self) -> list[str | int]:
        """``[op, node]``, with the SM and then the source where there are any."""
        return [self.op, self.node, *(extra for extra in (self.sm, self.source) if extra is not None)]


@dataclass(frozen=True)
class Pebbling:
    """A solution: what is claimed, and the moves that prove it.

    Attributes
    ----------
    variant : Variant
    capacity : int
        Weight of red values allowed at any moment, per SM; pebbles where all weights are 1.
    moves : tuple of Move
    cost : int or Fraction
        Claimed cost: loads, stores, and omega times hops for copies, by weight.
    buffers : BufferModel
        The memories; one where nothing is said.
    """

    variant: Variant
    capacity: int
    moves: tuple[Move, ...]
    cost: Cost
    buffers: BufferModel = SINGLE


def as_cost(value: Cost) -> Cost:
    """The same cost, as an int where it is whole."""
    return value if isinstance(value, int) or value.denominator != 1 else value.numerator


def cost_to_json(value: Cost | None) -> int | float | None:
    """A whole number, or a float where the cost is a fraction."""
    return value if value is None or isinstance(value, int) else float(value)


def moves_cost(game: Game, moves: Iterable[Move], buffers: BufferModel = SINGLE) -> Cost:
    """What the moves cost; says nothing about legality, and moves of values that the game has not cost nothing."""
    slow, hops = 0, 0
    weights, index, net = game.weights, game.item_index, buffers.net
    for op, node, source, sm in moves:
        if op in ("load", "store"):
            item = index.get(node)
            slow += 0 if item is None else weights[item]
        elif op == "copy" and node in index and isinstance(source, int) and sm is not None:
            hops += weights[index[node]] * (net.hops(source, sm) or 0)
    return as_cost(slow + buffers.omega * hops) if hops else slow


def at_sm(moves: Iterable[Move], sm: int | None = 0) -> tuple[Move, ...]:
    """Moves of one memory, made at an SM, or with None without one."""
    return tuple(move._replace(sm=sm) for move in moves)


def read_moves(plain: object) -> tuple[Move, ...]:
    """Moves from plain data: ``("load", "a")``, ``("slide", "c", "a")``; with several memories the SM comes third.

    Parameters
    ----------
    plain : iterable, which is checked
        Of moves, or of lists ``[op, node]``, ``[op, node, source]``, ``[op, node, sm]``, ``[op, node, sm, source]``, as
        :meth:`Move.to_json` writes them. Whether a move is legal is for the referee to say.

    Raises
    ------
    InputError
        Something that is no such list.

    Examples
    --------
    >>> read_moves([("load", "a"), ["copy", "a", 1, 0]])[1]
    Move(op='copy', node='a', source=0, sm=1)
    """
    if isinstance(plain, str) or not isinstance(plain, Iterable):
        raise InputError(f'moves: got {_short(plain)}, expected a list of moves such as ["load", "A[0,0]"].')
    moves = []
    for step, entry in enumerate(plain, start=1):
        if isinstance(entry, Move):
            moves.append(entry)
            continue
        fields = list(entry) if isinstance(entry, list | tuple) else []
        op, node, *rest = fields if len(fields) >= 2 else (None, None)
        sm = rest.pop(0) if rest and type(rest[0]) is int else None
        source = rest.pop(0) if rest else None
        if rest or not isinstance(op, str) or not isinstance(node, str) or type(source) not in (str, int, type(None)):
            raise InputError(
                f'move {step}: got {_short(entry)}, expected [op, value] such as ["load", "A[0,0]"], then the SM where '
                "there are several memories, then the source of a slide or a copy."
            )
        moves.append(Move(op, node, source, sm))  # type: ignore[arg-type]
    return tuple(moves)


def read_moves_file(path: str | Path) -> tuple[Move, ...]:
    """Moves from a JSON file: a list of them, or an object that has one under ``moves``, as `pebble solve --json` has.

    Raises
    ------
    InputError
        An unreadable file, text that is not JSON, or something else in it; the message starts with the file.
    """
    from pebble.cdag.io import read_text

    path = Path(path)
    try:
        document = json.loads(read_text(path))
        return read_moves(document.get("moves") if isinstance(document, dict) else document)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON: {error.msg}.") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists without end
        raise InputError(f"{path}: not usable JSON, expected a list of moves.") from None
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
