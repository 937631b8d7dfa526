"""Explicit schedules of attention: FlashAttention and its relatives in bands, separate kernels, and two kernels with
none for the softmax, where the maximum and sum of each row pass from one to the other.

The first kernel computes the scores in bands of rows. All scores of a row are complete while its band runs, so that the
maximum and sum of the row stay in fast memory until they are, and are then stored: two values a row. The second kernel
computes outputs in bands of rows of its own; while a band runs its rows' two values are there, and each score becomes
its probability in its place when it is loaded. So a score is stored once, complete, and loaded as often as the second
product says; a kernel for the softmax between the products would load and store it once more. The bands of the two
have their own heights: rows of Q are narrower than the partial sums of O.

What the rows' values take is set aside for the tallest band, and the products are bands of `gemm` in the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from pebble.errors import InfeasibleError
from pebble.schedules.explicit.blocked import block_sizes
from pebble.schedules.explicit.chain import SIDES, Chain, ChainPlan
from pebble.schedules.explicit.chain_search import best_chain_plan
from pebble.schedules.explicit.fused import FUSED_FAMILIES, FusedSchedule, Kernel, family_of_plan
from pebble.schedules.explicit.gemm import BandedProduct
from pebble.schedules.explicit.gemm_search import banded_products, best_gemm_schedule
from pebble.workloads import Attention, Gemm
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import MAX_DIMENSION

FAMILY = "unfused with row state"
PASSED = "row state"  # as an operand
STATE = 2  # values of a row: maximum and sum
_FEW_HEIGHTS = 12  # of bands, for each of which the state is set aside
_NARROWINGS = 3  # how often what is set aside is sought where there are more


@dataclass(frozen=True)
class RowState:
    """The two kernels, each in the room that is left beside its rows' state.

    Attributes
    ----------
    scores, outputs : BandedProduct
        Q (m x k) times K (k x f), and scores (m x f) times V (f x l), both in bands of m.
    room : FastMemory
        The memory.
    state : bool
        Whether the rows' state takes room and moves.
    """

    scores: BandedProduct
    outputs: BandedProduct
    memory: FastMemory
    state: bool

    @property
    def kernels(self) -> tuple[BandedProduct, BandedProduct]:
        """Both products, in their order."""
        return self.scores, self.outputs

    @property
    def values(self) -> int:
        """Of the rows' state, stored by the first kernel and loaded by the second."""
        return STATE * self.scores.gemm.m if self.state else 0

    @property
    def bytes(self) -> int:
        """What the transfers count."""
        return self.scores.bytes + self.outputs.bytes + 2 * self.memory.state_cost * self.values

    @property
    def peak_elements(self) -> int:
        """Most values held at once, the rows' state with them."""
        state = STATE if self.state else 0
        return max(kernel.peak_elements + state * tallest(kernel) for kernel in self.kernels)

    @property
    def name(self) -> str:
        """For tables."""
        return f"{self.scores.name}; maximum and sum of each row; {self.outputs.name}"


def tallest(kernel: BandedProduct) -> int:
    """Rows of its largest band."""
    return max(band.width for band in kernel.bands)


def best_row_state(scores: Gemm, outputs: Gemm, memory: FastMemory, state: bool = True) -> RowState | None:
    """The kernels that move least; None where one does not fit.

    Parameters
    ----------
    scores, outputs : Gemm
        The products of one group of heads.
    memory : FastMemory
        The memory.
    state : bool
        Whether the rows' state takes room and moves.

    Notes
    -----
    Cost: some milliseconds.
    """
    results: list[BandedProduct] = []
    for gemm, inside in ((scores, memory.handing_on), (outputs, memory)):
        fit = _with_state(gemm, inside, memory) if state else iter(_in_bands(gemm, inside, memory, 0)[:1])
        best = min(fit, key=lambda single: (single.bytes, single.elements), default=None)
        if best is None:
            return None
        results.append(best)
    return RowState(results[0], results[1], memory, state)


def _with_state(gemm: Gemm, inside: FastMemory, memory: FastMemory) -> Iterator[BandedProduct]:
    """Bands of rows beside which their state fits.

    What is set aside is for each height that bands of few rows can have, else as near as some steps come to what is
    taken.
    """
    best = next(iter(_in_bands(gemm, inside, memory, 0)), None)
    if best is None:
        return
    too_few, enough, rows = 0, gemm.m + 1, tallest(best)
    heights = list(block_sizes(gemm.m, rows))
    if len(heights) <= _FEW_HEIGHTS:
        fitting = ((height, band) for height in heights for band in _in_bands(gemm, inside, memory, height)[:1])
        yield from (item for height, item in fitting if tallest(item) <= height)
        return
    for _ in range(_NARROWINGS):
        best = next(iter(_in_bands(gemm, inside, memory, rows)), None)
        if best is not None and tallest(best) > rows:
            too_few = rows
        else:
            enough = rows
            if best is not None:
                yield best
        # bands as tall as all of the room lets them be take too much, and those beside their state leave some
        rows = tallest(best) if best is not None else 0
        rows = rows if too_few < rows < enough else (too_few + enough) // 2
        if not too_few < rows < enough:
            return


