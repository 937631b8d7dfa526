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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pebble.bounds.base import Compulsory, LowerBound, Proof, Theorem, all_names, check_capacity
from pebble.bounds.box import Piece, Segments
from pebble.bounds.chain import SEPARATE, SEPARATE_LINES, Chain, Kernels, recompute_bound
from pebble.bounds.line_search import LineBound, line_bound
from pebble.bounds.lines import Problem
from pebble.bounds.parts import Part, bound_parts
from pebble.bounds.passes import Grid, pass_bound
from pebble.bounds.priced import METHOD_BYTES as PRICED_BYTES_METHOD
from pebble.bounds.priced import PricedBound, PricedBytes, priced_chains
from pebble.bounds.priced_choice import Hint, priced_bound
from pebble.bounds.tied import tied_bound
from pebble.bounds.wide_lines import METHOD as LINE_METHOD
from pebble.bounds.wide_lines import LineBytes, chain_line_bytes, line_bytes
from pebble.bounds.wide_passes import METHOD as PASS_METHOD
from pebble.bounds.wide_passes import PassBytes, pass_bytes
from pebble.bounds.widths import (
    CHAIN_METHOD,
    METHOD,
    SEPARATE_METHOD,
    Bytes,
    Use,
    Wide,
    best_use,
    chain_uses,
    product_uses,
)
from pebble.errors import InputError
from pebble.workloads.base import Workload
from pebble.workloads.widths import Room, Widths

COMPULSORY = "compulsory"
COMPULSORY_STRICT = "compulsory, and the scores that a strict softmax must store and load"
STRICT = "equation (3), and the scores that a strict softmax must store"
SEPARATE_LINE_METHOD = f"{LINE_METHOD}, kernel by kernel"
InBytes = Bytes | LineBytes | PassBytes | PricedBytes
Kernel = tuple[InBytes | None, int, int]  # what proves it, bytes that surely move, how many there are


@dataclass(frozen=True)
class Accounting:
    """What a family tells the theorems of one workload."""

    workload: Workload  #: what is accounted for
    pieces: tuple[Piece, ...] = ()  #: uses of the segment theorem, each a bound of one group by itself
    lines: tuple[Problem, ...] = ()  #: uses of the line theorem, each a bound of one group by itself
    kernel_lines: tuple[Problem, ...] = ()  #: the same for each of two kernels with the intermediates stored between
    grid: Grid | None = None  #: the cells of the intermediate, for the pass theorem
    groups: int = 1  #: equal groups that share no value
    chain: Chain | None = None  #: the two products of a group; None where every cell is an output
    parts: tuple[Part, ...] = ()  #: parts of unlike kind, whose bounds add up
    fresh: Accounting | None = None  #: the same with outputs that begin at nothing, where these begin at a value
    priced: bool = True  #: whether a partial sum that leaves and returns is stored and loaded, as Theorem 10 counts
    computed_once: bool = False  #: whether parts hold only when nothing is computed twice
    spilled: Callable[[int], int] = lambda capacity: 0  #: scores of a group that must be stored at S
    compulsory_kernels: str = COMPULSORY  #: what the bound kernel by kernel is called where it is compulsory
    game: str = ""  #: what is computed, for a reader, with formulas between dollars
    symbols: Mapping[str, int] = field(default_factory=dict)  #: the sizes that the formulas name
    instance: Mapping[str, Any] = field(default_factory=dict)  #: what ``--json`` tells besides


