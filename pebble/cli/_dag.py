"""The DAG argument, shared by the commands that take one: a family with its parameters, or a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pebble.dag.catalogue import FAMILIES, Parameter, build_dag, label_of
from pebble.dag.io import SUFFIXES, read_dag
from pebble.errors import InputError, UnknownNameError
from pebble.files import exists
from pebble.game import Variant

if TYPE_CHECKING:
    from pebble.dag.base import Dag

_PREFIX = "dag_"  # of the attributes of the parsed arguments


def family_help() -> str:
    """The families, each with small parameters, for the end of a help text."""
    width = max(map(len, FAMILIES))
    return "families:\n" + "\n".join(f"  {name:<{width}}  {family.example}" for name, family in FAMILIES.items())


def _parameters() -> dict[str, Parameter]:
    """Every parameter of any family, by name; those of one name mean the same kind of thing."""
    found: dict[str, Parameter] = {}
    for family in FAMILIES.values():
        for parameter in family.parameters:
            found.setdefault(parameter.name, parameter)
    return found


def add_dag_arguments(parser: argparse.ArgumentParser) -> None:
    """DAG, and the options of all families."""
    parser.add_argument("dag", metavar="DAG", help="a family (" + ", ".join(FAMILIES) + ") or a file dag.json")
    group = parser.add_argument_group("parameters of families")
    for name, parameter in _parameters().items():
        dest = _PREFIX + name
        if parameter.kind == "flag":
            group.add_argument(parameter.option, dest=dest, action="store_true", help=parameter.help)
            continue
        metavar = {"count": "N", "extents": "NxN...", "choice": "NAME"}[parameter.kind]
        shown = parameter.help + (f": {', '.join(parameter.choices)}" if parameter.choices else "")
        group.add_argument(parameter.option, dest=dest, metavar=metavar, help=shown)
    parser.add_argument(
        "--unit-weights", action="store_true", help="every value weighs 1, whatever the file or the tiles say"
    )


def read_dag_argument(args: argparse.Namespace, variant: Variant | None = None) -> tuple[str, Dag]:
    """The DAG that the arguments describe, and a line that names it.

    Parameters
    ----------
    args : argparse.Namespace
        Parsed by a parser with :func:`add_dag_arguments`.
    variant : Variant, optional
        The game to be played, which decides the form of sums where none is given.

    Raises
    ------
    InputError
        A missing, foreign or malformed option, or an unusable file.
    UnknownNameError
        Neither a family nor a file.
    """
    values: dict[str, object] = {}
    for name, parameter in _parameters().items():
        value = getattr(args, _PREFIX + name)
        if value is not None and value is not False:
            values[name] = _parse(parameter, value)
    source: str = args.dag
    if source in FAMILIES:
        dag = build_dag(source, values, variant)
        if args.unit_weights:
            for _, data in dag.nodes(data=True):
                data.pop("weight", None)
        return label_of(source, values), dag
    if Path(source).suffix.lower() not in SUFFIXES and not exists(source):
        raise UnknownNameError("family of DAGs or file", source, FAMILIES, "pebble dag --help")
    if values:
        options = [_parameters()[name].option for name in values]
        raise InputError(
            f"{source}: got {' and '.join(options)} with a file, expected them with a family; leave them out."
        )
    return source, read_dag(source, unit_weights=args.unit_weights)


def _parse(parameter: Parameter, value: str | bool) -> object:
    if isinstance(value, bool):
        return value
    if parameter.kind == "choice":
        if value not in parameter.choices:
            raise UnknownNameError(parameter.option, value, parameter.choices, "pebble dag --help")
        return value
    words = value.split("x") if parameter.kind == "extents" else [value]
    if not all(word.isascii() and word.removeprefix("-").isdigit() and len(word) <= 18 for word in words):
        expected = "whole numbers such as 2x2x3" if parameter.kind == "extents" else "a whole number such as 4"
        raise InputError(f"{parameter.option}: got {value!r}, expected {expected}.")
    numbers = tuple(int(word) for word in words)
    return numbers if parameter.kind == "extents" else numbers[0]
