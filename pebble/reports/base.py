"""What every answer is: frozen, short in print, a table in a notebook, plain data for a script, a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import pebble
from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.reports.columns import for_reader, in_large_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BARS = 32
SCHEMA = 1  # of the documents; it rises when a key goes or changes its meaning


def header(command: str, machine: Machine | None = None) -> dict[str, Any]:
    """What every document begins with: schema, program version, what made it, and the machine it is about."""
    result: dict[str, Any] = {"schema": SCHEMA, "version": pebble.__version__, "command": command}
    if machine is not None:
        result["machine"] = {"sku": machine.sku, "name": machine.name, "file_sha256": machine.file_sha256}
    return result


class Report(ABC):
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
        given = [key for key in self.table_keys if any(row.get(key) is not None for row in rows)]
        keys = given or list(rows[0] if rows else ())
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
