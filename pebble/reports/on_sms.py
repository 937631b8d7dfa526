"""What `solve` says of a game on several SMs: the memory of a GPU, schedules in common use beside it, a timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError
from pebble.game import BufferModel, Cost, Game, Move, Pebbling, moves_cost, replay
from pebble.game.moves import cost_to_json
from pebble.models.machine import Machine
from pebble.models.rates import CopyCost
from pebble.reports.sm_memory import MEASURED, measured_cost
from pebble.reports.target import gpu_only, read_target
from pebble.units import format_bytes, format_capacity

DEFAULT_DTYPE = "bf16"


@dataclass(frozen=True)
class SmMemory:
    """Where a game of tiles is played.

    Attributes
    ----------
    capacity : int
        Of each memory, in the weights of the game.
    in_bytes : bool
        Whether weights are bytes.
    machine : Machine or None
    detail : str
        What the memory is, for a reader.
    price : CopyPrice or None
        What a copy costs on the machine, where that was asked for.
    """

    capacity: int
    in_bytes: bool = False
    machine: Machine | None = None
    detail: str = ""
    price: CopyCost | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of it."""
        notes = [self.detail] if self.detail else []
        if self.price is not None:
            notes.append(f"omega measured: by bandwidth a copy costs {self.price}")
            if self.price.omega >= 2:
                notes.append("a store and a load cost 2, so at this price the cheapest pebbling copies nothing")
        return tuple(notes)

    def to_json(self) -> dict[str, Any]:
        """Plain data; nothing where only a capacity was given."""
        fields: dict[str, Any] = {"unit": "bytes"} if self.in_bytes else {}
        fields |= {"memory": self.detail} if self.detail else {}
        return fields | ({} if self.price is None else {"measured_copy_price": self.price.to_json()})


def read_memory(
    values: dict[str, Any], capacity: int | None, where: Mapping[str, Any], omega: object, level: str | None
) -> SmMemory:
    """The memory that was given: a capacity, a size, or the shared memory of an SM of a machine.

    ``values``, the parameters of the family, get a type where weights are to be bytes and none was given.

    Raises
    ------
    InputError
        Not exactly one of them; a machine without shared memory, or without a price of copies where it is asked for.
    """
    named = {key: value for key, value in where.items() if value is not None}
    measured = omega == MEASURED
    if capacity is not None:
        if named:
            raise InputError(f"--capacity: got it and --{next(iter(named))}, expected exactly one of them.")
        return SmMemory(capacity, values.get("dtype") is not None, None, "", measured_cost(None) if measured else None)
    if not named:
        raise InputError("--capacity missing: expected --capacity S, or --gpu SKU, --machine FILE or --cache SIZE.")
    target = read_target(**where)
    if target.cache is not None and target.cache.bytes is None:
        return SmMemory(target.cache.to_elements(1), False, None, "", measured_cost(None) if measured else None)
    if values.get("dtype") is None:
        values["dtype"] = DEFAULT_DTYPE
    price = measured_cost(target.machine, level or "l2") if measured else None
    if target.cache is not None:
        return SmMemory(target.cache.to_bytes(1), True, None, "", price)
    machine = target.machine
    assert machine is not None
    gpu_only(machine)
    size = machine.shared_bytes_per_sm
    if size is None:
        raise InputError(
            f"--gpu: got {machine.sku}, whose machine file has no shared memory per SM; give --cache SIZE."
        )
    detail = f"each memory is the shared memory of one SM of {machine.name}, {format_capacity(size)}"
    return SmMemory(size, True, machine, detail, price)


@dataclass(frozen=True)
class Baseline:
    """A schedule in common use, replayed in the same game.

    Attributes
    ----------
    name : str
    cost : int or Fraction
    tasks : tuple of int
        Done by each SM.
    steps : int
        Lines of its timeline.
    fits : bool
        Whether no SM does more tasks than the game allows, or one that it may not do.
    """

    name: str
    cost: Cost
    tasks: tuple[int, ...]
    steps: int
    fits: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "schedule": self.name,
            "cost": cost_to_json(self.cost),
            "tasks_per_sm": list(self.tasks),
            "steps": self.steps,
            "within_limit": self.fits,
        }


