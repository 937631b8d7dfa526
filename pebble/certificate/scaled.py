"""Products whose operands have formats of their own, with block scales: the theorems with a width for each operand.

An input takes its bits, held or moved, and its share of the scale of a full block, rounded down to 1/32 byte. Nothing
in the theorems of segments and of lines uses that inputs of several kinds have one width. And scales may be counted by
shares: a scale is an input, used wherever a value of its block is. A segment that touches so many values of a kind
touches their scales, one for each full block's number of them at least. Of a block's values, touched in s1, s2, ...
segments, the scale is touched in the largest of these, so in the mean of them at least; and what a line is charged
rises with s, in proportion to the width. Blocks that an end cuts short have larger shares. What surely moves counts
every scale.

A complete cell of an intermediate takes its bits, without a scale; a partial sum of it no less.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

from .geometry import Box
from .line_forms import ChainWidths, chain_forms
from .lines import Form, Lines, by_lines
from .operands import FORMATS, UNITS
from .reading import array, choice, equal, fields, integer, tagged
from .segments import USE_FIELDS, SegmentTerm, by_use, product_use
from .statement import ALIKE, ClaimedWidths, Workload


def by_formats(workload: Workload, widths: ClaimedWidths, capacity: int, redo: bool, proof: Any, at: str) -> int:
    """Bytes that move at least, as a proof says in units of 1/32 byte."""
    one = ("segments",) if not workload.linked else ()
    theorem = tagged(proof, at, "theorem", ("compulsory", *(() if redo and workload.linked else (*one, "lines"))))
    if theorem == "compulsory":
        fields(proof, at, ("theorem",))
        return sum(o.elements * o.moves * o.width for o in workload.operands.values())
    spec = dict(proof)
    equal(spec.pop("units_of_a_byte", None), UNITS, f"{at}.units_of_a_byte", "units of a byte")
    room, hidden, partial, written = (UNITS * x for x in (capacity, *widths[1:]))
    inputs = [FORMATS[name].units for name in workload.formats.values()]
    if theorem == "segments":
        moved = _by_segments(workload, (inputs[0], inputs[1]), (partial, written), room, spec, at)
    elif workload.linked:
        x, w, _ = inputs
        h = UNITS * FORMATS[workload.formats["dtype_h"]].bits // 8
        numbers = ChainWidths(x, w, w, h, max(h, hidden), partial, written)
        size = workload.size
        sizes = size["tokens"], size["d_model"], size["hidden"], size["d_out"]
        forms = chain_forms(sizes, workload.streams, numbers, spec.get("work_weights"), f"{at}.work_weights")
        moved = by_lines(forms, ALIKE, room, spec, at, ("work_weights",))
    else:
        m, n, k = (workload.size[name] for name in "mnk")
        (a, b), cell = inputs, Lines(m * n, k, written, 2 * partial, partial)
        kinds = Lines(m * k, n, a, a, a), Lines(k * n, m, b, b, b), cell
        moved = by_lines({"product": Form(kinds, m * n * k)}, ALIKE, room, spec, at)
    return ceil(Fraction(moved, UNITS))


def _by_segments(
    workload: Workload, inputs: tuple[int, int], sums: tuple[int, int], capacity: int, proof: Any, at: str
) -> int:
    fields(proof, at, USE_FIELDS)
    partial, written = sums
    m, n, k = (workload.size[name] for name in "mnk")
    p = integer(proof["output_cell_bytes"], f"{at}.output_cell_bytes", written, partial)
    choice(proof["form"], f"{at}.form", ("product",))
    equal(proof["hidden_cell_bytes"], 0, f"{at}.hidden_cell_bytes", "of a cell of an intermediate")
    (weight,) = array(proof["work_weights"], f"{at}.work_weights", 1, 1)
    integer(weight, f"{at}.work_weights[0]", 1, 1)
    part = SegmentTerm(Box(m, n, k), m * n * k, 0)
    return by_use(product_use(part, inputs, p, written), capacity, proof, at)
