"""The options that say which schedules are set side by side."""

from __future__ import annotations

import argparse

from pebble.families import schedules_help
from pebble.schedules.tables.source import OWN_HELP


def add_schedules_arguments(parser: argparse.ArgumentParser, own: bool = True) -> None:
    """--schedules and --residual; with ``own`` --schedule, for tiles of the user's."""
    parser.add_argument(
        "--schedules",
        default="all",
        metavar="NAMES",
        help=f"all, or names separated by commas (all): {schedules_help()}",
    )
    if own:
        parser.add_argument(
            "--schedule",
            action="append",
            metavar="FILE",
            help=f"beside these, {OWN_HELP}; may be given more than once",
        )
    add_residual_argument(parser)


def add_residual_argument(parser: argparse.ArgumentParser) -> None:
    """--residual."""
    parser.add_argument("--residual", action="store_true", help="ffn: read the input again to add it to the output")
