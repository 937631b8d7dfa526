"""Lower bounds: the theorems, what a family tells them of a workload, and published formulas.

Nothing in this package knows a schedule: what a bound is worth against one is judged by the caller.
"""

from pebble.bounds.accounting import Accounting, Sum, in_bytes, lower_bound, separate_bound, sum_of_kernels
from pebble.bounds.base import Compulsory, LowerBound, Proof, Theorem, check_capacity
from pebble.bounds.box import Box, Piece, Segments
from pebble.bounds.chain import Chain, Kernels, Recomputed
from pebble.bounds.line_search import LineBound, line_bound
from pebble.bounds.lines import Lines, Problem
from pebble.bounds.parts import Part, Parts
from pebble.bounds.passes import Grid, PassBound
from pebble.bounds.priced import PricedBound, PricedBytes
from pebble.bounds.published import Formula
from pebble.bounds.tied import Tied
from pebble.bounds.widths import Wide

__all__ = [
    "Accounting",
    "Box",
    "Chain",
    "Compulsory",
    "Formula",
    "Grid",
    "Kernels",
    "LineBound",
    "Lines",
    "LowerBound",
    "Part",
    "Parts",
    "PassBound",
    "Piece",
    "PricedBound",
    "PricedBytes",
    "Problem",
    "Proof",
    "Recomputed",
    "Segments",
    "Sum",
    "Theorem",
    "Tied",
    "Wide",
    "check_capacity",
    "in_bytes",
    "line_bound",
    "lower_bound",
    "separate_bound",
    "sum_of_kernels",
]
