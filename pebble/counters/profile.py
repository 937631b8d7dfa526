"""What a report says: launches with their metrics in base units, whatever layout they came in; and a launch while it is
read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pebble.counters.quantities import QUANTITIES, LaunchQuantity, Quantity
from pebble.counters.values import read_number, read_sides, read_unit
from pebble.errors import InputError

MACHINES = {
    "NVIDIA H200": "h200-sxm-141gb",
    "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb",
    "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
    "NVIDIA L40S": "l40s",
    "NVIDIA A40": "a40",
    "NVIDIA B200": "b200-sxm",
    "NVIDIA H20": "h20",
    "NVIDIA A30": "a30",
    "NVIDIA A2": "a2",
    "NVIDIA GB10": "gb10",
    "NVIDIA GeForce RTX 4090": "rtx4090",
}


Sides = tuple[int, int, int]


class Metric(NamedTuple):
    """A metric of a launch."""

    value: float | str | None  #: in the base unit; text where it is none; None for n/a
    unit: str  #: byte, ns, hz, sector, % ...


@dataclass(frozen=True)
class MeasuredLaunch:
    """One launch of a kernel.

    Attributes
    ----------
    ident : str
        The report's ID of it.
    kernel : str
        Its name as printed.
    metrics : mapping of str to Metric
        By name; those of the details page by ``Section: Name``.
    grid, block : tuple of int or None
        Blocks and threads along x, y, z.
    device, compute_capability : str
        As the report names them; may be empty.
    notes : tuple of str
        What is odd about it.
    """

    ident: str
    kernel: str
    metrics: Mapping[str, Metric]
    grid: Sides | None = None
    block: Sides | None = None
    device: str = ""
    compute_capability: str = ""
    notes: tuple[str, ...] = ()

    def find(self, key: str) -> LaunchQuantity | None:
        """A quantity of `QUANTITIES`, from the first of its metrics that the report has."""
        return QUANTITIES[key].find(self._numbers)

    def value(self, key: str) -> float | None:
        """Its value alone."""
        result = self.find(key)
        return None if result is None else result.value

    def _numbers(self, metric: str) -> float | None:
        result = self.metrics.get(metric)
        return result.value if result is not None and isinstance(result.value, float) else None

    @property
    def missing(self) -> tuple[Quantity, ...]:
        """The quantities of a listing that the report does not have."""
        return tuple(quantity for key, quantity in QUANTITIES.items() if quantity.listed and self.find(key) is None)

    @property
    def blocks(self) -> int | None:
        """Blocks of the launch."""
        if self.grid is not None:
            return self.grid[0] * self.grid[1] * self.grid[2]
        result = self._numbers("launch__grid_size")
        return int(result) if result is not None and 0 < result < 2**63 else None

    @property
    def short_name(self) -> str:
        """The kernel's name without its parameters, cut to what a table has room for."""
        name = self.kernel.replace("<unnamed>::", "").replace("unnamed>::", "").replace("(anonymous namespace)::", "")
        name = name.removeprefix("void ").partition("(")[0].strip() or self.kernel.strip()
        return name if len(name) <= 60 else name[:57] + "..."


def check_one_gpu(launches: Iterable[MeasuredLaunch], what: str) -> None:
    """Launches of one GPU.

    Raises
    ------
    InputError
        They are of several.
    """
    chips = dict.fromkeys(launch.device or launch.compute_capability for launch in launches)
    if len(chips) > 1:
        said = ", ".join(chip or "one that is not said" for chip in chips)
        raise InputError(f"{what}: got launches of several GPUs ({said}), expected those of one.")


def several_names(kernels: Iterable[str]) -> tuple[str, ...]:
    """A note where launches that are compared are of kernels of several names."""
    names = tuple(dict.fromkeys(kernels))
    return (f"kernels of {len(names)} names ({', '.join(names)}): a law is that of one kernel",) * (len(names) > 1)


@dataclass(frozen=True)
class Container:
    """What the frame says.

    Attributes
    ----------
    whole : bool
        Every block is there to its end.
    command : str
        The ``ncu`` command line; empty where none was found.
    """

    whole: bool
    command: str = ""

    def option(self, name: str) -> str | None:
        """The value of an option of ncu, such as ``cache-control``; None where it was not given."""
        try:
            words = shlex.split(self.command)
        except ValueError:
            words = self.command.split()
        for word, following in zip(words, [*words[1:], ""], strict=True):
            if word == f"--{name}":
                return following
            if word.startswith(f"--{name}="):
                return word.partition("=")[2]
        return None


