"""Lower bounds: the theorems, what a family tells them of a workload, and published formulas.

Nothing in this package knows a schedule: what a bound is worth against one is judged by the caller.
"""

from pebble.bounds.accounting import (
    Accounting,
    StrictSoftmax,
    Sum,
    chain_uses,
    lower_bound,
    product_uses,
    separate_bound,
    sum_of_kernels,
)
from pebble.bounds.backward import backward_uses
from pebble.bounds.box import Box
from pebble.bounds.cases_bound import CasesBound
from pebble.bounds.cases_choice import MAX_CASES
from pebble.bounds.chain import Chain, Kernels
from pebble.bounds.gated import GatedBound
from pebble.bounds.lagrangian_bound import LagrangianBound
from pebble.bounds.line_search import ByLines, LineBound, line_bound
from pebble.bounds.lines import LineProblem, Lines
from pebble.bounds.parts import SumOfParts, WorkloadPart
from pebble.bounds.pass_search import ByPasses
from pebble.bounds.passes import Grid, PassBound
from pebble.bounds.projections import Projections
from pebble.bounds.proofs import Compulsory, LowerBound, NotCertifiedError, Proof, Theorem, check_capacity
from pebble.bounds.published import Formula
from pebble.bounds.recompute import Recomputed
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.uses import Goal, Use
from pebble.bounds.visits import Product, VisitBound
from pebble.bounds.weighted import WeightedBound, in_bytes

__all__ = [
    "MAX_CASES",
    "Accounting",
    "Box",
    "ByLines",
    "ByPasses",
    "CasesBound",
    "Chain",
    "Compulsory",
    "Formula",
    "GatedBound",
    "Goal",
    "Grid",
    "Kernels",
    "LagrangianBound",
    "LineBound",
    "LineProblem",
    "Lines",
    "LowerBound",
    "NotCertifiedError",
    "PassBound",
    "Piece",
    "Product",
    "Projections",
    "Proof",
    "Recomputed",
    "Segments",
    "StrictSoftmax",
    "Sum",
    "SumOfParts",
    "Theorem",
    "Use",
    "VisitBound",
    "WeightedBound",
    "WorkloadPart",
    "backward_uses",
    "chain_uses",
    "check_capacity",
    "in_bytes",
    "line_bound",
    "lower_bound",
    "product_uses",
    "separate_bound",
    "sum_of_kernels",
]
