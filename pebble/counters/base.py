"""A launch while it is read, common to all layouts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pebble.counters.profile import Launch, Metric
from pebble.counters.values import read_number, read_sides, read_unit

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

    def launch(self) -> Launch:
        """The launch, with what is odd about it."""
        notes = []
        if self.twice:
            some = ", ".join(sorted(self.twice)[:3]) + (" and others" if len(self.twice) > 3 else "")
            notes.append(f"{some}: several values that differ, the first is taken")
        grid, block = (read_sides(self.base.get(f"{kind} Size", "")) or self._sides(kind) for kind in ("Grid", "Block"))
        name = self.metrics.get("device__attribute_display_name", Metric(None, "")).value
        return Launch(
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
