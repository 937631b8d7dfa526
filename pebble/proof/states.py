"""Closed lists of states for certificates, found by a search over the checker's own moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from math import ceil
from typing import Any

from pebble.certificate.games import Game as CheckedGame
from pebble.certificate.memories import Memories
from pebble.certificate.states import MAGIC, MAX_STATES, MAX_SYMMETRIES, Moves, State, record_size
from pebble.certificate.symmetry import Map, read_symmetries
from pebble.game import Game
from pebble.solvers.several.symmetry import automorphisms


class TooLongError(Exception):
    """No list was found in the time, or it is longer than the checker reads: says what there was, and the limit."""


def usable_symmetries(game: Game, checkable: CheckedGame, memories: Memories) -> list[tuple[Map, Map]]:
    """All symmetries but the identity, of values and of tasks; none where they are many, or tasks touch the same."""
    task_maps, item_maps = automorphisms(game)
    touched = {(task.target, frozenset(task.operands)) for task in game.tasks}
    if len(item_maps) - 1 > MAX_SYMMETRIES or len(touched) < len(game.tasks) or len(task_maps) < 2:
        return []
    may = memories.allowed or (0,) * len(game.tasks)
    named = [
        list(image)
        for image, tasks in zip(item_maps[1:], task_maps[1:], strict=True)
        if all(may[t] == may[u] for t, u in enumerate(tasks))
    ]
    return read_symmetries(checkable, named, MAX_SYMMETRIES, "symmetries")


def states_proof(
    game: Game,
    checkable: CheckedGame,
    memories: Memories,
    cost: Fraction | int,
    until: float,
    tell: Callable[[str], object] = lambda stage: None,
) -> tuple[dict[str, Any], bytes]:
    """The list that shows that no pebbling costs less: the proof without its table, and the table.

    Parameters
    ----------
    game, checkable : Game
        The game, and as the checker reads it.
    memories : Memories
    cost : Fraction or int
        What is to be proved.
    until : float
        When to give up, on the clock `time.monotonic`.
    tell : callable
        Called with how far it is.

    Raises
    ------
    TooLongError
    RefusedError
        The checker has no rules for a game like this.
    """
    symmetries = usable_symmetries(game, checkable, memories)
    moves = Moves(checkable, memories, symmetries)
    limit = ceil(cost * moves.fixed.unit)
    best: dict[State, int] = {}
    levels: list[list[State]] = [[] for _ in range(limit)]

    def meet(state: State, paid: int) -> None:
        if paid >= limit:
            return
        image = moves.canonical(state)
        if paid < best.get(image, limit) and paid + moves.to_come(image) < limit:
            best[image] = paid
            levels[paid].append(image)

    meet(moves.start, 0)
    expanded = 0
    for paid, level in enumerate(levels):
        while level:
            state = level.pop()
            if best[state] < paid:
                continue
            if not moves.fixed.all & ~state[0]:
                raise TooLongError(
                    f"there is a pebbling that costs {Fraction(paid, moves.fixed.unit)}, less than {cost}"
                )
            expanded += 1
            if len(best) > MAX_STATES:
                raise TooLongError(f"a list of states has more than {MAX_STATES:,}, which the checker reads at most")
            if not expanded % 64 and time.monotonic() > until:
                raise TooLongError(f"a list of states was not closed in time: {len(best):,} states so far")
            for step_cost, after in moves.moves(state):
                meet(after, paid + step_cost)
    if not best:  # the start alone shows it; a list has at least one entry
        best[moves.canonical(moves.start)] = 0
    _, widths = record_size(checkable, memories)
    parts = [MAGIC]
    for state, paid in sorted(best.items()):
        parts += [word.to_bytes(width, "little") for word, width in zip((*state, paid), widths, strict=True)]
    spec = {"method": "states", "symmetries": [list(image) for image, _ in symmetries], "records": len(best)}
    return spec, b"".join(parts)
