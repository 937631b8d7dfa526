"""Where a workload runs: a machine, or a bare memory; and what its partial sums take there."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import SupportsIndex, TypedDict, Unpack, cast

from pebble.errors import InputError, UnknownNameError
from pebble.models.kernel_fit import ACCUMULATOR_BYTES
from pebble.models.machine import Machine, load_machine, load_machine_file
from pebble.units import Size, parse_size

MAX_SMS = 100_000


class PlaceOptions(TypedDict, total=False):
    """Where a workload runs: exactly one of the three.

    Attributes
    ----------
    gpu : str or Machine
        A machine of ``pebble machines``, or what `pebble.gpu` returned.
    machine : str
        A machine file of your own.
    cache : str or Size
        One memory of this size: ``"40MiB"``, ``"8192el"``.
    """

    gpu: str | Machine | None
    machine: str | None
    cache: str | Size | None


class TargetOptions(PlaceOptions, total=False):
    """Where a workload runs, and what its partial sums take.

    Attributes
    ----------
    accumulators : {"fp32", "off"}
        Whether partial sums take 4 bytes, as on a GPU (by default with ``gpu`` and ``machine``), or what they end as.
    """

    accumulators: str | None


@dataclass(frozen=True)
class Target:
    """A machine, or a bare memory, never both.

    Attributes
    ----------
    machine : Machine or None
    cache : Size or None
    words : tuple of str
        How the command line says it.
    accumulator_bytes : int
        What a partial sum takes; 0: what it ends as.
    """

    machine: Machine | None
    cache: Size | None
    words: tuple[str, ...] = ()
    accumulator_bytes: int = 0

    @property
    def accumulate(self) -> str:
        """The game: ``"fp32"`` or ``"off"``."""
        return game_of(self.accumulator_bytes)

    def size_bytes(self, element_bytes: int) -> int:
        """The L2 of the machine, or the memory."""
        if self.machine is not None:
            return self.machine.l2_bytes
        assert self.cache is not None
        return self.cache.to_bytes(element_bytes)


def check_options(options: Iterable[str], known: Iterable[str], of: str = "compare") -> None:
    """Refuse an option that does not exist, which would change nothing.

    Raises
    ------
    UnknownNameError
        With the nearest that does.
    """
    for name in options:
        if name not in known:
            raise UnknownNameError("option", name, sorted(known), f"help(pebble.{of})")


def find_gpu(name: str | Machine) -> Machine:
    """A GPU that comes with pebble, or a machine file of your own.

    Parameters
    ----------
    name : str or Machine
        A SKU such as ``"a100-sxm4-40gb"``, or the path of a file that ends in ``.toml``.

    Returns
    -------
    Machine

    Raises
    ------
    UnknownNameError
        No such SKU.
    InputError
        A file that cannot be read.
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):
        raise InputError(f"gpu: got {name!r}, expected the name of a GPU such as 'a100-sxm4-40gb', or a machine file.")
    return load_machine_file(name) if name.lower().endswith(".toml") else load_machine(name.lower())


def read_target(**where: Unpack[TargetOptions]) -> Target:
    """The machine or the memory.

    Raises
    ------
    InputError
        None or more than one of gpu, machine, cache.
    """
    check_options(where, TargetOptions.__optional_keys__, "bound")
    options = {key: value for key, value in where.items() if value is not None}
    accumulators = options.pop("accumulators", None)
    result = _read_where(options)
    width, words = read_accumulators(accumulators, result.machine is not None)
    return replace(result, words=result.words + words, accumulator_bytes=width)


def _read_where(options: Mapping[str, object]) -> Target:
    if len(options) != 1:
        got = " and ".join(f"--{option}" for option in options) or "none"
        raise InputError(f"memory: got {got}, expected exactly one of --gpu SKU, --machine FILE, --cache SIZE.")
    ((key, value),) = options.items()
    if key == "cache":
        size = parse_size(value, "--cache") if isinstance(value, str) else _size(value)
        return Target(None, size, ("--cache", size.text))
    if key == "machine" and isinstance(value, str):
        return Target(load_machine_file(value), None, ("--machine", value))
    machine = find_gpu(cast("str | Machine", value))  # it says what it got
    return Target(machine, None, ("--gpu", machine.sku))


