"""The WORKLOAD argument, the options of all families, and which schedules are set side by side: shared by commands."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from pebble.cli import SHAPES
from pebble.errors import InputError
from pebble.families import DTYPES, FAMILIES, TOKENS, read_workload, schedules_help
from pebble.schedules.tables.source import OWN_HELP
from pebble.workloads.base import Workload
from pebble.workloads.parameters import Parameter

_WORKLOAD_HELP = f"{', '.join(FAMILIES)}, or MODEL:LAYER such as llama-3-8b:gate_up"


def add_parameters(parser: argparse._ActionsContainer, owners: Iterable[tuple[str, Iterable[Parameter]]]) -> None:
    """One option for each parameter name; its help says which families take it and for what."""
    result: dict[str, tuple[Parameter, dict[str, list[str]]]] = {}
    for owner, parameters in owners:
        for parameter in parameters:
            _, texts = result.setdefault(parameter.name, (parameter, {}))
            texts.setdefault(parameter.help, []).append(owner)
    for name, (parameter, texts) in result.items():
        shown = "; ".join(f"{', '.join(who)}: {text}" if any(who) else text for text, who in texts.items())
        if parameter.kind == "flag":
            parser.add_argument(parameter.option, dest=f"parameter_{name}", action="store_true", help=shown)
        else:
            dest = f"parameter_{name}"
            parser.add_argument(parameter.option, dest=dest, metavar=parameter.metavar, help=shown)


def given_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """What was given of them, by keyword."""
    result = {
        key.removeprefix("parameter_"): value for key, value in vars(args).items() if key.startswith("parameter_")
    }
    return {key: value for key, value in result.items() if value is not None and value is not False}


def add_workload_arguments(parser: argparse.ArgumentParser, required: bool = True) -> None:
    """WORKLOAD and the options that give its shape."""
    parser.add_argument("workload", nargs=None if required else "?", metavar="WORKLOAD", help=_WORKLOAD_HELP)
    _add_shapes(parser)


def add_workload_option(parser: argparse.ArgumentParser) -> None:
    """--workload and the options that give its shape, where a file is the argument."""
    parser.add_argument("--workload", metavar="WORKLOAD", help=_WORKLOAD_HELP)
    _add_shapes(parser)


def _add_shapes(parser: argparse.ArgumentParser) -> None:
    owners = [(name, family.parameters) for name, family in FAMILIES.items()]
    add_parameters(parser.add_argument_group(SHAPES), [*owners, ("MODEL:LAYER", TOKENS), ("", DTYPES)])


def workload_of(args: argparse.Namespace) -> Workload:
    """The workload that the arguments describe.

    Raises
    ------
    InputError
        A missing, superfluous or malformed option.
    UnknownNameError
        An unknown family, model, layer or data type.
    """
    return read_workload(args.workload, given_parameters(args))


def optional_workload(args: argparse.Namespace, argument: str = "WORKLOAD") -> Workload | None:
    """The workload, if ``argument`` was given; errors as `workload_of`, and shapes without it."""
    if args.workload is not None:
        return workload_of(args)
    for name in given_parameters(args):
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        example = "gemm" if argument == "WORKLOAD" else f"{argument} gemm"
        raise InputError(f"{option}: got it without {argument}, expected one beside it, such as {example}.")
    return None


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
