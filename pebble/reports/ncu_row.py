"""``ncu row``: a measured launch as a row of the library of measurements, beside what was predicted and proved."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from pebble.counters import MeasuredLaunch, Profile
from pebble.errors import InputError, UnknownNameError
from pebble.families import FAMILIES, kernel_family, read_workload
from pebble.reports.ncu_compare import Judgement, judge
from pebble.reports.report import Report
from pebble.reports.simulated_kernel import KernelOptions
from pebble.system.files import check_output, faults, read_bytes, shown
from pebble.units import format_bytes
from pebble.workloads.workload import Workload

# as benchmarks/hardware/library.py has them, which has to do without this package
SHAPE_COLUMNS = {
    "gemm": ("m", "n", "k"),
    "ffn": ("tokens", "d_model", "hidden", "gated"),
    "attention": ("queries", "keys", "head_dim", "heads", "kv_heads", "batch", "causal"),
    "cyclic-read": ("footprint_bytes",),
}
COLUMNS = (
    "date", "chip", "source", "family", *(name for names in SHAPE_COLUMNS.values() for name in names),
    "dtype", "tile", "stages", "blocks_per_sm", "order", "execution", "launch",
    "dram_read_bytes", "dram_write_bytes", "dram_bytes", "l2_read_sectors", "milliseconds", "bytes_per_second",
    "tool", "note",
)  # fmt: skip
LAUNCHES = ("persistent", "block-per-tile", "library")
END_OF_CASE = "end_of_case"  # the kernel that the kit launches after each case
_FLAGS = ("gated", "causal")


@dataclass(frozen=True, repr=False)
class MeasuredRow(Report):
    """A launch as a row.

    Attributes
    ----------
    judgement : Judgement
        Measured beside proved; its orders are empty where no order was named.
    row : mapping of str to str
        In the columns of the library.
    """

    judgement: Judgement
    row: Mapping[str, str]

    question = "ncu row"

    @property
    def predicted_bytes(self) -> int | None:
        """Reads that the named order was predicted to make; reads and writes where only their sum was measured."""
        near = self.judgement.nearest
        if near is None:
            return None
        return near.read_bytes + (0 if self.judgement.measured.read_bytes is not None else near.write_bytes)

    def summary(self) -> str:
        judged = self.judgement
        m = judged.measured
        amount = m.dram_bytes if m.read_bytes is None else m.read_bytes
        what = "moved" if m.read_bytes is None else "read"
        predicted = "none" if self.predicted_bytes is None else format_bytes(self.predicted_bytes)
        least = judged.bound.bound.bytes if m.read_bytes is None else judged.reads.least_bytes
        return (
            f"{judged.workload.label}, {self.row['order'] or 'order not said'}: measured {format_bytes(amount or 0)} "
            f"{what}, predicted {predicted}, proved at least {format_bytes(least)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """The one row, and what stands beside it."""
        return [
            {
                **self.row,
                "predicted_bytes": self.predicted_bytes,
                "proved_bytes": self.judgement.bound.bound.bytes,
                "proved_read_bytes": self.judgement.reads.least_bytes,
            }
        ]

    def document(self) -> dict[str, Any]:
        return {"row": dict(self.row), **self.rows()[0], "judgement": self.judgement.document()}


@dataclass(frozen=True)
class RunNotes:
    """What a report does not say of a run.

    Attributes
    ----------
    launched : {"persistent", "block-per-tile", "library"} or None
        How its blocks were launched; by default told by their number.
    note : str
    date : str or None
        Today's by default.
    """

    launched: str | None = None
    note: str = ""
    date: str | None = None


def measured_row(
    profile: Profile,
    workload: Workload | None = None,
    launches: Sequence[str] = (),
    schedule: str | None = None,
    spec: RunNotes | None = None,
    *,
    cold: bool | None = None,
    **options: Unpack[KernelOptions],
) -> MeasuredRow:
    """A report's launch as a row of the library.

    Parameters
    ----------
    profile, workload, launches, cold, **options
        As for `pebble.reports.ncu_compare.judge`; by default the blocks of a GPU run free.
    schedule : str, optional
        The order that the kernel walks, where known: then it is predicted.
    told : RunNotes, optional
        What the report does not say of the run.

    Raises
    ------
    InputError
        As `judge`; a family or launch that the library does not have; or a date that is none.
    """
    spec = RunNotes() if spec is None else spec
    day, launched = _day(spec.date), spec.launched
    if options.get("cache") is None:  # how fast blocks run is known of a GPU, not of a cache
        options.setdefault("execution", "free")
    judged = judge(profile, workload, launches, [schedule or "row"], cold=cold, **options)
    main = judged.comparison.kernel.config.execution
    compared = tuple(order for order in judged.orders if order.execution == main.name) if schedule else ()
    judged = replace(judged, orders=compared)
    family, config = judged.workload.family, judged.comparison.kernel.config
    if family not in SHAPE_COLUMNS:
        raise InputError(f"row: got {family}, expected {', '.join(list(SHAPE_COLUMNS)[:3])}, the library's families.")
    if launched is None:
        launched = "block-per-tile" if (judged.launches[0].blocks or 0) > 2 * config.sms else "persistent"
    if launched not in LAUNCHES:
        raise UnknownNameError("launch", launched, LAUNCHES, "pebble ncu row --help")
    machine, m = judged.machine, judged.measured
    result = MeasuredRow(judged, {})
    said = ""
    if result.predicted_bytes is not None:
        said = f"predicted {result.predicted_bytes} B {'moved' if m.read_bytes is None else 'read'}, "
    said += f"proved {judged.bound.bound.bytes} B read and written"
    sizes = judged.workload.values()
    values: dict[str, object] = {
        "date": day,
        "chip": machine.sku if machine else judged.launches[0].device or "unknown",
        "source": "own",
        "family": family,
        **{name: int(sizes[name]) for name in SHAPE_COLUMNS[family]},
        "dtype": judged.workload.dtype,
        "tile": judged.comparison.kernel.tile if schedule or options.get("tile") else "",
        "stages": judged.comparison.kernel.stages if schedule else "",
        "blocks_per_sm": config.blocks_per_sm if schedule else "",
        "order": schedule or (judged.launches[0].short_name if launched == "library" else ""),
        "execution": "free" if main.is_asynchronous else "waves",
        "launch": launched,
        "dram_read_bytes": _count(m.read_bytes),
        "dram_write_bytes": _count(m.write_bytes),
        "dram_bytes": _count(m.dram_bytes) if m.read_bytes is None else "",
        "l2_read_sectors": _count(_sum(judged.launches, "l2_read_sectors")),
        "milliseconds": "" if m.nanoseconds is None else round(m.nanoseconds / 1e6, 6),
        "tool": f"bytes and time: ncu, {'cold' if judged.cold else 'warm'} L2, {profile.layout} report read by pebble",
        "note": "; ".join(filter(None, (spec.note, said))),
    }
    return replace(result, row={name: str(values.get(name, "")) for name in COLUMNS})


def _day(date: str | None) -> str:
    """A date as the library has them; today's for none."""
    try:
        return (datetime.date.today() if date is None else datetime.date.fromisoformat(date)).isoformat()
    except ValueError:
        raise InputError(f"--date: got {date!r}, expected a day such as 2026-01-31.") from None


