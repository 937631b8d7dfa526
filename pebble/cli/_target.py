"""Where the workload runs: --gpu, --machine, or --cache with --sms; and how its kernel is tiled."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from pebble.cli._workload import whole_number
from pebble.errors import InputError
from pebble.models.caches import policies_help
from pebble.models.machine import Machine, load_machine, load_machine_file
from pebble.schedules.execution import EXECUTION_HELP
from pebble.units import Size, parse_size

MAX_SMS = 100_000


def add_machine_arguments(parser: argparse.ArgumentParser) -> None:
    """--gpu, --machine and --cache."""
    group = parser.add_argument_group("memory (one of the three)")
    group.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as a100-sxm4-40gb")
    group.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    group.add_argument("--cache", metavar="SIZE", help="one memory of this size: 40MiB, 228KiB, 8192el")


def add_kernel_arguments(parser: argparse.ArgumentParser) -> None:
    """How a tiled kernel runs."""
    group = parser.add_argument_group("kernel")
    group.add_argument("--sms", metavar="P", help="SMs (with --cache; with --gpu the chip's, unless given)")
    group.add_argument("--tile", metavar="BMxBNxBK", help="block tile (128x128, and 128 bytes of k)")
    group.add_argument("--blocks-per-sm", metavar="B", default="1", help="blocks that run at once on an SM (1)")
    group.add_argument("--stages", metavar="N", default="1", help="A and B tiles that a block holds at once (1)")
    group.add_argument("--policy", default="lru", help=policies_help())
    group.add_argument("--execution", default="lockstep", metavar="NAME", help=EXECUTION_HELP)
    group.add_argument(
        "--cluster", default="1x1", metavar="MxN", help="gemm: blocks that share fetches by multicast (1x1)"
    )
    group.add_argument("--seed", default="0", metavar="N", help="of the skew of --execution dynamic-S (0)")


@dataclass(frozen=True)
class Target:
    """A machine, or a bare cache size, never both."""

    machine: Machine | None
    cache: Size | None


def read_target(args: argparse.Namespace) -> Target:
    """The machine or the cache.

    Raises
    ------
    InputError
        None or more than one of --gpu, --machine, --cache.
    """
    given = [option for option in ("gpu", "machine", "cache") if getattr(args, option) is not None]
    if len(given) != 1:
        got = " and ".join(f"--{option}" for option in given) or "none"
        raise InputError(f"memory: got {got}, expected exactly one of --gpu SKU, --machine FILE, --cache SIZE.")
    if args.gpu is not None:
        return Target(load_machine(args.gpu.lower()), None)
    if args.machine is not None:
        return Target(load_machine_file(args.machine), None)
    return Target(None, parse_size(args.cache, "--cache"))


def positive(option: str, text: str, most: int) -> int:
    """A whole number from 1 to ``most``, or one sentence."""
    number = whole_number(option, text)
    if not 1 <= number <= most:
        raise InputError(f"{option}: got {number}, expected a whole number from 1 to {most}.")
    return number


def natural(option: str, text: str, most: int) -> int:
    """A whole number from 0 to ``most``, or one sentence."""
    number = whole_number(option, text)
    if not 0 <= number <= most:
        raise InputError(f"{option}: got {number}, expected a whole number from 0 to {most}.")
    return number


def seconds(option: str, text: str) -> float:
    """A positive number of seconds, or one sentence."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise InputError(f"{option}: got {text!r}, expected a number of seconds above 0, such as 60.")
    return value
