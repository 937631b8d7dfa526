"""A potential proves that no pebbling of a small in-place GEMM costs less: V(s) <= cost(s -> s') + V(s') everywhere.

Without loss of generality an item is loaded when a product needs it, and a product runs as soon as its three items
are red. A stay of an accumulator ends in one store, so the cost is m n for the last stores, plus 1 for each load of A
and B, and 1 for the store and 1 for the load of every accumulator that is evicted unfinished.

A real position is looked at through (R, M, p, u): the red items; of the products *in scope* (those with two red
items, and those of a red accumulator) the ones still undone; the number of products left; the number of accumulators
not initialised. Then p - k u - |M on red accumulators| products belong to accumulators initialised and evicted, each
with 1 to k - 1 of them at most, or 0: so for given u only some p can occur. The moves, each of which a real move maps
to:

- *forget* a red item: free; 1 for an accumulator with undone products;
- *run* a product t that is in M or out of scope, when its missing items fit: 1 for each missing A and B; its missing
  accumulator is either fresh (free, u falls by one, all its products undone) or loaded (1, at most k - 1 products
  undone, t among them: any choice of them). Products that come into scope are taken as undone. Then all undone
  products with three red items run, and p falls by their number;
- *known less*: a product in M whose accumulator is not red is taken out of M; free. A real position can have fewer
  undone products than a run assumes, and V may only be lower where more is undone.

A table of V for every (R, M) that these moves reach, up to permutations of rows, columns and depth (and transposition
when m = n), is checked move by move. With V >= 0, and V = 0 when p = u = 0, the cost is at least m n + V(start).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product
from operator import le
from pathlib import Path
from typing import Any

from .games import Game
from .reading import RefusedError, array, equal, fields, integer, records

MAGIC = b"pebble potential 1\n"
MAX_SIDE = 4
MAX_PRODUCTS = 36
MAX_RECORDS = 1_500_000
MAX_STEPS = 200_000_000
_ADD = [bytes(min(255, x + cost) for x in range(256)) for cost in range(5)]

Counts = tuple[int, int]


class Products:
    """The GEMM as bits, and its symmetries.

    Items: A(i,l) is bit i k + l, B(l,j) bit m k + j k + l, C(i,j) bit (m + n) k + i n + j. Product (i,j,l) is bit
    (i n + j) k + l.
    """

    def __init__(self, m: int, n: int, k: int, capacity: int) -> None:
        self.m, self.n, self.k, self.capacity = m, n, k, capacity
        self.cells, self.count = m * n, m * n * k
        self.items = (m + n) * k + m * n
        self.first_cell = (m + n) * k
        self.needs = [0] * self.count
        self.touches = [0] * self.items
        for i, j, l in product(range(m), range(n), range(k)):
            for x in (i * k + l, (m + j) * k + l, self.first_cell + i * n + j):
                self.needs[(i * n + j) * k + l] |= 1 << x
                self.touches[x] |= 1 << (i * n + j) * k + l
        self.symmetries = list(self._symmetries())
        self._canonical: dict[int, tuple[int, int]] = {}
        self._stabiliser: dict[int, list[int]] = {}
        # rows of V: for u = 0, 1, ... the p from k u to m n k
        self.offset = [0]
        for u in range(self.cells + 1):
            self.offset.append(self.offset[-1] + self.count - k * u + 1)

    def _symmetries(self) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
        """Images of items and of products, byte by byte."""
        m, n, k = self.m, self.n, self.k
        for flip in (False, True) if m == n else (False,):
            a, b = (m * k, 0) if flip else (0, m * k)  # where the images of A and of B begin
            for pi, pj, pl in product(permutations(range(m)), permutations(range(n)), permutations(range(k))):
                items = [a + i * k + l for i in pi for l in pl] + [b + j * k + l for j in pj for l in pl]
                cells = [j * n + i if flip else i * n + j for i in pi for j in pj]
                products = [cell * k + l for cell in cells for l in pl]
                yield _by_bytes(items + [self.first_cell + cell for cell in cells]), _by_bytes(products)

    def canonical(self, red: int) -> tuple[int, int]:
        """The least image of a red set, and a symmetry that takes it there."""
        result = self._canonical.get(red)
        if result is None:
            result = min((_image(items, red), g) for g, (items, _) in enumerate(self.symmetries))
            self._canonical[red] = result
        return result

    def key(self, red: int, undone: int) -> tuple[int, int]:
        """The least image of (R, M): R first, then M under the symmetries that leave that R alone."""
        image, g = self.canonical(red)
        keep = self._stabiliser.get(image)
        if keep is None:
            keep = [s for s, (items, _) in enumerate(self.symmetries) if _image(items, image) == image]
            self._stabiliser[image] = keep
        undone = _image(self.symmetries[g][1], undone)
        return image, min(_image(self.symmetries[s][1], undone) for s in keep)

    def look(self, red: int) -> tuple[int, int, int]:
        """Products in scope, products with three red items, and products of red accumulators."""
        once = twice = thrice = rows = 0
        for x, touched in enumerate(self.touches):
            if red >> x & 1:
                thrice |= twice & touched
                twice |= once & touched
                once |= touched
                rows |= touched if x >= self.first_cell else 0
        return (twice | rows) & ~thrice, thrice, rows

    def moves(self, red: int, undone: int) -> Iterator[tuple[int, int, int, int, int]]:
        """(R', M', cost, products run, accumulators initialised) for every move."""
        scope, thrice, rows = self.look(red)
        for x in range(self.items):  # forget
            if red >> x & 1:
                smaller = red & ~(1 << x)
                cost = 1 if x >= self.first_cell and undone & self.touches[x] else 0
                yield smaller, undone & self.look(smaller)[0], cost, 0, 0
        for t in range(self.count):  # known less
            if (undone & ~rows) >> t & 1:
                yield red, undone & ~(1 << t), 0, 0, 0
        known, capacity = scope | thrice, self.capacity - red.bit_count()
        for t, needs in enumerate(self.needs):  # run
            missing = needs & ~red
            if not missing or missing.bit_count() > capacity or (known & ~undone) >> t & 1:
                continue
            larger = red | needs
            wider, complete, _ = self.look(larger)
            cost = missing.bit_count()
            cell = missing >> self.first_cell
            row = self.touches[self.first_cell + cell.bit_length() - 1] if cell else 0
            initialised = undone | ((wider | complete) & ~known & ~row)
            if not cell:
                yield larger, initialised & ~complete, cost, (initialised & complete).bit_count(), 0
                continue
            done_in_row = known & row & ~undone
            if not done_in_row:
                begin = initialised | row
                yield larger, begin & ~complete, cost - 1, (begin & complete).bit_count(), 1
            free = row & ~(1 << t) & ~done_in_row
            part = free
            while True:
                if part.bit_count() + 1 < self.k:
                    again = (initialised & ~row) | part | 1 << t
                    yield larger, again & ~complete, cost, (again & complete).bit_count(), 0
                if not part:
                    break
                part = (part - 1) & free

    def counts(self, red: int, undone: int) -> Counts:
        """Undone products of red accumulators, and red accumulators."""
        return (undone & self.look(red)[2]).bit_count(), (red >> self.first_cell).bit_count()

    def range_of(self, u: int, open_: int, red_cells: int) -> tuple[int, int]:
        """The p that can occur with u accumulators not initialised: first and last."""
        initialised = self.cells - u - red_cells
        first = self.k * u + open_
        return first, first + initialised * (self.k - 1) if initialised >= 0 else first - 1


def _by_bytes(images: list[int]) -> list[list[int]]:
    """For each byte of a word, the image of each of its 256 values."""
    tables = []
    for start in range(0, len(images), 8):
        table = [0] * 256
        for value in range(1, 256):
            low = value & -value
            at = start + low.bit_length() - 1
            table[value] = table[value ^ low] | (1 << images[at] if at < len(images) else 0)
        tables.append(table)
    return tables


def _image(tables: list[list[int]], word: int) -> int:
    result = 0
    for table in tables:
        result |= table[word & 255]
        word >>= 8
    return result


def record_bytes(products: Products) -> tuple[int, int, int]:
    """Bytes of R, of M, and of the values of V in a record."""
    return -(-products.items // 8), -(-products.count // 8), products.offset[products.cells + 1]


def read_gemm(game: Game, proof: Any, at: str) -> Products:
    """The GEMM that a game is: ``values`` names the game's values in the order of the items."""
    m, n, k = (integer(proof[x], f"{at}.{x}", 1, MAX_SIDE) for x in ("m", "n", "k"))
    if m * n * k > MAX_PRODUCTS or game.variant != "in-place" or set(game.weights) != {1}:
        raise RefusedError(at, f"a potential is defined for in-place games of up to {MAX_PRODUCTS} products, weights 1")
    result = Products(m, n, k, game.capacity)
    spec = array(proof["values"], f"{at}.values", result.items, result.items)
    values = [integer(x, f"{at}.values", 0, len(game.names) - 1) for x in spec]
    wanted = set()
    for t, needs in enumerate(result.needs):
        cell = result.first_cell + t // k
        wanted.add((values[cell], frozenset(values[x] for x in range(result.first_cell) if needs >> x & 1)))
    tasks = {(task.target, frozenset(task.operands)) for task in game.tasks}
    # one value for each item: a value that is two items is loaded once where the GEMM loads twice
    good = len(set(values)) == len(game.names) == result.items
    good = good and tasks == wanted and len(game.tasks) == result.count
    for i, x in enumerate(values):
        good = good and game.is_input[x] == (i < result.first_cell) and game.is_output[x] == (i >= result.first_cell)
    if not good or any(task.after for task in game.tasks):
        raise RefusedError(f"{at}.values", "under these names the game is not this GEMM")
    return result


