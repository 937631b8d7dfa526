"""Lower bounds: the segment theorem of a box, what each family tells it, and the registry of published formulas.

Nothing in this package knows a schedule: what a bound is worth against one is judged by the caller.
"""

from pebble.bounds.base import Compulsory, LowerBound, Proof, check_capacity
from pebble.bounds.box import Box, Piece, Segments
from pebble.bounds.chain import Chain, Kernels, Recomputed
from pebble.bounds.families import Accounting, accounting, lower_bound, separate_bound
from pebble.bounds.published import Formula, published_bounds
from pebble.bounds.tied import Tied

__all__ = [
    "Accounting",
    "Box",
    "Chain",
    "Compulsory",
    "Formula",
    "Kernels",
    "LowerBound",
    "Piece",
    "Proof",
    "Recomputed",
    "Segments",
    "Tied",
    "accounting",
    "check_capacity",
    "lower_bound",
    "published_bounds",
    "separate_bound",
]
