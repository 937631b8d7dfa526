"""How long what ``tune`` found takes by the model, and the joules: fewer bytes need not be less time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.families.spaces.candidate import program_of
from pebble.models.machine import Machine
from pebble.reports.kernel_time import MILLI
from pebble.reports.tuned import Tuned
from pebble.system.parallel import each
from pebble.timing.power import Power, Sustained, both_times, power_of
from pebble.timing.sustained import Rates, sustained_rates
from pebble.timing.waves import modelled_time
from pebble.tuning import Candidate, Condition, timed_by_traffic
from pebble.workloads.workload import Workload

_NEAR = 1.01  # times the least by the bytes that are known: of these the one that moves least is simulated again


class TunedTime(NamedTuple):
    """A schedule that was found, and its modelled time: of a single launch, and run again and again."""

    schedule: Tuned
    seconds: float
    sustained: Sustained | None = None

    @property
    def ranked_seconds(self) -> float:
        """Sustained, where that is modelled."""
        return self.seconds if self.sustained is None else self.sustained.seconds

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        s, again = self.schedule, self.sustained
        return {
            "name": s.name,
            "tile": s.kernel.tile,
            "modelled_ms": self.seconds * MILLI,
            "single_ms": self.seconds * MILLI,
            "sustained_ms": None if again is None else again.seconds * MILLI,
            "joules": None if again is None else again.total_joules,
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
        Of the schedule that was ranked first.
    baseline : TunedTime or None
        Of the best common order.
    fastest : TunedTime
        Of all that were simulated, under this execution.
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


class Clocked(NamedTuple):
    """Times schedules of one workload under one condition.

    Attributes
    ----------
    workload : Workload
    condition : Condition
    rates : Rates
    power : Power or None
    """

    workload: Workload
    condition: Condition
    rates: Rates
    power: Power | None

    @classmethod
    def of(cls, workload: Workload, machine: Machine | None, sms: int, condition: Condition) -> Clocked | None:
        """None where no time is modelled: no machine, a rate that its file lacks, or a skew."""
        if machine is None or not (condition.execution.is_reference or condition.execution.is_asynchronous):
            return None
        try:
            rates = sustained_rates(machine, workload.dtype)
        except InputError:
            return None
        return cls(workload, condition, rates, power_of(machine, workload.dtype, sms))

    def by_bytes(self, result: Tuned) -> TunedTime:
        """From the bytes that it moves, which are known: milliseconds."""
        config = self.condition.of(result.kernel.config)
        candidate = Candidate(result.schedule, config)
        family = kernel_family(self.workload)
        return TunedTime(
            result,
            *timed_by_traffic(family, self.workload, candidate, config, result.traffic[0], self.rates, self.power),
        )

    def by_waves(self, result: Tuned) -> TunedTime:
        """Simulated again, wave by wave, as `pebble.time` does."""
        config = self.condition.of(result.kernel.config)
        program = program_of(kernel_family(self.workload), self.workload, Candidate(result.schedule, config))
        time = modelled_time(program, config, self.rates)
        time, again = both_times(program, config, time, self.power)
        return TunedTime(result, time.seconds, again)


def times_of_ties(clocked: Clocked | None, ties: Sequence[Tuned]) -> list[float]:
    """Modelled seconds of schedules that move the same; 0 where there is one, or no time is modelled."""
    if clocked is None or len(ties) == 1:
        return [0.0] * len(ties)
    timed = dict(each(clocked.by_bytes, list(ties)))
    return [timed[at].seconds for at in range(len(ties))]


def tuned_times(
    clocked: Clocked | None,
    best: Tuned,
    baseline: Tuned | None,
    simulated: Sequence[Tuned],
    late: Callable[[], bool],
) -> TuneTimes | None:
    """The modelled times of the best, of the best common one, and of the fastest; None where no time is modelled.

    All are timed by the bytes that they move, which are known; these three then wave by wave.

    Parameters
    ----------
    clocked : Clocked or None
        Under the first condition.
    best, baseline : Tuned
        As they are shown.
    simulated : sequence of Tuned
        All that were, those too that were given up after the first condition.
    late : callable
        Whether the time is over: what is not timed wave by wave by then keeps its first time.
    """
    if clocked is None:
        return None
    quick = dict(each(clocked.by_bytes, list(simulated)))
    least = min(timed.ranked_seconds for timed in quick.values())
    near = [timed.schedule for _, timed in sorted(quick.items()) if timed.ranked_seconds <= _NEAR * least]
    fastest = min(near, key=lambda s: s.traffic[0].dram_bytes)
    schedules = [best, baseline or best, fastest]
    three = [clocked.by_bytes(schedule) for schedule in schedules]
    for at, timed in each(clocked.by_waves, schedules, over=late):
        three[at] = timed
    least_of_three = min(three, key=lambda single: single.ranked_seconds)  # in a tie the earlier one
    return TuneTimes(clocked.condition.name, three[0], three[1] if baseline else None, least_of_three)
