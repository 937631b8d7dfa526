"""``ncu law``: the laws that the counters of a kernel follow over a sweep of sizes."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebble.counters import MeasuredLaunch, read_profile
from pebble.counters.datatypes import tensor_operations
from pebble.counters.laws import ALLOWED, Growth, Sweep, fit_law
from pebble.counters.limits import choose
from pebble.counters.profile import check_one_gpu, several_names
from pebble.counters.quantities import QUANTITIES
from pebble.errors import InputError
from pebble.reports.report import Report
from pebble.reports.target import whole
from pebble.system.files import check_path, read_bytes, shown

_SWEPT = (
    "time_nanoseconds", "dram_bytes", "dram_read_bytes", "dram_write_bytes", "l2_sectors", "l1_load_sectors",
    "l1_store_sectors", "fma_instructions", "half_fma_instructions", "double_fma_instructions", "instructions",
)  # fmt: skip
_SIZES = ("n", "size", "sizes", "tokens", "length")
_MOST = 2**32


@dataclass(frozen=True, repr=False)
class Swept(Report):
    """What ``pebble ncu law`` found.

    Attributes
    ----------
    laws : mapping of str to (Sweep, str)
        Of each counter, in words, with its unit.
    kernels : tuple of str
        Name of the kernel at each size; empty for a table.
    notes : tuple of str
    """

    laws: dict[str, tuple[Sweep, str]]
    kernels: tuple[str, ...]
    notes: tuple[str, ...]

    question = "ncu law"

    @property
    def fits(self) -> bool:
        """Whether one law, and no other, is left for every counter."""
        return all(len(sweep.laws) == 1 for sweep, _ in self.laws.values())

    def summary(self) -> str:
        return "; ".join(f"{what}: {sweep.text(unit)}" for what, (sweep, unit) in self.laws.items())

    def rows(self) -> list[dict[str, Any]]:
        """A row a counter: its law, or the nearest."""
        return [
            {
                "counter": what,
                "unit": unit,
                "law": sweep.laws[0].name if sweep.laws else None,
                "others": [law.name for law in sweep.laws[1:]],
                **_figures(sweep.best),
                "power": sweep.power,
                "power_error": sweep.power_error,
                "text": sweep.text(unit),
            }
            for what, (sweep, unit) in self.laws.items()
        ]

    def document(self) -> dict[str, Any]:
        return {
            "sizes": list(next(iter(self.laws.values()))[0].sizes),
            "kernels": list(self.kernels),
            "allowed": ALLOWED,
            "laws": self.rows(),
            "notes": list(self.notes),
        }


def _figures(law: Growth) -> dict[str, Any]:
    return {
        "nearest": law.name, "constant": law.constant, "offset": law.offset, "off_by_at_most": law.worst,
        "residual": law.residual,
    }  # fmt: skip


def recover_laws(
    files: str | Path | Sequence[str | Path], sizes: str | Sequence[int] | None = None, *, launch: str | None = None
) -> Swept:
    """The law of each counter of a sweep over sizes, or that none fits.

    Parameters
    ----------
    files : str, Path or a sequence of these
        Reports of Nsight Compute, one a size, or one with a launch a size; or one CSV file with a column ``n`` and any
        others of numbers.
    sizes : str or sequence of int, optional
        N, in the order of the reports or launches: ``"256,512,1024,2048"``; not for a CSV file, which has them.
    launch : str, optional
        ID or part of a name; of several reports the critical kernel by default, of one all launches.

    Raises
    ------
    InputError
        Sizes that are missing or do not match, launches of several GPUs, or no counter above zero at all sizes.
    """
    paths = [files] if isinstance(files, str | Path) else list(files)
    if not paths:
        raise InputError("law: got no file, expected reports or a table with the column n.")
    if sizes is None:
        if len(paths) > 1:
            raise InputError("--sizes: missing; expected N of each report, such as --sizes 256,512,1024,2048.")
        return _swept(*_read_table(paths[0]), (), ())
    lengths = [whole("--sizes", part, 2, _MOST) for part in (sizes.split(",") if isinstance(sizes, str) else sizes)]
    wanted = [launch] if launch is not None else []
    profiles = [read_profile(path) for path in paths]
    if len(paths) > 1:
        launches = [choose(profile, wanted)[0][0] for profile in profiles]
    else:
        launches = list(choose(profiles[0], wanted)[0]) if wanted else list(profiles[0].launches)
    what = "reports" if len(paths) > 1 else "launches"
    if len(lengths) != len(launches):
        raise InputError(f"--sizes: got {len(lengths)} sizes for {len(launches)} {what}, expected one for each.")
    check_one_gpu(launches, "law")
    columns = {name: (column, unit) for name, unit, column in _counters(launches)}
    names = tuple(item.short_name for item in launches)
    notes = tuple(dict.fromkeys(note for profile in profiles for note in profile.notes))
    return _swept(lengths, columns, names, notes + several_names(names))


def _counters(launches: Sequence[MeasuredLaunch]) -> list[tuple[str, str, list[float | None]]]:
    """Name, unit and values of each counter."""
    results: list[tuple[str, str, list[float | None]]] = [
        (QUANTITIES[key].what, QUANTITIES[key].unit, [launch.value(key) for launch in launches]) for key in _SWEPT
    ]
    operations = [sum(tensor_operations(launch).values()) or None for launch in launches]
    return [*results, ("operations on tensor cores", "", operations)]


def _swept(
    sizes: Sequence[int],
    columns: dict[str, tuple[list[float | None], str]],
    kernels: tuple[str, ...],
    notes: tuple[str, ...],
) -> Swept:
    laws, lacking = {}, []
    for name, (column, unit) in columns.items():
        values = [value for value in column if value is not None and value > 0]
        if len(values) == len(sizes):
            laws[name] = fit_law(sizes, values), unit
        elif values:
            lacking.append(name)
    if not laws:
        raise InputError("law: no counter is there at all sizes and above zero; expected one, such as dram__bytes.sum.")
    said = (f"not at all sizes, and left out: {', '.join(lacking)}",) * bool(lacking)
    return Swept(laws, kernels, notes + said)


def _read_table(path: str | Path) -> tuple[list[int], dict[str, tuple[list[float | None], str]]]:
    """Sizes, and the other columns of a table."""
    raw = read_bytes(check_path("law", path), "law: ")
    try:
        rows = [] if b"\0" in raw else list(csv.reader(io.StringIO(raw.decode("utf-8-sig", "replace"))))
    except csv.Error as error:
        raise InputError(f"law: {shown(path)}: {error}; expected a CSV file.") from None
    header = [cell.strip() for cell in rows[0]] if rows else []
    at = next((number for number, name in enumerate(header) if name.lower() in _SIZES), None)
    if at is None or len(header) < 2:
        raise InputError(
            f"law: {shown(path)}: expected a table with a column n (or size, tokens) beside others of numbers; of "
            "reports, expected --sizes."
        )
    sizes: list[int] = []
    found: dict[str, tuple[list[float | None], str]] = {
        name: ([], "") for number, name in enumerate(header) if number != at and name
    }
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise InputError(
                f"law: {shown(path)}, line {line}: got {len(row)} cells, expected {len(header)}; it may be cut off."
            )
        sizes.append(whole(f"law: {shown(path)}, line {line}, {header[at]}", row[at].strip(), 2, _MOST))
        for number, name in enumerate(header):
            if name in found and number != at:
                found[name][0].append(_number(path, line, name, row[number].strip()))
    return sizes, found


def _number(path: str | Path, line: int, name: str, text: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"law: {shown(path)}, line {line}, {name}: got {text[:40]!r}, expected a number.") from None
