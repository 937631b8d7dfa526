"""What every tile order shares: the parameters it may depend on, and its entry in the registry."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from pebble.errors import InputError
from pebble.schedules.tile import Tiles, TileShape

Raster = Literal["heuristic", "along-m", "along-n"]
Multicast = Literal["none", "a", "b"]

MAX_NUMBER = 2**20
MAX_CLUSTER = 16


@dataclass(frozen=True)
class OrderParams:
    """What an order may depend on besides the grid and its own number.

    Parameters
    ----------
    sms : int
        Streaming multiprocessors. Used by deepgemm.
    tile_m, tile_n : int
        Tile size, in values. Used by deepgemm.
    cluster_m, cluster_n : int
        Thread block cluster, in tiles, 1 to 16 each. Used by cutlass3.
    raster : str
        Major axis of cutlass3: heuristic, along-m or along-n.
    multicast : str
        The operand that deepgemm multicasts to two blocks: none, a or b.
    chunk : int
        Consecutive tile ids that xcd keeps on one die.

    Raises
    ------
    InputError
        A number out of range, or an unknown choice.

    Examples
    --------
    >>> OrderParams(sms=132).tile_m
    128
    """

    sms: int = 108
    tile_m: int = 128
    tile_n: int = 128
    cluster_m: int = 1
    cluster_n: int = 1
    raster: Raster = "heuristic"
    multicast: Multicast = "none"
    chunk: int = 64

    def __post_init__(self) -> None:
        for name in ("sms", "tile_m", "tile_n", "cluster_m", "cluster_n", "chunk"):
            limit = MAX_CLUSTER if name.startswith("cluster") else MAX_NUMBER
            value = vars(self)[name]
            try:
                number = operator.index(value)
            except TypeError:
                number = 0
            if not 1 <= number <= limit:
                raise InputError(f"{name}: got {value!r}, expected a whole number from 1 to {limit}.")
            object.__setattr__(self, name, number)
        for name, choices in (("raster", get_args(Raster)), ("multicast", get_args(Multicast))):
            if (word := vars(self)[name]) not in choices:
                raise InputError(f"{name}: got {word!r}, expected one of {', '.join(choices)}.")


@lru_cache(maxsize=64)
def params_of(sms: int, tile: TileShape) -> OrderParams:
    """Those of a kernel that runs on so many SMs."""
    return OrderParams(sms=sms, tile_m=tile.bm, tile_n=tile.bn)


@dataclass(frozen=True)
class OrderInfo:
    """One entry of the registry.

    Attributes
    ----------
    base : str
        The name without its number.
    what : str
        One line: what the order does.
    source : str
        The code or paper that it restates.
    build : callable
        ``(rows, cols, number, params) -> pairs``; the number is 0 for an order used without one.
    number : int or None
        The customary number, filled in when the name has none.
    number_means : str
        What the number counts; empty when the order takes none.
    parameters : tuple of str
        The fields of `OrderParams` that the order depends on.
    """

    base: str
    what: str
    source: str
    build: Callable[[int, int, int, OrderParams], Tiles]
    number: int | None = None
    number_means: str = ""
    parameters: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The customary name, such as ``"grouped-8"``."""
        return self.base if self.number is None else f"{self.base}-{self.number}"
