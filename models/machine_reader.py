"""Parsed TOML into a machine, every mistake with its line and key."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.quantity import (
    FIELDS,
    GPU,
    KINDS,
    TABLE,
    TABLES,
    TEXTS,
    DefaultModel,
    FieldError,
    Quantity,
    check_field,
    example_of,
    foreign_key,
    missing_key,
    shorten,
    unknown,
)

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(?:#.*)?")
_ASSIGNMENT = re.compile(r"""(?:^|[{,])\s*([A-Za-z0-9_.\-"' ]+?)\s*=""")

Entry = TypeVar("Entry", Quantity, DefaultModel)


def read_machine(path: Path, text: str, data: dict[str, Any]) -> Machine:
    """The machine of a file's text, parsed as ``data``.

    Raises
    ------
    InputError
        With the line, which the standard parser tells of broken syntax only.
    """

    def mistake(key: str, message: str) -> InputError:
        return InputError(f"{path}, line {line_of(text, key)}, {key}: {message}")

    def read(kind: type[Entry], key: str, entry: object, expected: str) -> Entry:
        if not isinstance(entry, dict):
            raise mistake(key, f"got {shorten(entry)}, expected {expected}.")
        known = {field.name: field.default is MISSING for field in fields(kind)}
        for name in entry:
            if name not in known:
                raise mistake(f"{key}.{name}", unknown("key", name, known))
        for name, required in known.items():
            if required and name not in entry:
                raise mistake(key, f"the required key `{name}` is missing; expected {expected}.")
        try:
            result = kind(**entry)
            if isinstance(result, Quantity):
                check_field(key, result)
        except FieldError as error:
            raise mistake(f"{key}.{error.key}", str(error)) from None
        return result

    entries: dict[str, Any] = {}
    for key, value in data.items():
        if key in TABLES and not isinstance(value, dict):
            raise mistake(key, f"got {shorten(value)}, expected a table: [{key}].")
        entries |= {f"{key}.{name}": entry for name, entry in value.items()} if key in TABLES else {key: value}
    best: dict[str, Quantity] = {}
    model = None
    for key, entry in entries.items():
        if key in FIELDS:
            best[key] = read(Quantity, key, entry, f"a number with its unit: {example_of(key)}")
        elif key == TABLE:
            model = read(DefaultModel, key, entry, f'a table: [{TABLE}], with policy = "lru"')
        elif key not in TEXTS:
            table, _, name = key.partition(".")
            if table in TABLES:
                inside = [field.partition(".")[2] for field in FIELDS if field.startswith(f"{table}.")]
                raise mistake(key, unknown("key", name, inside))
            raise mistake(key, unknown("key", key, [*TEXTS, *TABLES, TABLE, *(x for x in FIELDS if "." not in x)]))
        elif not isinstance(entry, str) or not entry.strip():
            raise mistake(key, f"got {shorten(entry)}, expected text in quotes.")
    kind = data.get("kind", GPU)
    if kind not in KINDS:
        raise mistake("kind", unknown("kind", kind, KINDS))
    if wrong := foreign_key(best, kind):
        raise mistake(wrong, f"it has no meaning on a machine of kind {kind!r}; leave it out, or change `kind`.")
    missing = missing_key({*best, "name"} if "name" in data else set(best), kind)
    if missing:
        raise InputError(f"{path}, line 1: {missing}; see `pebble machines --help`.")
    quantities = tuple((key, best[key]) for key in FIELDS if key in best)
    return Machine(
        path.stem, **{key: data[key] for key in TEXTS if key in data}, quantities=quantities, cache_model=model
    )


def line_of(text: str, key: str) -> int:
    """The line where a dotted key is set, or the nearest table above it."""
    wanted = key.split(".")
    best, best_depth = 1, 0
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.fullmatch(line)
        if header:
            table = _parts(header.group(1))
            paths = [table]
        else:
            names = [_parts(name) for name in _ASSIGNMENT.findall(line.split("#")[0])]
            # `l2 = { value = 40 }`: what follows the first name lies inside it
            paths = [table + (names[0] if i else []) + name for i, name in enumerate(names)]
        for path in paths:
            if len(path) > best_depth and path == wanted[: len(path)]:
                best, best_depth = number, len(path)
    return best


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
