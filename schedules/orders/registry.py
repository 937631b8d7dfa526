"""Names of tile orders: ``BASE[-NUMBER][+sawtooth]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.schedules.orders.curves import GILBERT, HILBERT, MORTON
from pebble.schedules.orders.libraries import CUTLASS2, CUTLASS2_HORIZONTAL, CUTLASS3, DEEPGEMM, THUNDERKITTENS, XCD
from pebble.schedules.orders.order import MAX_NUMBER, OrderInfo, OrderParams
from pebble.schedules.orders.strips import COLUMN, GROUPED, ROW, SNAKE, SNAKE_STRIPS
from pebble.schedules.tile import Tiles, check_grid

_STRIPS = (ROW, COLUMN, SNAKE, SNAKE_STRIPS)
_LIBRARIES = (CUTLASS2, CUTLASS2_HORIZONTAL, CUTLASS3, DEEPGEMM, THUNDERKITTENS, XCD)
REGISTRY: dict[str, OrderInfo] = {
    info.base: info for info in (*_STRIPS, MORTON, HILBERT, GILBERT, GROUPED, *_LIBRARIES)
}
ALL_ORDERS: tuple[str, ...] = tuple(info.name for info in REGISTRY.values())

SAWTOOTH = "sawtooth"
_CACHED_TILES = 1 << 16  # a search asks for one order of one grid a few times in a row
_NUMBERED = re.compile(r"(?P<base>.+?)-(?P<number>[+-]?[0-9][0-9.]*)")


def _built(info: OrderInfo, rows: int, cols: int, number: int, params: OrderParams) -> Tiles:
    return info.build(rows, cols, number, params)


@lru_cache(maxsize=8)
def _cached(info: OrderInfo, rows: int, cols: int, number: int, params: OrderParams) -> Tiles:
    tiles = _built(info, rows, cols, number, params)
    tiles.setflags(write=False)  # the same for all who ask
    return tiles


@dataclass(frozen=True)
class TileOrder:
    """A tile order, and whether the k direction alternates.

    Parameters
    ----------
    base : str
        A key of ``REGISTRY``.
    number : int, optional
        Group, strip or swizzle size; by default the customary one, where the order has one.
    sawtooth : bool
        Whether every second wave runs through k backwards. The permutation of tiles is the same.

    Raises
    ------
    UnknownNameError
        A base that is not in the registry.
    InputError
        A number that is out of range, or given to an order that takes none.
    """

    base: str
    number: int | None = None
    sawtooth: bool = False

    def __post_init__(self) -> None:
        if self.base not in REGISTRY:
            raise UnknownNameError("schedule", self.base, ALL_ORDERS, "pebble schedules")
        info = self.info
        if self.number is None:
            object.__setattr__(self, "number", info.number)
        elif not info.number_means:
            raise InputError(f"schedule: got {self.plain_name!r}, but {self.base} takes no number; write {self.base}.")
        elif not 1 <= self.number <= MAX_NUMBER:
            raise _bad_number(self.plain_name, info)

    @property
    def info(self) -> OrderInfo:
        """Its entry in the registry: description, source, parameters."""
        return REGISTRY[self.base]

    @property
    def plain_name(self) -> str:
        """The name of the permutation alone, such as ``"grouped-8"``."""
        return self.base if self.number is None else f"{self.base}-{self.number}"

    @property
    def name(self) -> str:
        """The full name, which `parse_order` reads back, such as ``"grouped-8+sawtooth"``."""
        return f"{self.plain_name}+{SAWTOOTH}" if self.sawtooth else self.plain_name

    def tiles(self, rows: int, cols: int, params: OrderParams | None = None) -> Tiles:
        """The tiles of a grid, in order.

        Parameters
        ----------
        rows, cols : int
            Tiles along M and along N.
        params : OrderParams, optional
            What some orders depend on besides the grid; by default ``OrderParams()``.

        Returns
        -------
        ndarray of int32, shape (rows * cols, 2)
            Pairs (tile row, tile column), every tile once. Cost O(tiles).

        Raises
        ------
        InputError
            A side below 1, or more than 2^26 tiles.

        Examples
        --------
        >>> parse_order("grouped-2").tiles(2, 2).tolist()
        [[0, 0], [1, 0], [0, 1], [1, 1]]
        """
        rows, cols = check_grid(rows, cols)
        build = _cached if rows * cols <= _CACHED_TILES else _built
        return build(self.info, rows, cols, self.number or 0, params or OrderParams())

    def __str__(self) -> str:
        return self.name


def parse_order(name: str) -> TileOrder:
    """Read the name of a tile order.

    Parameters
    ----------
    name : str
        A base name, with ``-NUMBER`` where the order takes one (without it: the customary number), with or
        without ``+sawtooth``. Case and surrounding blanks do not matter.

    Raises
    ------
    UnknownNameError
        No such order; the message offers the nearest names.
    InputError
        A number out of range or not wanted, or something other than ``+sawtooth`` appended.

    Examples
    --------
    >>> parse_order("grouped").name
    'grouped-8'
    >>> parse_order("cutlass3-4+sawtooth")
    TileOrder(base='cutlass3', number=4, sawtooth=True)
    """
    plain, plus, flag = (
        check_text("schedule", name, "the name of a tile order such as 'row'").strip().lower().partition("+")
    )
    if plus and flag != SAWTOOTH:
        raise InputError(f"schedule: got {name!r}, expected nothing or +{SAWTOOTH} after the name {plain!r}.")
    match = None if plain in REGISTRY else _NUMBERED.fullmatch(plain)
    if match is None or match["base"] not in REGISTRY:
        return TileOrder(plain, None, bool(plus))
    base, digits = match["base"], match["number"]
    # The length is checked before int(): Python refuses to read thousands of digits.
    if not digits.isdecimal() or len(digits.lstrip("0")) > len(str(MAX_NUMBER)):
        if not REGISTRY[base].number_means:
            raise InputError(f"schedule: got {_short(plain)!r}, but {base} takes no number; write {base}.")
        raise _bad_number(plain, REGISTRY[base])
    return TileOrder(base, int(digits), bool(plus))


def all_schedules() -> tuple[TileOrder, ...]:
    """Every order with its customary number, each without and then with sawtooth.

    Examples
    --------
    >>> [schedule.name for schedule in all_schedules()[:3]]
    ['row', 'row+sawtooth', 'column']
    """
    return tuple(TileOrder(base, None, sawtooth) for base in REGISTRY for sawtooth in (False, True))


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _bad_number(name: str, info: OrderInfo) -> InputError:
    return InputError(
        f"schedule: got {_short(name)!r}, expected a whole number from 1 to {MAX_NUMBER} after {info.base} "
        f"({info.number_means}); write for example {info.base}-{info.number or 8}."
    )
