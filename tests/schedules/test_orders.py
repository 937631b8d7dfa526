"""Tile orders: golden vectors, bijection on ragged grids, agreement with other statements of the orders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pebble.schedules import ALL_ORDERS, REGISTRY, OrderParams, parse_order
from pebble.schedules.orders.libraries import deepgemm_group, log_swizzle

RAGGED = [(5, 7), (9, 9), (32, 16), (13, 40), (1, 9), (9, 1), (64, 3), (1, 1)]
NUMBERED = [base for base, info in REGISTRY.items() if info.number_means]

# Tile row and tile column of each tile, in order, on 5 x 7 tiles.
_BANDS_OF_FOUR_ROWS = (
    "00 10 20 30 01 11 21 31 02 12 22 32 03 13 23 33 04 14 24 34 05 15 25 35 06 16 26 36 40 41 42 43 44 45 46"
)
GOLDEN = {
    "grouped-3": "00 10 20 01 11 21 02 12 22 03 13 23 04 14 24 05 15 25 06 16 26 "
    "30 40 31 41 32 42 33 43 34 44 35 45 36 46",
    "cutlass2-4": "00 01 02 03 10 11 12 13 20 21 22 23 30 31 32 33 40 41 42 43 "
    "04 05 06 14 15 16 24 25 26 34 35 36 44 45 46",
    "cutlass3-4": _BANDS_OF_FOUR_ROWS,
    "deepgemm-8 b": _BANDS_OF_FOUR_ROWS,
    "thunderkittens-3": "00 01 02 10 11 12 20 21 22 30 31 32 40 41 42 "
    "43 44 45 33 34 35 23 24 25 13 14 15 03 04 05 06 16 26 36 46",
    "hilbert": "00 01 11 10 20 30 31 21 22 32 33 23 13 12 02 03 04 14 15 05 06 16 26 36 "
    "35 25 24 34 44 45 46 43 42 41 40",
    "snake": "00 01 02 03 04 05 06 16 15 14 13 12 11 10 20 21 22 23 24 25 26 36 35 34 33 32 31 30 40 41 42 43 44 45 46",
    "morton": "00 01 10 11 02 03 12 13 20 21 30 31 22 23 32 33 04 05 14 15 06 16 "
    "24 25 34 35 26 36 40 41 42 43 44 45 46",
}


def order_tiles(name: str, rows: int, cols: int, **params: object) -> list[tuple[int, int]]:
    tiles = parse_order(name).tiles(rows, cols, OrderParams(**params))
    return [(m, n) for m, n in tiles.tolist()]


@pytest.mark.parametrize("case", GOLDEN)
def test_golden_vector(case: str) -> None:
    name, _, multicast = case.partition(" ")
    tiles = order_tiles(name, 5, 7, multicast=multicast or "none")
    assert " ".join(f"{m}{n}" for m, n in tiles) == GOLDEN[case]


@pytest.mark.parametrize("name", [*ALL_ORDERS, "deepgemm-16", "grouped-1", "xcd-3", "cutlass3-1", "snake-strips-5"])
@pytest.mark.parametrize("grid", RAGGED)
def test_bijection_on_ragged_grids(name: str, grid: tuple[int, int]) -> None:
    tiles = parse_order(name).tiles(*grid)
    assert tiles.dtype == np.int32
    assert sorted(map(tuple, tiles.tolist())) == [(m, n) for m in range(grid[0]) for n in range(grid[1])]


params_strategy = st.builds(
    OrderParams,
    sms=st.integers(1, 160),
    tile_m=st.sampled_from([64, 128, 256]),
    tile_n=st.sampled_from([64, 128, 256]),
    cluster_m=st.integers(1, 4),
    cluster_n=st.integers(1, 4),
    raster=st.sampled_from(["heuristic", "along-m", "along-n"]),
    multicast=st.sampled_from(["none", "a", "b"]),
    chunk=st.integers(1, 9),
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    base=st.sampled_from(sorted(REGISTRY)),
    number=st.integers(1, 20),
    rows=st.integers(1, 30),
    cols=st.integers(1, 30),
    params=params_strategy,
)
def test_bijection_for_any_number_and_parameters(
    base: str, number: int, rows: int, cols: int, params: OrderParams
) -> None:
    name = f"{base}-{number}" if base in NUMBERED else base
    assert is_permutation(parse_order(name).tiles(rows, cols, params), rows, cols)


def is_permutation(tiles: np.ndarray, rows: int, cols: int) -> bool:
    """Whether the pairs name every tile of the grid exactly once."""
    if tiles.shape != (rows * cols, 2):
        return False
    row, col = tiles[:, 0].astype(np.int64), tiles[:, 1].astype(np.int64)
    if row.min() < 0 or row.max() >= rows or col.min() < 0 or col.max() >= cols:
        return False
    seen = np.zeros(rows * cols, dtype=np.bool_)
    seen[row * cols + col] = True
    return bool(seen.all())


def test_is_permutation_refuses_what_is_not_one() -> None:
    good = parse_order("row").tiles(3, 4)
    assert is_permutation(good, 3, 4)
    assert not is_permutation(good, 4, 3)
    assert not is_permutation(good[:-1], 3, 4)
    twice = good.copy()
    twice[5] = twice[6]
    assert not is_permutation(twice, 3, 4)
    assert not is_permutation(good - 1, 3, 4)


# Other statements of the same orders, one id at a time.


def gilbert_recursive(x: int, y: int, ax: int, ay: int, bx: int, by: int) -> list[tuple[int, int]]:
    def sign(v: int) -> int:
        return (v > 0) - (v < 0)

    w, h = abs(ax + ay), abs(bx + by)
    if h == 1:
        return [(y + i * sign(ay), x + i * sign(ax)) for i in range(w)]
    if w == 1:
        return [(y + i * sign(by), x + i * sign(bx)) for i in range(h)]
    ax2, ay2, bx2, by2 = ax // 2, ay // 2, bx // 2, by // 2
    if 2 * w > 3 * h:
        if abs(ax2 + ay2) % 2 and w > 2:
            ax2, ay2 = ax2 + sign(ax), ay2 + sign(ay)
        return gilbert_recursive(x, y, ax2, ay2, bx, by) + gilbert_recursive(
            x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by
        )
    if abs(bx2 + by2) % 2 and h > 2:
        bx2, by2 = bx2 + sign(bx), by2 + sign(by)
    end_x, end_y = x + ax - sign(ax) + bx2 - sign(bx), y + ay - sign(ay) + by2 - sign(by)
    return (
        gilbert_recursive(x, y, bx2, by2, ax2, ay2)
        + gilbert_recursive(x + bx2, y + by2, ax, ay, bx - bx2, by - by2)
        + gilbert_recursive(end_x, end_y, -bx2, -by2, ax2 - ax, ay2 - ay)
    )


@pytest.mark.parametrize("grid", [*RAGGED, (2, 2), (2, 3), (3, 2), (6, 15), (15, 6), (27, 26), (17, 19), (14, 22)])
def test_gilbert_equals_its_recursion(grid: tuple[int, int]) -> None:
    rows, cols = grid
    start = (0, 0, cols, 0, 0, rows) if cols >= rows else (0, 0, 0, rows, cols, 0)
    assert order_tiles("gilbert", rows, cols) == gilbert_recursive(*start)


def test_gilbert_steps_to_a_neighbour_but_for_one_diagonal() -> None:
    diagonals = 0
    for rows in range(1, 17):
        for cols in range(1, 17):
            steps = np.abs(np.diff(parse_order("gilbert").tiles(rows, cols), axis=0))
            far = steps[steps.sum(axis=1) != 1]
            if far.size:
                assert far.tolist() == [[1, 1]]
                assert max(rows, cols) % 2 == 1
                assert min(rows, cols) % 2 == 0
                diagonals += 1
    assert diagonals > 0


@pytest.mark.parametrize("side", [1, 2, 4, 8, 16])
def test_curves_step_to_a_neighbour_on_power_of_two_squares(side: int) -> None:
    for name in ("hilbert", "gilbert"):
        steps = np.abs(np.diff(parse_order(name).tiles(side, side), axis=0))
        assert (steps.sum(axis=1) == 1).all()


def hilbert_key(n: int, x: int, y: int) -> int:
    key, s = 0, n // 2
    while s:
        rx, ry = int(x & s > 0), int(y & s > 0)
        key += s * s * ((3 * rx) ^ ry)
        if not ry:  # fold back into the first quadrant
            x, y = (n - 1 - y, n - 1 - x) if rx else (y, x)
        s //= 2
    return key


@pytest.mark.parametrize("grid", RAGGED)
def test_hilbert_is_sorted_by_distance_along_the_curve(grid: tuple[int, int]) -> None:
    side = 1
    while side < max(grid):
        side *= 2
    keys = [hilbert_key(side, m, n) for m, n in order_tiles("hilbert", *grid)]
    assert keys == sorted(keys)


def morton_key(m: int, n: int) -> int:
    return sum((m >> bit & 1) << (2 * bit + 1) | (n >> bit & 1) << (2 * bit) for bit in range(8))


@pytest.mark.parametrize("grid", RAGGED)
def test_morton_is_sorted_by_interleaved_bits(grid: tuple[int, int]) -> None:
    keys = [morton_key(m, n) for m, n in order_tiles("morton", *grid)]
    assert keys == sorted(keys)


@pytest.mark.parametrize("grid", RAGGED)
def test_horizontal_is_row_and_no_swizzle_is_row(grid: tuple[int, int]) -> None:
    row = order_tiles("row", *grid)
    launched = [(by, bx) for by in range(grid[0]) for bx in range(grid[1])]
    assert order_tiles("cutlass2-horizontal", *grid) == row == launched
    # one-column strips: the launch grid's x runs along M
    assert order_tiles("cutlass2-1", *grid) == order_tiles("column", *grid)
    assert order_tiles("grouped-1", *grid) == row
    assert order_tiles("cutlass3-1", *grid, raster="along-n") == row
    assert order_tiles("cutlass3-1", *grid, raster="along-m") == order_tiles("column", *grid)
    assert [(n, m) for m, n in order_tiles("row", grid[1], grid[0])] == order_tiles("column", *grid)


@pytest.mark.parametrize("number", [1, 3, 8, 16])
@pytest.mark.parametrize("grid", RAGGED)
def test_thunderkittens_is_what_its_source_computes(grid: tuple[int, int], number: int) -> None:
    rows, cols = grid
    results = []
    for p in range(rows * cols):
        group, inside = divmod(p, rows * number)
        row, col = divmod(inside, min(number, cols - group * number))
        results.append((rows - 1 - row if group % 2 else row, group * number + col))
    assert order_tiles(f"thunderkittens-{number}", *grid) == results


def test_super_m_of_twelve_is_grouped_where_it_divides() -> None:
    rows, cols = 36, 7
    super_m = [(12 * (t // (12 * cols)) + t % 12, t % (12 * cols) // 12) for t in range(rows * cols)]
    assert order_tiles("grouped-12", rows, cols) == super_m


def test_older_grouped_text_only_rotates_the_ragged_group() -> None:
    rows, cols, group = 13, 7, 8
    older = []
    for p in range(rows * cols):
        first = p // (group * cols) * group
        size = min(rows - first, group)
        older.append((first + p % size, p % (group * cols) // size))
    now = order_tiles("grouped-8", rows, cols)
    whole = group * cols
    assert older[:whole] == now[:whole]
    assert older != now
    assert sorted(older) == sorted(now)


@pytest.mark.parametrize("number", [2, 4, 8])
def test_cutlass3_is_grouped_on_padded_grids(number: int) -> None:
    assert order_tiles(f"cutlass3-{number}", 16, 16) == order_tiles(f"grouped-{number}", 16, 16)


@pytest.mark.parametrize(
    ("number", "logs"), [(1, "00000000"), (2, "01111111"), (4, "01222222"), (8, "01222333"), (99, "01222333")]
)
def test_cutlass_log_swizzle_by_side(number: int, logs: str) -> None:
    assert "".join(str(log_swizzle(number, side)) for side in range(1, 9)) == logs


def test_cutlass_swizzle_never_exceeds_eight_and_shrinks_on_small_grids() -> None:
    assert order_tiles("cutlass2-64", 9, 20) == order_tiles("cutlass2-8", 9, 20)
    assert order_tiles("cutlass2-8", 9, 5) == order_tiles("cutlass2-4", 9, 5)
    assert order_tiles("cutlass2-3", 9, 20) == order_tiles("cutlass2-2", 9, 20)
    assert order_tiles("cutlass3-8", 5, 20) == order_tiles("cutlass3-4", 5, 20)


def test_cutlass3_clusters_stay_together() -> None:
    tiles = order_tiles("cutlass3-2", 8, 8, cluster_m=2, cluster_n=1)
    assert tiles[:4] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert tiles[4] == (0, 1)
    assert order_tiles("cutlass3-1", 4, 4, cluster_n=2)[:4] == [(0, 0), (0, 1), (0, 2), (0, 3)]
    assert order_tiles("cutlass3-1", 4, 4, cluster_n=2, raster="along-m")[:4] == [
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
    ]
    # whole clusters make six columns of five, and six allow the widest swizzle
    assert order_tiles("cutlass3-8", 16, 5, cluster_n=2)[:16] == [(m, n) for m in range(8) for n in range(2)]


@pytest.mark.parametrize(
    ("sms", "tile", "multicast", "group"),
    [
        (132, (128, 128), "b", 8),
        (132, (64, 128), "b", 16),
        (132, (128, 64), "b", 8),
        (132, (128, 256), "b", 16),
        (132, (128, 160), "b", 16),
        (132, (128, 160), "a", 8),
        (78, (128, 128), "b", 8),
        (78, (128, 256), "b", 16),
    ],
)
def test_deepgemm_group_size(sms: int, tile: tuple[int, int], multicast: str, group: int) -> None:
    params = OrderParams(sms=sms, tile_m=tile[0], tile_n=tile[1], multicast=multicast)
    assert deepgemm_group(params) == group
    chosen = parse_order("deepgemm").tiles(40, 33, params)
    assert np.array_equal(chosen, parse_order(f"deepgemm-{group}").tiles(40, 33, params))
    assert not np.array_equal(chosen, parse_order(f"deepgemm-{24 - group}").tiles(40, 33, params))


def test_deepgemm_without_multicast_is_grouped_and_mirrors_for_a() -> None:
    assert order_tiles("deepgemm-8", 13, 40) == order_tiles("grouped-8", 13, 40)
    mirrored = [(n, m) for m, n in order_tiles("deepgemm-8", 40, 13, multicast="b")]
    assert order_tiles("deepgemm-8", 13, 40, multicast="a") == mirrored


def test_xcd_gives_each_die_consecutive_places() -> None:
    rows, cols, dies, chunk = 8, 9, 8, 3
    grouped = order_tiles("grouped-4", rows, cols)
    tiles = order_tiles("xcd-4", rows, cols, chunk=chunk)
    assert tiles[0::dies][:chunk] == grouped[:chunk]  # what the first die gets
    assert tiles[1::dies][:chunk] == grouped[chunk : 2 * chunk]
    # 32 tiles are fewer than one round of 8 dies x 64, so nothing moves
    assert order_tiles("xcd-8", 4, 8) == order_tiles("grouped-8", 4, 8)


def test_large_grids_and_thin_grids() -> None:
    for name in ALL_ORDERS:
        assert is_permutation(parse_order(name).tiles(301, 203), 301, 203)
        assert is_permutation(parse_order(name).tiles(1, 50_000), 1, 50_000)