def common_baselines(game: Game, capacity: int, buffers: BufferModel, most: int | None = None) -> list[Baseline]:
    """Schedules in common use, cheapest first; none where the values of the game say nothing of a workload.

    ``most`` tasks of an SM are allowed; a schedule that does more is told all the same, for it needs no balance.
    """
    from pebble.solvers.several.common import common_schedules, places
    from pebble.solvers.several.play import play

    if buffers.memories == 1 or game.variant.recompute or game.variant.sliding or places(game) is None:
        return []
    results = []
    for name, phases in common_schedules(game, buffers.sms).items():
        moves = play(game, capacity, buffers, phases)
        pebbling = Pebbling(game.variant, capacity, moves, moves_cost(game, moves, buffers), buffers)
        replayed = replay(game.anywhere(), pebbling)
        tasks = tuple(sm.computations for sm in replayed.per_sm)
        fits = most is None or max(tasks) <= most
        fits = fits and all(game.may_do(t, sm) for phase in phases for t, sm in phase)
        results.append(Baseline(name, replayed.cost, tasks, len(timeline(game, moves, buffers.sms)), fits))
    return sorted(results, key=lambda single: (not single.fits, single.cost))


def timeline(game: Game, moves: Iterable[Move], sms: int) -> list[list[str]]:
    """Lines of a pebbling on several SMs, a column an SM: what it fetches, computes and stores in a step.

    A step has one task of each SM at most. It comes after the steps that computed or stored what it fetches, and
    before the next one of an SM that it copies from; so the lines can be carried out one after another. Deletes are
    left out.
    """
    return _Timeline(game, sms).read(moves)


class _Timeline:
    def __init__(self, game: Game, sms: int) -> None:
        self.game = game
        self.lines: list[list[str]] = []
        self.last = [-1] * sms  # line of the last step of each SM
        self.ready = [0] * sms  # first line at which what an SM waits to fetch is there
        self.pending: list[dict[str, list[str]]] = [{} for _ in range(sms)]
        self.sources: list[set[int]] = [set() for _ in range(sms)]
        self.fetched: list[list[str]] = [[] for _ in range(sms)]
        self.there: dict[tuple[str, int], int] = {}  # from which line on a value may be copied from an SM
        self.blue: dict[str, int] = {}  # from which line on a computed value may be loaded

    def read(self, moves: Iterable[Move]) -> list[list[str]]:
        """All lines."""
        for move in moves:
            sm = move.sm or 0
            if move.op == "load":
                self.ready[sm] = max(self.ready[sm], self.blue.get(move.node, 0))
                self.pending[sm].setdefault("load", []).append(move.node)
                self.fetched[sm].append(move.node)
            elif move.op == "copy":
                assert move.source is not None
                self.fetched_from(move.node, int(move.source))
                self.ready[sm] = max(self.ready[sm], self.there.get((move.node, int(move.source)), 0))
                self.pending[sm].setdefault(f"copy from {move.source}:", []).append(move.node)
                self.sources[sm].add(int(move.source))
                self.fetched[sm].append(move.node)
            elif move.op == "compute":
                self.compute(move.node, sm)
            elif move.op == "store":
                self.store(move.node, sm)
        for sm in range(len(self.pending)):
            if self.pending[sm]:
                self.close(sm, "")
        return self.lines

    def fetched_from(self, value: str, source: int) -> None:
        """A value that its holder has fetched, not yet used, is fetched in a line of its own."""
        if value in self.fetched[source]:
            self.close(source, "")

    def compute(self, task: str, sm: int) -> None:
        line = self.close(sm, task)
        target = self.game.names[self.game.tasks[self.game.task_index[task]].target]
        self.there[target, sm] = line + 1
        self.blue[target] = line + 1

    def close(self, sm: int, task: str) -> int:
        line = max(self.last[sm] + 1, self.ready[sm])
        while len(self.lines) <= line:
            self.lines.append([""] * len(self.last))
        words = [f"{what} {' '.join(values)}" for what, values in self.pending[sm].items()]
        self.lines[line][sm] = "; ".join([*words, *([task] if task else [])])
        for value in self.fetched[sm]:
            self.there[value, sm] = line
        for source in self.sources[sm]:
            self.last[source] = max(self.last[source], line)
        self.last[sm] = max(self.last[sm], line)
        self.pending[sm], self.fetched[sm], self.sources[sm], self.ready[sm] = {}, [], set(), 0
        return line

    def store(self, value: str, sm: int) -> None:
        if value in self.fetched[sm] or self.last[sm] < 0:
            self.close(sm, "")
        line = self.last[sm]
        cell = self.lines[line][sm]
        self.lines[line][sm] = f"{cell}; store {value}" if cell else f"store {value}"
        self.blue[value] = line + 1


def shown_cost(cost: Cost | None, memory: SmMemory) -> str:
    """A cost in the units of the game."""
    if cost is None:
        return "none"
    number = f"{cost:,}" if isinstance(cost, int) else f"{float(cost):,g}"
    return f"{number} bytes ({format_bytes(float(cost))})" if memory.in_bytes else number