def _count(value: float | None) -> object:
    return "" if value is None else round(value)


def _sum(launches: Sequence[MeasuredLaunch], key: str) -> float | None:
    values = [launch.value(key) for launch in launches]
    return None if None in values else sum(value for value in values if value is not None)


def kit_rows(profile: Profile, plan: str | Path, **options: Unpack[KernelOptions]) -> Iterator[MeasuredRow]:
    """The rows of a report that the kit of benchmarks/gpu kept, case by case.

    Parameters
    ----------
    profile : Profile
        What ``measure.py run PLAN OUT.csv --reports FOLDER`` wrote.
    plan : str or Path
        PLAN.
    **options
        Where it ran, if the report does not say it.

    Raises
    ------
    InputError
        A report that is none of the kit's, or a plan that does not have its cases.
    """
    cases = _plan(plan)
    numbers = [number for line in profile.output if (number := _case(line)) is not None]
    here: list[MeasuredLaunch] = []
    done = iter(numbers)
    for launch in profile.launches:
        if not launch.kernel.startswith(END_OF_CASE):
            here.append(launch)
            continue
        at = next(done, None)
        if at is None or at >= len(cases) or not here:
            raise InputError(f"{shown(profile.path)}: its cases are not those of {shown(plan)}.")
        yield _kit_row(replace(profile, launches=tuple(here), output=()), cases[at], **options)
        here = []
    if not numbers:
        raise InputError(
            f"{shown(profile.path)}: no case in it; expected one that `measure.py run ... --reports FOLDER` wrote."
        )


