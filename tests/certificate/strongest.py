"""An opponent who claims as much as the checker lets him: the strongest lower bounds, the cheapest schedules.

He uses the checker itself to find out how far he can go, so a theorem that says too much shows here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import log
from typing import Any

from pebble.bounds import Chain, NotCertifiedError, Recomputed
from pebble.certificate import FORMAT, VERSION, RefusedError
from pebble.certificate.geometry import Box, prove_touched
from pebble.certificate.line_forms import line_forms
from pebble.certificate.lines import Lines, ValueKind
from pebble.certificate.schedules import Memory, traffic_of
from pebble.certificate.segments import SegmentTerm, parts_of
from pebble.certificate.statement import Workload, chain_of, middle_of
from pebble.certificate.upper import ScheduleTraffic
from tests.certificate.mutate import at
from tests.certificate.persuade import path_of, persuade

Claim = dict[str, Any]
_KEPT = ("does not occur", "no next band", "both sides", "more values than pass by")
RECOMPUTE = ("recompute, cut by second products", "recompute, cut by distinct products")


def document(told: dict[str, Any], claims: list[Claim]) -> dict[str, Any]:
    """A certificate about a workload."""
    return {"format": FORMAT, "version": VERSION, "statement": {"workload": told}, "claims": claims}


def accepted(told: dict[str, Any], claim: Claim) -> Claim | None:
    """The claim with its numbers put right, if the checker then takes it."""
    claim = {**claim, "elements": claim.get("elements", 0), "bytes": claim.get("bytes", 0)}
    made = document(told, [claim])
    return None if persuade(made) is None else made["claims"][0]


def _share(box: Box, v: int, count: int) -> dict[str, Any]:
    """The largest whole number of values touched that the checker takes."""
    low, high = 0, 4
    proof = {"products": v, "segments": count, "whole_numbers": True}

    def taken(total: int) -> bool:
        try:
            prove_touched(box, v, {**proof, "touched": total}, "share")
        except RefusedError:
            return False
        return True

    while taken(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if taken(middle) else (low, middle)
    return {**proof, "touched": low}


def _shares(box: Box, work: int, h: int) -> list[dict[str, Any]]:
    small, longer = divmod(work, h)
    return [_share(box, small, h - longer)] + ([_share(box, small + 1, longer)] if longer else [])


def numbers_of_segments(work: int, rnd: random.Random) -> list[int]:
    """1, 2, 3 and a few more."""
    return sorted({h for h in (1, 2, 3, 4, rnd.randint(1, work), rnd.randint(1, min(work, 30))) if h <= work})


def lower_proofs(workload: Workload, game: dict[str, str], rnd: random.Random) -> Iterator[dict[str, Any]]:
    """Proofs of every theorem but the gated one; by segments, as strong as whole numbers make them."""
    separate = game["kernels"] == "separate"
    if not separate:
        yield {"theorem": "compulsory"}
    if game["recompute"] == "allowed" and workload.family in ("ffn", "attention"):
        m, k, f, l, cells = chain_of(workload)
        for h in numbers_of_segments(cells * l, rnd):
            redone = Recomputed(Chain(m, k, f, l, cells), 3, True, h, 0)
            yield redone.claim()
        for h in numbers_of_segments(cells * (k + l), rnd):
            with suppress(NotCertifiedError):
                redone = Recomputed(Chain(m, k, f, l, cells), 3, False, h, 0)
                yield redone.claim()
        return
    yield from segment_proofs(workload, rnd)
    if not separate:
        yield from line_proofs(workload, rnd)
        yield from pass_proofs(workload, rnd)
    if separate:
        m, k, f, l, cells = chain_of(workload)
        streams = 2 if workload.option.get("gated") else 1
        kernels: list[list[dict[str, Any]]] = []
        for part in (
            SegmentTerm(Box(m, streams * f, k), streams * cells * k, (streams - 1) * cells),
            SegmentTerm(Box(m, l, f), cells * l, 0),
        ):
            kernels.append([{"theorem": "compulsory"}])
            for h in numbers_of_segments(part.products, rnd):
                kernels[-1].append(
                    {"theorem": "segments", "segments": h, "shares": _shares(part.box, part.products, h)}
                )
        for first in kernels[0]:
            for second in kernels[1]:
                yield {"theorem": "kernel by kernel", "kernels": [first, second]}


def segment_proofs(workload: Workload, rnd: random.Random) -> Iterator[dict[str, Any]]:
    """Proofs by segments, as strong as whole numbers make them."""
    for form, part in parts_of(workload).items():
        for h in numbers_of_segments(part.products, rnd):
            shares = _shares(part.box, part.products, h)
            yield {"theorem": "segments", "form": form, "segments": h, "shares": shares}


def line_proofs(workload: Workload, rnd: random.Random) -> Iterator[dict[str, Any]]:
    """Proofs by lines at prices of all sizes, each kind where its charge is least in floating point."""
    for form, (kinds, work, *_) in line_forms(workload).items():
        for h in numbers_of_segments(work, rnd):
            for rho in (Fraction(1), Fraction(rnd.randint(1, 5), rnd.randint(1, 4))):
                for power in range(-6, 7):
                    mu = Fraction(rnd.randint(9, 20), 12) * Fraction(3, 2) ** power / 4

                    def charge(kind: Lines, s: int, mu: Fraction = mu, rho: Fraction = rho) -> float:
                        sizes = divmod(kind.length, min(kind.overlap * s, kind.length))
                        parts = min(kind.overlap * s, kind.length)
                        spread = ((sizes[0], parts - sizes[1]), (sizes[0] + 1, sizes[1]))
                        entropy = sum(count * size * log(size) for size, count in spread)
                        return kind.first + (s - 1) * min(kind.again, rho * kind.footprint) + mu * entropy

                    def best(kind: ValueKind, mu: Fraction = mu, rho: Fraction = rho, h: int = h) -> int:
                        if isinstance(kind, Lines):
                            return min(range(1, min(kind.length, h) + 1), key=lambda s: charge(kind, s))
                        for n in range(h + 1):
                            with suppress(RefusedError):
                                kind.prove(n, h, mu, rho, "cells")
                                return n
                        return 1

                    minima = [best(kind) for kind in kinds]
                    fields = {"theorem": "lines", "form": form, "segments": h}
                    yield {**fields, "mu": str(mu), "rho": str(rho), "minima": minima}


def pass_proofs(workload: Workload, rnd: random.Random) -> Iterator[dict[str, Any]]:
    """Proofs by passes, with segments of all sizes, one way of cutting and two."""
    if workload.family not in ("ffn", "attention", "attention-backward"):
        return
    m, f = middle_of(workload)[:2] if workload.family == "attention-backward" else chain_of(workload)[:3:2]
    ways = [{"by": by, "vectors": size} for by, most in (("columns", f), ("rows", m)) for size in range(1, most + 1)]
    ways = rnd.sample(ways, min(8, len(ways)))
    for number, item in enumerate(ways):
        for cuttings in ([item], *([item, other] for other in ways[:number])):
            yield {"theorem": "passes", "cuttings": cuttings}


def strongest_lower(
    told: dict[str, Any], workload: Workload, capacity: int, game: Any, rnd: random.Random
) -> Claim | None:
    """The lower claim with the most elements that the checker takes."""
    best = None
    for proof in lower_proofs(workload, game, rnd):
        claim = {"claim": "lower bound", "game": game, "capacity_elements": capacity, "proof": proof}
        taken = accepted(told, claim)
        if taken is not None and (best is None or taken["elements"] > best["elements"]):
            best = taken
    return best


def strongest_of_parts(
    told: dict[str, Any], whole: Workload, capacity: int, game: dict[str, str], rnd: random.Random
) -> Claim | None:
    """The same for a workload of parts: each part by the proof that says most of it."""

    def claimed(theorem: str, proofs: list[dict[str, Any]]) -> Claim | None:
        proof = {"theorem": theorem, "kernels" if theorem == "kernel by kernel" else "parts": proofs}
        return accepted(told, {"claim": "lower bound", "game": game, "capacity_elements": capacity, "proof": proof})

    theorem = "kernel by kernel" if game["kernels"] == "separate" else "parts"
    best: list[dict[str, Any]] = [{"theorem": "compulsory"} for _ in whole.pieces]
    for number, piece in enumerate(whole.pieces):
        for proof in (*segment_proofs(piece.workload, rnd), *line_proofs(piece.workload, rnd)):
            tried = claimed(theorem, [*best[:number], proof, *best[number + 1 :]])
            before = claimed(theorem, best)
            if tried is not None and before is not None and tried["elements"] > before["elements"]:
                best[number] = proof
    return claimed(theorem, best)


def raised(told: dict[str, Any], claim: Claim, steps: int = 12) -> Claim:
    """A claim whose fractions are pushed up, one after the other, as far as the checker goes."""
    best = claim
    for find in _fractions(claim["proof"]):
        factor = Fraction(2)
        for _ in range(steps):
            trial = _copy(best)
            holder, key = find(trial["proof"])
            holder[key] = _text(Fraction(holder[key]) * factor + Fraction(1, 10**9))
            taken = accepted(told, trial)
            if taken is not None and taken["elements"] >= best["elements"]:
                best = taken
            else:
                factor = 1 + (factor - 1) / 3
    return best


def _text(number: Fraction) -> str:
    number = Fraction(number).limit_denominator(10**30)
    return str(number)


def _fractions(proof: Any) -> list[Callable[[Any], tuple[Any, str]]]:
    """Where the numbers that a proof may choose freely stand."""
    results: list[Callable[[Any], tuple[Any, str]]] = [
        lambda p, key=key: (p, key) for key in ("phi", "lambda", "mu", "rho") if key in proof
    ]
    for number, share in enumerate(proof.get("shares", ())):
        if isinstance(share.get("touched"), str):
            results.append(lambda p, n=number: (p["shares"][n], "touched"))
        if "counts_at_least" in share:
            results.append(lambda p, n=number: (p["shares"][n], "counts_at_least"))
    return results


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def random_schedule(workload: Workload, rnd: random.Random) -> dict[str, Any]:
    """Parameters of a schedule that may make sense."""
    size = workload.size
    if workload.family == "gemm":
        return _product(size["m"], size["n"], size["k"], rnd)
    if workload.family == "conv2d":
        return _convolution(size, rnd)
    m, k, f, l, _ = chain_of(workload)
    if workload.family == "ffn" and m > 1 and rnd.random() < 0.1:
        some = rnd.randint(1, m - 1)
        each = [(tokens, random_schedule(with_tokens(workload, tokens), rnd)) for tokens in (some, m - some)]
        return {"kind": "token groups", "groups": [{"tokens": n, "schedule": item} for n, item in each]}
    if rnd.random() < 0.3:
        first, last = _product(m, f, k, rnd), _product(m, l, f, rnd)
        if workload.family == "attention":
            middle = [first, {"kind": "softmax", "row_stays": rnd.random() < 0.5}]
        elif not workload.option["gated"]:
            middle = [first]
        else:
            both = _bands(m, k, f, 0, rnd)
            pairs = {**banded(m, f, k, rnd), "kind": "pairs"}
            middle = rnd.choice([[both], [pairs], [first, _product(m, f, k, rnd), {"kind": "product"}]])
        return {"kind": "kernels", "kernels": [*middle, last]}
    return _bands(m, k, f, l, rnd)


def with_tokens(workload: Workload, tokens: int) -> Workload:
    """A network of so many tokens."""
    return replace(workload, size={**workload.size, "tokens": tokens})


def _convolution(size: dict[str, int], rnd: random.Random) -> dict[str, Any]:
    height, width = (1 + (size[x] - size["kernel"]) // size["stride"] for x in ("height", "width"))
    whole = [size["batch"], height, width, size["out_channels"]]
    tile, stays = [_part(extent, rnd) for extent in whole], rnd.choice(["outputs", "inputs", "weights"])
    if rnd.random() < 0.7 and stays != "outputs":
        tile = [*tile[:2], *whole[2:]] if stays == "inputs" else [*whole[:2], *tile[2:]]
    if stays == "inputs" and tile[0] > 1:
        tile[1] = whole[1]
    taps = size["in_channels"] * size["kernel"] ** 2
    if rnd.random() < 0.3:
        return banded(size["batch"] * height * width, size["out_channels"], taps, rnd)
    kept = rnd.randint(0, taps * size["out_channels"]) if stays == "inputs" and rnd.random() < 0.7 else 0
    return {"kind": "convolution", "stays": stays, "tile": tile, "kept": kept}


def _blocks(m: int, n: int, k: int, rnd: random.Random) -> dict[str, Any]:
    stationary, (p, q, r) = rnd.choice([("C", "mnk"), ("A", "mkn"), ("B", "knm")])
    size = {"m": m, "n": n, "k": k}

    def some() -> int:
        return rnd.choice([0, 0, 1, size[r] // 2, size[r], rnd.randint(0, size[r])])

    return {
        "kind": "blocks", "stationary": stationary, "block": [_part(size[p], rnd), _part(size[q], rnd)],
        "walks_first": rnd.choice([p, q]), "across": [some(), some()], "down": [some(), some(), some()],
    }  # fmt: skip


def _corner(lines: int, vectors: int, rnd: random.Random) -> list[int]:
    turned = rnd.randint(0, vectors)
    return [rnd.randint(1, lines) if turned else 0, turned, vectors - turned]


def banded(m: int, n: int, k: int, rnd: random.Random) -> dict[str, Any]:
    """Bands of any kinds, corners of any size where a step is."""
    size = {"m": m, "n": n, "k": k}
    axis = rnd.choice("mnk")
    having = {"m": "AC", "n": "BC", "k": "AB"}[axis]
    left, bands = size[axis], []
    stationary = rnd.choice(having)
    none = [0, 0, 0]
    while left:
        width = _part(left, rnd)
        count = rnd.choice([1, left // width, rnd.randint(1, left // width)])
        left -= width * count
        (p,) = {"C": {"m", "n"}, "A": {"m", "k"}, "B": {"k", "n"}}[stationary] - {axis}
        (r,) = {"m", "n", "k"} - {p, axis}
        blocks = rnd.choice([1, 2, size[p], rnd.randint(1, size[p])])
        blocks = min(blocks, size[p])
        following = rnd.choice([stationary, stationary, rnd.choice(having)])

        def turn(there: bool, streamed: int = size[r], lines: int = width) -> list[list[int]]:
            vectors = rnd.choice([0, 1, streamed // 2, rnd.randint(0, streamed)])
            return [_corner(lines, vectors, rnd), _corner(lines, vectors, rnd)] if there else [none, none]

        across = _corner(size[p] // blocks, rnd.randint(0, size[r] // 2), rnd) if blocks > 1 else none
        bands.append({
            "stationary": stationary, "width": width, "count": count, "blocks": blocks, "across": across,
            "down": turn(count > 1), "next": turn(left > 0 and following == stationary),
        })  # fmt: skip
        stationary = following
    return {"kind": "banded", "axis": axis, "bands": bands}


def _product(m: int, n: int, k: int, rnd: random.Random) -> dict[str, Any]:
    return rnd.choice([_blocks, banded])(m, n, k, rnd)


def _part(extent: int, rnd: random.Random) -> int:
    return rnd.choice([1, extent, rnd.randint(1, extent), -(-extent // 2)])


def _bands(m: int, k: int, f: int, l: int, rnd: random.Random) -> dict[str, Any]:
    side = rnd.choice(["rows", "hidden"])
    left, across = (m, f) if side == "rows" else (f, m)
    runs: list[dict[str, Any]] = []
    while left:
        extent = _part(left, rnd)
        count = rnd.choice([1, left // extent, rnd.randint(1, left // extent)])
        left -= extent * count
        blocks = -(-across // _part(across, rnd))
        stay = rnd.choice([[k, l], [0, 0], [rnd.randint(0, k), rnd.randint(0, l)]]) if blocks > 1 else [0, 0]

        def kept() -> int:
            return rnd.choice([0, 0, 1, rnd.randint(0, (k + l) * across), k + l, (k + l) * across])

        run: dict[str, Any] = {
            "extent": extent, "count": count, "blocks": blocks, "stay": stay,
            "kept": [kept() if count > 1 else 0, kept() if left else 0],
        }  # fmt: skip
        kind = rnd.random()
        if kind < 0.15:
            spilled = rnd.randint(1, f)
            corner = _corner(min(k, l), f - spilled, rnd) if l else [0, 0, f - spilled]
            run = {**run, "blocks": across, "stay": [k, l], "spilled": spilled}
            run |= {"enter": corner} if rnd.random() < 0.5 else {}
        elif kind < 0.3 and across > 1:
            first, stays = rnd.randint(1, across - 1), rnd.randint(0, l)
            block = rnd.randint(1, across - first)
            run = {**run, "blocks": 1 - (first - across) // block, "stay": [0, stays], "first": first}
            run["enter"] = _corner(first, stays, rnd)
        elif kind < 0.6 and across > 1:
            vectors = [rnd.randint(0, across // 2) if there else 0 for there in (count > 1, left)]
            turns = [[_corner(extent, n, rnd), _corner(extent, n, rnd)] for n in vectors]
            run = {**run, "blocks": across, "stay": [k, l], "kept": [0, 0], "turns": turns}
        runs.append(run)
    return {"kind": "bands", "side": side, "runs": runs}


def settled(count: Callable[[], ScheduleTraffic], schedule: dict[str, Any]) -> ScheduleTraffic | None:
    """What a schedule moves, after what it keeps and cannot is set to nothing; None if something else is wrong."""
    for _ in range(12):
        try:
            return count()
        except RefusedError as refusal:
            if not any(word in refusal.why for word in _KEPT):
                return None
            path = path_of(refusal.step)[1:]
            at(schedule, path[:-1])[path[-1]] = 0
    return None


def upper_at_random(told: dict[str, Any], workload: Workload, rnd: random.Random) -> Claim | None:
    """A schedule at random, claimed at the least capacity that the checker takes."""
    schedule = random_schedule(workload, rnd)
    traffic = settled(lambda: traffic_of(workload, Memory(10**30), schedule, "schedule"), schedule)
    if traffic is None:
        return None
    claim = {
        "claim": "upper bound", "capacity_elements": max(3, traffic.peak), "elements": traffic.elements,
        "moved": {"loads": traffic.loads, "stores": traffic.stores, "peak_elements": traffic.peak},
        "schedule": schedule,
    }  # fmt: skip
    return accepted(told, claim)
