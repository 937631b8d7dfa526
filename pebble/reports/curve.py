"""``curve``: traffic of every schedule at every cache size, with the proved bound beneath."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from pebble.bounds.proofs import LowerBound
from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.caches import CachePolicy, parse_policy
from pebble.models.machine import Machine
from pebble.reports.default_kernel import advised_kernel
from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.refusals import check_residual, check_seed
from pebble.reports.report import Report
from pebble.reports.schedule_names import Schedules, named_schedules
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel, bounded, held_by_trace
from pebble.reports.target import whole
from pebble.simulation import ScheduleCurve, curve_of
from pebble.system.parallel import cores, each
from pebble.traces import LINE_BYTES
from pebble.tuning.worth import line_loads, walk_alike
from pebble.units import MAX_SIZE, format_bytes, format_capacity, parse_size
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pebble.plots.curve import Curves

MOST_POINTS = 4096
POINTS, SIMULATED_POINTS, FEWEST_POINTS = 48, 24, 5  # cache sizes that are drawn where nobody says how many
_MOST_LINES = 8e9  # loaded in all simulations: about ten seconds on two cores; beyond, fewer sizes are simulated
_LEAST_BYTES = 2**16
_NEAR = 32  # of few sizes the least is this part of the cache


@dataclass(frozen=True, repr=False)
class CurveReport(Report):
    """What ``pebble curve`` found.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
        ``kernel.config.cache_bytes`` is the capacity to look at first.
    capacities_bytes : tuple of int
        Cache sizes, rising.
    bounds : tuple of LowerBound
        At the trace capacity that belongs to each cache size.
    schedules : tuple of ScheduleCurve
        Least traffic at the capacity to look at first, first.
    complete : bool
        False when the rest of the schedules was interrupted.
    """

    workload: Workload
    kernel: SimulatedKernel
    capacities_bytes: tuple[int, ...]
    bounds: tuple[LowerBound, ...]
    schedules: tuple[ScheduleCurve, ...]
    complete: bool = True

    question = "curve"

    @property
    def best(self) -> ScheduleCurve | None:
        """The schedule that moves least at the cache size to look at first."""
        return next(iter(self.schedules), None)

    @property
    def machine(self) -> Machine | None:
        return self.kernel.target.machine

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the assumptions."""
        note = parse_policy(self.kernel.config.policy).curve_note
        spec = kernel_notes(self.workload, self.kernel, [curve.name for curve in self.schedules])
        return (*spec, note) if note else spec

    @property
    def reference(self) -> int:
        """Index of the capacity to look at first."""
        return self.capacities_bytes.index(self.kernel.config.cache_bytes)

    def summary(self) -> str:
        if not self.schedules:
            return f"{self.workload.label}: interrupted before the first schedule was done"
        best, at = self.schedules[0], self.reference
        many = f"{len(self.schedules)} schedule{'s' * (len(self.schedules) != 1)}"
        return (
            f"{self.workload.label}: {many} at {len(self.capacities_bytes)} cache sizes; at "
            f"{format_capacity(self.capacities_bytes[at])} {best.name} moves {format_bytes(best.dram_bytes[at])} "
            f"({self.kernel.model}), the bound is {format_bytes(self.bounds[at].bytes)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per schedule and cache size."""
        return [
            {"name": c.name, "cache_bytes": size, "dram_bytes": traffic, "lower_bound_bytes": bound.bytes}
            for c in self.schedules
            for size, traffic, bound in zip(self.capacities_bytes, c.dram_bytes, self.bounds, strict=True)
        ]

    def document(self) -> dict[str, Any]:
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": {**self.kernel.to_dict(), "tile": str(self.kernel.config.tile)},
            "capacities_bytes": list(self.capacities_bytes),
            "lower_bound_bytes": [bound.bytes for bound in self.bounds],
            "schedules": [
                {
                    "name": curve.name,
                    "dram_bytes": list(curve.dram_bytes),
                    "dram_read_bytes": list(curve.read_bytes),
                    "dram_write_bytes": list(curve.write_bytes),
                }
                for curve in self.schedules
            ],
            "notes": list(self.notes),
            "complete": self.complete,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Curves on log axes; the best six in colour."""
        from pebble.plots.curve import plot_curve

        return plot_curve(self._drawn, ax)

    def figure(self) -> Figure:
        """The same with its legend below."""
        from pebble.plots.curve import curve_figure

        return curve_figure(self._drawn)

    @property
    def _drawn(self) -> Curves:
        from pebble.plots.curve import Curves

        config = self.kernel.config
        policy = f"{parse_policy(config.policy).title}; dotted: {format_capacity(config.cache_bytes)}"
        return Curves(
            f"{self.workload.label}\n{self.kernel.runs}, {policy}",
            self.capacities_bytes,
            [bound.bytes for bound in self.bounds],
            [(curve.name, curve.dram_bytes) for curve in self.schedules],
            config.cache_bytes,
            config.policy == "lru",
        )


@dataclass(frozen=True)
class CurveSizes:
    """The cache sizes of a curve, as `pebble.curve` takes them.

    Attributes
    ----------
    least, most : str or None
    points : int, str or None
        By default `POINTS`; where each size is a simulation as many as take some ten seconds, from `FEWEST_POINTS` to
        `SIMULATED_POINTS`.
    capacities_bytes : sequence of int or None
        The sizes themselves, instead.
    """

    least: str | None = None
    most: str | None = None
    points: int | str | None = None
    capacities_bytes: Sequence[int] | None = None


def traffic_curve(
    workload: Workload,
    schedules: Schedules = "all",
    sizes: CurveSizes = CurveSizes(),
    *,
    residual: bool = False,
    progress: Callable[[str], None] = lambda name: None,
    **options: Unpack[KernelOptions],
) -> CurveReport:
    """Traffic of every schedule at every cache size; arguments and errors as for `pebble.curve`."""
    family = kernel_family(workload)
    kernel = advised_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    check_residual(workload, residual)
    config, policy = kernel.config, parse_policy(kernel.config.policy)
    if policy.warm:
        raise InputError("curve: got a policy with +warm, expected a cold start: the bounds count every first load.")
    family.check(workload, config)
    orders = named_schedules(workload, kernel, schedules)
    capacities_bytes = sizes.capacities_bytes
    if capacities_bytes is None:
        tiles = [family.trace(workload, schedule, config, residual).tile_lines for schedule in orders]
        points = points_of(workload, kernel, orders, sizes.points)
        near = config.cache_bytes // _NEAR if sizes.points is None and points < SIMULATED_POINTS else 0
        capacities_bytes = _sizes(workload, tiles, sizes, policy, points, near)
    elif not isinstance(capacities_bytes, Iterable):
        raise InputError(f"capacities_bytes: got {repr(capacities_bytes)[:80]}, expected sizes such as [2**20, 2**21].")
    cache_sizes = {whole("capacities_bytes", size, 1, MAX_SIZE) for size in capacities_bytes}
    capacities = sorted({*cache_sizes, config.cache_bytes})
    if len(capacities) > MOST_POINTS:
        raise InputError(f"curve: got {len(capacities)} capacities, expected at most {MOST_POINTS}.")
    walks: dict[Hashable, list[Any]] = {}
    for schedule in orders:
        walks.setdefault(family.walk(workload, schedule, config), []).append(schedule)
    bounds: dict[int, LowerBound] = {}

    def bound_all() -> None:
        for c in capacities:
            bounds[c] = bounds.get(c) or bounded(workload, held_by_trace(workload, kernel, c)).bound

    def curve_at(schedule: Any, part: Sequence[int]) -> ScheduleCurve:
        trace = family.trace(workload, schedule, config, residual)
        return curve_of(schedule.name, trace, config.policy, [c // LINE_BYTES for c in part])

    curves: list[ScheduleCurve] = []
    complete = True
    try:
        simulated = bool(policy.curve_note) and len(capacities) > 1
        for alike, curve in _curves(list(walks.values()), capacities, curve_at, bound_all, simulated):
            for schedule in alike:
                curves.append(replace(curve, name=schedule.name))
                progress(schedule.name)
    except KeyboardInterrupt:
        if not curves and len(bounds) < len(capacities):
            raise
        complete = False
        bound_all()
    at = capacities.index(config.cache_bytes)
    place = {schedule.name: number for number, schedule in enumerate(orders)}
    curves.sort(key=lambda c: (c.dram_bytes[at], place[c.name]))
    below = tuple(bounds[c] for c in capacities)
    return CurveReport(workload, kernel, tuple(capacities), below, tuple(curves), complete)


def _curves(
    walks: Sequence[list[Any]],
    capacities: Sequence[int],
    curve_at: Callable[[Any, Sequence[int]], ScheduleCurve],
    bound_all: Callable[[], None],
    simulated: bool,
) -> Iterator[tuple[list[Any], ScheduleCurve]]:
    """The curve of each walk, as they come, beside the bounds.

    Orders run side by side; each in two parts where every size is simulated, so that no core waits long for the last.
    Where there are fewer orders than cores, the sizes of one run side by side.
    """
    together = len(walks) >= cores()
    parts = [capacities[::2], capacities[1::2]] if together and simulated else [capacities]

    def answer(item: tuple[int, int] | None) -> ScheduleCurve | None:
        if item is None:
            bound_all()
            return None
        number, part = item
        return curve_at(walks[number][0], parts[part])

    items = [None, *((number, part) for number in range(len(walks)) for part in range(len(parts)))]
    found: dict[int, dict[int, ScheduleCurve]] = {}
    for at, result in each(answer, items, None if together else 1):
        if result is None:
            continue
        number, part = divmod(at - 1, len(parts))
        of_walk = found.setdefault(number, {})
        of_walk[part] = result
        if len(of_walk) == len(parts):
            yield walks[number], _joined([of_walk[part] for part in range(len(parts))])


def _joined(parts: Sequence[ScheduleCurve]) -> ScheduleCurve:
    """One curve of those at every so many sizes."""
    where = [(parts[at % len(parts)], at // len(parts)) for at in range(sum(len(part.read_bytes) for part in parts))]
    read = tuple(part.read_bytes[at] for part, at in where)
    write = tuple(part.write_bytes[at] for part, at in where)
    return ScheduleCurve(parts[0].name, read, write)


def simulations(
    workload: Workload, kernel: SimulatedKernel, orders: Sequence[Any], points: int | str | None
) -> float:  # fmt: skip
    """How many simulations an order of a curve takes, about."""
    simulated = parse_policy(kernel.config.policy).curve_note
    return points_of(workload, kernel, orders, points) if simulated else 1.0


def points_of(
    workload: Workload, kernel: SimulatedKernel, orders: Sequence[Any], points: int | str | None
) -> int:  # fmt: skip
    """Cache sizes that are asked for, or as many as are drawn in seconds."""
    if points is not None:
        return whole("--points", points, 1, MOST_POINTS)
    if not parse_policy(kernel.config.policy).curve_note:
        return POINTS
    walks = [orders[same[0]] for same in walk_alike(workload, orders, kernel.config)]
    lines = line_loads(workload, kernel.config, walks).whole
    return max(FEWEST_POINTS, min(SIMULATED_POINTS, int(_MOST_LINES / max(1.0, lines))))


def _sizes(
    workload: Workload, tiles: list[Any], sizes: CurveSizes, policy: CachePolicy, points: int, near: int = 0
) -> list[int]:  # fmt: skip
    """Cache sizes from the largest tile of any schedule to more than all operands of one, evenly on a log axis."""
    width, least, most = workload.narrowest_bytes, sizes.least, sizes.most
    high = parse_size(most, "--to").to_bytes(width) if most else int(tiles[0].sum(dtype=np.int64)) * LINE_BYTES * 5 // 4
    low = max(
        _LEAST_BYTES, min(near, high // 2), policy.least_lines(max(int(lines.max()) for lines in tiles)) * LINE_BYTES
    )
    if least:
        low = parse_size(least, "--from").to_bytes(width)
    if not most:
        high = max(high, 2 * low)  # all operands may be less than the smallest cache
    if low >= high:
        raise InputError(f"--from, --to: got {format_capacity(low)}, {format_capacity(high)}, expected them rising.")
    steps = np.geomspace(low, high, points)
    return sorted({low, high, *(int(step) // LINE_BYTES * LINE_BYTES for step in steps[1:-1])})
