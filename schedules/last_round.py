"""The last round of a product's tiles in an exported file, in counts: the rule of ``export/templates/dealing.py``.

Where tiles do not fill all rounds, a file cuts the k of those that are left, so that every program has a run of their
steps, if that saves more than the way of the pieces through memory takes. Else it cuts them into narrower tiles, a
launch of its own, if that keeps more programs busy.
"""

from __future__ import annotations

from typing import NamedTuple

from pebble.schedules.tile import TileShape
from pebble.traces.program import CutRest

WORTH = 28  # steps of k that a piece's way through memory takes
NARROWEST = 64  # columns of a tile


class LastRound(NamedTuple):
    """What a round that is not full takes.

    Attributes
    ----------
    share : float
        Of the time of a whole tile.
    steps : float
        Of its steps: narrow tiles have as many, each in less time.
    loads : float
        Of what whole tiles load: narrow ones load the same rows again.
    launches : int
        Beside that of the full rounds.
    """

    share: float = 1.0
    steps: float = 1.0
    loads: float = 1.0
    launches: int = 0


def last_round(
    cut: CutRest, tiles: int, steps: float, programs: int, tile: TileShape, apart: float, step_tiles: float
) -> LastRound:  # fmt: skip
    """How long the tiles take that fill no round.

    Parameters
    ----------
    cut : str
        What a file may cut of them.
    tiles : int
        In all rounds.
    steps : float
        Of k in one of the last tiles.
    programs : int
        That have a tile each in a round.
    tile : TileShape
    apart : float
        How many rows and columns of tiles the last ones have together.
    step_tiles : float
        How many tiles of operands, of one step, L2 holds.

    Examples
    --------
    >>> last_round("k", 288, 64, 132, TileShape(128, 256, 64), 14, 2000)  # 24 tiles, five pieces each
    LastRound(share=0.6375, steps=0.6375, loads=1.0, launches=0)
    >>> last_round("k", 324, 48, 132, TileShape(128, 256, 64), 20, 2000)  # 60, each as two of 128 columns
    LastRound(share=0.6666666666666666, steps=1.0, loads=1.3333333333333333, launches=1)
    >>> last_round("k", 200, 40, 132, TileShape(128, 256, 64), 20, 2000)  # 68: neither pays
    LastRound(share=1.0, steps=1.0, loads=1.0, launches=0)
    """
    rest = tiles % programs
    if not rest or not cut:
        return LastRound()
    in_step = 2 * rest <= programs
    busy = programs // rest * rest if in_step else programs
    if cut == "k" and (in_step or steps * apart <= step_tiles) and steps * (busy - rest) >= WORTH * busy:
        taken = rest / busy + WORTH / steps
        return LastRound(taken, taken)
    narrow = next((parts for parts in (4, 2) if rest * parts <= programs and parts * NARROWEST <= tile.bn), 1)
    share = (tile.bm + tile.bn / narrow) / (tile.bm + tile.bn)  # of what a step loads, which narrow tiles wait for
    return LastRound(share, 1.0, narrow * share, int(narrow > 1 and rest < tiles))
