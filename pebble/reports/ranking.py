"""What to run of some orders in one kernel: ranked by modelled time, told in one way by every command that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Unpack

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.kernel_time import (
    MILLI,
    TimedSchedule,
    Timing,
    floor_word,
    kernel_floor,
    power_of_kernel,
    time_schedule,
)
from pebble.reports.refusals import check_residual
from pebble.reports.schedule_names import Schedules, named_schedules
from pebble.reports.simulated_kernel import Bounded, KernelOptions, SimulatedKernel, trace_bound
from pebble.system.parallel import each
from pebble.timing.floor import TimeFloor
from pebble.timing.power import Power
from pebble.timing.sustained import Rates, sustained_rates
from pebble.tuning.worth import SAME, line_loads, pick, tried_first, walk_alike, worth_simulating
from pebble.workloads.workload import Workload

_BEST = 5  # orders that a short screen shows first
_MOST_LINES = 4e9  # that are followed for a short screen: about 7 s on one core


class Ranked(NamedTuple):
    """An order: what it moves, and its modelled time where there is one.

    ``alike`` are all that walk as it does, itself first; ``share`` is that of its loads that were simulated.
    """

    order: str
    dram_bytes: int
    timed: TimedSchedule | None = None
    alike: tuple[str, ...] = ()
    share: float = 1.0

    @property
    def seconds(self) -> float | None:
        """Sustained where that is modelled."""
        return None if self.timed is None else self.timed.ranked_seconds


@dataclass(frozen=True)
class Ranking:
    """Orders of one kernel, by modelled time; by bytes where no time is modelled.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
    orders : tuple of Ranked
        The best first.
    bound : Bounded
        No order of this kernel moves less: proved.
    floor : TimeFloor or None
        No order of it takes less: proved at the vendor's peaks; None without a machine.
    requested : int
        Schedules that were asked for: more than ``orders`` have where it was interrupted.
    left_out : int
        Of these, such as were not simulated: they look slower at a glance, or a glance would take long.
    """

    workload: Workload
    kernel: SimulatedKernel
    orders: tuple[Ranked, ...]
    bound: Bounded
    floor: TimeFloor | None
    requested: int
    left_out: int = 0

    @classmethod
    def of(
        cls, workload: Workload, kernel: SimulatedKernel, orders: Sequence[Ranked], bound: Bounded, requested: int,
        left_out: int = 0,
    ) -> Ranking:  # fmt: skip
        """Put in order, with the floor on their time."""
        # a schedule whose sustained run is not modelled cannot be told beside others whose is: it comes after them
        again = any(item.timed is not None and item.timed.sustained is not None for item in orders)
        rest = [element for element in orders if again and (element.timed is None or element.timed.sustained is None)]
        first = [order for order in orders if not any(order is other for other in rest)]
        ranked = (*sorted(first, key=_key), *sorted(rest, key=_key))
        floor = None if kernel.target.machine is None else kernel_floor(workload, kernel)
        return cls(workload, kernel, ranked, bound, floor, requested, left_out)

    @cached_property
    def times(self) -> dict[str, TimedSchedule]:
        """The modelled time of each, by every name."""
        return {name: order.timed for order in self.orders if order.timed is not None for name in order.alike}

    @property
    def complete(self) -> bool:
        """Whether all were done."""
        return sum(len(order.alike) for order in self.orders) + self.left_out == self.requested

    @property
    def timed(self) -> bool:
        """Whether they are ranked by time."""
        return bool(self.orders) and self.orders[0].timed is not None

    @property
    def _tried(self) -> list[str]:
        """What `pebble.advise` tries first, in its order."""
        return tried_first(self.workload)

    @cached_property
    def best(self) -> Ranked:
        """What to run, as `pebble.advise` picks it: one in common use where it is as fast as any (`pick`)."""
        first, tried = self.orders[0], self._tried
        if first.timed is None:
            return first
        again = first.timed.sustained is not None
        alike = [each for each in self.orders if each.timed and (each.timed.sustained is not None) == again]

        def rank(ranked: Ranked) -> tuple[float, ...]:
            name = self.name(ranked)
            return *_key(ranked), tried.index(name) if name in tried else len(tried)

        return pick(alike, rank, lambda ranked: self.name(ranked) in tried)

    @property
    def least(self) -> Ranked:
        """What moves least, of those that were simulated whole."""
        whole = [order for order in self.orders if order.share == 1] or self.orders
        return min(whole, key=lambda single: single.dram_bytes)

    @property
    def ties(self) -> int:
        """Other orders that are as fast, as far as the model can tell, those that walk as the best does among them."""
        near = [order for order in self.orders if (over := self.over(order)) is not None and over <= SAME]
        return sum(len(item.alike) for item in near) - 1 if near else 0

    def name(self, ranked: Ranked) -> str:
        """As it is told: the name by which `pebble.advise` knows it first, else its own."""
        known = [name for name in self._tried if name in ranked.alike]
        return known[0] if known else ranked.order

    def over(self, ranked: Ranked) -> float | None:
        """Times as long as the best; None where no time, or none of the same kind, is modelled."""
        best = self.best
        if (
            ranked.timed is None
            or best.timed is None
            or (ranked.timed.sustained is None) != (best.timed.sustained is None)
        ):
            return None
        return ranked.timed.ranked_seconds / best.timed.ranked_seconds

    @property
    def short(self) -> tuple[Ranked, ...]:
        """The best of them, those in common use, and the worst."""
        baseline = kernel_family(self.workload).baseline
        common = {id(order) for order in self.orders if set(baseline).intersection(order.alike)}
        rows = [*self.orders[:_BEST], self.best, self.orders[-1]]
        return tuple(item for item in self.orders if id(item) in common or any(item is other for other in rows))

    def to_json(self) -> dict[str, Any] | None:
        """The verdict as plain data; None where nothing was done."""
        if not self.orders:
            return None
        best, least, floor = self.best, self.least, self.floor
        return {
            "order": self.name(best),
            "ranked_by": "bytes" if best.timed is None else "time",
            "as_fast": self.ties,
            **ranked_row(best.timed),
            "dram_bytes": best.dram_bytes,
            "moves_least": {"order": self.name(least), "dram_bytes": least.dram_bytes, **ranked_row(least.timed)},
            "limit": {
                "ms": None if floor is None or not floor.parts else floor.seconds * MILLI,
                "binds": None if floor is None else floor_word(floor),
                "dram_bytes": self.bound.bound.bytes,
            },
        }


def _key(ranked: Ranked) -> tuple[float, int]:
    """By time, where it is known; of equal ones by bytes."""
    return ranked.seconds or 0.0, ranked.dram_bytes


def ranked_row(timed: TimedSchedule | None) -> dict[str, Any]:
    """The modelled time of an order as plain data, nothing where none is modelled."""
    again = None if timed is None else timed.sustained
    return {
        "single_ms": None if timed is None else timed.time.seconds * MILLI,
        "sustained_ms": None if again is None else again.seconds * MILLI,
        "joules": None if again is None else again.total_joules,
    }


def rates_of(workload: Workload, kernel: SimulatedKernel) -> Rates | None:
    """The rates by which orders of a kernel are timed; None where no time is modelled."""
    machine, execution = kernel.target.machine, kernel.config.execution
    if machine is None or not (execution.is_reference or execution.is_asynchronous):
        return None
    try:
        return sustained_rates(machine, workload.dtype)
    except InputError:  # its file lacks one
        return None


def rank_orders(
    workload: Workload,
    schedules: Schedules = "all",
    schedule: Schedules | None = None,
    residual: bool = False,
    begin: Callable[[SimulatedKernel, Sequence[Any]], None] = lambda kernel, walks: None,
    show: Callable[[str], None] = lambda name: None,
    **options: Unpack[KernelOptions],
) -> Ranking:
    """Rank orders by modelled time, each walk simulated once; arguments and errors as for `pebble.compare`.

    ``begin`` is told of the kernel and of the schedules that are simulated, before any is; ``show`` of each that is
    done. An interrupt leaves those that are done.
    """
    kernel = advised_kernel(workload, **options)
    check_residual(workload, residual)
    family = kernel_family(workload)
    orders = named_schedules(workload, kernel, schedules, schedule)
    family.check(workload, kernel.config)
    bound = trace_bound(workload, kernel)
    rates, power = rates_of(workload, kernel), power_of_kernel(workload, kernel)

    def run(same: Sequence[int]) -> Ranked:
        single = orders[same[0]]
        alike = tuple(str(orders[i].name) for i in same)
        if rates is None:
            traffic = family.simulate(workload, single, kernel.config, residual).dram_bytes
            return Ranked(alike[0], traffic, None, alike)
        timed = time_schedule(workload, single, kernel, rates, power, residual, in_part)
        return Ranked(alike[0], timed.time.dram_bytes, timed, alike, timed.time.simulated_share)

    done: dict[int, Ranked] = {}
    left, in_part = 0, False
    try:
        walks, in_part = _walks(workload, kernel, orders, rates, power)
        left = len(orders) - sum(map(len, walks))
        begin(kernel, [orders[same[0]] for same in walks])
        for walk, result in each(run, walks):
            done[walk] = result
            show(result.order)
    except KeyboardInterrupt:
        pass
    return Ranking.of(workload, kernel, [done[walk] for walk in sorted(done)], bound, len(orders), left)


def common_orders(workload: Workload, **options: Unpack[KernelOptions]) -> tuple[list[str], int]:
    """Of all orders the names of those in common use, all where there are none, and how many that leaves out."""
    names = [str(item.name) for item in named_schedules(workload, advised_kernel(workload, **options), "all", None)]
    common = [name for name in tried_first(workload) if name in names] or names
    return common, len(names) - len(common)


def likely_orders(workload: Workload, **options: Unpack[KernelOptions]) -> tuple[list[str], int]:
    """Of all orders the names of those that a short screen simulates, and how many it leaves out; errors as above."""
    kernel = advised_kernel(workload, **options)
    orders = named_schedules(workload, kernel, "all", None)
    walks, _ = _walks(workload, kernel, orders, rates_of(workload, kernel), power_of_kernel(workload, kernel))
    names = [str(orders[at].name) for at in sorted(at for walk in walks for at in walk)]
    return names, len(orders) - len(names)


def ranking_of(result: Timing) -> Ranking:
    """The verdict on what `pebble.time` found: of equal ones the one that `pebble.advise` picks."""
    orders = [Ranked(order.order, order.time.dram_bytes, order, (order.order,)) for order in result.orders]
    bound = trace_bound(result.workload, result.kernel)
    return Ranking.of(result.workload, result.kernel, orders, bound, len(orders))


def _walks(
    workload: Workload, kernel: SimulatedKernel, orders: Sequence[Any], rates: Rates | None, power: Power | None
) -> tuple[list[list[int]], bool]:  # fmt: skip
    """Walks to simulate, and whether in part: all of them whole, or where that takes long as `pebble.advise` does."""
    walks = walk_alike(workload, orders, kernel.config)
    first = [orders[same[0]] for same in walks]
    if rates is None or line_loads(workload, kernel.config, first).whole <= _MOST_LINES:
        return walks, False
    return worth_simulating(workload, kernel.config, orders, rates, power), True
