"""How long what ``tune`` found takes by the model: it searches for bytes, and fewer of them need not be less time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.reports.kernel_time import MILLI
from pebble.reports.tuned import Tuned
from pebble.schedules.tables import TileTable
from pebble.system.parallel import each
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import group_of_operands, modelled_time
from pebble.tuning import Condition
from pebble.workloads.base import Workload

_NEAR = 1.01  # times the least by the bytes that are known: of these the one that moves least is simulated again


class TunedTime(NamedTuple):
    """A schedule that was found, and its modelled time."""

    schedule: Tuned
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        s = self.schedule
        return {
            "name": s.name,
            "tile": s.kernel.tile,
            "modelled_ms": self.seconds * MILLI,
            "dram_bytes": s.traffic[0].dram_bytes,
        }


@dataclass(frozen=True)
class TuneTimes:
    """Modelled times of what was found; estimates, as `pebble.time` gives them.

    Attributes
    ----------
    execution : str
        Under which: the first that schedules were ranked by.
    best : TunedTime
        Of the schedule that moves least.
    baseline : TunedTime or None
        Of the best common order.
    fastest : TunedTime
        Of all that were simulated.
    """

    execution: str
    best: TunedTime
    baseline: TunedTime | None
    fastest: TunedTime

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "execution": self.execution,
            "best": self.best.to_json(),
            "best_daily": self.baseline.to_json() if self.baseline else None,
            "fastest": self.fastest.to_json(),
        }


def times_of_ties(workload: Workload, ties: Sequence[Tuned], condition: Condition) -> list[float]:
    """Modelled seconds of schedules that move the same; 0 where there is one, or no time is modelled."""
    rates = _rates(workload, ties[0], condition)
    if rates is None or len(ties) == 1:
        return [0.0] * len(ties)
    seconds = dict(each(lambda s: _seconds(workload, s, condition, rates, known=True), list(ties)))
    return [seconds[at] for at in range(len(ties))]


def tuned_times(
    workload: Workload, best: Tuned, baseline: Tuned | None, simulated: Sequence[Tuned], condition: Condition
) -> TuneTimes | None:
    """The modelled times of the best, of the best common one, and of the fastest; None where no time is modelled.

    All are timed by the bytes that they move, which are known; these three then wave by wave.

    Parameters
    ----------
    workload : Workload
    best, baseline : Tuned
        As they are shown.
    simulated : sequence of Tuned
        All that were, those too that were given up after the first condition.
    condition : Condition
        The first.
    """
    rates = _rates(workload, best, condition)
    if rates is None:
        return None
    quick = dict(each(lambda s: _seconds(workload, s, condition, rates, known=True), list(simulated)))
    near = [s for at, s in enumerate(simulated) if quick[at] <= _NEAR * min(quick.values())]
    fastest = min(near, key=lambda s: s.traffic[0].dram_bytes)
    three = [TunedTime(s, _seconds(workload, s, condition, rates)) for s in (best, baseline or best, fastest)]
    least = min(three, key=lambda single: single.seconds)  # in a tie the earlier one
    return TuneTimes(condition.name, three[0], three[1] if baseline else None, least)


def _rates(workload: Workload, result: Tuned, condition: Condition) -> Rates | None:
    """What its machine sustains; None where no time is modelled: no machine, a rate that its file lacks, or a skew."""
    machine = result.kernel.target.machine
    if machine is None or not (condition.execution.is_reference or condition.execution.is_asynchronous):
        return None
    try:
        return sustained_rates(machine, workload.dtype)
    except InputError:
        return None


def _seconds(workload: Workload, result: Tuned, condition: Condition, rates: Rates, known: bool = False) -> float:
    """The modelled time of one; from the bytes that it moves, if these are to be taken as known."""
    family, config = kernel_family(workload), result.kernel.config
    there = replace(config, execution=condition.execution)
    there = replace(there, cache_bytes=config.cache_bytes * condition.cache_percent // 100)
    given = result.schedule
    program = family.program(workload, family.read_schedule(given) if isinstance(given, TileTable) else given, there)
    if not known:
        return modelled_time(program, there, rates).seconds
    of_operands = [sum(each.values()) for each in result.traffic[0].by_operand().values()]
    groups = group_of_operands(program, len(of_operands))
    traffic = np.bincount(groups, of_operands, len(program.groups))
    return modelled_time(program, there, rates, dram_bytes=[int(each) for each in traffic]).seconds
