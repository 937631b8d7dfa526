"""Every small change of a JSON document: numbers, fractions, words, keys and entries."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

Path = tuple[str | int, ...]
EVERY = 3  #: of the changes in order, those that the quick suite tries; a number has eight, so that all kinds are there


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no object or list, and where it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def containers(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every object and list, and where it is."""
    if isinstance(value, dict | list):
        yield path, value
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from containers(inner, (*path, key))


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(value: Any) -> Iterator[Any]:
    """Other values for a leaf, of its own kind and of others."""
    if isinstance(value, bool):
        yield not value
        yield int(value)
    elif isinstance(value, int):
        yield from (value + 1, value - 1, 2 * value + 3, 0 if value else 7, -value - 1, str(value), True, None)
    elif isinstance(value, str):
        yield from ("", value + " ", value + "0", None, 0)
        if re.fullmatch("[0-9]+(/[0-9]+)?", value):
            number = Fraction(value)
            yield from (str(number + Fraction(1, 10**6)), str(number / 2), str(number * 2 + 1), "1/0", "-1", "nan")
    elif value is None:
        yield from (0, "1")


def mutations(document: Any) -> Iterator[tuple[str, Any]]:
    """(what was changed, the changed document), one change each."""
    for path, value in leaves(document):
        for other in changed(value):
            mutant = copy.deepcopy(document)
            at(mutant, path[:-1])[path[-1]] = other
            yield f"{'.'.join(map(str, path))}: {str(value)[:40]} -> {str(other)[:40]}", mutant
    for path, value in containers(document):
        where = ".".join(map(str, path))
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            mutant = copy.deepcopy(document)
            del at(mutant, path)[key]
            yield f"{where}: without {key}", mutant
        mutant = copy.deepcopy(document)
        inside = at(mutant, path)
        if isinstance(inside, dict):
            inside["more"] = 1
        else:
            inside.append(copy.deepcopy(inside[-1]) if inside else 1)
        yield f"{where}: one more", mutant
        if isinstance(value, list) and len(value) > 1 and value[0] != value[1]:
            mutant = copy.deepcopy(document)
            inside = at(mutant, path)
            inside[0], inside[1] = inside[1], inside[0]
            yield f"{where}: swapped", mutant