def _in_bands(gemm: Gemm, inside: FastMemory, memory: FastMemory, rows: int) -> list[BandedProduct]:
    """Bands along m beside the state of so many rows, best first: those that are not taller come before others."""

    def left(size: int, of: Widths) -> int:
        return size - STATE * max(of.hidden, of.partial) * rows

    values = None if memory.values is None else memory.values - STATE * rows
    fitting = replace(inside, bytes=left(memory.bytes, memory.widths), values=values)
    if fitting.bytes < 2 * inside.widths.read + inside.widths.partial or (values is not None and values < 3):
        return []
    result = banded_products(gemm, fitting, "m")
    return sorted(result, key=lambda single: tallest(single) > rows)


def attention_chain(attention: Attention, state: bool = True) -> Chain:
    """One group (a key/value head and the query heads that share it, stacked query by query) as two products.

    Softmax keeps a maximum and a sum per row; outputs that are stored and loaded between blocks need the factor that
    rescales them as well. A row's outputs and state stay together, so no band is cut from the keys unless it has all.
    Without ``state`` none of these takes room, as in models that leave softmax out.
    """
    strict = attention.softmax == "strict"
    return Chain(
        attention.stacked_queries,
        attention.head_dim,
        attention.keys,
        attention.value_dim,
        state=(2 if strict else 3) if state else 0,
        whole_rows=strict,
        one_pass=True,
        masked=attention.group if attention.causal else 0,
    )


def _products(attention: Attention) -> tuple[Gemm, Gemm]:
    """Scores and outputs of one group."""
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    return Gemm(m, f, k, attention.dtype, attention.dtype), Gemm(m, l, f, attention.dtype, attention.out_dtype)


def fused_attention(attention: Attention, family: str, plan: ChainPlan) -> FusedSchedule:
    """What a plan of one group of heads, in every group, moves of each operand."""
    groups = attention.groups
    names = {"A": "Q", "B": "K", "D": "V", "Y": "O", **({"H": "S"} if plan.stores["H"] else {})}
    known = {"row panel": "flash attention", "Y stationary": "O stationary", "bands of hidden units": "bands of keys"}
    each = f"{groups} groups, each " if groups > 1 else ""
    spec = plan.describe().replace("Y stationary", "O stationary").replace("of Y", "of O").replace("of H", "of scores")
    return FusedSchedule(
        known.get(family, family),
        each + spec,
        attention,
        {names[name]: groups * count for name, count in plan.loads.items() if name in names},
        {names[name]: groups * count for name, count in plan.stores.items() if name in names},
        plan.peak_elements,
        plan.memory,
        groups * plan.bytes,
        plan,
    )


def _unfused(attention: Attention, memory: FastMemory) -> FusedSchedule:
    """Three kernels: scores, softmax over whole rows, outputs. Without a mask."""
    first, last = _products(attention)
    groups, cells, read = attention.groups, first.m * first.n, memory.cost.read
    scores, outputs = best_gemm_schedule(first, memory.handing_on), best_gemm_schedule(last, memory)
    # a row stays beside its maximum and sum; else it is read twice, once for these, once to divide
    stays = all(of.read * attention.keys + 2 * of.hidden <= size for size, of in memory.limits)
    softmax = Kernel(
        "softmax", {"S": cells * (1 if stays else 2)}, {"S": cells}, attention.keys + 2 if stays else 3, stays
    )
    loads = {
        "Q": scores.loads["A"],
        "K": scores.loads["B"],
        "V": outputs.loads["B"],
        "O": outputs.loads["C"],
        "S": scores.loads["C"] + softmax.loads["S"] + outputs.loads["A"],
    }
    stores = {"S": scores.stores["C"] + softmax.stores["S"], "O": outputs.stores["C"]}
    return FusedSchedule(
        "unfused",
        f"{scores.name}; softmax; {outputs.name}",
        attention,
        {name: groups * count for name, count in loads.items()},
        {name: groups * count for name, count in stores.items()},
        max(scores.peak_elements, softmax.peak_elements, outputs.peak_elements),
        memory,
        groups * (scores.bytes + outputs.bytes + read * (softmax.loads["S"] + softmax.stores["S"])),
        None,
        (scores, softmax, outputs),
    )


