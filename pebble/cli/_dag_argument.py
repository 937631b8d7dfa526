"""The DAG argument, shared by the commands that take one: a family with its parameters, or a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pebble.cdag.io import SUFFIXES
from pebble.cli import FAMILIES
from pebble.cli._workload_argument import add_parameters, given_parameters
from pebble.families import DAG_FAMILIES
from pebble.reports.dags import read_dag_source

if TYPE_CHECKING:
    from pebble.cdag.base import Dag


def is_dag_file(workload: str) -> bool:
    """Whether a WORKLOAD argument names a file."""
    return workload.lower().endswith(SUFFIXES)


def family_help() -> str:
    """The families, each with small parameters, for the end of a help text."""
    width = max(map(len, DAG_FAMILIES))
    return "families:\n" + "\n".join(f"  {name:<{width}}  {family.example}" for name, family in DAG_FAMILIES.items())


def add_dag_arguments(parser: argparse.ArgumentParser) -> None:
    """DAG, and the options of all families."""
    parser.add_argument("dag", metavar="DAG", help="a family (" + ", ".join(DAG_FAMILIES) + ") or a file dag.json")
    group = parser.add_argument_group(FAMILIES)
    add_parameters(group, [(name, family.parameters) for name, family in DAG_FAMILIES.items()])
    parser.add_argument(
        "--unit-weights", action="store_true", help="every value weighs 1, whatever the file or the tiles say"
    )


def read_dag_argument(args: argparse.Namespace) -> tuple[str, Dag]:
    """The DAG that the arguments describe, and a line that names it; errors as `read_dag_source`."""
    return read_dag_source(args.dag, given_parameters(args), unit_weights=args.unit_weights)
