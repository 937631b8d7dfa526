"""The opponent of `strongest` in a memory of bytes: the largest bounds and the cheapest schedules he can claim."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any
from unittest.mock import patch

from pebble.certificate import RefusedError, wide_lines
from pebble.certificate.lines import Kind, Lines
from pebble.certificate.lower import _chain
from pebble.certificate.schedules import Memory, bytes_moved, moved_by
from pebble.certificate.statement import Widths, Workload
from pebble.certificate.widths import Kernel, Use, _kernels
from pebble.proof.shares import least_sum
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


def some_widths(workload: Workload, rnd: random.Random) -> Widths:
    """Partial sums as wide as what they become, or wider by any number of bytes."""
    read, written = workload.in_width, workload.out_width
    return Widths(read, read + rnd.choice([0, 0, 1, 2, 3, 9]), written + rnd.choice([0, 0, 1, 2, 5, 9]), written)


def moved_in_bytes(workload: Workload, widths: Widths, capacity: int, schedule: dict[str, Any]) -> int:
    """Bytes that a schedule moves, as the checker counts them."""
    return bytes_moved(workload, moved_by(workload, Memory(capacity, widths), schedule, "schedule"), widths)


def least_room(workload: Workload, widths: Widths, schedule: dict[str, Any]) -> int:
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
    m, k, f, l, _ = _chain(workload)
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


def upper_in_bytes(workload: Workload, widths: Widths, rnd: random.Random) -> tuple[int, int] | None:
    """(bytes of room, bytes moved) of a schedule at random, as the checker counts them."""
    schedule = random_in_bytes(workload, rnd)
    moved = settled(lambda: moved_in_bytes(workload, widths, LARGE, schedule), schedule)  # type: ignore[arg-type, return-value]
    return None if moved is None else (least_room(workload, widths, schedule), moved)  # type: ignore[return-value]


def _shares(use: Use, h: int) -> list[dict[str, Any]]:
    """Every segment with all that means prove it touches."""
    small, longer = divmod(use.work, h)
    found = []
    for work, count in [(small, h - longer)] + ([(small + 1, longer)] if longer else []):
        work = max(0, work - max(use.weights) + 1)
        kinds = []
        for limits, product in use.kinds:
            touched, multipliers = least_sum([limit * work for limit in limits], product * work * work)
            kinds.append({"bytes": str(touched), "multipliers": [str(p) for p in multipliers]})
        found.append({"work": work, "segments": count, "kinds": kinds})
    return found


def _segments(kernel: Kernel, widths: Widths, rnd: random.Random) -> Iterator[dict[str, Any]]:
    chain = kernel.workload.linked and kernel.product is None
    for form in ("product", "convolution", "chain", "gated chain", "gate's chain", ""):
        for _ in range(4):
            weights = [rnd.choice([1, 1, 2, rnd.randint(1, 9)]) for _ in range(2)] if chain else [1]
            low, high = (kernel.written or widths.written), (kernel.partial or widths.partial)
            charges = {
                "hidden_cell_bytes": rnd.randint(widths.read, widths.hidden) if chain else 0,
                "output_cell_bytes": rnd.randint(low, high),
                "work_weights": weights,
            }
            proof = {"theorem": "segments", "form": form, **charges, "segments": 1, "shares": []}
            with suppress(RefusedError):
                use = kernel._use(widths, proof, "proof")
                for h in numbers_of_segments(use.work, rnd):
                    yield {**proof, "segments": h, "shares": _shares(use, h)}


def _minimum(kind: Kind, h: int, mu: Fraction, rho: Fraction) -> Any:
    """What a certificate tells of one kind of value: the first place that the checker takes."""
    most = min(h, kind.length if isinstance(kind, Lines) else kind.k + kind.l)  # type: ignore[attr-defined]
    places: list[Any] = list(range(most + 1))
    if not isinstance(kind, Lines):
        places += [[s, j] for s in range(1, most + 1) for j in range(1, most + 1)] if most < 12 else []
    for place in places:
        with suppress(RefusedError):
            kind.prove(place, h, mu, rho, "kind")
            return place
    return None


def _line_problems(kernel: Kernel, widths: Widths, rnd: random.Random) -> Iterator[tuple[dict[str, Any], Any, int]]:
    """(form and weights, kinds of values, work) of each way in which the checker applies the line theorem."""
    for form in ("product", "convolution", "chain", "gated chain", "gate's chain", "first kernel", "second kernel"):
        for weights in ({}, {"work_weights": [1, 1]}, {"work_weights": [rnd.randint(1, 5), rnd.randint(1, 5)]}):
            told = {"theorem": "lines", "form": form, **weights}
            with patch.object(wide_lines, "by_lines", return_value=0) as applied, suppress(RefusedError):
                kernel.moves(widths, LARGE, told, "proof")
            if applied.called and ("work_weights" in told) == kernel.workload.linked:
                yield told, applied.call_args.args[0], applied.call_args.args[1]


def _lines(kernel: Kernel, widths: Widths, rnd: random.Random) -> Iterator[dict[str, Any]]:
    for told, kinds, work in _line_problems(kernel, widths, rnd):
        for h in numbers_of_segments(work, rnd):
            for _ in range(4):
                rho = Fraction(rnd.randint(12, 24), 12) if rnd.random() < 0.7 else Fraction(rnd.randint(0, 36), 12)
                mu = Fraction(rnd.randint(9, 20), 12) * Fraction(3, 2) ** rnd.randint(-8, 8)
                minima = [_minimum(kind, h, mu, rho) for kind in kinds]
                if None not in minima:
                    yield {**told, "segments": h, "mu": str(mu), "rho": str(rho), "minima": minima}


def lower_proofs(workload: Workload, widths: Widths, rnd: random.Random) -> list[dict[str, Any]]:
    """Proofs of all theorems about a workload of one kernel; free numbers at random, the rest as strong as may be."""
    (kernel,) = _kernels(workload, widths, separate=False)
    return [*_segments(kernel, widths, rnd), *_lines(kernel, widths, rnd), *pass_proofs(workload, rnd)]


def lower_in_bytes(told: dict[str, Any], widths: Widths, capacity: int, proofs: list[dict[str, Any]]) -> Claim | None:
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
