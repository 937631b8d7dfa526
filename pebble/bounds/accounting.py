r"""What a family tells the theorems of one workload, and the best bound that follows.

Every family accounts for its workloads in its own file of `pebble.families`: which boxes its products fill, which cells
are begun free, what is taken off and what is added. Here the theorems are tried, and the best number is taken.

- *Equal groups* that share no value: from a schedule of all of them keep only the moves of one group's values: a legal
  schedule of that group alone, from an empty start, that holds at most :math:`S` values. Its loads and stores are at
  least the bound for one group *with all of* :math:`S`, and those of different groups are different moves: the bounds
  add, each with the full :math:`S`.
- *Bytes.* A value takes at least the narrowest width and a transfer moves at least that. What surely moves (each input
  once, each output once, intermediates that are spilled or go between kernels) is charged its own width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pebble.bounds.base import Compulsory, LowerBound, Proof, SingleClaim, Theorem, all_names, check_capacity
from pebble.bounds.chain import SEPARATE, SEPARATE_LINES, Chain, Kernels
from pebble.bounds.chain_lines import weighed_problems
from pebble.bounds.gated import METHOD as TIED
from pebble.bounds.gated import gated_bound
from pebble.bounds.lagrangian import lagrangian_chains
from pebble.bounds.lagrangian_bound import LagrangianBound
from pebble.bounds.lagrangian_choice import Hint, lagrangian_bound
from pebble.bounds.line_search import LineBound, line_bound
from pebble.bounds.lines import LineProblem
from pebble.bounds.parts import WorkloadPart, bound_parts
from pebble.bounds.pass_search import pass_bound
from pebble.bounds.passes import Grid, PassBound
from pebble.bounds.projections import Projections
from pebble.bounds.recompute import recompute_bound
from pebble.bounds.segments import Piece, Segments
from pebble.bounds.visit_search import visit_bounds
from pebble.bounds.visits import Product
from pebble.errors import InputError
from pebble.workloads.base import Workload
from pebble.workloads.widths import ALIKE, Widths

COMPULSORY = "compulsory"
COMPULSORY_STRICT = "compulsory, and the scores that a strict softmax must store and load"
STRICT = "equation (3), and the scores that a strict softmax must store"
KERNEL_BY_KERNEL = ", kernel by kernel"


@dataclass(frozen=True)
class Accounting:
    """What a family tells the theorems of one workload."""

    workload: Workload  #: what is accounted for
    pieces: tuple[Piece, ...] = ()  #: uses of the segment theorem, each a bound of one group by itself
    lines: tuple[LineProblem, ...] = ()  #: uses of the line theorem, each a bound of one group by itself
    kernel_lines: tuple[
        LineProblem, ...
    ] = ()  #: the same for each of two kernels with the intermediates stored between
    grid: Grid | None = None  #: the cells of the intermediate, for the pass theorem
    projections: tuple[Projections, ...] = ()  #: uses of the theorem on any nest, each a bound of one group
    product: Product | None = None  #: the matrix product that it is, for the visit theorem
    groups: int = 1  #: equal groups that share no value
    chain: Chain | None = None  #: the two products of a group; None where every cell is an output
    parts: tuple[WorkloadPart, ...] = ()  #: parts of unlike kind, whose bounds add up
    fresh: Accounting | None = None  #: the same with outputs that begin at nothing, where these begin at a value
    priced: bool = True  #: whether a partial sum that leaves and returns is stored and loaded, as Theorem 10 counts
    computed_once: bool = False  #: whether parts hold only when nothing is computed twice
    spilled: Callable[[int], int] = lambda capacity: 0  #: scores of a group that must be stored at S
    compulsory_kernels: str = COMPULSORY  #: what the bound kernel by kernel is called where it is compulsory
    game: str = ""  #: what is computed, for a reader, with formulas between dollars
    symbols: Mapping[str, int] = field(default_factory=dict)  #: the sizes that the formulas name
    instance: Mapping[str, Any] = field(default_factory=dict)  #: what ``--json`` tells besides

    def lines_at(self, widths: Widths) -> tuple[LineProblem, ...]:
        """The uses of the line theorems where values take widths."""
        if widths == ALIKE:
            return self.lines
        if self.chain is not None:
            return weighed_problems(self.chain, widths)
        return tuple(problem.at(widths) for problem in self.lines)


def lower_bound(problem: Accounting, capacity: int, recompute: bool = False) -> LowerBound:
    """The best proven lower bound on the traffic of a workload through one fast memory, however it is fused.

    Parameters
    ----------
    problem : Accounting
        What its family tells; `pebble.families.lower_bound` takes the workload itself. Intermediates may stay in fast
        memory.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.
    recompute : bool
        Whether schedules may compute a value more than once. Where every cell is an output it makes no difference.

    Returns
    -------
    LowerBound
        In elements and in bytes, for every replacement policy. Falls as the capacity grows, but for what the search for
        prices leaves (Theorem 10): some ten-thousandths (`pebble.bounds.lagrangian_choice`).

    Raises
    ------
    InfeasibleError
        Capacity below 3: a multiply-add needs two operands and a result.

    Notes
    -----
    Some milliseconds for any size, in exact integers; a gated chain with large memory takes some hundredths of a
    second once, a chain of long vectors some tenths, for the prices of Theorem 10.
    """
    check_capacity(capacity)
    workload, chain = problem.workload, problem.chain
    recompute = recompute or (chain is None and not problem.computed_once)
    spilled = 0 if recompute else problem.spilled(capacity)
    least, products = workload.compulsory_elements // problem.groups, workload.flops // (2 * problem.groups)
    compulsory, result = Compulsory(COMPULSORY, least, products), list[Proof]()
    applies = not recompute or (chain is None and not problem.computed_once)
    if applies:
        result += [bound_parts(problem.parts, capacity)] if problem.parts else []
        result += [piece.bound(capacity, spilled, STRICT if spilled else None) for piece in problem.pieces]
        result += alone((), problem.lines, problem.grid, capacity)
        result += [nest.bound(capacity) for nest in problem.projections]
        result += visit_bounds(problem.product, capacity, _most([compulsory, *result]).elements)
    if spilled:
        result.append(Compulsory(COMPULSORY_STRICT, least, products, 2 * spilled))
    if chain is not None:
        result.append(recompute_bound(chain, capacity))
    tied = [] if recompute else _gated(chain, capacity, [compulsory, *result])
    best = _most([compulsory, *tied, *result])
    if applies and chain is not None and problem.lines and problem.priced:
        best = _most([best, *priced(problem, chain, ALIKE, capacity, best.elements)])
    return _finish(problem, capacity, best, 2 * spilled, recompute=recompute)


def _most(results: Sequence[Proof]) -> Proof:
    """What proves most, the first of equals."""
    return max(results, key=lambda proof: proof.elements)


def alone(
    pieces: Iterable[Piece], lines: Iterable[LineProblem], grid: Grid | None, capacity: int
) -> list[Segments | LineBound | PassBound]:
    """What each theorem says of a product, or a chain, by itself."""
    results: list[Segments | LineBound | PassBound] = [piece.bound(capacity) for piece in pieces]
    results += [line_bound(problem, capacity) for problem in lines]
    passes = None if grid is None else pass_bound(grid, capacity)
    return results if passes is None else [*results, passes]


def _gated(
    chain: Chain | None, capacity: int, results: Sequence[Proof], on_top: int = 0, method: str = TIED
) -> Sequence[Proof]:
    """Theorem 4, where it is about the chain and proves no less than what is found; it goes before its equals."""
    if chain is None or not chain.gated:
        return []
    tied = gated_bound(chain, capacity, _most(results).elements, on_top, method)
    return [] if tied is None else [tied]


def priced(terms: Accounting, chain: Chain, widths: Widths, capacity: int, least: int) -> list[LagrangianBound]:
    """Theorem 10, where it may prove more than ``least``: in the form and about the segments of the line theorem."""
    unit, problems = widths.unit, {problem.form: problem for problem in lagrangian_chains(chain, widths)}

    def hint(at: int) -> Hint:
        lines = (line_bound(problem, unit * at) for problem in terms.lines_at(widths))
        best = max(lines, key=lambda proof: proof.elements)
        return Hint(problems[best.form], best.segments, best.elements)

    bound = lagrangian_bound(hint, capacity // unit, least // unit)
    return [bound] if bound is not None and bound.bytes > least else []


def separate_bound(terms: Accounting, capacity: int) -> LowerBound:
    """The bound when every intermediate goes through slow memory: one kernel writes it, the next reads it.

    Minus `lower_bound` it says what fusion can save at most, as far as is proved. A further kernel between the two (for
    softmax) only adds to it. Parameters, units and errors as there.

    Raises
    ------
    InputError
        A workload that is one kernel.
    """
    check_capacity(capacity)
    chain = terms.chain
    if chain is None:
        raise InputError(
            f"separate kernels: got a {terms.workload.family}, which is one kernel, expected ffn or attention."
        )
    pieces, least = zip(*chain.kernels, strict=True)
    kernels: list[Segments | LineBound] = [piece.bound(capacity) for piece in pieces]
    if terms.kernel_lines:
        lines = (line_bound(problem, capacity) for problem in terms.kernel_lines)
        kernels = [max(pair, key=lambda proof: proof.elements) for pair in zip(kernels, lines, strict=True)]
    by_lines = any(isinstance(kernel, LineBound) for kernel in kernels)
    best = Kernels(SEPARATE_LINES if by_lines else SEPARATE, tuple(kernels), least)
    if best.elements == sum(least):
        best = Kernels(terms.compulsory_kernels, best.kernels, least)
    method = f"equation (3), and the stores of {chain.hidden}"
    results = [piece.bound(capacity, chain.cells, method) for piece in chain.pieces]
    tied = _gated(chain, capacity, [best, *results], chain.cells, method)
    return _finish(terms, capacity, _most([best, *tied, *results]), 2 * chain.cells, separate=True)


def sum_of_kernels(workload: Workload, kernels: Sequence[Accounting], capacity: int) -> LowerBound:
    """The least when each kernel reads all its inputs from slow memory and writes all its outputs there.

    The kernels' bounds add: each starts from empty fast memory. Units and errors as for `lower_bound`.
    """
    result = tuple(lower_bound(kernel, capacity) for kernel in kernels)
    proof = Sum("the bounds of its kernels, added", result)
    return LowerBound(
        proof.elements,
        sum(bound.bytes for bound in result),
        capacity,
        proof,
        separate=True,
        instance={"capacity_elements": capacity, "workload": workload.to_json(), "separate_kernels": True},
    )


@dataclass(frozen=True)
class Sum(SingleClaim):
    """Bounds of kernels that run one after the other, each from empty fast memory.

    Attributes
    ----------
    method : str
    kernels : tuple of LowerBound
    """

    method: str
    kernels: tuple[LowerBound, ...]

    @property
    def theorem(self) -> Theorem:
        """What the bounds of the kernels rest on; that they add up is proved on paper."""
        return Theorem(f"{all_names(kernel.theorem for kernel in self.kernels)}, kernel by kernel", __name__)

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return sum(bound.elements for bound in self.kernels)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"kernels": [bound.to_json() for bound in self.kernels]}

    def claim(self) -> dict[str, Any]:
        """That of each kernel."""
        return {"theorem": "kernel by kernel", "kernels": [kernel.proof.claim() for kernel in self.kernels]}


def _finish(
    problem: Accounting, capacity: int, proof: Proof, crossings: int, recompute: bool = False, separate: bool = False
) -> LowerBound:
    """All groups, in elements and bytes; ``crossings`` transfers of a group's intermediates are certain."""
    workload = problem.workload
    elements, narrow = problem.groups * proof.elements, workload.narrowest_bytes
    wider = problem.groups * crossings * (workload.in_bytes - narrow)
    instance = {
        "capacity_elements": capacity,
        "workload": workload.to_json(),
        "independent_groups": problem.groups,
        "elements_per_group": proof.elements,
        **({"separate_kernels": True} if separate else {"recompute": "allowed" if recompute else "forbidden"}),
        **problem.instance,
    }
    total = bytes_at_least(workload, elements) + wider
    return LowerBound(elements, total, capacity, proof, recompute, separate, instance)


def bytes_at_least(workload: Workload, elements: int) -> int:
    """Bytes of so many transfers: the narrowest width each, and what is wider on those that surely happen."""
    narrow = workload.narrowest_bytes
    return narrow * elements + workload.compulsory_bytes - narrow * workload.compulsory_elements