def _plan(folder: str | Path) -> list[dict[str, str]]:
    path = Path(folder) / "plan.csv"
    text = read_bytes(path, "--plan: ", expected="; expected a folder of `make_tables.py plan`").decode(
        "utf-8", "replace"
    )
    cases = list(csv.DictReader(io.StringIO(text)))
    if not cases or not {"family", "tile", "order", "execution"} <= set(cases[0]):
        raise InputError(f"--plan: {shown(path)} is not what `make_tables.py plan` writes.")
    return cases


def _case(line: str) -> int | None:
    """The case that a line of the kit names."""
    try:
        result = json.loads(line[1:]) if line.startswith("#{") else {}
    except ValueError:
        return None
    number = result.get("case") if isinstance(result, dict) else None
    return number if isinstance(number, int) and number >= 0 else None


def _kit_row(profile: Profile, case: Mapping[str, str], **options: Unpack[KernelOptions]) -> MeasuredRow:
    family = case["family"]
    if family not in FAMILIES or family not in SHAPE_COLUMNS:
        raise InputError(f"--plan: got family {family!r}, expected one of {', '.join(list(SHAPE_COLUMNS)[:3])}.")
    sizes: dict[str, object] = {
        name: bool(int(case[name] or 0)) if name in _FLAGS else case[name] for name in SHAPE_COLUMNS[family]
    }
    workload = read_workload(family, {**sizes, "dtype": case["dtype"]})
    library = case["launch"] == "library"
    order = None if library or case["order"].startswith("tuned:") else case["order"]
    if order is not None:
        order = kernel_family(workload).read_schedule(order).name
    for name in ("tile", "stages", "blocks_per_sm"):
        if case.get(name):
            options[name] = case[name]
    options["execution"] = case["execution"]
    result = measured_row(
        profile, workload, [launch.ident for launch in profile.launches], order,
        RunNotes(case["launch"], case.get("note", "")), **options,
    )  # fmt: skip
    return replace(result, row={**result.row, "order": case["order"]})


def append_rows(path: str | Path, rows: Sequence[MeasuredRow]) -> None:
    """Add rows to a table of the library; a new file gets its header.

    Raises
    ------
    InputError
        A file with other columns, or one that cannot be written.
    """
    check_output(path, "--append", (".csv",))
    target = Path(path)
    initialised = target.exists() and target.stat().st_size > 0
    if initialised:
        first = read_bytes(target, "--append: ").decode("utf-8-sig", "replace").partition("\n")[0].strip()
        if tuple(first.split(",")) != COLUMNS:
            raise InputError(
                f"--append: {shown(path)} has other columns; expected a table of the library, or a new file."
            )
    with faults(path, "--append: ", "written"), open(target, "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not initialised:
            writer.writeheader()
        writer.writerows(result.row for result in rows)
