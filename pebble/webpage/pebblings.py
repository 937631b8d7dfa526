"""Pebblings to step through: the DAG of a solved game, laid out by depth, and its moves by number."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass
from html import escape
from math import prod
from typing import Any

from pebble.errors import InputError, PebbleError
from pebble.families import DAG_FAMILIES
from pebble.game import Game
from pebble.game.moves import Move, read_moves
from pebble.reports.solve import read_game
from pebble.webpage.documents import Document, Fields

MAX_MOVES = 20_000
MAX_NODES = 400
_MOST_SMS = 64
_PANEL = 900  # pixels that a wide page has for the drawing


@dataclass(frozen=True)
class Stepper:
    """One pebbling.

    Attributes
    ----------
    title, about : str
    nodes : list of dict
        ``name``, ``column`` and ``row`` in the drawing, ``blue`` at the start, ``output``.
    edges : list of tuple
        (operand, result), by number of the node.
    moves : list of list
        ``[op, node, source, sm, words]``: the source of a slide is a node, of a copy an SM, else -1.
    sms : int
    """

    title: str
    about: str
    nodes: list[dict[str, Any]]
    edges: list[tuple[int, int]]
    moves: list[list[Any]]
    sms: int

    def to_json(self) -> dict[str, Any]:
        """What the script needs."""
        return {"nodes": self.nodes, "edges": self.edges, "moves": self.moves, "sms": self.sms}


def stepper_of(document: Document) -> Stepper:
    """The pebbling of a document of ``pebble solve``.

    Raises
    ------
    InputError
        Moves that are none, or more moves or values than can be shown.
    """
    fields = Fields(document.data, document.name)
    sms = fields.whole("sms") if "sms" in fields else 1
    game = _game(fields.text("instance"), fields.text("variant"))
    try:
        moves = read_moves(document.data["moves"], memories=sms)
    except InputError as error:
        raise InputError(f"report: {document.name}: {error}") from None
    if not 1 <= len(moves) <= MAX_MOVES or not 1 <= sms <= _MOST_SMS:
        raise InputError(
            f"report: {document.name}: got {len(moves):,} moves on {sms} SMs, expected 1 to {MAX_MOVES:,} on at most "
            f"{_MOST_SMS}."
        )
    if game is not None and not all(m.node in game.item_index or m.node in game.task_index for m in moves):
        game = None  # moves of another DAG than the one that the document names
    nodes, edges = _of_game(game) if game else _of_moves(moves)
    if len(nodes) > MAX_NODES:
        raise InputError(
            f"report: {document.name}: got a DAG of {len(nodes):,} values, expected at most {MAX_NODES} to draw."
        )
    index = {node["name"]: number for number, node in enumerate(nodes)}
    entries = [_step(move, index, game) for move in moves]
    about = [f"{fields.text('variant')}, {fields.number('capacity'):g} pebbles"]
    about += [f"{sms} SMs"] * (sms > 1)
    if "lower_bound" in fields and "upper_bound" in fields:
        about.append(f"costs {fields.number('upper_bound'):g}, at least {fields.number('lower_bound'):g} is proved")
    about += [fields.text("status")] if "status" in fields else []
    about += [] if game else ["its DAG is in a file of its own: values without edges"]
    return Stepper(fields.text("instance"), ", ".join(about), nodes, edges, entries, sms)


def _game(instance: str, variant: str) -> Game | None:
    """The game on a DAG of a family, from the words that name it; None where it was a file, which is not opened."""
    try:
        name, *words = shlex.split(instance)
        family = DAG_FAMILIES[name]
        known = {p.option: p.name for p in family.parameters}
        values: dict[str, object] = {}
        while words:
            key = known[words.pop(0)]
            values[key] = words.pop(0) if words and words[0] not in known else True
        if prod(max(1, int(str(v))) for v in values.values() if str(v).isdecimal()) > MAX_MOVES:
            return None  # more computations than moves may be shown
        return read_game(name, values, variant, False)[1]
    except (PebbleError, KeyError, ValueError, IndexError):
        return None


def _of_game(game: Game) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    depth = [0] * game.size
    edges = sorted({(operand, task.target) for task in game.tasks for operand in task.operands})
    for task in game.tasks:  # in topological order
        depth[task.target] = max([depth[task.target], *(depth[operand] + 1 for operand in task.operands)])
    row: dict[int, int] = {}
    nodes = []
    for item, name in enumerate(game.names):
        at = row[depth[item]] = row.get(depth[item], -1) + 1
        blue, output = game.is_input[item], game.is_output[item]
        nodes.append({"name": name, "column": depth[item], "row": at, "blue": blue, "output": output})
    return nodes, edges


def _value(name: str) -> str:
    """The cell that an update of it names."""
    return name.partition("+=")[0]


def _of_moves(moves: tuple[Move, ...]) -> tuple[list[dict[str, Any]], list[tuple[int, int]]]:
    """Values alone: those that are loaded before anything made them were blue at the start."""
    made: set[str] = set()
    blue: dict[str, bool] = {}
    for move in moves:
        name = _value(move.node)
        blue.setdefault(name, move.op == "load" and name not in made)
        if move.op in ("compute", "slide"):
            made.add(name)
    nodes = []
    for column, first in enumerate((True, False)):
        names = [name for name in blue if blue[name] is first]
        nodes += [
            {"name": name, "column": column, "row": row, "blue": first, "output": False}
            for row, name in enumerate(names)
        ]
    return nodes, []


def _step(move: Move, index: dict[str, int], game: Game | None) -> list[Any]:
    node = move.node
    if game is not None and node in game.task_index and move.op in ("compute", "slide"):
        node = game.names[game.tasks[game.task_index[node]].target]
    source = move.source if isinstance(move.source, int) else index.get(_value(str(move.source)), -1)
    return [move.op, index.get(node, index.get(_value(node), -1)), source, move.sm or 0, str(move)[:200]]


def svg(stepper: Stepper, ident: str) -> str:
    """The DAG: a box a value, with room for a red pebble (a disc) and a blue one (a square)."""
    wide = max(len(node["name"]) for node in stepper.nodes)
    box = min(220, 46 + 8 * wide)
    rows = Counter(node["column"] for node in stepper.nodes)
    tallest = max(rows.values())
    space = (_PANEL - len(rows) * box) // max(1, len(rows) - 1)
    across, down = box + max(34, min(90, 12 * tallest, space)), 46  # steep edges need room to be told apart
    place = [
        (12 + node["column"] * across, 12 + node["row"] * down + (tallest - rows[node["column"]]) * down // 2)
        for node in stepper.nodes
    ]
    width = max(x for x, _ in place) + box + 12
    height = max(y for _, y in place) + down
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" class="dag" role="img" tabindex="0" '
        f'aria-labelledby="{ident}-t"><title id="{ident}-t">Pebbles on {escape(stepper.title)}. Left and right arrow '
        f'keys step through the moves.</title><defs><marker id="{ident}-a" viewBox="0 0 8 8" refX="8" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
    ]
    for first, last in stepper.edges:
        (x0, y0), (x1, y1) = place[first], place[last]
        ends = f"M{x0 + box} {y0 + 16}L{x1 - 2} {y1 + 16}"
        if stepper.nodes[first]["column"] == stepper.nodes[last]["column"]:
            ends = f"M{x0 + box / 2} {y0 + 32}L{x1 + box / 2} {y1}"
        parts.append(f'<path class="edge" data-to="{last}" d="{ends}" marker-end="url(#{ident}-a)"/>')
    for number, node in enumerate(stepper.nodes):
        x, y = place[number]
        name = node["name"] if len(node["name"]) <= 21 else node["name"][:20] + "…"
        parts.append(
            f'<g class="node" data-node="{number}" transform="translate({x} {y})"><title>{escape(node["name"])}</title>'
            f'<rect class="box" width="{box}" height="32" rx="6"/><circle class="red" cx="14" cy="16" r="8"/>'
            f'<text class="sm" x="14" y="20" text-anchor="middle"></text><rect class="blue" x="{box - 20}" y="9" '
            f'width="14" height="14"/><text x="{box / 2 + 2:.0f}" y="21" text-anchor="middle">{escape(name)}</text></g>'
        )
    return "".join([*parts, "</svg>"])