def chip_of(gpu: str | Machine | None, machine: str | None) -> Machine:
    """The GPU of a question that needs one.

    Raises
    ------
    InputError
        None or both, or a machine that is no GPU.
    """
    if (gpu is None) == (machine is None):
        got = "neither" if gpu is None else "both"
        raise InputError(f"machine: got {got} of --gpu and --machine, expected exactly one: --gpu SKU, --machine FILE.")
    result = read_target(gpu=gpu, machine=machine).machine
    assert result is not None
    return gpu_only(result)


def target_of(options: TargetOptions) -> Target:
    """The GPU or memory among options of more; errors as `read_target` and `gpu_only`."""
    result = read_target(
        gpu=options.get("gpu"),
        machine=options.get("machine"),
        cache=options.get("cache"),
        accumulators=options.get("accumulators"),
    )
    if result.machine is not None:
        gpu_only(result.machine)
    return result


def gpu_only(machine: Machine) -> Machine:
    """The machine, where it is a GPU.

    Raises
    ------
    InputError
        It is not, and the question is about kernels of GPUs.
    """
    if machine.explicit:
        raise InputError(
            f"machine: got {machine.sku}, cores with scratchpads under explicit control, expected a GPU: this question "
            "is about kernels of GPUs; `pebble bound`, `compare`, `time` and `machines` take it."
        )
    return machine


def scratchpads_of(options: Mapping[str, object]) -> Machine | None:
    """The machine of scratchpads among the options ``gpu``, ``machine`` and ``cache``; None where it is none."""
    place = {key: value for key in ("gpu", "machine", "cache") if (value := options.get(key)) is not None}
    if len(place) != 1 or "cache" in place:
        return None
    machine = _read_where(place).machine
    return machine if machine is not None and machine.explicit else None


def _size(value: object) -> Size:
    if isinstance(value, Size):
        return value
    raise InputError(f"--cache: got {value!r}, expected text with a unit such as '40MiB', '228KiB' or '8192el'.")


def whole(option: str, value: object, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``, from text or a number.

    Raises
    ------
    InputError
        Not one.
    """
    try:
        if isinstance(value, bool) or not isinstance(value, str | SupportsIndex):
            raise TypeError
        number = int(value) if isinstance(value, str) else operator.index(value)
    except (ValueError, TypeError):
        raise InputError(f"{option}: got {str(value)[:40]!r}, expected a whole number such as 4096.") from None
    if not least <= number <= most:
        raise InputError(f"{option}: got {number}, expected a whole number from {least} to {most}.")
    return number


FP32, OFF = ACCUMULATORS = ("fp32", "off")
PARTIAL_SUMS = "a cell takes 4 bytes, held or spilled, from its first product until it is complete"


def game_of(accumulator_bytes: int) -> str:
    """The name of the game in which partial sums take so many bytes; 0: what they end as."""
    return FP32 if accumulator_bytes else OFF


def read_accumulators(options: object, on_machine: bool) -> tuple[int, tuple[str, ...]]:
    """Bytes of a partial sum (0: what it ends as), and how the command line says it where it is not the usual game.

    Usual is fp32 on a machine and off for a bare memory.

    Raises
    ------
    UnknownNameError
        No such width.
    """
    usual = FP32 if on_machine else OFF
    if options is None or options == usual:
        return (ACCUMULATOR_BYTES if on_machine else 0), ()
    if options not in ACCUMULATORS:
        raise UnknownNameError("width of partial sums", str(options), ACCUMULATORS, "pebble bound --help")
    return (ACCUMULATOR_BYTES if options == FP32 else 0), ("--accumulate", str(options))
