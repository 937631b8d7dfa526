"""Moves and pebblings, and how plain data becomes moves."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from pebble.errors import InputError
from pebble.game.buffer_model import SINGLE, BufferModel

if TYPE_CHECKING:
    from pebble.game.instance import Game, Variant


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


def read_moves(plain: object, names: Container[str] = (), memories: int = 1) -> tuple[Move, ...]:
    """Moves from plain data: ``("load", "a")``, ``("slide", "c", "a")``; with several memories the SM comes third.

    Parameters
    ----------
    plain : iterable, which is checked
        Of moves, or of lists ``[op, node]``, ``[op, node, source]``, ``[op, node, sm]``, ``[op, node, sm, source]``, as
        :meth:`Move.to_json` writes them; or a dict that has such a list under ``moves``. Whether a move is legal is for
        the referee to say.
    names : container of str, optional
        What the game calls its values and tasks: a node that is no text is taken where its text is one of them.
    memories : int
        Separate memories of the game.

    Raises
    ------
    InputError
        Something that is no such list.

    Examples
    --------
    >>> read_moves([("load", "a"), ["copy", "a", 1, 0]])[1]
    Move(op='copy', node='a', source=0, sm=1)
    >>> read_moves([("load", 7)], names={"7"})
    (Move(op='load', node='7', source=None, sm=None),)
    """
    if isinstance(plain, dict):
        if "moves" not in plain:
            raise InputError(f'moves: got {_short(plain)}, in which the key "moves" is missing; expected a list there.')
        plain = plain["moves"]
    if isinstance(plain, str) or not isinstance(plain, Iterable):
        raise InputError(f'moves: got {_short(plain)}, expected a list of moves such as ["load", "A[0,0]"].')
    return tuple(_read_move(step, entry, names, memories) for step, entry in enumerate(plain, start=1))


def _read_move(step: int, entry: object, names: Container[str], memories: int) -> Move:
    def named(node: object) -> object:
        return str(node) if not isinstance(node, str) and str(node) in names else node

    op: Any
    node: Any
    source: Any
    sm: Any
    rest: list[Any] = []
    if isinstance(entry, Move):
        op, node, source, sm = entry
    else:
        fields = list(entry) if isinstance(entry, list | tuple) else []
        op, node, *rest = fields if len(fields) >= 2 else (None, None)
        if memories > 1 and rest and type(rest[0]) is not int:
            raise InputError(f"move {step}: got SM {_short(rest[0])}, expected {_sms(memories)}, third in the move.")
        if op == "slide" and len(rest) == memories == 1:
            rest = [named(rest[0])]  # a slide has a source: a number alone is one, where the DAG has such a node
        sm = rest.pop(0) if rest and type(rest[0]) is int else None
        source = rest.pop(0) if rest else None
    node, source = named(node), named(source) if op == "slide" else source
    if rest or not isinstance(op, str) or not isinstance(node, str) or type(source) not in (str, int, type(None)):
        raise InputError(
            f'move {step}: got {_short(entry)}, expected [op, value] such as ["load", "A[0,0]"], the value one of the '
            "DAG, then the SM where there are several memories, then the source of a slide or a copy."
        )
    if source is not None and op in ("load", "store", "compute", "delete"):
        at = "" if memories == 1 else f" and the SM ({_sms(memories)})"
        raise InputError(
            f"move {step}: got {_short(source)} after {op} {_short(node)}, expected the value{at} alone; only a slide "
            "or a copy has a source."
        )
    return Move(cast(Op, op), node, source, sm)  # another word is refused when the move is played


def read_moves_file(path: str | Path, names: Container[str] = (), memories: int = 1) -> tuple[Move, ...]:
    """Moves from a JSON file: a list of them, or an object that has one under ``moves``, as `pebble solve --json` has.

    Otherwise as :func:`read_moves`; InputError begins with the file.
    """
    from pebble.cdag.io import read_text

    path = Path(path)
    try:
        return read_moves(json.loads(read_text(path, "the file of a pebbling")), names, memories)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON: {error.msg}; expected a list of moves.") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists without end
        raise InputError(f"{path}: not usable JSON, expected a list of moves.") from None
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path}: {text}") from None


def _sms(memories: int) -> str:
    return "0 or 1" if memories == 2 else f"0 to {memories - 1}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