def check_potential(game: Game, cost: int, proof: Any, folder: Path | None, at: str) -> None:
    """The table is a potential, and its value at the start gives the claimed cost."""
    fields(proof, at, ("method", "m", "n", "k", "values", "table"))
    products = read_gemm(game, proof, at)
    bytes_r, bytes_m, bytes_v = record_bytes(products)
    where = f"{at}.table"
    table: dict[tuple[int, int], bytes] = {}
    for record in records(folder, proof["table"], MAGIC, bytes_r + bytes_m + bytes_v, MAX_RECORDS, where):
        red = int.from_bytes(record[:bytes_r], "little")
        undone = int.from_bytes(record[bytes_r : bytes_r + bytes_m], "little")
        if red >> products.items or undone & ~products.look(red)[0] or products.key(red, undone) != (red, undone):
            raise RefusedError(where, f"record {len(table)} is no pattern in its least form")
        table[red, undone] = record[bytes_r + bytes_m :]
    start = table.get((0, 0))
    if start is None:
        raise RefusedError(where, "it has no record for the start")
    value = start[products.offset[products.cells] + products.count - products.k * products.cells]
    equal(cost, products.cells + value, f"{at}.table", "m n and the potential at the start")
    steps = 0
    for number, ((red, undone), values) in enumerate(table.items()):
        own = products.counts(red, undone)
        if products.range_of(0, *own)[0] == 0 and values[0]:
            raise RefusedError(where, f"record {number}: the potential is above 0 when nothing is left")
        seen = set()
        for red_after, undone_after, step_cost, run, initialised in products.moves(red, undone):
            steps += 1
            if steps > MAX_STEPS:
                raise RefusedError(where, f"it takes more than {MAX_STEPS:,} moves to check")
            step = (*products.key(red_after, undone_after), step_cost, run, initialised)
            if step in seen:
                continue
            seen.add(step)
            following = table.get(step[:2])
            if following is None:
                raise RefusedError(where, f"a move from record {number} leaves the table")
            if not _holds(products, values, own, following, products.counts(*step[:2]), step[2:]):
                why = f"along a move from record {number} the potential falls by more than its cost"
                raise RefusedError(where, why)


def _holds(
    products: Products, values: bytes, own: Counts, after: bytes, other: Counts, move: tuple[int, int, int]
) -> bool:
    """V(s) <= cost + V(s') for every p and u on both sides of a move: its cost, products run, cells initialised."""
    step_cost, run, initialised = move
    if step_cost:
        after = after.translate(_ADD[step_cost])
    for u in range(initialised, products.cells + 1):
        first, last = products.range_of(u, *own)
        if first > last:
            break
        low, high = products.range_of(u - initialised, *other)
        first, last = max(first, low + run), min(last, high + run)
        if first > last:
            continue
        here = products.offset[u] + first - products.k * u
        there = products.offset[u - initialised] + first - run - products.k * (u - initialised)
        size = last - first + 1
        if not all(map(le, values[here : here + size], after[there : there + size])):
            return False
    return True
