"""Where schedules of the user's own come from: files, functions in files, functions of installed packages.

A package adds a tile order by an entry point of the group ``pebble.orders`` that names a function
``(rows, cols, params)``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from difflib import get_close_matches
from functools import lru_cache
from inspect import isroutine
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pebble.errors import InputError
from pebble.schedules.orders.registry import SAWTOOTH
from pebble.schedules.tables.files import SUFFIXES, read_table
from pebble.schedules.tables.own import FixedTable, FunctionOrder, OwnSchedule
from pebble.schedules.tables.table import TileTable
from pebble.system.files import read_bytes, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_MOST_TILES = 2**22
_CACHED = 64  # generators whose tiles are kept
GROUP = "pebble.orders"
OWN_HELP = "tiles of your own: FILE.csv, .npy, .json or FILE.py:FUNCTION"
_FUNCTION = re.compile(r"(?P<path>.+\.py)(?::(?P<name>[^:]*))?", re.IGNORECASE)


def own_schedule(given: object) -> OwnSchedule | None:
    """A schedule of the user's own, or None for what can only be a name.

    Parameters
    ----------
    given : object
        A table, a function, a generator or a list of (row, col), the name of a file with or without ``+sawtooth``, or
        ``FILE.py:FUNCTION``.

    Raises
    ------
    InputError
        A file that is none, or without that function.
    """
    if isinstance(given, OwnSchedule):
        return given
    if isinstance(given, TileTable):
        return FixedTable(given)
    if isinstance(given, Path):
        given = str(given)
    if isinstance(given, Iterator):
        return _yielded(cast(Hashable, given))
    if _is_tiles(given):
        return FunctionOrder("tiles", lambda rows, cols: given)
    if not isinstance(given, str):
        return FunctionOrder(given.__name__ if isroutine(given) else "function", given) if callable(given) else None
    plain = given.strip().removesuffix(f"+{SAWTOOTH}")
    sawtooth = plain != given.strip()
    if plain.lower().endswith(SUFFIXES):
        return read_table(plain, sawtooth)
    match = _FUNCTION.fullmatch(plain)
    if match is None:
        return None
    return FunctionOrder(given.strip(), _function(match["path"], match["name"] or "", given), sawtooth)


@lru_cache(_CACHED)
def _yielded(given: Hashable) -> FunctionOrder:
    """The tiles of a generator, which can be read once only and may be asked for often."""
    tiles = list(islice(cast(Iterator[Any], given), _MOST_TILES))
    return FunctionOrder(getattr(given, "__name__", "tiles"), lambda rows, cols: tiles)


def _is_tiles(given: object) -> bool:
    """Whether it is a list or an array of pairs of whole numbers."""
    if isinstance(given, np.ndarray):
        return given.ndim == 2 and given.shape[1] == 2
    pair = given[0] if isinstance(given, list | tuple) and given else None
    return (
        isinstance(pair, list | tuple | np.ndarray)
        and len(pair) == 2
        and all(np.ndim(at) == 0 for at in pair)
        and (not any(isinstance(at, str) for at in pair))
    )


def packaged_orders() -> dict[str, EntryPoint]:
    """The tile orders that installed packages add, by name."""
    from importlib.metadata import entry_points  # it brings a mail library with it

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def packaged_order(text: str) -> FunctionOrder | None:
    """The order of that name from an installed package, if one has it.

    Raises
    ------
    InputError
        The package cannot be loaded.
    """
    name = text.strip()
    plain = name.removesuffix(f"+{SAWTOOTH}")
    entry = packaged_orders().get(plain)
    if entry is None:
        return None
    try:
        build = entry.load()
    except Exception as error:  # whatever an import of a foreign package does
        raise InputError(f"{plain}: {entry.value} cannot be loaded: {type(error).__name__}: {error}.") from None
    if not callable(build):
        raise InputError(f"{plain}: {entry.value} is no function, expected one of (rows, cols, params).")
    return FunctionOrder(name, build, name != plain)


def _function(path: str, name: str, given: str) -> Any:
    """A function of a Python file."""
    import importlib.util

    read_bytes(path, "schedule ")
    where = shown(path)
    spec = importlib.util.spec_from_file_location(f"pebble_order_{Path(path).stem}", path)
    if spec is None or spec.loader is None:
        raise InputError(f"{where}: it cannot be loaded as Python.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file does
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) else ""
        raise InputError(f"{where}: loading it raised {type(error).__name__}: {str(error)[:200]}{line}.") from None
    functions = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    result = vars(module).get(name)
    if not callable(result):
        near = get_close_matches(name, functions, n=1) or functions[:1]
        write = f"; write for example {where}:{near[0]}" if near else ", and it defines none"
        raise InputError(f"{shown(given)}: expected FILE.py:FUNCTION with a function (rows, cols, params){write}.")
    return result
