"""What every answer is: frozen, short in print, a table in a notebook, plain data for a script, a figure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING, Any

import pebble
from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.units import format_ratio

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCHEMA = 1  # of the documents; it rises when a key goes or changes its meaning


def header(command: str, machine: Machine | None = None) -> dict[str, Any]:
    """What every document begins with: schema, program version, what made it, and the machine it is about."""
    found: dict[str, Any] = {"schema": SCHEMA, "version": pebble.__version__, "command": command}
    if machine is not None:
        found["machine"] = {"sku": machine.sku, "name": machine.name, "file_sha256": machine.file_sha256}
    return found


class Report(ABC):
    """The answer to one question.

    ``str`` gives a line, a notebook shows a table, ``to_dict`` has everything, ``to_frame`` one row per schedule.
    """

    question = "pebble"  # the command that asks it

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
        """Draw the answer.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where; by default on a new figure.

        Raises
        ------
        InputError
            There is no figure of this answer.
        """
        kind = type(self).__name__
        raise InputError(
            f"plot: there is no figure of a {kind}, expected the answer of bound, compare, simulate, curve or decode."
        )

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
        rows = self.rows()
        caption = f"<caption>{escape(self.summary())}</caption>"
        if not rows:
            return f"<table>{caption}</table>"
        head = "".join(f"<th>{escape(key.replace('_', ' '))}</th>" for key in rows[0])
        body = "".join("<tr>" + "".join(f"<td>{escape(_cell(v))}</td>" for v in row.values()) + "</tr>" for row in rows)
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    return format_ratio(value) if isinstance(value, float) else str(value)