def _with_row_state(attention: Attention, memory: FastMemory, state: bool) -> list[FusedSchedule]:
    """Two kernels, between which the maximum and sum of each row pass; none where they do not fit."""
    both = best_row_state(*_products(attention), memory, state)
    if both is None:
        return []
    groups, (first, last) = attention.groups, both.kernels
    passed = {PASSED: groups * both.values} if state else {}
    loads = {"Q": first.loads["A"], "K": first.loads["B"], "S": first.loads["C"] + last.loads["A"]}
    loads |= {"V": last.loads["B"], "O": last.loads["C"]}
    stores = {"S": first.stores["C"], "O": last.stores["C"]}
    return [
        FusedSchedule(
            FAMILY,
            both.name,
            attention,
            {name: groups * count for name, count in loads.items()} | passed,
            {name: groups * count for name, count in stores.items()} | passed,
            both.peak_elements,
            memory,
            groups * both.bytes,
            None,
            both.kernels,
        )
    ]


def attention_schedules(attention: Attention, memory: FastMemory, state: bool = True) -> list[FusedSchedule]:
    """The best schedule of each family that fits, the least bytes first.

    Softmax state counts, unless ``state`` says otherwise.

    ``flash attention`` (queries and outputs resident, keys and values streamed), ``hidden block`` (scores resident),
    ``O stationary`` (all scores of some queries first, stored, then outputs resident; without a mask),
    ``bands of rows`` where mixing rules gives something else, ``bands of keys`` (one band of all keys, their values
    resident as far as they fit) and, without a mask, ``unfused`` and ``unfused with row state`` (up to 2^32 stacked
    queries). With strict softmax a
    block holds whole rows of scores. Cost: O(sqrt(queries) + sqrt(keys)) evaluations.

    Raises
    ------
    InfeasibleError
        No family fits: below 3 values; with a causal mask, below what one query needs.
    """
    chain = attention_chain(attention, state)
    results = []
    if _separable(attention):
        with suppress(InfeasibleError):
            results = [_unfused(attention, memory), *_with_row_state(attention, memory, state)]
    for family, (side, rule) in FUSED_FAMILIES.items():
        if family == "column panel" or (family == "row panel" and chain.whole_rows):
            continue
        plan = best_chain_plan(chain, side, memory, rule)
        if plan is not None and all(plan != other.plan for other in results):
            results.append(fused_attention(attention, family, plan))
    return _sorted(results, chain, memory)


def _separable(attention: Attention) -> bool:
    """Whether its products exist as GEMMs; one of stacked queries may be larger than any."""
    return not attention.causal and attention.stacked_queries <= MAX_DIMENSION


def _sorted(results: list[FusedSchedule], chain: Chain, memory: FastMemory) -> list[FusedSchedule]:
    if not results:
        size, of = memory.limits[-1]
        least = chain.state + 1 + min(chain.k + chain.l, chain.f) + 1
        raise InfeasibleError(
            f"capacity: got {size // of.read} elements, expected about {least} for a schedule of causal attention (one "
            "query, its output and softmax state, or one row of scores)."
        )
    return sorted(results, key=lambda s: (s.bytes, s.elements, s.family == "unfused"))


@lru_cache(maxsize=1 << 8)
def best_attention_schedule(attention: Attention, memory: FastMemory, state: bool = True) -> FusedSchedule:
    """The schedule with the least bytes moved among all families; softmax state counts unless ``state`` is false.

    Raises
    ------
    InfeasibleError
        No family fits.
    """
    chain, result, least = attention_chain(attention, state), list[FusedSchedule](), memory.compulsory(attention)
    for side in SIDES:
        below = min((s.bytes for s in result), default=inf)
        if below == least:
            break
        plan = best_chain_plan(chain, side, memory, below=below / attention.groups)
        if plan is not None:
            result.append(fused_attention(attention, family_of_plan(plan), plan))
    # separate kernels store the scores and load them; one for the softmax does both again
    scores = 2 * attention.groups * chain.m * chain.f * memory.cost.read
    if _separable(attention):
        with suppress(InfeasibleError):  # the products fit, but not in so few values
            if all(s.bytes > least + scores for s in result):
                result += _with_row_state(attention, memory, state)
            if all(s.bytes > least + 2 * scores for s in result):
                result.append(_unfused(attention, memory))
    return _sorted(result, chain, memory)[0]
