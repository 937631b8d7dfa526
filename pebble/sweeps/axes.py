"""The axes of a sweep, as a TOML file or keywords give them: every key known, every value of its type.

A sweep file looks like this; each list is an axis, every combination is computed once:

    workloads = ["llama-3-8b:*", { family = "gemm", m = [1024, 2048], n = 4096, k = 4096 }]
    tokens = [512]                  # for layers of named models
    machines = ["h100-sxm5-80gb"]   # SKUs, "all", or machine files beside this one
    orders = ["row", "hilbert"]     # by default all

    [games]
    instances = [{ family = "gemm", m = 2, n = 2, k = [1, 2] }]
    capacities = [4, 5]
    solvers = ["search", "cpsat"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from pebble.errors import InputError, UnknownNameError
from pebble.models.machine_reader import line_of
from pebble.system.files import check_path, parse_toml, read_bytes, shown

MAX_FILE_BYTES = 2**20
_MOST_ENTRIES = 10_000
_WHERE = "pebble sweep --help"


@dataclass(frozen=True)
class Games:
    """Computation DAGs to be solved.

    Attributes
    ----------
    instances : tuple of dict
        ``{"family": "gemm", "m": 2, ...}``; a list of counts stands for one instance each.
    capacities : tuple of int
        Pebbles (weight units).
    variants, solvers : tuple of str
        By default the game of the DAG, and ``auto``.
    time_limit : float
        Seconds for each.
    seed : int
    """

    instances: tuple[Any, ...] = ()
    capacities: tuple[int, ...] = ()
    variants: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    time_limit: float = 60.0
    seed: int = 0


@dataclass(frozen=True)
class Axes:
    """Everything that a sweep varies.

    Attributes
    ----------
    workloads : tuple of str or dict
        Layers ``"MODEL:LAYER"``, patterns ``"*:*"``, or ``{"family": "gemm", "m": 8192, ...}``.
    tokens : tuple of int
        For layers of named models.
    dtypes : tuple of str
        Of the inputs (bf16).
    machines : tuple of str
        SKUs, ``"all"``, or files.
    caches : tuple of str
        Sizes in place of each machine's L2; without machines, one memory each.
    sms : tuple of int
        In place of each machine's.
    orders : tuple of str
        Tile orders or schedules; by default all of each family.
    tiles, policies, executions : tuple of str
        As the options of ``pebble compare``; by default its defaults.
    stages, blocks_per_sm : tuple of int
    seed : int
    games : Games
    folder : str
        Where machine files are looked for.
    places : mapping of str to str
        Where each key stands in the sweep file, for messages.
    """

    workloads: tuple[Any, ...] = ()
    tokens: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    sms: tuple[int, ...] = ()
    orders: tuple[str, ...] = ()
    tiles: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    executions: tuple[str, ...] = ()
    stages: tuple[int, ...] = ()
    blocks_per_sm: tuple[int, ...] = ()
    seed: int = 0
    games: Games = Games()
    folder: str = "."
    places: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Mistakes that are found inside are those of this key, and say where it stands."""
        try:
            yield
        except InputError as error:
            place = self.places.get(key)
            raise InputError(f"{place}, {error}") if place else error from None


def read_axes(source: str | Path | Mapping[str, Any]) -> Axes:
    """The axes of a TOML file, or of a mapping with the same keys.

    Raises
    ------
    InputError
        A file that cannot be read, or one sentence with the line and the key of the mistake.
    """
    if isinstance(source, Mapping):
        return _axes(source, ".", lambda key, text: InputError(f"sweep, {key}: {text}"))
    path = Path(check_path("sweep", source))
    content = read_bytes(path, "sweep file ", MAX_FILE_BYTES, "; expected a TOML file")
    text, data = parse_toml(content, path, "sweep file ", f"see `{_WHERE}`")

    def place(key: str) -> str:
        return f"{shown(path)}, line {line_of(text, key)}"

    axes = _axes(data, str(path.parent), lambda key, spec: InputError(f"{place(key)}, {key}: {spec}"))
    keys = [field.name for field in fields(Axes)] + [f"games.{field.name}" for field in fields(Games)]
    return replace(axes, places={key: place(key) for key in keys})


Mistake = Callable[[str, str], InputError]


def _axes(data: Mapping[str, Any], folder: str, mistake: Mistake) -> Axes:
    games = data.get("games", {})
    if not isinstance(games, Mapping):
        raise mistake("games", f"got {_short(games)}, expected a table [games] with instances and capacities.")
    known = {field.name for field in fields(Axes)} - {"folder", "games", "places"}
    values = _read({k: v for k, v in data.items() if k != "games"}, known, "", Axes, mistake)
    inner = _read(games, {field.name for field in fields(Games)}, "games.", Games, mistake)
    return Axes(**values, games=Games(**inner), folder=folder)


def _read(data: Mapping[str, Any], known: set[str], prefix: str, of: type, mistake: Mistake) -> dict[str, Any]:
    types = {field.name: str(field.type) for field in fields(of)}
    result = {}
    for key, value in data.items():
        if key not in known:
            hint = UnknownNameError("key", key, {*known, "games"} if not prefix else known, _WHERE)
            raise mistake(prefix + key, str(hint))
        result[key] = _value(prefix + key, types[key], value, mistake)
    return result


def _value(key: str, kind: str, value: object, mistake: Mistake) -> Any:
    if not kind.startswith("tuple"):
        wanted = (int, float) if kind == "float" else (int,)
        if isinstance(value, bool) or not isinstance(value, wanted) or abs(value) > 2**60:
            raise mistake(key, f"got {_short(value)}, expected a {'number' if kind == 'float' else 'whole number'}.")
        return value
    entries = value if isinstance(value, list | tuple) else [value]
    if len(entries) > _MOST_ENTRIES:
        raise mistake(key, f"got {len(entries)} entries, expected at most {_MOST_ENTRIES}.")
    checks: dict[str, tuple[Callable[[Any], bool], str]] = {
        "int": (lambda e: type(e) is int and 0 < e <= 2**60, "whole numbers above zero"),
        "str": (lambda e: isinstance(e, str) and bool(e.strip()), "texts"),
        "Any": (lambda e: isinstance(e, str | Mapping), "names or tables"),
    }
    fits, expected = checks[kind.removeprefix("tuple[").partition(",")[0]]
    if key == "games.instances":
        fits, expected = (lambda e: isinstance(e, Mapping)), 'tables such as { family = "gemm", m = 2, n = 2, k = 2 }'
    for entry in entries:
        if not fits(entry):
            raise mistake(key, f"got {_short(entry)}, expected {expected}.")
    return tuple(entry.strip() if isinstance(entry, str) else entry for entry in entries)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
