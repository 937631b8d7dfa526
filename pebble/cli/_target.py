"""Where the workload runs and how its kernel is tiled: the options, handed on as they are."""

from __future__ import annotations

import argparse
from typing import Any

from pebble.errors import InputError
from pebble.models.caches import policies_help
from pebble.schedules.execution import EXECUTION_HELP

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


def add_kernel_arguments(parser: argparse.ArgumentParser, execution: bool = True, advised: bool = True) -> None:
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
        return
    group.add_argument("--execution", metavar="NAME", help=EXECUTION_HELP)
    group.add_argument("--cluster", metavar="MxN", help="gemm: blocks that share fetches by multicast (1x1)")
    group.add_argument(
        "--seed", metavar="N", help="of the skew of --execution dynamic-S, and of the pace of free SMs (0)"
    )


def where(args: argparse.Namespace) -> dict[str, Any]:
    """--gpu, --machine and --cache as keywords."""
    return {key: vars(args)[key] for key in _WHERE}


def kernel(args: argparse.Namespace) -> dict[str, Any]:
    """The same, and the kernel's options, those that were given."""
    options = vars(args)
    result = {key: value for key in (*_WHERE, *_KERNEL) if (value := options.get(key)) is not None}
    wide = options.get("accumulate")
    return result if wide is None else result | {"accumulators": wide}


def seconds(option: str, text: str) -> float:
    """A positive number of seconds, or one sentence."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise InputError(f"{option}: got {text!r}, expected a number of seconds above 0, such as 60.")
    return value
