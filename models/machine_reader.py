"""Parsed TOML into a machine, every mistake with its line and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pebble.errors import InputError
from pebble.models.default_model import TABLE, DefaultModel, read_default_model
from pebble.models.machine import Machine
from pebble.models.quantity import (
    FIELDS,
    QUANTITY_KEYS,
    TABLES,
    TEXTS,
    UNITS,
    FieldError,
    Quantity,
    check_field,
    missing_key,
    shorten,
    unknown,
)
from pebble.models.toml_lines import line_of


class MachineReader:
    """Turns parsed TOML into a Machine; knows the text, so that every mistake has a line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.text = text

    def error(self, key: str, message: str) -> InputError:
        return InputError(f"{self.path}, line {line_of(self.text, key)}, {key}: {message}")

    def machine(self, data: dict[str, Any]) -> Machine:
        found: dict[str, Quantity] = {}
        model = None
        known_here = [*TEXTS, *TABLES, TABLE, *(key for key in FIELDS if "." not in key)]
        for key, value in data.items():
            if key in TEXTS:
                if not isinstance(value, str) or not value.strip():
                    raise self.error(key, f"got {shorten(value)}, expected text in quotes.")
            elif key == TABLE:
                model = self.default_model(value)
            elif key in TABLES:
                if not isinstance(value, dict):
                    raise self.error(key, f"got {shorten(value)}, expected a table: [{key}].")
                known = [name.partition(".")[2] for name in FIELDS if name.startswith(f"{key}.")]
                for name, entry in value.items():
                    if name not in known:
                        raise self.error(f"{key}.{name}", unknown("key", name, known))
                    found[f"{key}.{name}"] = self.quantity(f"{key}.{name}", entry)
            elif key in FIELDS:
                found[key] = self.quantity(key, value)
            else:
                raise self.error(key, unknown("key", key, known_here))
        missing = (
            missing_key(set(found)) if "name" in data else 'the required key `name` is missing; write name = "My GPU"'
        )
        if missing:
            raise InputError(f"{self.path}, line 1: {missing}; see `pebble machines --help`.")
        return Machine(
            sku=self.path.stem,
            name=data["name"],
            vendor=data.get("vendor", ""),
            compute_capability=data.get("compute_capability", ""),
            quantities=tuple((key, found[key]) for key in FIELDS if key in found),
            cache_model=model,
        )

    def default_model(self, entry: object) -> DefaultModel:
        if not isinstance(entry, dict):
            raise self.error(TABLE, f"got {shorten(entry)}, expected a table: [{TABLE}].")
        try:
            return read_default_model(entry)
        except FieldError as error:
            raise self.error(f"{TABLE}.{error.key}", str(error)) from None

    def quantity(self, key: str, entry: object) -> Quantity:
        example = next(iter(UNITS[FIELDS[key]]))
        expected = f'{{ value = NUMBER, unit = "{example}" }}'
        if not isinstance(entry, dict):
            raise self.error(key, f"got {shorten(entry)}, expected a number with its unit: {expected}.")
        for name in entry:
            if name not in QUANTITY_KEYS:
                raise self.error(f"{key}.{name}", unknown("key", name, QUANTITY_KEYS))
        for name in ("value", "unit"):
            if name not in entry:
                raise self.error(key, f"the required key `{name}` is missing; expected {expected}.")
        try:
            quantity = Quantity(**entry)
            check_field(key, quantity)
        except FieldError as error:
            raise self.error(f"{key}.{error.key}", str(error)) from None
        return quantity
