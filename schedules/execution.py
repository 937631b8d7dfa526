"""How the blocks of a tiled GEMM run in time: waves, persistent, dynamic with skew, clusters, split-K, Stream-K.

Names:

- ``waves`` (or ``wave-synchronous``): waves of P blocks, a barrier before each; the reference.
- ``free`` (or ``asynchronous``): no barrier; tiles go, in order, to whichever slot is free, and each block runs at the
  pace that its data allow (`pebble.traces.asynchronous`). What most kernels in common use do. For every family.
- ``persistent``: P blocks stay and take every P-th tile, without a barrier. With equal speeds these are waves.
- ``staggered``: the same, but slot s of P begins s/P of a tile late, so that k phases stay spread over the blocks.
- ``dynamic-S``: tiles go, in order, to the first free slot; a slot starts up to S percent of a tile late, and a tile
  takes 1 + N(0, S percent) times as long, drawn with a seed.
- ``split-k-S``: k in S slices, the slice slowest; each block writes a partial tile in fp32, a second kernel adds them
  (CUTLASS GemmSplitKHorizontal and Identity).
- ``stream-k``: each of P blocks takes an equal share of all k steps; the block that begins a tile adds the others'
  partials (Osama, Merrill et al., PPoPP 2023, algorithm 5).
- ``stream-k-hybrid``: Stream-K for the first tiles only, so many that whole waves remain (one full wave and the rest).

With a cluster of M x N blocks each A tile is fetched once for the N blocks of a cluster row and each B tile once for
the M of a column; clusters run as one. A plain unit of time is one k step.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.schedules.tile import Tiles
from pebble.traces.layout import Index
from pebble.traces.program import StepClock
from pebble.units import ceil_div

EXECUTIONS = ("waves", "free", "persistent", "staggered", "dynamic-5", "split-k-4", "stream-k", "stream-k-hybrid")
EXECUTION_HELP = (
    "how blocks run: waves (a barrier before each), free (no barrier; needs a machine); gemm: also persistent, "
    "staggered, dynamic-S (skew of S percent), split-k-S, stream-k, stream-k-hybrid (waves)"
)
_NUMBERED = re.compile(r"(dynamic|split-k)-([0-9]{1,18})")
MAX_SPLITS, MAX_SKEW, MAX_CLUSTER = 256, 100, 16
_LEAST_SPEED = 0.2


@dataclass(frozen=True)
class Execution:
    """A parsed name.

    Attributes
    ----------
    kind : str
    number : int
        Skew in percent, or slices of k.
    cluster : tuple of int
        Blocks of a cluster along M and N.
    seed : int
        Of the skew, and of the pace of free-running SMs.
    """

    kind: str = "waves"
    number: int = 0
    cluster: tuple[int, int] = (1, 1)
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.cluster) < 1 or self.cluster[0] * self.cluster[1] > MAX_CLUSTER:
            raise InputError(f"cluster: got {self.cluster}, expected MxN of at most {MAX_CLUSTER} blocks, such as 2x1.")
        if self.blocks_in_cluster > 1 and self.kind not in ("waves", "persistent", "dynamic"):
            raise InputError(f"cluster: got a cluster with {self.name}, expected waves, persistent or dynamic.")

    @property
    def name(self) -> str:
        """The name that `parse_execution` reads."""
        return f"{self.kind}-{self.number}" if self.kind in ("dynamic", "split-k") else self.kind

    @property
    def blocks_in_cluster(self) -> int:
        """Blocks that run as one."""
        return self.cluster[0] * self.cluster[1]

    @property
    def is_reference(self) -> bool:
        """Whether this is the plain trace of waves."""
        return self.kind == "waves" and self.cluster == (1, 1)

    @property
    def cuts_k(self) -> bool:
        """Whether several blocks may compute parts of one tile."""
        return self.kind in ("split-k", "stream-k", "stream-k-hybrid")

    @property
    def is_asynchronous(self) -> bool:
        """Whether blocks run free, at the pace that their data allow."""
        return self.kind == "free"


WAVES, FREE = Execution(), Execution("free")
_SPELLINGS = {"lockstep": "waves", "wave-synchronous": "waves", "asynchronous": "free"}


def parse_execution(text: str, cluster: str = "1x1", seed: int = 0) -> Execution:
    """Read a name and a cluster.

    Raises
    ------
    UnknownNameError
        Not a name of this module.
    InputError
        A number out of range.

    Examples
    --------
    >>> parse_execution("dynamic-10", "2x1").cluster
    (2, 1)
    """
    name = check_text("execution", text, "a name such as 'waves'").strip().lower()
    name = _SPELLINGS.get(name, name)
    sides = check_text("cluster", cluster, "MxN, such as '2x1'").lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() and len(side) < 4 for side in sides):
        raise InputError(f"cluster: got {cluster!r}, expected MxN, such as 2x1.")
    shape = (int(sides[0]), int(sides[1]))
    match = _NUMBERED.fullmatch(name)
    if match:
        number, (least, most) = int(match[2]), (0, MAX_SKEW) if match[1] == "dynamic" else (1, MAX_SPLITS)
        if not least <= number <= most:
            raise InputError(f"--execution: got {text!r}, expected {match[1]}-N with N from {least} to {most}.")
        return Execution(match[1], number, shape, seed)
    if name == "dynamic":
        return Execution("dynamic", 5, shape, seed)
    if name not in ("waves", "free", "persistent", "staggered", "stream-k", "stream-k-hybrid"):
        raise UnknownNameError("execution", text, EXECUTIONS, "pebble simulate --help")
    return Execution(name, 0, shape, seed)


class StepSegments(NamedTuple):
    """Work in issue order: segment i computes k steps ``begin[i]`` to ``end[i]`` of a tile.

    ``owner[i]`` is True where the segment writes the tile of C, after adding the partials of the others; the others
    write a partial tile. ``slot`` and ``start`` say where and when it runs, ``pace`` how long one step takes, ``turn``
    how many segments its slot did before.
    """

    tile: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    owner: NDArray[np.bool_]
    slot: NDArray[np.int64]
    start: NDArray[np.float64]
    pace: NDArray[np.float64]
    turn: NDArray[np.int64]

    @property
    def finish(self) -> NDArray[np.float64]:
        """When each segment has done its steps."""
        return self.start + (self.end - self.begin) * self.pace

    def clock(self, finish: NDArray[np.float64]) -> StepClock:
        """Where and when the blocks run; results come at ``finish``."""
        return StepClock(self.slot, self.turn, self.start, self.pace, finish)


def run_segments(tiles: Tiles, cluster: Index, steps: int, slots: int, execution: Execution) -> StepSegments:
    """What runs where and when: tiles (row, column) in traversal order, each of ``steps`` k steps, on ``slots`` slots.

    Clusters (``cluster`` has the number of each tile's) are dispatched as one, their blocks side by side.

    Raises
    ------
    InputError
        A cluster of more blocks than run at once.
    """
    inside = execution.blocks_in_cluster
    if slots < inside:
        raise InputError(f"cluster: got {inside} blocks in a cluster and {slots} at once, expected as many or more.")
    if execution.kind == "split-k" and min(execution.number, steps) > 1:
        return run_split_k(len(tiles), steps, slots, execution.number)
    if execution.kind in ("stream-k", "stream-k-hybrid"):
        return run_stream_k(len(tiles), steps, slots, execution.kind == "stream-k-hybrid")
    clusters = run_tiles(int(cluster.max()) + 1, steps, slots // inside, execution)
    each = StepSegments._make(values[cluster] for values in clusters)
    m, n = execution.cluster
    place = tiles[:, 0] % m * n + tiles[:, 1] % n
    return each._replace(tile=np.arange(len(tiles), dtype=np.int64), slot=each.slot * inside + place)


def run_tiles(tiles: int, steps: int, slots: int, execution: Execution) -> StepSegments:
    """Whole tiles on ``slots`` slots: when and where each runs, for waves, persistent, staggered and dynamic."""
    number = np.arange(tiles, dtype=np.int64)
    slot, turn = number % slots, number // slots
    start, pace = (turn * steps).astype(np.float64), np.ones(tiles)
    if execution.kind == "staggered":
        start += slot * (steps / slots)
    elif execution.kind == "dynamic":
        random = np.random.default_rng(execution.seed)
        skew = execution.number / 100
        free = [(late * skew * steps, slot) for slot, late in enumerate(random.random(slots).tolist())]
        heapq.heapify(free)
        pace = np.maximum(_LEAST_SPEED, 1 + skew * random.standard_normal(tiles))
        done = [0] * slots
        for i in range(tiles):
            start[i], at = free[0]
            slot[i], turn[i] = at, done[at]
            done[at] += 1
            heapq.heapreplace(free, (start[i] + steps * float(pace[i]), at))
    return StepSegments(number, number * 0, np.full(tiles, steps), number >= 0, slot, start, pace, turn)


def run_stream_k(tiles: int, steps: int, slots: int, hybrid: bool) -> StepSegments:
    """Equal shares of all k steps of the first ``streamed`` tiles, then whole tiles in waves."""
    streamed = tiles
    if hybrid:
        rest = tiles % slots
        streamed = min(tiles, rest + (slots if tiles > slots else 0)) if rest else 0
    total = streamed * steps
    rows: list[tuple[int, int, int, bool, int, float]] = []
    for slot in range(slots if total else 0):
        first, end = slot * total // slots, (slot + 1) * total // slots
        at = first
        while at < end:
            tile, begin = divmod(at, steps)
            stop = min(steps, begin + end - at)
            rows.append((tile, begin, stop, begin == 0, slot, float(at - first)))
            at += stop - begin
    share = ceil_div(total, slots)
    for number in range(streamed, tiles):
        turn, slot = divmod(number - streamed, slots)
        rows.append((number, 0, steps, True, slot, float(share + turn * steps)))
    tile_of, begins, ends, owner, slot_of, start = (np.array(column) for column in zip(*rows, strict=True))
    return StepSegments(tile_of, begins, ends, owner, slot_of, start, np.ones(len(rows)), np.zeros(len(rows), np.int64))


def run_split_k(tiles: int, steps: int, slots: int, slices: int) -> StepSegments:
    """Slices of k, slice slowest, in waves; no segment owns its tile (a second kernel adds the partials)."""
    length = ceil_div(steps, min(slices, steps))
    number = np.arange(tiles * ceil_div(steps, length), dtype=np.int64)
    wave, begin = number // slots, number // tiles * length
    start = (wave * length).astype(np.float64)
    end = np.minimum(begin + length, steps)
    return StepSegments(number % tiles, begin, end, number < 0, number % slots, start, np.ones(len(number)), wave)
