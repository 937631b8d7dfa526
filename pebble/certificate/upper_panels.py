"""Upper bounds for a network in row panels that lack a corner of Y, which comes at the end.

A (m x k) and Y (m x l) are cut into panels of rows as evenly as whole numbers allow. While a panel stays, columns of B
and rows of D stream by, each value through one place: the cells of one column of H are computed, used and forgotten. Of
the last a rows of a panel the last u columns of Y are left out, and their cells of H are stored, complete. At the end
the corners of all panels are one block of Y: for each column of H its cells in these rows and the last u values of that
row of D come once more, the shorter of the two vectors held and the longer value by value.

A and Y move once, B once a panel, D once a panel and its last u columns once more, H of the corners' rows there and
back.
"""

from __future__ import annotations

from typing import Any

from .reading import RefusedError, array, fields, integer
from .upper import Moved
from .upper_chain import Shape

Taken = tuple[int, int, int]  # of an input or a complete cell of H, a cell of H before, a cell of Y
ALIKE = (1, 1, 1)


def check_panels(shape: Shape, capacity: int, schedule: Any, at: str, taken: Taken = ALIKE) -> Moved:
    """Traffic and room of a network in panels that lack a corner.

    Parameters
    ----------
    shape : Shape
        Two products in a row, without softmax state.
    capacity : int
        What fits, in values or as ``taken`` counts.
    schedule : object
        The number of ``panels``, and the ``corner``: its rows of each panel and its columns of Y.
    taken : tuple of int
        What a value takes of the capacity.
    """
    fields(schedule, at, ("kind", "panels", "corner"))
    m, k, f, l = shape.m, shape.k, shape.f, shape.l
    if shape.state:
        raise RefusedError(at, "a cell of the hidden matrix that needs the rest of its row cannot be stored complete")
    panels = integer(schedule["panels"], f"{at}.panels", 1, m)
    told = array(schedule["corner"], f"{at}.corner", 2, 2)
    # a row or a column that is in the corner alone would have nothing to do in the panel
    a = integer(told[0], f"{at}.corner[0]", 1, m // panels - 1)
    u = integer(told[1], f"{at}.corner[1]", 1, l - 1)
    peak, values = (_room(shape, panels, a, u, *of) for of in (taken, ALIKE))
    if peak > capacity:
        raise RefusedError(at, f"it holds up to {peak:,}, the capacity is {capacity:,}")
    again = panels * a * f
    loads = {"A": m * k, "B": panels * shape.streams * k * f, "D": (panels * l + u) * f, "H": again, "Y": 0}
    return Moved(loads, {"H": again, "Y": m * l}, values)


def _room(shape: Shape, panels: int, a: int, u: int, value: int, begun: int, output: int) -> int:
    rows = -(-shape.m // panels)
    column = max(shape.streams * begun, value) * rows + value
    panel = rows * (value * shape.k + output * shape.l) - output * a * u + column
    return max(panel, output * panels * a * u + value * (min(panels * a, u) + 1))
