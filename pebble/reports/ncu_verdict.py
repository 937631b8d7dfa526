"""What measured reads and writes mean beside a proved least: what is short of it, what is beyond, what would help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pebble.counters import MeasuredLaunch, Profile
from pebble.reports.kernel_compare import Comparison
from pebble.reports.simulated_kernel import Bounded
from pebble.units import format_bytes, format_ratio
from pebble.workloads.workload import Workload

_ROUNDING = 0.02  # of a counter against a whole operand: ECC, instructions, other small traffic
_CLOSE = 1.10
_SLOW_CLOCK = 0.97


@dataclass(frozen=True)
class Verdict:
    """Reads or writes of DRAM beside the least.

    Attributes
    ----------
    kind : str
        ``unknown``, ``below``, ``least``, ``close`` or ``beyond``.
    measured_bytes : float or None
    least_bytes : int
        What a kernel that begins cold and writes its result once must read, or write.
    text : str
        In a sentence.
    """

    kind: str
    measured_bytes: float | None
    least_bytes: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "verdict": self.kind, "measured_bytes": self.measured_bytes, "least_bytes": self.least_bytes,
            "text": self.text,
        }  # fmt: skip


def read_and_written(workload: Workload) -> tuple[int, int]:
    """Bytes of the operands that are read, and of those that are written."""
    return (
        sum(operand.bytes for operand in workload.operands if operand.read),
        sum(operand.bytes for operand in workload.operands if operand.written),
    )


def verdict_on_reads(
    measured: float | None, written: float | None, workload: Workload, bound: Bounded, compared: Comparison, cold: bool
) -> Verdict:
    """Reads against the inputs and against the proved traffic less what is written.

    The bound is on reads and writes together, and holds for what reaches DRAM in the end. A kernel that stores each
    result once writes exactly the result, so its reads are at least the rest. One whose counters show more than the
    result, such as a feed-forward network of two kernels, writes at most those and an L2 full of what is still dirty.
    """
    inputs, outputs = read_and_written(workload)
    l2 = compared.kernel.config.cache_bytes
    once = written is None or written <= (1 + _ROUNDING) * outputs
    least = max(inputs, bound.bound.bytes - (outputs if once or written is None else int(written) + l2))
    if measured is None:
        return Verdict("unknown", None, least, "reads: not in the report")
    said = f"reads: {format_bytes(measured)} measured"
    if measured < (1 - _ROUNDING) * least:
        few = measured < (1 - _ROUNDING) * inputs
        short, of = (inputs, "the inputs") if few else (least, "the proved least")
        if measured < (1 - _ROUNDING) * short - l2:
            full = "of them" if few else "at the start"
            why = (
                f"even an L2 of {format_bytes(l2)} full {full} does not explain it: another workload, or operands "
                "that share memory"
            )
        elif cold:
            who = "they" if few else "inputs"
            why = f"so {who} were in L2 before (`--cache-control none`), share memory, or the workload is another one"
        else:
            why = "the rest was in L2 before"
        return Verdict("below", measured, least, f"{said}. That is less than {of} ({format_bytes(short)}): {why}")
    ratio = measured / least
    if measured <= (1 + _ROUNDING) * least:
        text = f"{said}. No order reads less: {format_bytes(least)} is the proved least, the same to {_ROUNDING:.0%}"
        return Verdict("least", measured, least, text)
    kind = "close" if ratio <= _CLOSE else "beyond"
    whose = "for a kernel that writes its result once" if once else "with as much written as was"
    text = f"{said}. The proved least {whose} is {format_bytes(least)}: a ratio of {format_ratio(ratio, '.2f')}"
    best = min(compared.orders, key=lambda t: t.dram_read_bytes, default=None)
    most = max((t.dram_read_bytes for t in compared.orders), default=0)
    seen = f"of the {len(compared.orders)} orders simulated"
    if best is not None and len(compared.orders) > 1 and most <= (1 + _ROUNDING) * best.dram_read_bytes < measured:
        text += (
            f". By the model each {seen} reads about {format_bytes(best.dram_read_bytes)}: what is beyond is not the "
            "order's doing but other traffic, whole lines fetched for a sector, or another cache"
        )
    elif best is not None and best.dram_read_bytes < 0.97 * measured:
        saved = 1 - best.dram_read_bytes / measured
        text += f". By the model order {best.order} would read {format_bytes(best.dram_read_bytes)}, {saved:.0%} less"
    elif best is not None:
        none = f"none {seen}" if len(compared.orders) > 1 else "not even the one order simulated"
        text += f". By the model {none} reads notably less (`pebble tune` searches for more)"
    return Verdict(kind, measured, least, text)


def verdict_on_writes(measured: float | None, workload: Workload, compared: Comparison) -> Verdict:
    """Writes against the result: what is short of it is still dirty in L2, what is beyond was written twice."""
    _, outputs = read_and_written(workload)
    if measured is None:
        return Verdict("unknown", None, outputs, "writes: not in the report")
    l2 = compared.kernel.config.cache_bytes
    said = f"writes: {format_bytes(measured)}"
    if measured < (1 - _ROUNDING) * outputs - l2:
        return Verdict(
            "below", measured, outputs,
            f"{said}, short of the result ({format_bytes(outputs)}) by more than L2 holds: another workload or type",
        )  # fmt: skip
    if measured < (1 - 1e-3) * outputs:
        left = format_bytes(outputs - measured)
        return Verdict(
            "below", measured, outputs,
            f"{said} of a result of {format_bytes(outputs)}: {left} are still dirty in L2 when the counters are read; "
            "they are written later, so this is no traffic saved",
        )  # fmt: skip
    if measured <= (1 + _ROUNDING) * outputs:
        return Verdict("least", measured, outputs, f"{said}, the result once")
    extra = format_bytes(measured - outputs)
    text = f"{said}, {extra} more than the result: partial sums, sectors written in parts, or other results"
    return Verdict("close" if measured <= _CLOSE * outputs else "beyond", measured, outputs, text)


def notes_of(
    profile: Profile, launches: Sequence[MeasuredLaunch], exact: bool, cold: bool, compared: Comparison
) -> list[str]:
    """What a reader must know of the measurement."""
    notes = []
    if len(launches) > 1:
        notes.append(f"{len(launches)} launches are added up: {', '.join(launch.ident for launch in launches[:12])}")
    spec = profile.option("cache-control", "all")
    if cold and spec is None:
        notes.append(
            "taken as measured from an empty L2, as ncu leaves it (`--cache-control all`); `--warm` says otherwise: "
            "then the bound, which counts every first load, holds less an L2 full of them"
        )
    elif cold:
        notes.append(f"measured from an empty L2 (`--cache-control {spec}`)")
    else:
        notes.append(
            f"measured from a warm L2: up to {format_bytes(compared.kernel.config.cache_bytes)} of inputs may have "
            "been there, so the bounds, which count every first load, hold less that much; orders are simulated cold"
        )
    if not exact:
        notes.append("DRAM bytes are worked out from figures of three digits: 0.5 % either way")
    launch = launches[0]
    passes = launch.value("passes")
    if passes is not None and passes > 1:
        notes.append(
            f"{passes:.0f} passes: the kernel was replayed so often and each counter is of one of them, so counters "
            "need not add up and hit rates may exceed 100 %; blocks that run free drift differently each time"
        )
    replay = profile.option("replay-mode", "kernel")
    if replay is not None and replay != "kernel":
        notes.append(f"replayed by {replay} (`--replay-mode {replay}`): between passes the program ran again")
    elif passes is None and replay is None:
        notes.append("the report does not say in how many passes it was taken")
    locked = profile.option("clock-control", "base")
    how = {
        None: "locked by ncu (`--clock-control base`) or throttled",
        "none": "by their load (`--clock-control none`)",
    }
    clock, most = launch.value("sm_clock_hz"), launch.value("most_clock_hz")
    if clock and most and clock < _SLOW_CLOCK * most:
        notes.append(
            f"SMs at {clock / 1e9:.2f} of {most / 1e9:.2f} GHz: {how.get(locked, 'locked by ncu')}; time depends "
            "on it, bytes hardly"
        )
    fabric, lookups = launch.value("l2_fabric_sectors"), launch.value("l2_sectors")
    if fabric and lookups:
        text = (
            f"{fabric / lookups:.0%} of the L2 look-ups come from the other partition, a second look-up of one access"
        )
        hits = [launch.value(key) for key in ("l2_sm_hit_sectors", "l2_fabric_hit_sectors", "l2_sm_sectors")]
        if hits[0] is not None and hits[1] is not None and hits[2]:
            text += f"; of what SMs ask {min(1.0, (hits[0] + hits[1]) / hits[2]):.1%} is found in either"
        notes.append(f"{text}: compare DRAM bytes, not hit rates")
    blocks, sms = launch.blocks, compared.kernel.config.sms
    if blocks is not None:
        fit = "all may be resident at once" if blocks <= 2 * sms else "each begins where one ended: they run free"
        notes.append(f"{blocks:,} block{'s' * (blocks != 1)} on {sms} SMs: {fit}")
    return notes
