"""``time``: how long schedules take by the model: of one workload, at many sizes, or beside a second workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from pebble.errors import InputError, check_flag
from pebble.families import kernel_family, read_workload
from pebble.reports.chosen import Own
from pebble.reports.given import check_residual
from pebble.reports.kernel_time import Timing, time_schedules
from pebble.reports.simulated_kernel import KernelOptions
from pebble.reports.target import whole
from pebble.reports.time_beside import SideBySide, time_beside
from pebble.reports.time_sweep import Sweep, time_sweep
from pebble.workloads.base import Workload


def time(
    workload: Workload,
    schedules: str | Sequence[str] = "all",
    schedule: Own | Sequence[Own] | None = None,
    *,
    residual: bool = False,
    beside: str | Workload | None = None,
    beside_schedules: str | Sequence[str] | None = None,
    beside_sms: str | int | Sequence[int] | None = None,
    sweep: str | Mapping[str, Sequence[int]] | None = None,
    **options: Unpack[KernelOptions],
) -> Timing | SideBySide | Sweep:
    """How long schedules take on a GPU by the model, beside the floor that is proved, and what binds.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    schedules : str or sequence of str
        ``"all"``, or names, as for `pebble.compare`.
    schedule : str, Path, callable or TileTable, or a sequence of these
        Beside them, tiles of your own; see `pebble.simulate`.
    residual : bool
        ffn: read the input again to add it to the output.
    beside : str or Workload, optional
        A second workload on the same GPU: is it faster to run both side by side, each on SMs of its own, than one after
        the other? Text as on the command line: ``"ffn --tokens 512 --d-model 4096 --hidden 11008"``; for a layer of a
        named model without ``--tokens``, those of the first.
    beside_schedules : str or sequence of str, optional
        Of the second; the fastest is taken. By default those in daily use.
    beside_sms : int, sequence of int or str, optional
        SMs of the second, by default seven splits.
    sweep : str or mapping, optional
        One size in many values: ``"tokens=1,16,256,4096"``. Of each the fastest schedule, and what binds.
    **options
        Where and how it runs: `KernelOptions`, ``execution`` waves or free.

    Returns
    -------
    Timing, SideBySide or Sweep
        The second with ``beside``, the third with ``sweep``.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other, an execution that has no time, or a chip without rates.
    UnknownNameError
        No such schedule, policy or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.time(pebble.Gemm(2048, 2048, 2048), ["row", "hilbert"], gpu="h100-sxm5-80gb")
    >>> [t.time.seconds > found.floor.seconds for t in found.orders]
    [True, True]
    """
    check_flag("residual", residual)
    if beside is not None and sweep is not None:
        raise InputError("--sweep: got it with --beside, expected one of them.")
    if beside is None and (beside_schedules is not None or beside_sms is not None):
        raise InputError("--beside-schedules, --beside-sms: expected --beside WORKLOAD with them.")
    if beside is None and sweep is None:
        check_residual(workload, residual)
        return time_schedules(workload, schedules, schedule, residual, **options)
    if schedule is not None or residual:
        raise InputError("--schedule, --residual: got it with --beside or --sweep, expected names of schedules.")
    named = None if schedules == "all" else schedules
    if sweep is not None:
        return time_sweep(workload, read_sweep(sweep), named, **options)
    assert beside is not None
    other = read_beside(beside, workload)
    return time_beside(workload, other, named, beside_schedules, read_splits(beside_sms), **options)


def read_beside(text: str | Workload, first: Workload) -> Workload:
    """The second workload, from text as on the command line.

    Raises
    ------
    InputError
        Malformed text.
    """
    if not isinstance(text, str):
        kernel_family(text)
        return text
    name, *words = text.split() or [""]
    given: dict[str, object] = {}
    while words:
        option = words.pop(0)
        if not option.startswith("-"):
            raise InputError(f"--beside: got {option!r} in {text!r}, expected an option such as --tokens 512.")
        value = words.pop(0) if words and not words[0].startswith("-") else True
        given[option.lstrip("-").replace("-", "_")] = value
    tokens = next((getattr(first, key) for key in ("tokens", "m", "queries") if hasattr(first, key)), None)
    if ":" in name and "tokens" not in given and tokens is not None:
        given["tokens"] = tokens
    return read_workload(name, given)


def read_splits(given: str | int | Sequence[int] | None) -> list[int] | None:
    """SMs of the second workload.

    Raises
    ------
    InputError
        Not whole numbers.
    """
    if given is None:
        return None
    parts: Iterable[Any] = given.split(",") if isinstance(given, str) else [given] if isinstance(given, int) else given
    return [whole("--beside-sms", part, 1, 10**6) for part in parts]


def read_sweep(given: str | Mapping[str, Sequence[int]]) -> tuple[str, list[int]]:
    """The size that varies, and its values.

    Raises
    ------
    InputError
        Not NAME=VALUE,VALUE.
    """
    if isinstance(given, Mapping):
        name, values = next(iter(given.items()), ("", ()))
        parts: Sequence[Any] = list(values)
    else:
        name, _, text = given.partition("=")
        parts = [part for part in text.split(",") if part]
    if not name or not parts:
        raise InputError(f"--sweep: got {given!r}, expected NAME=VALUE,VALUE such as tokens=16,256,4096.")
    return name.strip().replace("-", "_"), [whole(f"--sweep {name}", part, 1, 2**31) for part in parts]
