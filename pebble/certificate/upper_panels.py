"""Upper bounds for a network in panels that lack a corner, which comes at the end.

``rows``: A (m x k) and Y (m x l) are cut into panels of rows as evenly as whole numbers allow. While a panel stays,
columns of B and rows of D stream by, each value through one place: the cells of one column of H are computed, used and
forgotten. Of the last c rows of a panel the last u columns of Y are left out, and their cells of H are stored,
complete. At the end the corners of all panels are one block of Y: for each column of H its cells in these rows and the
last u values of that row of D come once more. So A and Y move once, B once a panel, D once a panel and its last u
columns once more, H of the corners' rows there and back.

``hidden``: the columns of B and rows of D are cut, and rows of A and Y stream by, each value through one place: the
cells of one row of H are computed, used and forgotten. Of the last c rows of D of a panel the last u columns are left
out, and their cells of H are stored. At the end the corners are one block of D: for each row of H these cells and u
partial sums of Y come once more. So B and D move once, A once a panel, Y there and back for each panel but the first
and in its last u columns once more, H of the corners' columns there and back.

At the end the shorter of two vectors is held and the longer passes value by value.
"""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, choice, fields, integer
from .statement import ALIKE, ClaimedWidths
from .upper import ScheduleTraffic, fits
from .upper_chain import Shape


def check_panels(shape: Shape, capacity: int, schedule: Any, at: str, widths: ClaimedWidths = ALIKE) -> ScheduleTraffic:
    """Traffic and room of a network in panels that lack a corner.

    Parameters
    ----------
    shape : Shape
        Two products in a row, without softmax state.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        The ``side`` that is cut, the number of ``panels``, and the ``corner``: its lines of each panel and its columns
        of Y.
    """
    fields(schedule, at, ("kind", "side", "panels", "corner"))
    m, k, f, l, streams = shape.m, shape.k, shape.f, shape.l, shape.streams
    if shape.state:
        raise RefusedError(at, "a cell of the hidden matrix that needs the rest of its row cannot be stored complete")
    rows = choice(schedule["side"], f"{at}.side", ("rows", "hidden")) == "rows"
    lines, others = (m, f) if rows else (f, m)
    panels = integer(schedule["panels"], f"{at}.panels", 1, lines)
    spec = array(schedule["corner"], f"{at}.corner", 2, 2)
    # a line or a column that is in the corner alone would have nothing to do in the panel
    c = integer(spec[0], f"{at}.corner[0]", 1, lines // panels - 1)
    u = integer(spec[1], f"{at}.corner[1]", 1, l - 1)
    peak = _free_capacity(shape, rows, panels, (c, u), widths)
    fits(peak, capacity, widths, at)
    again = panels * c * others
    if rows:
        loads = {"A": m * k, "B": panels * streams * k * f, "D": (panels * l + u) * f, "H": again, "Y": 0}
    else:
        loads = {"A": panels * m * k, "B": streams * k * f, "D": f * l, "H": again, "Y": m * ((panels - 1) * l + u)}
    return ScheduleTraffic(loads, {"H": again, "Y": m * l + loads["Y"]}, peak)


def _free_capacity(shape: Shape, rows: bool, panels: int, corner: tuple[int, int], widths: ClaimedWidths) -> int:
    """The most that is held: a panel with what meets it, or the corners."""
    (c, u), value, output = corner, widths.read, widths.partial
    lines = -(-(shape.m if rows else shape.f) // panels)
    own, passing = (output, value) if rows else (value, widths.wider)
    line = value * shape.k + output * shape.l if rows else value * (shape.streams * shape.k + shape.l)
    beside = max(shape.streams * widths.hidden * lines + value, value * lines + passing)
    block = own * panels * c * u + passing * (min(panels * c, u) + 1)
    return max(lines * line - own * c * u + beside, block)
