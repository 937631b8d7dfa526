"""The best dataflow of each kind: which array, which blocks, which streams are kept; and which handover of a chain.

The search tries every array that it is given and, for each number of array rows, the widest blocks that fit, with all
choices of what the shared buffer keeps. It is no proof: what is best here is the best of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, combinations, product
from typing import Any

from pebble.schedules.explicit.dataflow import Array, Cores, Dataflow, Face, Moved, Phase, Stream
from pebble.schedules.explicit.flow import Flow
from pebble.units import ceil_div
from pebble.workloads import Ffn, Gemm, GroupedGemm
from pebble.workloads.attention import SoftmaxWorkload
from pebble.workloads.widths import Widths

Cost = Callable[[Moved], Any]

_EVERY = 16  # numbers of array rows that are all tried; above, one in a few
PRODUCT = {"C": "output-stationary", "A": "A-stationary", "B": "B-stationary"}
IN_CHAIN = {"C": "output", "A": "input", "B": "weight"}
_MANY = 16  # sizes of products that are all searched
_DIGITS = 4  # of many sizes those are alike that have so many binary digits in common, 12 % at most apart
_PANELS = 4  # numbers of panels that are tried, each twice the one before


def best_dataflow(face: Face, cores: Cores, cost: Cost) -> Dataflow | None:
    """The dataflow of a face that costs least; None where none fits.

    Parameters
    ----------
    face : Face
    cores : Cores
    cost : callable
        Of what is moved; smaller is better.
    """
    streams = [
        (number, side)
        for number, phase in enumerate(face.phases)
        for side, stream in phase.sides
        if cores.shared and stream.room > stream.inside and not stream.local
    ]
    kept = [frozenset(c) for c in chain.from_iterable(combinations(streams, n) for n in range(len(streams) + 1))]
    best: tuple[Any, Dataflow] | None = None
    for start in _starts(face, cores):
        if best is not None and cost(replace(start, kept=kept[-1]).moved) >= best[0]:
            continue  # whatever is kept, for the more is kept the less moves
        for keep in kept:
            cheaper = cost(replace(start, kept=keep).moved)
            if best is not None and cheaper >= best[0]:
                continue
            both = (replace(start, kept=keep, rows_first=rows_first) for rows_first in (True, False))
            if (tried := next((flow for flow in both if flow.fits), None)) is not None:
                best = cheaper, tried
    return None if best is None else best[1]


def _starts(face: Face, cores: Cores) -> Iterator[Dataflow]:
    """Arrays and blocks that fit the scratchpads, nothing kept."""
    one_phase = len(face.phases) == 1  # else the second needs whole sums in every layer
    for array in cores.arrays:
        if array.rows > face.p or array.cols > face.q or array.layers > (face.phases[0].r if one_phase else 1):
            continue
        seen = set()
        for rows in _counts(ceil_div(face.p, array.rows)):
            b_p = _side(ceil_div(face.p, rows * array.rows), face.p, cores.step)
            b_q = min(_widest(phase, b_p, cores, array.layers) for phase in face.phases)
            b_q = min(face.q, b_q - b_q % cores.step if b_q > cores.step else b_q)
            if b_q < 1 or b_p in seen:
                continue
            seen.add(b_p)
            panels = face.groups * ceil_div(face.p, b_p * array.rows)
            for visits in _filling(panels, ceil_div(face.q, b_q * array.cols), len(array.cores)):
                evened = _side(ceil_div(face.q, visits * array.cols), face.q, cores.step)
                yield Dataflow(face, cores, array, (b_p, min(evened, b_q)))


def _filling(panels: int, least: int, arrays: int) -> list[int]:
    """Visits along q: the fewest, and the most that take as many rounds of all arrays, one more, or twice as many."""
    rounds = ceil_div(panels * least, arrays)
    return sorted({least, *(max(least, n * arrays // panels) for n in (rounds, rounds + 1, 2 * rounds))})


def _counts(most: int) -> Iterator[int]:
    count = 1
    while count <= most:
        yield count
        count += max(1, count // _EVERY)
    yield most


def _side(extent: int, whole: int, step: int) -> int:
    return min(whole, ceil_div(extent, step) * step)


def _widest(phase: Phase, b_p: int, cores: Cores, layers: int) -> int:
    """The longest side along q of a block, beside its slices."""
    slices = cores.stages * min(cores.step, ceil_div(phase.r, layers))
    free = cores.scratchpad - slices * phase.along_p.room * b_p
    return free // (phase.cell * b_p + slices * phase.along_q.room)


def product_face(stays: str, extents: tuple[int, int, int], a: Stream, b: Stream, c: Stream, products: int = 1) -> Face:
    """A product of m x n x k with A, B or C in the scratchpads.

    Parameters
    ----------
    stays : {"A", "B", "C"}
    extents : tuple of three int
        m, n, k.
    a, b, c : Stream
        The operands.
    products : int
        Multiply-adds of a position: 2 where gate and up are one product.
    """
    m, n, k = extents
    p, q, r, held, along_p, along_q = {
        "C": (m, n, k, c, a, b),
        "A": (m, k, n, a, c, b),
        "B": (k, n, m, b, a, c),
    }[stays]
    cell = max(held.partial, held.written) if stays == "C" else held.read
    return Face(stays, p, q, held, (Phase(r, along_p, along_q, cell, products),))


def gemm_flows(gemm: Gemm, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
    """The best output-, A- and B-stationary dataflow of a product, those that fit; partial sums as wide as given."""
    return _flows_of_products({gemm: 1}, cores, widths, cost)


def grouped_flows(grouped: GroupedGemm, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
    """The same of products that share their widths; and one in which each size has its own, where that is better.

    Products of one size are beside each other, those of different sizes one after the other on all cores, or side by
    side on arrays of few. Of many sizes those that are about alike have blocks in common, found for the largest.
    """
    return _flows_of_products(Counter(grouped.gemms), cores, widths, cost)


def _flows_of_products(counts: Mapping[Gemm, int], cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
    sizes = tuple(f"m={gemm.m}" for gemm in counts) if len(counts) > 1 else ()
    flows, in_turn = [], []
    for stays, name in PRODUCT.items():
        tried = []
        if parts := _parts_of(stays, counts, cores, widths, cost):
            in_turn.append(Flow(name, tuple((1, part) for part in parts), parts_are=sizes))
            tried.append(in_turn[-1])
        for array in _beside(cores) if len(counts) > 1 else ():
            alone = replace(cores, arrays=(replace(array, cores=array.cores[:1]),))
            if parts := _parts_of(stays, counts, alone, widths, cost, beside=True):
                of_counts = tuple(zip(counts.values(), parts, strict=True))
                tried.append(Flow(name, of_counts, parts_are=sizes, beside=len(array.cores)))
        if tried:
            flows.append(min(tried, key=lambda flow: cost(flow.moved)))
    if 1 < len(counts) <= _MANY and in_turn:
        start = mixed = replace(min(in_turn, key=lambda flow: cost(flow.moved)), name="each size its own")
        for i, other in product(range(len(counts)), in_turn):
            changed = replace(mixed, parts=(*mixed.parts[:i], other.parts[i], *mixed.parts[i + 1 :]))
            mixed = min(mixed, changed, key=lambda flow: cost(flow.moved))
        if cost(mixed.moved) < min(cost(flow.moved) for flow in (start, *flows)):
            told = (f"{size}, {part.face.stays} stays" for size, (_, part) in zip(sizes, mixed.parts, strict=True))
            flows.append(replace(mixed, parts_are=tuple(told)))
    return flows


def _parts_of(
    stays: str, counts: Mapping[Gemm, int], cores: Cores, widths: Widths, cost: Cost, beside: bool = False
) -> list[Dataflow] | None:
    """The best dataflow of each size, or of each product where they are side by side; None where one does not fit."""
    found: dict[int, Dataflow | None] = {}
    parts, total = [], sum(gemm.multiply_adds * count for gemm, count in counts.items())
    longest = {_about(m): m for m in sorted(gemm.m for gemm in counts)}
    for gemm, count in counts.items():
        own = _face_of(stays, gemm, widths, 1 if beside else count, total)
        alike, m = own, gemm.m
        if len(counts) > _MANY:
            m = longest[_about(gemm.m)]
            alike = _face_of(stays, replace(gemm, m=m), widths, 1, total)
        if m not in found:
            found[m] = best_dataflow(alike, cores, cost)
        if (best := found[m]) is None:
            return None
        block = min(own.p, best.block[0]), min(own.q, best.block[1])
        parts.append(replace(best, face=own, block=block))
    return parts


def _beside(cores: Cores) -> list[Array]:
    """Arrays for products that are side by side: of each power of two of cores the one that is nearest to a square.

    Not with a shared buffer, whose room such products would share out in ways that are not counted.
    """
    best: dict[int, Array] = {}
    for array in cores.arrays:
        size = array.rows * array.cols
        alike = best.get(size)
        if array.layers > 1 or len(array.cores) < 2 or size & (size - 1):
            continue
        if alike is None or array.rows + array.cols < alike.rows + alike.cols:
            best[size] = array
    return [] if cores.shared else list(best.values())


def _about(rows: int) -> int:
    """The same for sizes that are about alike: rows with their last digits, in base two, left out."""
    small = max(0, rows.bit_length() - _DIGITS)
    return (rows >> small) << small


def _face_of(stays: str, gemm: Gemm, widths: Widths, groups: int, total: int) -> Face:
    """Of so many equal products; ``total``: multiply-adds of all that there are."""
    begins = widths.written if gemm.accumulate else 0
    a, b = Stream("A", widths.read), Stream("B", widths.read)
    c = Stream("C", partial=widths.partial, written=widths.written, begins=begins)
    face = replace(product_face(stays, (gemm.m, gemm.n, gemm.k), a, b, c), groups=groups)
    return replace(face, share=face.multiply_adds / total)


def attention_flows(
    attention: SoftmaxWorkload, key_columns: int, cores: Cores, widths: Widths, cost: Cost
) -> list[Flow]:
    """The best dataflow in which queries stay with their outputs and softmax state, and that in which keys stay.

    With an online softmax; of a causal mask nothing is left out. ``key_columns``: of what comes of each key, with its
    value.
    """
    (d, e), w = attention.columns, widths.read
    rows, keys, groups = attention.stacked_queries, attention.keys, attention.groups
    state = 2 * widths.hidden  # maximum and sum of a row
    scores = Stream("S", inside=widths.hidden)
    sums = widths.partial * e + state
    queries = Stream("Q and O", d * w, sums, e * widths.written)
    key = Stream("K and V" if key_columns > d else "KV", read=key_columns * w)
    faces = {
        "query-stationary": Face("queries", rows, 1, queries, (Phase(keys, scores, key, d * w + sums, d + e),), groups),
        "key-stationary": Face("keys", keys, 1, key, (Phase(rows, scores, queries, key.read, d + e),), groups),
    }
    results = [(name, best_dataflow(face, cores, cost)) for name, face in faces.items()]
    return [Flow(name, ((1, best),)) for name, best in results if best]


def ffn_flows(ffn: Ffn, cores: Cores, widths: Widths, cost: Cost) -> list[Flow]:
    """For each choice per product the best dataflows, and how H is handed over; first the one that keeps H on cores.

    Output-stationary and then input-stationary, the block of H that a core has made is what it keeps for the second
    product. Else H goes through the shared buffer, for a panel of rows at a time, where that fits, or off chip.
    """
    chains = _Chains(ffn, cores, widths, cost)
    fused = chains.on_cores()
    flows = [] if fused is None else [fused]
    for first in IN_CHAIN:
        for second in IN_CHAIN:
            tried = [*chains.in_buffer(first, second), *chains.off_chip(first, second)]
            if tried:
                flows.append(min(tried, key=lambda flow: cost(flow.moved)))
    return flows


class _Chains:
    """Dataflows of the two products of an FFN; each product is searched once."""

    def __init__(self, ffn: Ffn, cores: Cores, widths: Widths, cost: Cost) -> None:
        self.ffn, self.cores, self.widths, self.cost = ffn, cores, widths, cost
        self.found: dict[tuple[object, ...], Dataflow | None] = {}
        self.x, self.y = Stream("X", widths.read), Stream("Y", partial=widths.partial, written=widths.written)
        self.up = Stream("Wg and Wu" if ffn.gated else "W1", ffn.up_products * widths.read)
        self.down = Stream("W2", widths.read)

    @property
    def partial(self) -> int:
        """Bytes of a hidden position while it is summed up."""
        return self.ffn.up_products * self.widths.hidden

    def on_cores(self) -> Flow | None:
        """H stays where it is made."""
        f, w = self.ffn, self.widths.read
        phases = (
            Phase(f.d_model, self.x, self.up, max(self.partial, w), f.up_products),
            Phase(f.d_out, self.y, self.down, w),
        )
        best = best_dataflow(Face("H", f.tokens, f.hidden, Stream("H"), phases), self.cores, self.cost)
        if best is None:
            return None
        return Flow(_named("C", "A"), ((1, best),), "on cores: H stays where it is made")

    def product(self, number: int, stays: str, rows: int, cores: Cores, local: bool) -> Dataflow | None:
        """The best for some rows of the first product (0) or the second (1)."""
        key = number, stays, rows, local, cores.shared
        if key not in self.found:
            f, w = self.ffn, self.widths.read
            if number == 0:
                made = Stream("H", partial=self.partial, written=w, local=local)
                face = product_face(stays, (rows, f.hidden, f.d_model), self.x, self.up, made, f.up_products)
            else:
                used = Stream("H", read=w, local=local)
                face = product_face(stays, (rows, f.d_out, f.hidden), used, self.down, self.y)
            face = replace(face, share=face.multiply_adds / f.multiply_adds)
            self.found[key] = best_dataflow(face, cores, self.cost)
        return self.found[key]

    def off_chip(self, first: str, second: str) -> Iterator[Flow]:
        """H is written off chip and read again."""
        parts = [self.product(i, stays, self.ffn.tokens, self.cores, False) for i, stays in enumerate((first, second))]
        if all(parts):
            yield Flow(_named(first, second), tuple((1, part) for part in parts if part), "off chip")

    def in_buffer(self, first: str, second: str) -> Iterator[Flow]:
        """H stays in the shared buffer, a panel of rows at a time."""
        if not self.cores.shared:
            return
        f = self.ffn
        # unfinished sums of H that stream by are wider than what they become
        wide = self.widths.read if first == "C" else max(self.partial, self.widths.read)
        panels = ceil_div(f.tokens * f.hidden * wide, self.cores.shared)
        for count in (panels << i for i in range(_PANELS)):
            rows = ceil_div(f.tokens, count)
            left = self.cores.shared - rows * f.hidden * wide
            if left <= 0 or count > f.tokens:
                continue
            full, rest = divmod(f.tokens, rows)
            pieces = [(full, rows), *([(1, rest)] if rest else [])]
            cores = replace(self.cores, shared=left)
            parts = [
                (times, self.product(i, stays, size, cores, True))
                for times, size in pieces
                for i, stays in enumerate((first, second))
            ]
            if all(part for _, part in parts):
                told = "in the shared buffer" + (f", {rows} rows at a time" if count > 1 else "")
                yield Flow(_named(first, second), tuple((n, part) for n, part in parts if part), told)


def _named(first: str, second: str) -> str:
    return f"{IN_CHAIN[first]}-, then {IN_CHAIN[second]}-stationary"