@dataclass(frozen=True)
class Profile:
    """What one report holds.

    Attributes
    ----------
    path : str
    layout : {"ncu-rep", "long", "wide"}
    launches : tuple of MeasuredLaunch
        At least one.
    notes : tuple of str
        What could not be read, and how ambiguous numbers were taken.
    output : tuple of str
        Lines beside the table: what the program and the profiler printed.
    container : Container or None
        Of a ``.ncu-rep``: its frame, with the command line.
    """

    path: str
    layout: str
    launches: tuple[MeasuredLaunch, ...]
    notes: tuple[str, ...] = ()
    output: tuple[str, ...] = field(default=(), repr=False)
    container: Container | None = None

    def option(self, name: str, default: str) -> str | None:
        """How ncu was told to profile, such as ``cache-control``; None where the report does not have its command."""
        if self.container is None or not self.container.command:
            return None
        return self.container.option(name) or default


_ROUNDED = re.compile(r"(?<![0-9])[0-9]+[.,][0-9]{0,2}\s*$")  # to two decimals at most, as ncu prints scaled units
_MOST = 1e30  # beyond, a number is damage; what is worked out from those below is finite
_TEXTS = ("display_name", "kernel_name", "scheduling_policy", "cache_config", "enabled")  # metrics that are no number


@dataclass(frozen=True)
class Style:
    """How a file writes its numbers."""

    european: bool = False


@dataclass
class Draft:
    """What was read of a launch so far."""

    ident: str
    kernel: str
    metrics: dict[str, Metric] = field(default_factory=dict)
    base: dict[str, str] = field(default_factory=dict)
    twice: set[str] = field(default_factory=set)
    rounded: bool = False  # a count was printed in a larger unit, to two decimals

    def set_base(self, columns: Mapping[str, str]) -> None:
        """The columns that are no metrics."""
        self.base = dict(columns)
        self.kernel = self.kernel or columns.get("Kernel Name", "")

    def add(self, name: str, text: str, unit: str, style: Style) -> None:
        """A metric as it is printed; of two values of one metric the first is kept."""
        value = None if name.endswith(_TEXTS) else read_number(text, style.european)
        if value is None:
            self.put(name, text if text.strip().lower() not in ("", "n/a") else None, unit)
        else:
            factor, base_unit = read_unit(unit)
            self.rounded |= factor > 1 and base_unit in ("byte", "ns") and bool(_ROUNDED.search(text))
            self.put(name, round(value * factor, 6), base_unit)

    def put(self, name: str, value: float | str | None, unit: str) -> None:
        """A metric in its base unit."""
        if isinstance(value, float) and not abs(value) <= _MOST:
            value = None
        known = self.metrics.get(name)
        if known is None or known.value is None:
            self.metrics[name] = Metric(value, unit)
        elif value is not None and not _alike(known.value, value):
            self.twice.add(name)

    def launch(self) -> MeasuredLaunch:
        """The launch, with what is odd about it."""
        notes = []
        if self.twice:
            some = ", ".join(sorted(self.twice)[:3]) + (" and others" if len(self.twice) > 3 else "")
            notes.append(f"{some}: several values that differ, the first is taken")
        grid, block = (read_sides(self.base.get(f"{kind} Size", "")) or self._sides(kind) for kind in ("Grid", "Block"))
        name = self.metrics.get("device__attribute_display_name", Metric(None, "")).value
        return MeasuredLaunch(
            self.ident,
            self.kernel or "(no name)",
            self.metrics,
            grid,
            block,
            name if isinstance(name, str) else "",
            self.base.get("CC", "") or self._capability(),
            tuple(notes),
        )

    def _whole(self, name: str) -> int | None:
        value = self.metrics.get(name, Metric(None, "")).value
        return int(value) if isinstance(value, float) and 0 <= value < 2**40 else None

    def _sides(self, kind: str) -> tuple[int, int, int] | None:
        x, y, z = (self._whole(f"launch__{kind.lower()}_dim_{axis}") for axis in "xyz")
        if x is None or y is None or z is None:
            return None
        return (x, y, z) if min(x, y, z) >= 1 else None

    def _capability(self) -> str:
        major, minor = (self._whole(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
        return "" if major is None or minor is None else f"{major}.{minor}"


def _alike(single: float | str, other: float | str) -> bool:
    """Equal, or the same figure rounded."""
    if isinstance(single, float) and isinstance(other, float):
        return abs(single - other) <= 0.006 * max(abs(single), abs(other))
    return single == other
