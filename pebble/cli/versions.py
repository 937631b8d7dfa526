"""Versions of pebble and of what it stands on."""

from __future__ import annotations

import argparse
import platform
from importlib import metadata

from pebble import __version__
from pebble.cli import _output

_PACKAGES = ("numpy", "networkx", "ortools", "PuLP", "highspy", "numba", "matplotlib", "rich")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None beyond ``--json``."""


def run(args: argparse.Namespace) -> int:
    """Print the versions."""
    found = {"pebble": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name.lower()] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name.lower()] = "not installed"
    if args.json:
        _output.print_json(found)
    else:
        print(_output.table(["package", "version"], [[name, version] for name, version in found.items()], left=2))
    return 0
