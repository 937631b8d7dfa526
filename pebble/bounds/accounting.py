r"""What a family tells the theorems of one workload, and the best bound that follows.

Every family accounts for its workloads in its own file of `pebble.families`: which boxes its products fill, which cells
are initialised free, what is taken off and what is added. Here the theorems are tried, and the best number is taken.

- *Equal groups* that share no value: from a schedule of all of them keep only the moves of one group's values: a legal
  schedule of that group alone, from an empty start, that holds at most :math:`S` values. Its loads and stores are at
  least the bound for one group *with all of* :math:`S`, and those of different groups are different moves: the bounds
  add, each with the full :math:`S`.
- *Bytes.* A value takes at least the narrowest width and a transfer moves at least that. What surely moves (each input
  once, each output once, intermediates that are spilled or go between kernels) is charged its own width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pebble.bounds.cases_choice import ByCases
from pebble.bounds.chain import SEPARATE, SEPARATE_LINES, Chain, ChainSegments, Kernels
from pebble.bounds.chain_lines import ChainLines, kernel_problems
from pebble.bounds.gated import ByElementwiseProduct
from pebble.bounds.lagrangian_choice import ByMultipliers
from pebble.bounds.line_search import ByLines
from pebble.bounds.lines import LineProblem
from pebble.bounds.parts import WorkloadPart, bound_parts
from pebble.bounds.pass_search import ByPasses
from pebble.bounds.passes import Grid
from pebble.bounds.proofs import Compulsory, LowerBound, Proof, SingleClaim, Theorem, all_names, check_capacity
from pebble.bounds.recompute import WithRecomputation
from pebble.bounds.segments import Piece
from pebble.bounds.uses import Goal, Subject, Use, best_of
from pebble.bounds.visit_search import ByVisits
from pebble.bounds.visits import Product
from pebble.errors import InputError
from pebble.workloads.workload import Workload

COMPULSORY = "compulsory"
COMPULSORY_STRICT = "compulsory, and the scores that a strict softmax must store and load"
KERNEL_BY_KERNEL = ", kernel by kernel"


@dataclass(frozen=True)
class Accounting(Subject):
    """What a family tells the theorems of one workload."""

    workload: Workload  #: what is accounted for
    uses: tuple[Use, ...] = ()  #: the theorems that bound one group by itself, in the order in which they are asked
    groups: int = 1  #: equal groups that share no value
    chain: Chain | None = None  #: the two products of a group; None where every cell is an output
    parts: tuple[WorkloadPart, ...] = ()  #: parts of unlike kind, whose bounds add up
    fresh: Accounting | None = None  #: the same with outputs that begin at nothing, where these begin at a value
    computed_once: bool = False  #: whether parts hold only when nothing is computed twice
    spilled: Callable[[int], int] = lambda capacity: 0  #: scores of a group that must be stored at S
    one_memory: bool = False  #: whether nothing is proved of several memories
    compulsory_kernels: str = COMPULSORY  #: what the bound kernel by kernel is called where it is compulsory
    game: str = ""  #: what is computed, for a reader, with formulas between dollars
    symbols: Mapping[str, int] = field(default_factory=dict)  #: the sizes that the formulas name
    instance: Mapping[str, Any] = field(default_factory=dict)  #: what ``--json`` tells besides

    @property
    def quick(self) -> Accounting:
        """Without the theorems that take a search."""
        return replace(self, uses=tuple(use for use in self.uses if not use.slow))

    @property
    def recomputation_is_idle(self) -> bool:
        """Whether every cell is an output, of which one completion is useful: bounds hold with recomputation too."""
        return self.chain is None and not self.computed_once


@dataclass(frozen=True)
class StrictSoftmax(Use):
    """Scores that must be stored and loaded besides what surely moves."""

    least: int  #: what surely moves, of a group
    products: int

    def proofs(self, goal: Goal) -> tuple[Compulsory, ...]:
        """Where any are spilled."""
        if not goal.spilled:
            return ()
        return (Compulsory(COMPULSORY_STRICT, self.least, self.products, 2 * goal.spilled),)


def product_uses(m: int, n: int, k: int, accumulate: bool = False) -> tuple[Use, ...]:
    """The theorems on C := A B, or C += A B, all of it by itself."""
    return (
        Piece.product(m, n, k, added=m * n if accumulate else 0),
        ByLines(LineProblem.product(m, n, k, (1, 1, 2 if accumulate else 1))),
        ByVisits(Product(m, n, k, accumulate)),
    )


def chain_uses(chain: Chain, grid: Grid, *besides: Use) -> tuple[Use, ...]:
    """The theorems on two products in a row; ``grid``: the cells of the intermediate."""
    gated = (ByElementwiseProduct(chain),) if chain.gated else ()
    lines = ChainLines(chain)
    last = (*besides, WithRecomputation(chain), *gated, ByMultipliers(lines), ByCases(lines))
    return (ChainSegments(chain), lines, ByPasses(grid), *last)


def lower_bound(problem: Accounting, capacity: int, recompute: bool = False, cases: int = 0) -> LowerBound:
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
    cases : int
        Of two products in a row, and up to 8 segments: how many cases of their shares may be told apart (Theorem 15).

    Returns
    -------
    LowerBound
        In elements and in bytes, for every replacement policy. Falls as the capacity grows, but for what the search for
        multipliers leaves (Theorem 10): some ten-thousandths (`pebble.bounds.lagrangian_choice`).

    Raises
    ------
    InfeasibleError
        Capacity below 3: a multiply-add needs two operands and a result.

    Notes
    -----
    Some milliseconds for any size, in exact integers; a gated chain with large memory takes some hundredths of a
    second once, a chain of long vectors some tenths, for the multipliers of Theorem 10. Each of the ``cases``
    takes about one tenth.
    """
    check_capacity(capacity)
    workload, idle = problem.workload, problem.recomputation_is_idle
    spilled = 0 if recompute or idle else problem.spilled(capacity)
    least, products = workload.compulsory_elements // problem.groups, workload.flops // (2 * problem.groups)
    best: Proof = Compulsory(COMPULSORY, least, products)
    holds = idle or not recompute
    if holds and problem.parts:
        best = max(best, bound_parts(problem.parts, capacity), key=lambda proof: proof.elements)
    uses = (use for use in problem.uses if holds or use.redone)
    better = best_of(uses, Goal(capacity, best.elements, spilled, cases))
    return _finish(problem, capacity, better or best, 2 * spilled, recompute=recompute or idle)


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
    _, least = zip(*chain.kernels, strict=True)
    kernels = tuple(result for uses in kernel_uses(chain) if (result := best_of(uses, Goal(capacity))))
    best = Kernels(SEPARATE_LINES if any(proof.rank for proof in kernels) else SEPARATE, kernels, least)
    if best.elements == sum(least):
        best = replace(best, method=terms.compulsory_kernels)
    method, cells = f"equation (3), and the stores of {chain.hidden}", chain.cells
    results: list[Proof] = [piece.bound(capacity, cells, method) for piece in chain.pieces]
    if chain.gated:
        known = max(proof.elements for proof in (best, *results))
        results = [*ByElementwiseProduct(chain, cells, method).proofs(Goal(capacity, known)), *results]
    proof = max((best, *results), key=lambda proof: proof.elements)
    return _finish(terms, capacity, proof, 2 * cells, separate=True)


def kernel_uses(chain: Chain) -> tuple[tuple[Use, ...], ...]:
    """The theorems on each of two kernels with the intermediates stored between."""
    lines = kernel_problems(chain)
    return tuple((piece, *map(ByLines, lines[at : at + 1])) for at, (piece, _) in enumerate(chain.kernels))


def sum_of_kernels(
    workload: Workload, kernels: Sequence[LowerBound], capacity: int, recompute: bool = False
) -> LowerBound:
    """The least when each kernel reads all its inputs from slow memory and writes all its outputs there.

    The kernels' bounds add, in values and in bytes: each starts from empty fast memory.
    """
    proof = Sum("the bounds of its kernels, added", tuple(kernels))
    return LowerBound(
        proof.elements,
        sum(bound.bytes for bound in kernels),
        capacity,
        proof,
        recompute,
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

    def claims(self, bound: LowerBound) -> list[dict[str, Any]]:
        """In values: the checker adds up no bytes kernel by kernel."""
        kernels = tuple(getattr(kernel.proof, "values", kernel) for kernel in self.kernels)
        plain = replace(bound, bytes=sum(kernel.bytes for kernel in kernels))
        return SingleClaim.claims(replace(self, kernels=kernels), plain)


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
