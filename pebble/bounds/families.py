r"""What each family tells the theorems: its boxes, which cells are begun free, what is taken off and what is added.

**GEMM**, :math:`C := A B`: one box :math:`m \times n \times k`, all cells stored, with and without recomputation;
:math:`C \mathrel{+}= A B` begins none of them free, so its :math:`mn` stores come on top.

**Convolution** without padding: pixels x out_channels x taps with taps = in_channels kernel\ :sup:`2`. The row of pixel
:math:`p` and the column of tap :math:`t` meet in one input value, and one input value is met by at most :math:`R =
\lceil \text{kernel} / \text{stride} \rceil^2` pairs: along one direction, the pixels :math:`y` with
:math:`y\,\text{stride} \le i < y\,\text{stride} + \text{kernel}`. So it is a GEMM with overlap :math:`R`.

**FFN**: a chain with :math:`m` = tokens, :math:`k` = d_model, :math:`f` = hidden, :math:`l` = d_out.

**Attention**: a chain with :math:`A = Q` (:math:`m` = queries, :math:`k` = head_dim), :math:`B = K^T` (:math:`f` =
keys), :math:`D = V` (:math:`l` = value_dim), :math:`H` = the scores. A probability takes the place of its score: with
two values a schedule may drop the score when the probability is made, since the row sum has read it before (strict) or
reads it in the same step (online). Row maxima and sums, rescaling and the last division only add operations and values:
leaving them out is a relaxation.

- *Grouped heads.* The query heads that share K and V are one chain with their queries stacked: no product is lost or
  added.
- *Independent groups* (sequences, key/value heads). No value belongs to two groups. From a schedule of all of them keep
  only the moves of one group's values: a legal schedule of that group alone, from an empty start, that holds at most
  :math:`S` values. Its loads and stores are at least the bound for one group *with all of* :math:`S`, and those of
  different groups are different moves: the bounds add, each with the full :math:`S`.
- *Causal mask.* Fewer pairs :math:`(i, j)` exist: a subset of the box, with as many cells as pairs. With one segment
  this is below compulsory, so the maximum with compulsory matters: all of Q, K, V, O, since the last query sees every
  key and every query sees one at least.
- *Strict softmax, no recomputation.* When the last score of a row of :math:`n` has been added to the row's sum, all are
  computed and none has been used: each is in fast memory beside the sum, at most :math:`S - 1` of them, or was stored
  and will be loaded. So :math:`\max(0, n - S + 1)` stores come on top of Theorem 2, which charges loads of scores only,
  and as many loads and stores on top of compulsory.
- *Decode* (one query): nothing to reuse but across grouped heads; compulsory, K and V read once.

**Bytes.** A value takes at least the narrowest width and a transfer moves at least that. What surely moves (each input
once, each output once, intermediates that are spilled or go between kernels) is charged its own width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

from pebble.bounds.base import Compulsory, LowerBound, Proof, check_capacity
from pebble.bounds.box import Box, Piece
from pebble.bounds.chain import SEPARATE, Chain, Kernels, recompute_bound
from pebble.bounds.tied import tied_bound
from pebble.errors import InputError
from pebble.workloads import Attention, Conv2d, Ffn, Gemm
from pebble.workloads.base import Workload

COMPULSORY = "compulsory"
COMPULSORY_STRICT = "compulsory, and the scores that a strict softmax must store and load"
STRICT = "equation (3), and the scores that a strict softmax must store"


@dataclass(frozen=True)
class Accounting:
    """What a family tells the theorems of one workload."""

    pieces: tuple[Piece, ...]  #: uses of the segment theorem, each a bound of one group by itself
    groups: int = 1  #: equal groups that share no value
    chain: Chain | None = None  #: the two products of a group; None where every cell is an output
    spilled: Callable[[int], int] = lambda capacity: 0  #: scores of a group that must be stored at S
    compulsory_kernels: str = COMPULSORY  #: what the bound kernel by kernel is called where it is compulsory
    game: str = ""  #: what is computed, for a reader, with formulas between dollars
    symbols: Mapping[str, int] = field(default_factory=dict)  #: the sizes that the formulas name
    instance: Mapping[str, Any] = field(default_factory=dict)  #: what ``--json`` tells besides


@singledispatch
def accounting(workload: object) -> Accounting:
    """What a workload tells the theorems; a family registers its own.

    Raises
    ------
    InputError
        No family that is bounded.
    """
    raise InputError(f"bound: got {type(workload).__name__}, expected a workload such as Gemm(64, 64, 64).")


@accounting.register
def _(gemm: Gemm) -> Accounting:
    m, n, k = gemm.m, gemm.n, gemm.k
    more = m * n if gemm.accumulate else 0
    sizes = {"m": m, "n": n, "k": k}
    return Accounting(
        (Piece("product", "segment accounting, equation (2)", Box(m, n, k), (m * n * k,), added=more),),
        game="$C$ ($m \\times n$) $:= A$ ($m \\times k$) $B$ ($k \\times n$), one multiply-add $C_{ij} "
        "\\mathrel{+}= A_{il} B_{lj}$ per triple $(i, j, l)$, in any order",
        symbols=sizes,
        instance={**sizes, "accumulate_into": gemm.accumulate},
    )


@accounting.register
def _(conv: Conv2d) -> Accounting:
    box = Box(conv.pixels, conv.out_channels, conv.taps, conv.overlap)
    method = "segment accounting for a convolution"
    return Accounting(
        (Piece("convolution", method, box, (conv.multiply_adds,), whole_numbers=False),),
        game="the convolution, one multiply-add per output pixel, output channel and tap, in any order",
        symbols={"pixels": box.rows, "channels": box.cols, "taps": box.depth, "R": box.overlap},
        instance={"pixels": conv.pixels, "taps": conv.taps, "overlap": conv.overlap},
    )


@accounting.register
def _(ffn: Ffn) -> Accounting:
    m, k, f, l = ffn.tokens, ffn.d_model, ffn.hidden, ffn.d_out
    chain = Chain(m, k, f, l, m * f, ffn.gated)
    return Accounting(
        chain.pieces,
        chain=chain,
        game="$H := \\mathrm{act}(A B)$ and $Y := H D$ with $A$ ($m \\times k$), $B$ ($k \\times f$), $D$ ($f "
        "\\times l$), multiply-adds in any order; $H$ need never be in slow memory",
        symbols={"m": m, "k": k, "f": f, "l": l},
    )


@accounting.register
def _(attention: Attention) -> Accounting:
    m, k, f, l = attention.stacked_queries, attention.head_dim, attention.keys, attention.value_dim
    scores = attention.group * attention.pairs_per_head
    chain = Chain(m, k, f, l, scores, hidden="the scores")
    return Accounting(
        chain.pieces,
        groups=attention.groups,
        chain=chain,
        spilled=lambda capacity: strict_spills(attention, capacity),
        compulsory_kernels=SEPARATE,
        game="per group of query heads that share keys and values, with their queries stacked: "
        "$H := \\mathrm{softmax}(A B)$ and $Y := H D$ with $A = Q$ ($m \\times k$), $B = K^{T}$ ($k \\times f$), "
        "$D = V$ ($f \\times l$); a probability takes the place of its score",
        symbols={"m": m, "k": k, "f": f, "l": l, "scores": scores, "groups": attention.groups},
    )


def strict_spills(attention: Attention, capacity: int) -> int:
    """Scores of one group that a strict softmax must store: sum over rows of max(0, scores - S + 1)."""
    most = attention.keys - capacity + 1
    if attention.softmax != "strict" or most <= 0:
        return 0
    if not attention.causal:
        return attention.stacked_queries * most
    rows = min(most, attention.queries)  # a query earlier, one key less
    return attention.group * (rows * most - rows * (rows - 1) // 2)


def lower_bound(workload: Workload, capacity: int, recompute: bool = False) -> LowerBound:
    """The best proven lower bound on the traffic of a workload through one fast memory, however it is fused.

    Parameters
    ----------
    workload : Workload
        Gemm, Ffn, Attention, Conv2d, or another family with an `accounting`. Intermediates may stay in fast memory.
    capacity : int
        S, values (of the narrowest width) that fast memory holds at once.
    recompute : bool
        Whether schedules may compute a value more than once. Where every cell is an output it makes no difference.

    Returns
    -------
    LowerBound
        In elements and in bytes, for every replacement policy. Falls as the capacity grows.

    Raises
    ------
    InfeasibleError
        Capacity below 3: a multiply-add needs two operands and a result.

    Notes
    -----
    Some milliseconds for any size, in exact integers; a gated chain with large memory takes some hundredths of a
    second once.

    Examples
    --------
    >>> lower_bound(Gemm(8192, 8192, 8192), 40 * 2**19).elements
    260977100
    >>> lower_bound(Ffn(8192, 4096, 11008), 40 * 2**19).elements
    253338648
    >>> lower_bound(Attention(32768, 32768, 128), 228 * 2**9).elements
    602919164
    >>> lower_bound(Conv2d(1, 1, 1, 3, 3, 2), 100).elements
    17
    """
    check_capacity(capacity)
    told = accounting(workload)
    chain = told.chain
    recompute = recompute or chain is None
    spilled = 0 if recompute else told.spilled(capacity)
    least, products = workload.compulsory_elements // told.groups, workload.flops // (2 * told.groups)
    found: list[Proof] = [Compulsory(COMPULSORY, least, products)]
    if chain is None or not recompute:
        found += [piece.bound(capacity, spilled, STRICT if spilled else None) for piece in told.pieces]
    if spilled:
        found.append(Compulsory(COMPULSORY_STRICT, least, products, 2 * spilled))
    if chain is not None:
        found.append(recompute_bound(chain, capacity))
        if chain.gated and not recompute:
            tied = tied_bound(chain, capacity, max(proof.elements for proof in found))
            found[1:1] = [tied] if tied is not None else []
    best = max(found, key=lambda proof: proof.elements)  # the first of equals
    return _finish(workload, told, capacity, best, 2 * spilled, recompute=recompute)


def separate_bound(workload: Workload, capacity: int) -> LowerBound:
    """The bound when every intermediate goes through slow memory: one kernel writes it, the next reads it.

    Minus `lower_bound` it says what fusion can save at most, as far as is proved. A further kernel between the two (for
    softmax) only adds to it. Parameters, units and errors as there.

    Raises
    ------
    InputError
        A workload that is one kernel.
    """
    check_capacity(capacity)
    told = accounting(workload)
    chain = told.chain
    if chain is None:
        raise InputError(f"separate kernels: got a {workload.family}, which is one kernel, expected ffn or attention.")
    pieces, least = zip(*chain.kernels, strict=True)
    best = Kernels(SEPARATE, tuple(piece.bound(capacity) for piece in pieces), least)
    if best.elements == sum(least):
        best = Kernels(told.compulsory_kernels, best.kernels, least)
    method = f"equation (3), and the stores of {chain.hidden}"
    found: list[Proof] = [best, *(piece.bound(capacity, chain.cells, method) for piece in chain.pieces)]
    if chain.gated:
        tied = tied_bound(chain, capacity, max(proof.elements for proof in found), chain.cells, method)
        found[1:1] = [tied] if tied is not None else []
    proof = max(found, key=lambda proof: proof.elements)
    return _finish(workload, told, capacity, proof, 2 * chain.cells, separate=True)


def _finish(
    workload: Workload,
    told: Accounting,
    capacity: int,
    proof: Proof,
    crossings: int,
    recompute: bool = False,
    separate: bool = False,
) -> LowerBound:
    """All groups, in elements and bytes; ``crossings`` transfers of a group's intermediates are certain."""
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
