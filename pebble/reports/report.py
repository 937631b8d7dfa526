"""What every answer is: frozen, short in print, a table in a notebook with short names and large units, plain data
for a script, a figure.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import pebble
from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.system.renamed import Renamed
from pebble.units import format_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_NAMES: Mapping[str, str] = {
    "name": "order",
    "dram_bytes": "MB",
    "cost_bytes": "cost MB",
    "sustained_ms": "ms",
    "single_ms": "ms alone",
    "modelled_ms": "ms alone",
    "floor_ms": "ms at least",
    "least_time_us": "ms at least",
    "time_floor_us": "ms at least",
    "lower_bound_bytes": "MB at least",
    "ratio_to_lower_bound": "x bound",
    "ratio_to_optimum": "x optimum",
    "over_pooled": "x pooled",
}
_UNITS = (("_bytes", " MB", 1e6), ("_us", " ms", 1e3), ("_ms", " ms", 1.0))  # of a key, of a reader, and their ratio


def in_large_unit(key: str, value: float) -> tuple[str, float]:
    """The name of a column that has a key with a unit, and a value of it in the unit of the name.

    Examples
    --------
    >>> in_large_unit("dram_bytes", 1_500_000), in_large_unit("l2_us", 20), in_large_unit("stages", 3)
    (('MB', 1.5), ('l2 ms', 0.02), ('stages', 3))
    """
    for ending, unit, ratio in _UNITS:
        if key.endswith(ending):
            return _NAMES.get(key, key.removesuffix(ending).replace("_", " ") + unit), value / ratio
    return _NAMES.get(key, key.replace("_", " ")), value


def for_reader(key: str, value: object) -> tuple[str, str]:
    """The name of a column and what stands in it.

    Examples
    --------
    >>> for_reader("ratio_to_lower_bound", 3.479), for_reader("dram_bytes", 1704206336), for_reader("floor_ms", None)
    (('x bound', '3.48'), ('MB', '1,704.2'), ('ms at least', '-'))
    """
    if value is None or isinstance(value, bool):
        return in_large_unit(key, 0)[0], {True: "yes", False: "no", None: "-"}[value]
    if not isinstance(value, int | float):
        return in_large_unit(key, 0)[0], str(value)
    name, number = in_large_unit(key, value)
    if key.endswith("_bytes"):
        return name, f"{number:,.1f}" if number >= 0.1 else f"{number:,.3g}"
    if key.endswith(("_us", "_ms")):
        return name, f"{number:,.4g}"
    if isinstance(number, int):
        return name, f"{number:,}"
    return name, format_ratio(number, ".2f") if key.startswith("ratio_") else format_ratio(number)


MOST_BARS = 32
SCHEMA = 1  # of the documents; it rises when a key goes or changes its meaning


def header(command: str, machine: Machine | None = None) -> dict[str, Any]:
    """What every document begins with: schema, program version, what made it, and the machine it is about."""
    result: dict[str, Any] = {"schema": SCHEMA, "version": pebble.__version__, "command": command}
    if machine is not None:
        result["machine"] = {"sku": machine.sku, "name": machine.name, "file_sha256": machine.file_sha256}
    return result


class Report(Renamed, ABC):
    """The answer to one question.

    ``str`` gives a line, a notebook shows a table, ``to_dict`` has everything, ``to_frame`` one row per schedule.
    """

    question = "pebble"  # the command that asks it
    table_keys: ClassVar[tuple[str, ...]] = ()  # keys of rows that a reader sees, those that there are; (): all
    bar_keys: ClassVar[tuple[str, ...]] = ()  # keys of numbers to draw as bars, the first that there is

    @property
    def machine(self) -> Machine | None:
        """The machine that was asked about, if one was."""
        return None

    @abstractmethod
    def summary(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The answer as plain data."""

    @abstractmethod
    def rows(self) -> list[dict[str, Any]]:
        """The table: a row per schedule or bound, keys with units."""

    @property
    def best(self) -> Any:
        """The best of what was found: the first row; None where there is none."""
        return next(iter(self.rows()), None)

    def short_rows(self) -> list[dict[str, str]]:
        """The rows for a reader, in short columns and large units; `rows` and `to_frame` have every number."""
        rows = self.rows()
        keys_there = [key for key in self.table_keys if any(row.get(key) is not None for row in rows)]
        keys = keys_there or list(rows[0] if rows else ())
        return [dict(for_reader(key, row.get(key)) for key in keys) for row in rows]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as ``--json`` prints it."""
        return {**header(self.question, self.machine), **self.document()}

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame.

        Raises
        ------
        InputError
            pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise InputError("to_frame: pandas is not installed; run `pip install pandas`, or use .rows().") from None
        return pandas.DataFrame(self.rows())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the answer: by default a bar for each row.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default on a new figure.

        Raises
        ------
        InputError
            There is no figure of this answer.
        """
        rows = self.rows()
        key = next((key for key in self.bar_keys if any(row.get(key) is not None for row in rows)), None)
        if key is None:
            kind = type(self).__name__
            raise InputError(f"plot: there is no figure of a {kind}, which has no numbers to set side by side.")
        from pebble.plots.bars import plot_bars

        names = [key for key in self.table_keys if isinstance(rows[0][key], str)]
        shown = [row for row in rows if row[key] is not None][:MOST_BARS]
        bars = [(", ".join(row[name] for name in names), (in_large_unit(key, row[key])[1],)) for row in shown]
        return plot_bars(bars, in_large_unit(key, 0)[0], self.summary(), ax)

    def figure(self) -> Figure:
        """The answer on a page of its own, as ``--figure`` writes it; errors as for `plot`."""
        from pebble.plots.save import page

        with page(6.4, 4.8) as figure:
            self.plot(figure.add_subplot())
        return figure

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def _repr_html_(self) -> str:
        rows = self.short_rows()
        caption = f"<caption>{escape(self.summary())}</caption>"
        if not rows:
            return f"<table>{caption}</table>"
        head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{escape(v)}</td>" for v in row.values()) + "</tr>" for row in rows)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
