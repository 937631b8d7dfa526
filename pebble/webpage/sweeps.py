"""What a sweep found: for every question that was asked, the order that moves least, over the proved bound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from pebble.errors import InputError
from pebble.system.files import shown
from pebble.webpage.documents import MAX_ROWS, Document, Fields

_ASKED = ("workload", "machine", "cache_bytes", "sms", "tile", "policy", "execution")


@dataclass(frozen=True)
class SweptQuestion:
    """All orders of one workload in one place.

    Attributes
    ----------
    workload, where : str
    orders : int
        How many were simulated.
    best, worst : str
        The order that moves least, and the one that moves most.
    best_bytes, worst_bytes : float
    ratio : float or None
        The best over the proved bound.
    ties : int
        How many orders move as little as the best, itself among them.
    """

    workload: str
    where: str
    orders: int
    best: str
    best_bytes: float
    worst: str
    worst_bytes: float
    ratio: float | None
    ties: int


@dataclass(frozen=True)
class Solved:
    """One game.

    Attributes
    ----------
    workload, where : str
    lower, upper : float or None
        What is proved, and what the cheapest pebbling found costs.
    """

    workload: str
    where: str
    lower: float | None
    upper: float | None


@dataclass(frozen=True)
class Swept:
    """One store: its questions, those that leave most to gain first, its games, and how its rows ended."""

    title: str
    asked: tuple[SweptQuestion, ...]
    solved: tuple[Solved, ...]
    statuses: dict[str, int]


def swept(document: Document) -> Swept:
    """What the rows of a store say.

    Raises
    ------
    InputError
        A value that has not the type it should have, or more questions than a page shows.
    """
    rows = Fields(document.data, document.name).parts("rows")
    groups: dict[tuple[str, ...], list[Fields]] = {}
    for row in rows:
        if "dram_bytes" in row and "workload" in row:
            groups.setdefault(tuple(str(row.plain.get(key) or "") for key in _ASKED), []).append(row)
    statuses = Counter(row.text("status", "done") for row in rows)
    result = sorted((_asked(group) for group in groups.values()), key=lambda a: -(a.ratio or 0))
    solved = [_solved(row) for row in rows if "workload" in row and "lower_bound_cost" in row]
    if len(result) + len(solved) > MAX_ROWS:
        raise InputError(
            f"report: {shown(document.name)}: got {len(result) + len(solved):,} questions, expected at most "
            f"{MAX_ROWS:,}; choose some with `pebble results STORE --where CONDITION --json`."
        )
    return Swept(document.name, tuple(result), tuple(solved), dict(statuses))


def _solved(row: Fields) -> Solved:
    place = [f"{row.whole('capacity_pebbles')} pebbles"] if "capacity_pebbles" in row else []
    place += [row.text(key) for key in ("variant", "solver") if key in row]
    return Solved(row.text("workload"), ", ".join(place), row.maybe("lower_bound_cost"), row.maybe("upper_bound_cost"))


def _asked(rows: Iterable[Fields]) -> SweptQuestion:
    ordered = sorted(rows, key=lambda row: row.number("dram_bytes"))
    best, worst = ordered[0], ordered[-1]
    place = [best.text("machine")] if "machine" in best else []
    if "cache_bytes" in best:
        place.append(f"cache {best.number('cache_bytes') / 2**20:.4g} MiB")
    place += [f"tile {best.text('tile')}"] if "tile" in best else []
    place += [best.text(key) for key in ("policy", "execution") if key in best]
    return SweptQuestion(
        best.text("workload"), ", ".join(place), len(ordered), best.text("schedule", "?"), best.number("dram_bytes"),
        worst.text("schedule", "?"), worst.number("dram_bytes"), best.maybe("ratio_to_lower_bound"),
        sum(row.number("dram_bytes") == best.number("dram_bytes") for row in ordered),
    )  # fmt: skip
