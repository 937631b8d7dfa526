"""A-, B- and C-stationary GEMM with ragged blocks, walked in a snake.

One operand X (the stationary one) is cut into a grid of blocks. While a block is held, the third dimension streams
by: with X = C that is k, with X = A it is n and with X = B it is m. Let X have dimensions (p, q) and r be the
streamed one; the other two operands are P (p x r) and Q (q x r). For each block and each index of r the short side
is held as a vector and the long side passes through one slot, so a block of s x t values needs s t + min(s, t) + 1.

A or B stationary with several blocks along k (k slabs) stores and reloads the partial sums of C between slabs.

The walk is a snake, and the streamed direction alternates: the next block in the same block row starts with the
vectors of P that the last block ended with, as many as the spare memory keeps; at the end of a block row the same
holds for Q. Kept partial sums of C save a store and a load each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pebble.errors import InfeasibleError
from pebble.units import ceil_div
from pebble.workloads import Gemm

# stationary operand -> (its two dimensions, the streamed one)
AXES = {"C": ("m", "n", "k"), "A": ("m", "k", "n"), "B": ("k", "n", "m")}
_OPERAND_OF = {frozenset("mk"): "A", frozenset("kn"): "B", frozenset("mn"): "C"}

_LOOK_CLOSELY = 24
MOST_SIZES = 1 << 15  # more than any extent up to 2^28 has


@dataclass(frozen=True)
class ExplicitSchedule:
    """A legal schedule and its exact traffic.

    Attributes
    ----------
    stationary : str
        The operand that is held block by block: ``"A"``, ``"B"`` or ``"C"``.
    block_p, block_q : int
        Block of the stationary operand along its two dimensions, in values; edge blocks are short.
    across : str
        Which of the two dimensions the snake walks first.
    capacity, peak_elements : int
        Values that fast memory holds, and most values held at once.
    loads, stores : dict
        Values moved, by operand.
    """

    stationary: str
    block_p: int
    block_q: int
    across: str
    gemm: Gemm
    capacity: int
    loads: dict[str, int]
    stores: dict[str, int]
    peak_elements: int

    @property
    def elements(self) -> int:
        """Loads plus stores, in values."""
        return sum(self.loads.values()) + sum(self.stores.values())

    @property
    def bytes(self) -> int:
        """Loads plus stores, in bytes, each operand at its own width."""
        width = {o.name: o.element_bytes for o in self.gemm.operands}
        return sum(count * width[name] for moved in (self.loads, self.stores) for name, count in moved.items())

    @property
    def name(self) -> str:
        """For tables: ``C-stationary 4096x4096``; ``compulsory`` in front when nothing is moved twice."""
        p, q, _ = AXES[self.stationary]
        text = f"{self.stationary}-stationary, blocks {self.block_p}x{self.block_q} ({p} x {q})"
        return f"compulsory: {text}" if self.elements == self.gemm.compulsory_elements else text

    @property
    def nest(self) -> Nest:
        """Its loops."""
        return Nest.of(self.gemm, self.capacity, self.stationary, self.block_p, self.block_q, self.across)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "family": f"{self.stationary.lower()}-stationary",
            "block": [self.block_p, self.block_q],
            "block_dimensions": list(AXES[self.stationary][:2]),
            "walks_first": self.across,
            "loads_elements": dict(self.loads),
            "stores_elements": dict(self.stores),
            "peak_elements": self.peak_elements,
        }


@dataclass(frozen=True)
class Nest:
    """The loop nest in its own names: stationary p x q, streamed r; rows of blocks along p, walked along q."""

    axes: tuple[str, str, str]
    p: int
    q: int
    r: int
    bp: int
    bq: int
    capacity: int

    @classmethod
    def of(cls, gemm: Gemm, capacity: int, stationary: str, bp: int, bq: int, across: str) -> Nest:
        """The nest of these blocks, bp x bq in the order of `AXES`; it walks its second dimension first."""
        first, second, streamed = AXES[stationary]
        if across == first:
            first, second, bp, bq = second, first, bq, bp
        size = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
        return cls((first, second, streamed), size[first], size[second], size[streamed], bp, bq, capacity)

    @property
    def rows(self) -> int:
        return ceil_div(self.p, self.bp)

    @property
    def cols(self) -> int:
        return ceil_div(self.q, self.bq)

    def height(self, row: int) -> int:
        return min(self.bp, self.p - row * self.bp)

    def width(self, col: int) -> int:
        return min(self.bq, self.q - col * self.bq)

    def kept_across(self, height: int, width: int) -> int:
        """Vectors of P (``height`` values each) kept from one block to the next in its row."""
        return min(self.r, max(0, (self.capacity - 1 - height * width) // height))

    def kept_down(self, row: int, width: int) -> int:
        """Vectors of Q (``width`` values each) kept at the turn below ``row``.

        A block that begins with kept vectors of P must be through with them before it begins to keep vectors of Q,
        and the other way round: a step with both would hold two whole vectors.
        """
        free = self.r
        if self.cols > 1:
            free -= max(self.kept_across(self.height(r), self.bq) for r in (row, row + 1))
        return min(free, max(0, (self.capacity - 1 - self.bp * width) // width))

    def saved_across(self) -> int:
        """Values of P not moved again, over all steps inside rows of blocks."""
        # every step inside a row has a block of full width on at least one side
        full, last = self.bp, self.height(self.rows - 1)
        per_step = (self.rows - 1) * self.kept_across(full, self.bq) * full
        return (self.cols - 1) * (per_step + self.kept_across(last, self.bq) * last)

    def turn_column(self, row: int) -> int:
        """The column of blocks in which the walk goes from ``row`` to the next: the snake's end."""
        return self.cols - 1 if row % 2 == 0 else 0

    def saved_down(self) -> int:
        """Values of Q not moved again, over all turns between rows of blocks."""
        if self.rows == 1:
            return 0
        total = 0
        plain = self.rows - 2  # turns between two full rows of blocks; they alternate between two columns
        for parity, count in ((0, ceil_div(plain, 2)), (1, plain // 2)):
            width = self.width(self.turn_column(parity))
            total += count * (self.kept_down(0, width) * width if count else 0)
        last = self.rows - 2
        width = self.width(self.turn_column(last))
        return total + self.kept_down(last, width) * width

    def peak(self) -> int:
        """Most values held at once."""
        plain = self.bp * self.bq + min(self.bp, self.bq) + 1
        most = plain
        if self.cols > 1:
            for height in {self.bp if self.rows > 1 else self.height(0), self.height(self.rows - 1)}:
                kept = self.kept_across(height, self.bq)
                most = max(most, height * self.bq + kept * height + 1 if kept else 0)
        for row in {0, self.rows - 2} if self.rows > 1 else set():
            for width in {self.width(self.turn_column(row)), self.width(self.turn_column(row + 1))}:
                kept = self.kept_down(row, width)
                most = max(most, self.bp * width + kept * width + 1 if kept else 0)
        return most


def _evaluate(gemm: Gemm, capacity: int, stationary: str, bp: int, bq: int, across: str) -> ExplicitSchedule:
    nest = Nest.of(gemm, capacity, stationary, bp, bq, across)
    first, second, streamed = nest.axes
    moved = {
        _OPERAND_OF[frozenset((first, streamed))]: nest.p * nest.r * nest.cols - nest.saved_across(),
        _OPERAND_OF[frozenset((second, streamed))]: nest.q * nest.r * nest.rows - nest.saved_down(),
        stationary: nest.p * nest.q,
    }
    cells = gemm.m * gemm.n
    loads = {"A": moved["A"], "B": moved["B"], "C": moved["C"] - (0 if gemm.accumulate else cells)}
    stores = {"A": 0, "B": 0, "C": moved["C"]}
    return ExplicitSchedule(stationary, bp, bq, across, gemm, capacity, loads, stores, nest.peak())


def block_sizes(extent: int, largest: int, most: int = MOST_SIZES) -> Iterator[int]:
    """Each whole number up to ``largest`` that is ceil(extent / count) for some count: the sizes worth trying.

    After ``most`` of them they fall by a 256th at least, so that their number stays small for any extent.

    Examples
    --------
    >>> list(block_sizes(10, 10))
    [10, 5, 4, 3, 2, 1]
    """
    if largest < 1:
        return
    size = ceil_div(extent, ceil_div(extent, min(largest, extent)))
    number = 0
    while True:
        yield size
        if size == 1:
            return
        number += 1
        below = size if number < most else max(2, size - size // 256)
        # the fewest blocks that need less than this size
        size = ceil_div(extent, (extent - 1) // (below - 1) + 1)


def largest_partner(capacity: int, side: int) -> int:
    """Largest t with side t + min(side, t) + 1 <= capacity, or 0."""
    if side * side + side + 1 <= capacity:
        return (capacity - 1 - side) // side
    return max(0, (capacity - 1) // (side + 1))


def gemm_schedules(gemm: Gemm, capacity: int) -> Iterator[ExplicitSchedule]:
    """The best schedule of each family (stationary operand, walk) for a capacity in values, six at most.

    Cost: O(sqrt(m) + sqrt(n) + sqrt(k)) evaluations. InfeasibleError for a capacity below 3.
    """
    if capacity < 3:
        raise InfeasibleError(
            f"capacity: got {capacity} elements, expected at least 3 (a value each of A, B and C): no schedule exists."
        )
    size = {"m": gemm.m, "n": gemm.n, "k": gemm.k}
    for stationary, (first, second, _) in AXES.items():
        blocks = []
        for bp in block_sizes(size[first], capacity):
            partner = min(largest_partner(capacity, bp), size[second])
            if partner > 0:
                # the same number of blocks, evened out, leaves the most memory for what is kept
                bq = ceil_div(size[second], ceil_div(size[second], partner))
                blocks.append((_plain_bytes(gemm, stationary, bp, bq), bp, bq))
        # what the snake keeps is a small correction, so only the best blocks without it are looked at closely
        blocks.sort()
        for across in (second, first):
            found = [_evaluate(gemm, capacity, stationary, bp, bq, across) for _, bp, bq in blocks[:_LOOK_CLOSELY]]
            if found:
                yield min(found, key=lambda s: (s.bytes, s.elements))


def _plain_bytes(gemm: Gemm, stationary: str, bp: int, bq: int) -> int:
    """Bytes moved when nothing is kept from one block to the next."""
    first, second, _ = AXES[stationary]
    block = {first: bp, second: bq}
    rounds = {"m": 1, "n": 1, "k": 1}
    for axis, extent in (("m", gemm.m), ("n", gemm.n), ("k", gemm.k)):
        rounds[axis] = ceil_div(extent, block.get(axis, extent))
    inputs = gemm.m * gemm.k * rounds["n"] + gemm.k * gemm.n * rounds["m"]
    visits = 2 * rounds["k"] - (0 if gemm.accumulate else 1)
    return inputs * gemm.in_bytes + gemm.m * gemm.n * visits * gemm.out_bytes


def best_gemm_schedule(gemm: Gemm, capacity: int) -> ExplicitSchedule:
    """The schedule with the least bytes moved among all families; ties go to the first."""
    return min(gemm_schedules(gemm, capacity), key=lambda s: (s.bytes, s.elements))
