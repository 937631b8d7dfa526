"""What a report says: launches with their metrics in base units, whatever layout they came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pebble.counters.container import Container
from pebble.counters.quantities import QUANTITIES, LaunchQuantity, Quantity

Sides = tuple[int, int, int]


class Metric(NamedTuple):
    """A metric of a launch."""

    value: float | str | None  #: in the base unit; text where it is none; None for n/a
    unit: str  #: byte, ns, hz, sector, % ...


@dataclass(frozen=True)
class Launch:
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


@dataclass(frozen=True)
class Profile:
    """What one report holds.

    Attributes
    ----------
    path : str
    layout : {"ncu-rep", "long", "wide"}
    launches : tuple of Launch
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
    launches: tuple[Launch, ...]
    notes: tuple[str, ...] = ()
    output: tuple[str, ...] = field(default=(), repr=False)
    container: Container | None = None

    def option(self, name: str, default: str) -> str | None:
        """How ncu was told to profile, such as ``cache-control``; None where the report does not have its command."""
        if self.container is None or not self.container.command:
            return None
        return self.container.option(name) or default
