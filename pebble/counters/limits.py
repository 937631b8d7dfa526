"""Which kernel of a report matters, what each computes, and what limits it: how near each unit of the chip came to
its peak, and which came nearest.

A unit that was busy for a share p of the time needs that much for the same work, so whatever is done to the others, the
kernel takes at least p of its time. A kernel none of whose units comes near its peak waits, for data, for barriers, or
because it has too few blocks to fill the chip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pebble.counters.datatypes import TENSOR_AT_WORK, tensor_operations
from pebble.counters.names import Operation, kind_of
from pebble.counters.profile import MeasuredLaunch, Profile
from pebble.counters.shapes import multiply_adds
from pebble.errors import InputError

_FMA = "fma_instructions"


@dataclass(frozen=True)
class Critical:
    """The launch that the rest of a report is about.

    Attributes
    ----------
    launch : MeasuredLaunch
    why : str
        What tells.
    """

    launch: MeasuredLaunch
    why: str


def computes(launch: MeasuredLaunch) -> Operation:
    """What a launch computes: by its name, else a product where the tensor pipe is at work."""
    kind = kind_of(launch.kernel)
    if kind is Operation.OTHER and (launch.value("tensor_percent") or 0) >= TENSOR_AT_WORK:
        return Operation.GEMM
    return kind


def critical_kernel(launches: Sequence[MeasuredLaunch]) -> Critical:
    """The launch that matters most.

    The one that keeps the tensor pipe busy longest, or does most operations on it; where none does, products, networks
    and attention come before the rest, then FMA instructions, time and stored sectors decide, each where the report has
    it for all.
    """

    def of_all(key: str, among: Sequence[MeasuredLaunch]) -> list[float] | None:
        values = [multiply_adds(launch) if key == _FMA else launch.value(key) for launch in among]
        return [value for value in values if value is not None] if None not in values else None

    if len(launches) == 1:
        return Critical(launches[0], "the only one")
    busy = [launch for launch in launches if (launch.value("tensor_percent") or 0) >= TENSOR_AT_WORK]
    among, said = (
        (busy, "tensor pipe") if busy else ([o for o in launches if computes(o) is not Operation.OTHER], "name")
    )
    among = among or list(launches)
    tensor, time = of_all("tensor_percent", among), of_all("time_nanoseconds", among)
    if busy and tensor is not None:
        work = [percent * took for percent, took in zip(tensor, time, strict=True)] if time else tensor
        return Critical(among[work.index(max(work))], "the tensor pipe is busy longest in it")
    on_tensor_cores = [sum(tensor_operations(launch).values()) for launch in launches]
    if not busy and max(on_tensor_cores) > 0:
        most = launches[on_tensor_cores.index(max(on_tensor_cores))]
        return Critical(most, "most operations on tensor cores")
    for key, why in (
        (_FMA, "most FMA instructions"),
        ("time_nanoseconds", "longest"),
        ("l1_store_sectors", "most stored sectors"),
        ("dram_bytes", "most DRAM bytes"),
    ):
        values = of_all(key, among)
        if values is not None and max(values) > 0:
            by_name = said == "name" and len(among) < len(launches)
            why += " of the products, networks and attentions" * by_name
            return Critical(among[values.index(max(values))], why)
    return Critical(among[0], "the first; no counter tells")


def choose(profile: Profile, wanted: Sequence[str] = ()) -> tuple[tuple[MeasuredLaunch, ...], str]:
    """The launches that are asked for, and why these.

    Parameters
    ----------
    profile : Profile
    wanted : sequence of str
        IDs, or parts of names; of a name every launch. Without any, the critical kernel.

    Raises
    ------
    InputError
        No launch has that ID or name.
    """
    if not wanted:
        result = critical_kernel(profile.launches)
        return (result.launch,), result.why
    slowest: list[MeasuredLaunch] = []
    for want in wanted:
        here = [launch for launch in profile.launches if launch.ident == want]
        here = here or [launch for launch in profile.launches if want and want in launch.kernel]
        if not here:
            names = ", ".join(dict.fromkeys(launch.short_name for launch in profile.launches[:6]))
            last = len(profile.launches) - 1
            raise InputError(
                f"--launch: no launch has the ID or name {want[:60]!r}; expected an ID such as "
                f"{profile.launches[last].ident}, or a part of {names}."
            )
        slowest += [launch for launch in here if not any(launch is other for other in slowest)]
    return tuple(slowest), "asked for"


NEAR_PEAK = 60.0  # percent of a unit's peak from which Nsight Compute calls it well used
TELLS_ALONE = 80.0  # percent that tells even where other units were not measured
_ALIKE = 0.9  # of what its SM is busy with: the pipe that keeps it so
_PIPES = {
    "tensor_percent": "the tensor pipe",
    "fma_percent": "the fp32 pipe",
    "double_percent": "the fp64 pipe",
    "issue_percent": "the issue of instructions",
}
_MULTIPLY = ("tensor_percent", "fma_percent", "double_percent")
_UNITS = {"sm_percent": "SMs", "l1_percent": "L1", "l2_percent": "L2", "dram_percent": "DRAM"}
_BOUND = {
    "dram": "memory-bound", "memory": "memory-bound", "cache": "cache-bound", "compute": "compute-bound",
    "sm": "SM-bound", "waiting": "latency-bound",
}  # fmt: skip
_MOST_INSTRUCTIONS = 4  # a cycle: one of each of an SM's four schedulers
_MAIN = {"sm_percent": "sm__throughput", "l2_percent": "lts__throughput", "dram_percent": "dram__throughput"}


@dataclass(frozen=True)
class Limit:
    """What limits some launches, with its evidence.

    Attributes
    ----------
    kind : {"compute", "sm", "cache", "dram", "memory", "waiting", "not-dram", "unknown"}
        ``compute``: a pipe that multiplies; ``sm``: the SMs otherwise, or the report does not say by which pipe;
        ``memory``: DRAM, or L2, which the report does not say; ``waiting``: no unit reaches `NEAR_PEAK`; ``not-dram``:
        what it is the report does not say.
    text : str
        In a sentence.
    shares : mapping of str to float
        Percent of its peak that each unit reached over the whole time, where it is known.
    dram_bytes_per_second : float or None
        Measured.
    instructions_a_cycle : float or None
        That an SM executed, of all cycles or, as ``while_active`` says, of those in which it had a warp.
    while_active : bool
    """

    kind: str
    text: str
    shares: Mapping[str, float]
    dram_bytes_per_second: float | None
    instructions_a_cycle: float | None = None
    while_active: bool = False

    @property
    def bound(self) -> str:
        """The verdict in a word: memory-, cache-, compute-, SM- or latency-bound; empty where it is not told."""
        return _BOUND.get(self.kind, "")

    @property
    def evidence(self) -> str:
        """Instructions a cycle against the rate of DRAM, and the pipes, in words; and what is lacking of it."""
        rate, cycle = self.dram_bytes_per_second, self.instructions_a_cycle
        said, lacking = [], []
        if cycle is None:
            lacking.append("sm__inst_executed.avg.per_cycle_elapsed")
        else:
            when = " while it has warps" if self.while_active else ""
            said.append(f"{cycle:.2f} of {_MOST_INSTRUCTIONS} instructions a cycle and SM{when}")
        if rate is None and "dram_percent" not in self.shares:
            lacking.append("dram__bytes.sum and gpu__time_duration.sum")
        else:
            parts = [] if rate is None else [f"{rate / 1e9:,.4g} GB/s"]
            parts += [f"{self.shares['dram_percent']:.1f} % of the peak"] if "dram_percent" in self.shares else []
            said.append(f"DRAM {', '.join(parts)}")
        if "l2_percent" in self.shares:
            said.append(f"L2 {self.shares['l2_percent']:.1f} %")
        said += [f"{_PIPES[key]} {self.shares[key]:.1f} %" for key in _MULTIPLY if self.shares.get(key, 0.0) >= 0.1]
        ask = [f"profile {', '.join(lacking)}{' for the rest' * bool(said)}"] * bool(lacking)
        return "; ".join((said or ["none"]) + ask)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        rate = self.dram_bytes_per_second
        return {
            "verdict": self.kind, "bound": self.bound or None, "text": self.text, "evidence": self.evidence,
            "dram_bytes_per_second": rate, "instructions_a_cycle": self.instructions_a_cycle, **self.shares,
        }  # fmt: skip


def limit_of(launches: Sequence[MeasuredLaunch], dram_peak: float | None = None) -> Limit:
    """What limits some launches, one after the other.

    Parameters
    ----------
    launches : sequence of MeasuredLaunch
    dram_peak : float, optional
        Peak of the GPU's DRAM in bytes a second, for a report that does not say how near it came; by default by the
        report's attributes: two transfers a clock on all wires.

    Examples
    --------
    >>> from pebble.counters import Metric
    >>> tiled = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": Metric(88.9, "%")}
    >>> limit_of([MeasuredLaunch("0", "gemm", tiled)]).kind
    'sm'
    """
    times = [launch.value("time_nanoseconds") or 0.0 for launch in launches]
    traffic = [launch.value("dram_bytes") for launch in launches]
    rate = sum(b for b in traffic if b is not None) / sum(times) * 1e9 if None not in traffic and all(times) else None
    shares = {key: share for key in (*_UNITS, *_PIPES) if (share := _share(launches, times, key)) is not None}
    clock, bits = launches[0].value("memory_clock_hz"), launches[0].value("memory_bus_bits")
    peak = dram_peak or (2 * clock * bits / 8 if clock and bits else None)
    if "dram_percent" not in shares and rate is not None and peak:
        shares["dram_percent"] = 100 * rate / peak
    pipes = {key: shares[key] for key in _PIPES if key in shares}
    told = "sm_percent" in shares or {"issue_percent", "tensor_percent"} <= pipes.keys()
    if pipes and (told or max(pipes.values()) >= NEAR_PEAK):  # the SMs are as busy as their busiest pipe
        shares["sm_percent"] = max(shares.get("sm_percent", 0.0), *pipes.values())
    units = {key: shares[key] for key in _UNITS if key in shares}
    kind, text = _verdict(units, pipes, rate, [launch.blocks for launch in launches], launches[0].value("sms"))
    cycle, active = _instructions(launches, times)
    return Limit(kind, f"{_BOUND[kind]}: {text}" if kind in _BOUND else text, shares, rate, cycle, active)


def _instructions(launches: Sequence[MeasuredLaunch], times: Sequence[float]) -> tuple[float | None, bool]:
    """Instructions a cycle over the time of all launches, and whether only cycles with a warp are counted."""
    results = [item for launch in launches if (item := launch.find("instructions_a_cycle")) is not None]
    active = any(" Active" in item.metric or "active_cycle" in item.metric for item in results)
    active = active or any(item.metric.endswith("_active") for item in results)
    if len(results) < len(launches) or (len(results) > 1 and not all(times)):
        return None, active
    weights = times if len(results) > 1 else [1.0]
    return sum(item.value * w for item, w in zip(results, weights, strict=True)) / sum(weights), active


def _share(launches: Sequence[MeasuredLaunch], times: Sequence[float], key: str) -> float | None:
    """Percent of the peak over the whole time of all launches; None where one does not say, or says it otherwise."""
    results = [launch.find(key) for launch in launches]
    known = [item.value for item in results if item is not None and not item.metric.endswith("sustained_active")]
    if len(known) < len(launches):
        return None
    if len(known) == 1:
        return known[0]
    return sum(share * time for share, time in zip(known, times, strict=True)) / sum(times) if all(times) else None


def _verdict(
    units: Mapping[str, float],
    pipes: Mapping[str, float],
    rate: float | None,
    blocks: Sequence[int | None],
    sms: float | None,
) -> tuple[str, str]:
    """What limits, and the sentence that says so."""
    traffic = "" if rate is None else f"{rate / 1e9:,.4g} GB/s"
    dram = units.get("dram_percent")
    said = ", ".join(f"{_UNITS[key]} {share:.1f} %" for key, share in units.items())
    unsaid = [f"{name}.avg.pct_of_peak_sustained_elapsed" for key, name in _MAIN.items() if key not in units]
    ask = f"; profile {', '.join(unsaid)}" if unsaid else ""
    most = max(units, key=lambda key: units[key], default="")
    share = units.get(most, 0.0)
    if share >= (TELLS_ALONE if unsaid else NEAR_PEAK):
        if most == "dram_percent":
            others = said.replace(f", DRAM {share:.1f} %", "")
            context = f" ({others})" if others != said else ""
            return "dram", f"DRAM, at {share:.1f} % of its peak{context}: fewer bytes make it faster"
        kind, what = "cache", f"{_UNITS[most]}, at {share:.1f} % of its peak"
        if most == "sm_percent":
            kind, pipe = _pipe_of(share, pipes)
            what = f"the SMs, at {share:.1f} % of their peak ({pipe})"
        of_dram = ", ".join(([] if dram is None else [f"{dram:.1f} % of its peak"]) + [traffic] * bool(traffic))
        whether = "and nearly DRAM" if dram is not None and dram >= NEAR_PEAK else "not DRAM"
        context = f" ({of_dram})" if of_dram else ""
        # fills from DRAM are work of the caches too, none of the SMs'
        gain = (
            f"fewer DRAM bytes alone make it at most {100 / min(share, 100):.2f}x as fast"
            if most == "sm_percent"
            else "fewer DRAM bytes help as far as they ease the caches too"
        )
        return kind, f"{what}, {whether}{context}: {gain}"
    if dram is not None and most == "dram_percent" and dram >= NEAR_PEAK and "sm_percent" in units:
        return "memory", (
            f"DRAM, at {dram:.1f} % of its peak, before the SMs ({units['sm_percent']:.1f} %); whether L2 is still "
            f"nearer to its own, the report does not say{ask}"
        )
    if dram is None or dram >= NEAR_PEAK:
        return "unknown", f"not told{': ' * bool(said)}{said}{' of the peak' * bool(said)}{ask}"
    if unsaid:
        return "not-dram", f"not the bandwidth of DRAM: {said} of the peak; what else, the report does not say{ask}"
    unseen = "" if "l1_percent" in units else ", or L1 is busy, which the report does not say"
    low = f"nothing reaches {NEAR_PEAK:.0f} % of its peak ({said})"
    most_blocks = max((count for count in blocks if count is not None), default=0)
    few = f"{most_blocks:,} block{'s' * (most_blocks != 1)} for {sms:.0f} SMs" if sms and None not in blocks else ""
    if few and most_blocks < (sms or 0):
        return "waiting", f"{low}: {few}, too few to fill the chip{unseen}"
    return "waiting", f"{low}: the kernel waits, or has too few blocks to fill the chip{unseen}"


def _pipe_of(share: float, pipes: Mapping[str, float]) -> tuple[str, str]:
    """Which pipe is as busy as the SMs are."""
    for key, pipe in sorted(pipes.items(), key=lambda item: -item[1]):
        if pipe >= _ALIKE * share:
            return "compute" if key in _MULTIPLY else "sm", _PIPES[key]
    return "sm", "by which pipe, the report does not say"
