"""``--accumulate``: whether partial sums take the width of fp32 accumulators, as on a GPU, or what they end as."""

from __future__ import annotations

from pebble.errors import UnknownNameError
from pebble.models.kernel_fit import ACCUMULATOR_BYTES

FP32, OFF = ACCUMULATORS = ("fp32", "off")
PARTIAL_SUMS = "a cell takes 4 bytes, held or spilled, from its first product until it is complete"


def game_of(accumulator_bytes: int) -> str:
    """The name of the game in which partial sums take so many bytes; 0: what they end as."""
    return FP32 if accumulator_bytes else OFF


def read_accumulators(given: object, on_machine: bool) -> tuple[int, tuple[str, ...]]:
    """Bytes of a partial sum (0: what it ends as), and how the command line says it where it is not the usual game.

    Usual is fp32 on a machine and off for a bare memory.

    Raises
    ------
    UnknownNameError
        No such width.
    """
    usual = FP32 if on_machine else OFF
    if given is None or given == usual:
        return (ACCUMULATOR_BYTES if on_machine else 0), ()
    if given not in ACCUMULATORS:
        raise UnknownNameError("width of partial sums", str(given), ACCUMULATORS, "pebble bound --help")
    return (ACCUMULATOR_BYTES if given == FP32 else 0), ("--accumulate", str(given))
