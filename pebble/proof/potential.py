"""The pattern table of an in-place GEMM, written as a potential that the checker can verify move by move."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pebble.bounds import Box, Piece
from pebble.certificate.games import Game as CheckedGame
from pebble.certificate.potential import MAGIC, MAX_PRODUCTS, MAX_RECORDS, MAX_SIDE, Products, record_bytes
from pebble.game import Game
from pebble.solvers.gemm_shape import Shape
from pebble.solvers.search import find_small_gemm
from pebble.solvers.search import gemm_table as tables
from pebble.solvers.search.gemm_canon import make_classes
from pebble.solvers.search.gemm_model import build_model

DETAIL = 1


def _shape(game: Game) -> Shape | None:
    shape = find_small_gemm(game)
    if shape is None or max(shape[:3]) > MAX_SIDE or shape.m * shape.n * shape.k > MAX_PRODUCTS:
        return None
    return shape


def segments_proof(game: Game, checkable: CheckedGame) -> tuple[int, dict[str, Any], None] | None:
    """The segment bound of the GEMM that a game is."""
    shape = _shape(game)
    if shape is None:
        return None
    m, n, k = shape[:3]
    bound = Piece("", "segments", Box(m, n, k), (m * n * k,)).bound(checkable.capacity)
    proof = {"method": "segments", "m": m, "n": n, "k": k, "values": list(shape.items)}
    return bound.elements, proof | bound.claim(), None


def potential_proof(game: Game, checkable: CheckedGame, until: float) -> tuple[int, dict[str, Any], bytes] | None:
    """The table of a GEMM and the cost it proves; None when it is too large, or there is no time for it."""
    shape = _shape(game)
    if shape is None:
        return None
    m, n, k = shape[:3]
    built = _table(m, n, k, checkable.capacity, until)
    if built is None:
        return None
    reds, undones, values = built
    products = Products(m, n, k, checkable.capacity)
    wide_r, wide_m, _ = record_bytes(products)
    rows: dict[tuple[int, int], bytes] = {}
    for number, (red, undone) in enumerate(zip(reds, undones, strict=True)):
        rows[products.key(red, undone)] = values[number].tobytes()
        if number % 1000 == 0 and time.monotonic() > until:
            return None
    parts = [MAGIC]
    for red, undone in sorted(rows):
        parts += [red.to_bytes(wide_r, "little"), undone.to_bytes(wide_m, "little"), rows[red, undone]]
    start = rows[0, 0][products.offset[m * n] + m * n * k - k * m * n]
    proof = {"method": "potential", "m": m, "n": n, "k": k, "values": list(shape.items), "records": len(rows)}
    return m * n + start, proof, b"".join(parts)


def _table(m: int, n: int, k: int, capacity: int, until: float) -> tuple[list[int], list[int], Any] | None:
    """Red set, undone products and row of values of every abstract position, as the search builds them."""
    model, classes = build_model(m, n, k, capacity, DETAIL), make_classes(1 << 20)
    table = tables.build_table(model, classes, MAX_RECORDS, lambda: time.monotonic() > until)
    if table is None:
        return None
    patterns = table.patterns
    count = int(patterns.counts[0])
    reds = [int(x) for x in classes.red[patterns.node_class[:count]]]
    return reds, [int(x) for x in patterns.node_undone[:count]], np.ascontiguousarray(table.values.T)
