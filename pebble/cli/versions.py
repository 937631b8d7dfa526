"""Versions of pebble and of what it stands on."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from pebble import __version__
from pebble.cli import _output

_DISTRIBUTION = "redblue-pebble"
_PACKAGES = ("numpy", "networkx", "ortools", "pulp", "highspy", "numba", "matplotlib", "rich")
_OPTIONAL = ("llvmlite", "pandas", "duckdb", "dask", "distributed", "exact", "ncu-report", "playwright")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None beyond ``--json``."""


def run(args: argparse.Namespace) -> int:
    """Print the versions."""
    result = {"pebble": __version__, "python": platform.python_version(), "platform": platform.platform(terse=True)}
    try:
        if (installed := metadata.version(_DISTRIBUTION)) != __version__:
            result["installed as"] = installed
    except metadata.PackageNotFoundError:
        result["installed as"] = "not installed: run from its tree"
    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            result[name.lower()] = metadata.version(name)
        except metadata.PackageNotFoundError:
            result[name.lower()] = "not installed"
    if args.json:
        _output.print_json(result)
    else:
        print(_output.table(["package", "version"], [[name, version] for name, version in result.items()], left=2))
    return 0
