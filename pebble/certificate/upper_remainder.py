"""Upper bounds for one GEMM whose stationary operand stays but for corners, which make one block at the end.

One axis q of an operand X with axes p, q is cut into bands as evenly as whole numbers allow. Of each band all stays but
the last a values of p times the last b of the band; the third axis r streams by, and at each of its indices the shorter
side of the band is held and the longer passes through one place, every value of either in some product. The products
left out have a indices of p and b of every band: a block of a x (bands b), which comes last. So P (p x r) comes once a
band and its last a vectors once more, Q (q x r) once and the vectors of the corners once more, X once.
"""

from __future__ import annotations

from typing import Any

from .reading import array, choice, fields, integer
from .statement import ALIKE, ClaimedWidths
from .upper import AXES, ScheduleTraffic, fits, operand_of, taken

MAX_BANDS = 2**40


def check_remainder(
    size: dict[str, int],
    accumulate: bool,
    capacity: int,
    schedule: Any,
    at: str,
    widths: ClaimedWidths = ALIKE,
) -> ScheduleTraffic:
    """Traffic and room of a GEMM with a corner apart.

    Parameters
    ----------
    size : dict
        m, n and k.
    accumulate : bool
        C is read first.
    capacity : int
        What fits, as ``widths`` count.
    schedule : object
        What is ``stationary``, the ``axis`` that is cut into ``bands``, and the ``corner``: a and b.
    """
    fields(schedule, at, ("kind", "stationary", "axis", "bands", "corner"))
    stationary = choice(schedule["stationary"], f"{at}.stationary", AXES)
    first, second, streamed = AXES[stationary]
    axis = choice(schedule["axis"], f"{at}.axis", (first, second))
    across = second if axis == first else first
    p, q, r = size[across], size[axis], size[streamed]
    bands = integer(schedule["bands"], f"{at}.bands", 1, min(q, MAX_BANDS))
    spec = array(schedule["corner"], f"{at}.corner", 2, 2)
    # a value of a side that is in the corner alone would come to the band for nothing
    a, b = integer(spec[0], f"{at}.corner[0]", 1, p - 1), integer(spec[1], f"{at}.corner[1]", 1, q // bands - 1)
    of_p, of_q = operand_of(across, streamed), operand_of(axis, streamed)
    width = taken(widths)
    widest, vector = -(-q // bands), max(width[of_p], width[of_q])
    peak = max(
        width[stationary] * (p * widest - a * b) + vector * (min(p, widest) + 1),
        width[stationary] * a * b * bands + vector * (min(a, b * bands) + 1),
    )
    fits(peak, capacity, widths, at)
    visits = {stationary: p * q, of_p: (bands * p + a) * r, of_q: (q + bands * b) * r}
    initialised = 0 if accumulate else size["m"] * size["n"]  # each cell of C begins without a load
    return ScheduleTraffic({**visits, "C": visits["C"] - initialised}, {"C": visits["C"]}, peak)
