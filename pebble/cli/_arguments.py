"""Arguments that commands share: WORKLOAD with the options of all families and which schedules are set side by side,
DAG, and where a workload runs and how its kernel is tiled, handed on as they are.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from pebble.cdag.io import SUFFIXES
from pebble.cli import FAMILY_PARAMETERS, SHAPES
from pebble.errors import InputError
from pebble.families import DAG_FAMILIES, DTYPES, FAMILIES, TOKENS, read_workload, schedules_help
from pebble.models.caches import policies_help
from pebble.schedules.execution import EXECUTION_HELP
from pebble.schedules.tables.source import OWN_HELP
from pebble.workloads.parameters import Parameter
from pebble.workloads.workload import Workload

if TYPE_CHECKING:
    from pebble.cdag.building import Dag


_KERNELS = [name for name, family in FAMILIES.items() if family.simulated is not None]


def add_parameters(
    parser: argparse._ActionsContainer,
    owners: Iterable[tuple[str, Iterable[Parameter]]],
    unnamed: Collection[str] = (),
) -> None:
    """One option for each parameter name; its help says which families take it and for what, but for ``unnamed``."""
    result: dict[str, tuple[Parameter, dict[str, list[str]]]] = {}
    for owner, parameters in owners:
        for parameter in parameters:
            _, texts = result.setdefault(parameter.name, (parameter, {}))
            texts.setdefault(parameter.help, []).append(owner)
    for name, (parameter, texts) in result.items():
        owners_of_text = {text: [owner for owner in who if owner not in unnamed] for text, who in texts.items()}
        parts = [f"{', '.join(who)}: {text}" if any(who) else text for text, who in owners_of_text.items() if who]
        shown = "; ".join(parts) or argparse.SUPPRESS
        if parameter.kind == "flag":
            parser.add_argument(parameter.option, dest=f"parameter_{name}", action="store_true", help=shown)
        else:
            dest = f"parameter_{name}"
            parser.add_argument(parameter.option, dest=dest, metavar=parameter.metavar, help=shown)


def explicit_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """What was given of them, by keyword."""
    result = {
        key.removeprefix("parameter_"): value for key, value in vars(args).items() if key.startswith("parameter_")
    }
    return {key: value for key, value in result.items() if value is not None and value is not False}


def add_workload_arguments(parser: argparse.ArgumentParser, required: bool = True, kernels: bool = False) -> None:
    """WORKLOAD and the options that give its shape; ``kernels``: the help names families that have some alone.

    Others are taken all the same, and refused with what to ask in their place.
    """
    nargs = None if required else "?"
    parser.add_argument("workload", nargs=nargs, metavar="WORKLOAD", help=_workload_help(kernels))
    _add_shapes(parser, kernels)


def _workload_help(kernels: bool = False) -> str:
    return f"{', '.join(_KERNELS if kernels else FAMILIES)}, or MODEL:LAYER such as llama-3-8b:gate_up"


def add_workload_option(parser: argparse.ArgumentParser) -> None:
    """--workload and the options that give its shape, where a file is the argument."""
    parser.add_argument("--workload", metavar="WORKLOAD", help=_workload_help())
    _add_shapes(parser)


def _add_shapes(parser: argparse.ArgumentParser, kernels: bool = False) -> None:
    owners = [(name, family.parameters) for name, family in FAMILIES.items()]
    unnamed = set(FAMILIES) - set(_KERNELS) if kernels else ()
    add_parameters(parser.add_argument_group(SHAPES), [*owners, ("MODEL:LAYER", TOKENS), ("", DTYPES)], unnamed)


def workload_of(args: argparse.Namespace) -> Workload:
    """The workload that the arguments describe.

    Raises
    ------
    InputError
        A missing, superfluous or malformed option.
    UnknownNameError
        An unknown family, model, layer or data type.
    """
    return read_workload(args.workload, explicit_parameters(args))


def optional_workload(args: argparse.Namespace, argument: str = "WORKLOAD") -> Workload | None:
    """The workload, if ``argument`` was given; errors as `workload_of`, and shapes without it."""
    if args.workload is not None:
        return workload_of(args)
    for name in explicit_parameters(args):
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
    group = parser.add_argument_group(FAMILY_PARAMETERS)
    add_parameters(group, [(name, family.parameters) for name, family in DAG_FAMILIES.items()])
    parser.add_argument(
        "--unit-weights", action="store_true", help="every value weighs 1, whatever the file or the tiles say"
    )


def read_dag_argument(args: argparse.Namespace) -> tuple[str, Dag]:
    """The DAG that the arguments describe, and a line that names it; errors as `read_dag_source`."""
    from pebble.reports.dags import read_dag_source

    return read_dag_source(args.dag, explicit_parameters(args), unit_weights=args.unit_weights)


_WHERE = ("gpu", "machine", "cache")
_OWN_TILE = "128x128 and 128 bytes of k, or less where that does not fit"
_OWN_STAGES = "what fits in shared memory"
_KERNEL = ("tile", "sms", "blocks_per_sm", "stages", "policy", "execution", "cluster", "seed", "allow_infeasible")


def add_machine_arguments(parser: argparse.ArgumentParser, cache: bool = True) -> None:
    """--gpu, --machine and --cache; without ``cache`` the last is not told of, and the command refuses it."""
    group = parser.add_argument_group("memory (one of the three)" if cache else "machine (one of the two)")
    group.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    group.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    group.add_argument(
        "--cache", metavar="SIZE", help="one memory of this size: 40MiB, 228KiB, 8192el" if cache else argparse.SUPPRESS
    )


def add_accumulate_argument(parser: argparse.ArgumentParser) -> None:
    """--accumulate."""
    parser.add_argument(
        "--accumulate",
        metavar="WIDTH",
        help="fp32: a partial sum takes 4 bytes, held or spilled, until it is complete (that with --gpu and --machine);"
        " off: it takes what it ends as",
    )


def add_kernel_arguments(
    parser: argparse.ArgumentParser, execution: bool = True, advised: bool = True
) -> argparse._ArgumentGroup:
    """How a tiled kernel runs; ``execution``: also in time; ``advised``: by default as `advise` picks it."""
    tile, stages, blocks = _OWN_TILE, _OWN_STAGES, "1"
    if advised:
        tile = f"with --gpu what `pebble advise` picks; with --cache and --policy {_OWN_TILE}"
        blocks = "as advised; with --tile 1"
        stages = f"as advised; with --tile {_OWN_STAGES}"
    group = parser.add_argument_group("kernel")
    group.add_argument("--sms", metavar="P", help="SMs (with --cache; with --gpu the chip's, unless given)")
    group.add_argument("--tile", metavar="BMxBNxBK", help=f"block tile ({tile})")
    group.add_argument("--blocks-per-sm", metavar="B", help=f"blocks that run at once on an SM ({blocks})")
    group.add_argument("--stages", metavar="N", help=f"steps whose tiles a block holds at once ({stages})")
    group.add_argument(
        "--allow-infeasible", action="store_true", default=None, help="simulate also a kernel that the chip cannot run"
    )
    group.add_argument("--policy", help=f"{policies_help()} (that; with --cache lru)")
    if not execution:
        return group
    group.add_argument("--execution", metavar="NAME", help=EXECUTION_HELP)
    group.add_argument("--cluster", metavar="MxN", help="gemm: blocks that share fetches by multicast (1x1)")
    group.add_argument(
        "--seed", metavar="N", help="of the skew of --execution dynamic-S, and of the pace of free SMs (0)"
    )
    return group


def where(args: argparse.Namespace) -> dict[str, Any]:
    """--gpu, --machine and --cache as keywords."""
    return {key: vars(args)[key] for key in _WHERE}


def kernel(args: argparse.Namespace) -> dict[str, Any]:
    """The same, and the kernel's options, those that were given."""
    options = vars(args)
    result = {key: value for key in (*_WHERE, *_KERNEL) if (value := options.get(key)) is not None}
    accumulate = options.get("accumulate")
    return result if accumulate is None else result | {"accumulators": accumulate}


def seconds(option: str, text: str) -> float:
    """A positive number of seconds, or one sentence."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise InputError(f"{option}: got {text!r}, expected a number of seconds above 0, such as 60.")
    return value