def lower_bound(told: Accounting, capacity: int, recompute: bool = False) -> LowerBound:
    """The best proven lower bound on the traffic of a workload through one fast memory, however it is fused.

    Parameters
    ----------
    told : Accounting
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
        prices leaves (Theorem 10): some ten-thousandths (`pebble.bounds.priced_choice`).

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
    workload, chain = told.workload, told.chain
    recompute = recompute or (chain is None and not told.computed_once)
    spilled = 0 if recompute else told.spilled(capacity)
    least, products = workload.compulsory_elements // told.groups, workload.flops // (2 * told.groups)
    found: list[Proof] = [Compulsory(COMPULSORY, least, products)]
    lines: list[LineBound] = []
    if not recompute or (chain is None and not told.computed_once):
        found += [bound_parts(told.parts, capacity)] if told.parts else []
        found += [piece.bound(capacity, spilled, STRICT if spilled else None) for piece in told.pieces]
        lines = [line_bound(problem, capacity) for problem in told.lines]
        found += lines
        found += [passes] if told.grid is not None and (passes := pass_bound(told.grid, capacity)) else []
    if spilled:
        found.append(Compulsory(COMPULSORY_STRICT, least, products, 2 * spilled))
    if chain is not None:
        found.append(recompute_bound(chain, capacity))
        if chain.gated and not recompute:
            tied = tied_bound(chain, capacity, max(proof.elements for proof in found))
            found[1:1] = [tied] if tied is not None else []
    best = max(found, key=lambda proof: proof.elements)  # the first of equals
    if chain is not None and lines and told.priced:
        priced = _priced(told, chain, capacity, best.elements)
        best = max([best, *priced], key=lambda proof: proof.elements)
    return _finish(told, capacity, best, 2 * spilled, recompute=recompute)


def _priced(told: Accounting, chain: Chain, capacity: int, least: int) -> list[PricedBound]:
    """Theorem 10, where it may prove more than ``least``: in the form and about the segments of Theorem 8."""
    problems = {problem.form: problem for problem in priced_chains(chain)}

    def hint(at: int) -> Hint:
        best = max((line_bound(problem, at) for problem in told.lines), key=lambda proof: proof.elements)
        return Hint(problems[best.form], best.segments, best.elements)

    found = priced_bound(hint, capacity, least)
    return [found] if found is not None else []


def separate_bound(told: Accounting, capacity: int) -> LowerBound:
    """The bound when every intermediate goes through slow memory: one kernel writes it, the next reads it.

    Minus `lower_bound` it says what fusion can save at most, as far as is proved. A further kernel between the two (for
    softmax) only adds to it. Parameters, units and errors as there.

    Raises
    ------
    InputError
        A workload that is one kernel.
    """
    check_capacity(capacity)
    chain = told.chain
    if chain is None:
        raise InputError(
            f"separate kernels: got a {told.workload.family}, which is one kernel, expected ffn or attention."
        )
    pieces, least = zip(*chain.kernels, strict=True)
    kernels: list[Segments | LineBound] = [piece.bound(capacity) for piece in pieces]
    if told.kernel_lines:
        lines = (line_bound(problem, capacity) for problem in told.kernel_lines)
        kernels = [max(pair, key=lambda proof: proof.elements) for pair in zip(kernels, lines, strict=True)]
    by_lines = any(isinstance(kernel, LineBound) for kernel in kernels)
    best = Kernels(SEPARATE_LINES if by_lines else SEPARATE, tuple(kernels), least)
    if best.elements == sum(least):
        best = Kernels(told.compulsory_kernels, best.kernels, least)
    method = f"equation (3), and the stores of {chain.hidden}"
    found: list[Proof] = [best, *(piece.bound(capacity, chain.cells, method) for piece in chain.pieces)]
    if chain.gated:
        tied = tied_bound(chain, capacity, max(proof.elements for proof in found), chain.cells, method)
        found[1:1] = [tied] if tied is not None else []
    proof = max(found, key=lambda proof: proof.elements)
    return _finish(told, capacity, proof, 2 * chain.cells, separate=True)


def in_bytes(told: Accounting, found: LowerBound, room: Room) -> LowerBound:
    """The better of a bound that counts values and what Theorems B1 to B5 say in bytes.

    Parameters
    ----------
    told : Accounting
    found : LowerBound
        Of the same workload, whose capacity is at least as many values as may be in ``room``.
    room : Room
        Bytes of fast memory, and what a value of each kind takes of them.

    Returns
    -------
    LowerBound
        ``found`` itself where it proves no less, or where the theorems do not apply: computed again, or a layer whose
        parts use what others compute.
    """
    kernels: list[Kernel] = []
    method, widths = METHOD, room.widths
    if told.chain is not None and not found.recompute:
        method = SEPARATE_METHOD if found.separate else CHAIN_METHOD
        if found.separate:
            kernels = _kernels_in_bytes(told, told.chain, room)
        else:
            least = told.workload.compulsory_bytes // told.groups
            lines = chain_line_bytes(told.chain, widths, room.bytes)
            others: tuple[LineBytes | PassBytes | PricedBytes, ...] = lines
            if told.grid is not None:
                products = told.workload.flops // (2 * told.groups)
                others += pass_bytes(told.grid, widths, room.bytes, least, products)
            kernels = [_best(chain_uses(told.chain, widths), others, room, least, told.groups)]
            if lines and told.priced:
                best = least if kernels[0][0] is None else kernels[0][0].bytes
                priced = _priced_bytes(told.chain, lines[0].unit, room, max(best, found.bytes // told.groups))
                kernels = [(priced or kernels[0][0], least, told.groups)]
    elif told.chain is None and told.pieces:
        uses = product_uses(told.pieces[0], widths)
        lines = line_bytes(told.lines, widths, room.bytes)
        kernels = [_best(uses, lines, room, told.workload.compulsory_bytes, 1)]
    elif told.chain is None and not told.computed_once:
        kernels = [
            _best(
                product_uses(piece, widths),
                line_bytes(part.lines, widths, room.bytes),
                room,
                _least_bytes(piece, widths),
                part.count,
            )
            for part in told.parts
            for piece in part.pieces[:1]
        ]
    if any(isinstance(one, LineBytes) for one, _, _ in kernels):
        method = SEPARATE_LINE_METHOD if found.separate else LINE_METHOD
    if any(isinstance(one, PassBytes) for one, _, _ in kernels):
        method = PASS_METHOD
    if any(isinstance(one, PricedBytes) for one, _, _ in kernels):
        method = PRICED_BYTES_METHOD
    proof = Wide(method, widths, tuple(kernels), found)
    if proof.bytes <= found.bytes:
        return found
    instance = {**found.instance, "capacity_bytes": room.bytes}
    return replace(found, bytes=proof.bytes, proof=proof, instance=instance)


def _priced_bytes(chain: Chain, unit: int, room: Room, least: int) -> PricedBytes | None:
    """Theorem 10 in bytes, where it proves more than ``least``; counted in units of so many."""
    problems = {problem.form: problem for problem in priced_chains(chain, room.widths, unit)}

    def hint(at: int) -> Hint:
        best = max(chain_line_bytes(chain, room.widths, at * unit), key=lambda proof: proof.bytes)
        return Hint(problems[best.found.form], best.found.segments, best.bytes // unit)

    found = priced_bound(hint, room.bytes // unit, least // unit, PRICED_BYTES_METHOD)
    return PricedBytes(found, unit) if found is not None and found.elements * unit > least else None


def _least_bytes(piece: Piece, widths: Widths) -> int:
    """What one product moves in any case: inputs once, outputs once, what is added to once more."""
    box = piece.box
    inputs = box.rows * box.depth + box.cols * box.depth
    return widths.read * inputs + widths.written * (box.rows * box.cols + piece.added)


def _best(
    uses: tuple[Use, ...], others: tuple[LineBytes | PassBytes | PricedBytes, ...], room: Room, least: int, count: int
) -> Kernel:
    """The theorem that proves most for one kernel; None where what surely moves is as much."""
    tried: list[InBytes] = [best_use(uses, room.bytes), *others]
    found = max(tried, key=lambda proof: proof.bytes)
    return (found if found.bytes > least else None), least, count


def _kernels_in_bytes(told: Accounting, chain: Chain, room: Room) -> list[Kernel]:
    """Each kernel of a chain by itself: the first stores the cells of H complete, the second reads them."""
    widths, (first, _), (second, _) = room.widths, *chain.kernels
    m, k, f, l, cells, streams, w = chain.m, chain.k, chain.f, chain.l, chain.cells, chain.streams, widths.read
    inside = Room(room.bytes, Widths(w, widths.hidden, widths.hidden, w))
    uses = product_uses(first, inside.widths, cells, streams * cells), product_uses(second, widths)
    surely = w * (m * k + streams * k * f + cells), w * (cells + f * l) + widths.written * m * l
    lines = (
        line_bytes(told.kernel_lines[:1], inside.widths, room.bytes),
        line_bytes(told.kernel_lines[1:], widths, room.bytes),
    )
    return [_best(uses[i], lines[i], room, surely[i], told.groups) for i in range(2)]


def sum_of_kernels(workload: Workload, kernels: Sequence[Accounting], capacity: int) -> LowerBound:
    """The least when each kernel reads all its inputs from slow memory and writes all its outputs there.

    The kernels' bounds add: each starts from empty fast memory. Units and errors as for `lower_bound`.
    """
    found = tuple(lower_bound(kernel, capacity) for kernel in kernels)
    proof = Sum("the bounds of its kernels, added", found)
    return LowerBound(
        proof.elements,
        sum(bound.bytes for bound in found),
        capacity,
        proof,
        separate=True,
        instance={"capacity_elements": capacity, "workload": workload.to_json(), "separate_kernels": True},
    )


@dataclass(frozen=True)
class Sum:
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


def _finish(
    told: Accounting, capacity: int, proof: Proof, crossings: int, recompute: bool = False, separate: bool = False
) -> LowerBound:
    """All groups, in elements and bytes; ``crossings`` transfers of a group's intermediates are certain."""
    workload = told.workload
    elements, narrow = told.groups * proof.elements, workload.narrowest_bytes
    wider = told.groups * crossings * (workload.in_bytes - narrow)
    instance = {
        "capacity_elements": capacity,
        "workload": workload.to_json(),
        "independent_groups": told.groups,
        "elements_per_group": proof.elements,
        **({"separate_kernels": True} if separate else {"recompute": "allowed" if recompute else "forbidden"}),
        **told.instance,
    }
    total = bytes_at_least(workload, elements) + wider
    return LowerBound(elements, total, capacity, proof, recompute, separate, instance)


def bytes_at_least(workload: Workload, elements: int) -> int:
    """Bytes of so many transfers: the narrowest width each, and what is wider on those that surely happen."""
    narrow = workload.narrowest_bytes
    return narrow * elements + workload.compulsory_bytes - narrow * workload.compulsory_elements
