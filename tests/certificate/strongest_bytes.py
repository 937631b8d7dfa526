"""The opponent of `strongest` in a memory of bytes: the largest bounds and the cheapest schedules he can claim."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from pebble.bounds.shares import least_sum
from pebble.certificate import RefusedError, theorems
from pebble.certificate.line_forms import Hidden
from pebble.certificate.lines import Lines, ValueKind
from pebble.certificate.lower import kernels_of
from pebble.certificate.schedules import Memory, traffic_bytes, traffic_of
from pebble.certificate.segments import Use, use_of
from pebble.certificate.statement import ClaimedWidths, Workload, chain_of
from pebble.certificate.theorems import IN_BYTES, KernelClaim
from tests.certificate.persuade import persuade
from tests.certificate.strongest import (
    _bands,
    _corner,
    _product,
    document,
    numbers_of_segments,
    pass_proofs,
    random_schedule,
    settled,
)

Claim = dict[str, Any]
LARGE = 10**8


def some_widths(workload: Workload, rnd: random.Random) -> ClaimedWidths:
    """Partial sums as wide as what they become, or wider by any number of bytes."""
    read, written = workload.in_width, workload.out_width
    return ClaimedWidths(read, read + rnd.choice([0, 0, 1, 2, 3, 9]), written + rnd.choice([0, 0, 1, 2, 5, 9]), written)


def moved_in_bytes(workload: Workload, widths: ClaimedWidths, capacity: int, schedule: dict[str, Any]) -> int:
    """Bytes that a schedule moves, as the checker counts them."""
    return traffic_bytes(workload, traffic_of(workload, Memory(capacity, widths), schedule, "schedule"), widths)


def least_room(workload: Workload, widths: ClaimedWidths, schedule: dict[str, Any]) -> int:
    """The fewest bytes in which the checker takes a schedule."""
    low, high = 2, LARGE
    while high - low > 1:
        middle = (low + high) // 2
        try:
            moved_in_bytes(workload, widths, middle, schedule)
        except RefusedError:
            low = middle
        else:
            high = middle
    return high


def random_in_bytes(workload: Workload, rnd: random.Random) -> dict[str, Any]:
    """Parameters of a schedule that may make sense, of the kinds that bytes alone know too."""
    if workload.family != "ffn" or rnd.random() < 0.7:
        return random_schedule(workload, rnd)
    m, k, f, l, _ = chain_of(workload)
    columns = rnd.randint(0, l - 1)
    schedule = {"kind": "phases", "columns": columns, "first": _bands(m, k, f, columns, rnd)}
    if rnd.random() < 0.4:
        return {**schedule, "rest": _product(m, l - columns, f, rnd)}
    rows, none = -(-m // rnd.randint(1, m)), [[0, 0, 0]] * 2  # a panel or several, and slabs
    schedule["first"]["side"] = "rows"
    schedule["first"]["runs"] = [
        {"extent": extent, "count": count, "blocks": f, "stay": [k, columns], "kept": [0, 0]}
        for extent, count in ((m % rows, 1), (rows, m // rows))
        if extent
    ]
    width = rnd.randint(1, rows)
    slab = {"stationary": "C", "blocks": 1, "across": [0, 0, 0], "down": none, "next": none}
    slabs = [{**slab, "width": size, "count": count} for size, count in ((width, m // width), (m % width, 1)) if size]
    vectors = rnd.randint(1, f)
    handed = [_corner(lines, vectors, rnd) for lines in (k, l - columns)]
    return {**schedule, "rest": {"kind": "banded", "axis": "m", "bands": slabs}, "handed": handed}


def upper_in_bytes(workload: Workload, widths: ClaimedWidths, rnd: random.Random) -> tuple[int, int] | None:
    """(bytes of room, bytes moved) of a schedule at random, as the checker counts them."""
    schedule = random_in_bytes(workload, rnd)
    traffic = settled(lambda: moved_in_bytes(workload, widths, LARGE, schedule), schedule)
    return None if traffic is None else (least_room(workload, widths, schedule), traffic)


def _shares(use: Use, h: int) -> list[dict[str, Any]]:
    """Every segment with all that means prove it touches."""
    small, longer = divmod(use.work, h)
    results = []
    for work, count in [(small, h - longer)] + ([(small + 1, longer)] if longer else []):
        work = max(0, work - max(use.weights) + 1)
        kinds = []
        for limits, product in use.kinds:
            touched, multipliers = least_sum([limit * work for limit in limits], product * work * work)
            kinds.append({"bytes": str(touched), "multipliers": [str(p) for p in multipliers]})
        results.append({"work": work, "segments": count, "kinds": kinds})
    return results


def _segments(kernel: KernelClaim, widths: ClaimedWidths, rnd: random.Random) -> Iterator[dict[str, Any]]:
    chain = kernel.workload.linked and kernel.kernel is None
    for form in ("product", "convolution", "chain", "gated chain", "gate's chain", ""):
        for _ in range(4):
            weights = [rnd.choice([1, 1, 2, rnd.randint(1, 9)]) for _ in range(2)] if chain else [1]
            low, high = widths.written, widths.partial
            charges = {
                "hidden_cell_bytes": rnd.randint(widths.read, widths.hidden) if chain else 0,
                "output_cell_bytes": rnd.randint(low, high),
                "work_weights": weights,
            }
            proof = {"theorem": "segments", "form": form, **charges, "segments": 1, "shares": []}
            with suppress(RefusedError):
                use = use_of(kernel.workload, kernel.kernel, widths, proof, "proof")
                for h in numbers_of_segments(use.work, rnd):
                    yield {**proof, "segments": h, "shares": _shares(use, h)}


def _minimum(kind: ValueKind, h: int, mu: Fraction, rho: Fraction) -> Any:
    """What a certificate tells of one kind of value: the first place that the checker takes."""
    most = min(h, kind.length if isinstance(kind, Lines | Hidden) else 0)
    places: list[Any] = list(range(most + 1))
    if not isinstance(kind, Lines):
        places += [[s, j] for s in range(1, most + 1) for j in range(1, most + 1)] if most < 12 else []
    for place in places:
        with suppress(RefusedError):
            kind.prove(place, h, mu, rho, "kind")
            return place
    return None


def _line_problems(
    kernel: KernelClaim, widths: ClaimedWidths, rnd: random.Random
) -> Iterator[tuple[dict[str, Any], Any, int]]:
    """(form and weights, kinds of values, work) of each way in which the checker applies the line theorem."""
    for form in ("product", "convolution", "chain", "gated chain", "gate's chain", "first kernel", "second kernel"):
        for weights in ({}, {"work_weights": [1, 1]}, {"work_weights": [rnd.randint(1, 5), rnd.randint(1, 5)]}):
            fields = {"theorem": "lines", "form": form, **weights}
            with patch.object(theorems, "by_lines", return_value=0) as applied, suppress(RefusedError):
                kernel.moves(fields, "proof", IN_BYTES)
            if applied.called and form in applied.call_args.args[0]:
                result = applied.call_args.args[0][form]
                if "work_weights" not in fields or kernel.workload.linked:
                    yield fields, result.kinds, result.work


def _lines(kernel: KernelClaim, widths: ClaimedWidths, rnd: random.Random) -> Iterator[dict[str, Any]]:
    for spec, kinds, work in _line_problems(kernel, widths, rnd):
        for h in numbers_of_segments(work, rnd):
            for _ in range(4):
                rho = Fraction(rnd.randint(12, 24), 12) if rnd.random() < 0.7 else Fraction(rnd.randint(0, 36), 12)
                mu = Fraction(rnd.randint(9, 20), 12) * Fraction(3, 2) ** rnd.randint(-8, 8)
                minima = [_minimum(kind, h, mu, rho) for kind in kinds]
                if None not in minima:
                    yield {**spec, "segments": h, "mu": str(mu), "rho": str(rho), "minima": minima}


def lower_proofs(workload: Workload, widths: ClaimedWidths, rnd: random.Random) -> list[dict[str, Any]]:
    """Proofs of all theorems about a workload of one kernel; free numbers at random, the rest as strong as may be."""
    ((kernel, _),) = kernels_of(workload, widths, LARGE, separate=False)
    return [*_segments(kernel, widths, rnd), *_lines(kernel, widths, rnd), *pass_proofs(workload, rnd)]


def lower_in_bytes(
    told: dict[str, Any], widths: ClaimedWidths, capacity: int, proofs: list[dict[str, Any]]
) -> Claim | None:
    """The lower claim with the most bytes that the checker takes."""
    best: Claim | None = None
    for proof in proofs:
        made = document(told, [{
            "claim": "lower bound in bytes", "game": {"recompute": "forbidden", "kernels": "fused"},
            "widths_bytes": {"partial_hidden": widths.hidden, "partial_output": widths.partial},
            "capacity_bytes": capacity, "bytes": 0, "proof": {"theorem": "segments in bytes", "kernels": [proof]},
        }])  # fmt: skip
        if persuade(made) is not None and (best is None or made["claims"][0]["bytes"] > best["bytes"]):
            best = made["claims"][0]
    return best
