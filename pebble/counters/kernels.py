"""Which kernel of a report matters, and what each computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pebble.counters.names import Operation, kind_of
from pebble.counters.profile import MeasuredLaunch, Profile
from pebble.counters.shapes import multiply_adds
from pebble.errors import InputError

_FMA = "fma_instructions"
_TENSOR_AT_WORK = 1.0  # percent of the time; below, a stray instruction


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
    if kind is Operation.OTHER and (launch.value("tensor_percent") or 0) >= _TENSOR_AT_WORK:
        return Operation.GEMM
    return kind


def critical_kernel(launches: Sequence[MeasuredLaunch]) -> Critical:
    """The launch that matters most.

    The one that keeps the tensor pipe busy longest; where none does, products, networks and attention come before the
    rest, then FMA instructions, time and stored sectors decide, each where the report has it for all.
    """

    def of_all(key: str, among: Sequence[MeasuredLaunch]) -> list[float] | None:
        values = [multiply_adds(launch) if key == _FMA else launch.value(key) for launch in among]
        return [value for value in values if value is not None] if None not in values else None

    if len(launches) == 1:
        return Critical(launches[0], "the only one")
    busy = [launch for launch in launches if (launch.value("tensor_percent") or 0) >= _TENSOR_AT_WORK]
    among, said = (
        (busy, "tensor pipe") if busy else ([o for o in launches if computes(o) is not Operation.OTHER], "name")
    )
    among = among or list(launches)
    tensor, time = of_all("tensor_percent", among), of_all("time_nanoseconds", among)
    if busy and tensor is not None:
        work = [percent * took for percent, took in zip(tensor, time, strict=True)] if time else tensor
        return Critical(among[work.index(max(work))], "the tensor pipe is busy longest in it")
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
    chosen: list[MeasuredLaunch] = []
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
        chosen += [launch for launch in here if not any(launch is other for other in chosen)]
    return tuple(chosen), "asked for"
