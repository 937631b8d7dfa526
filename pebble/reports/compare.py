"""``compare``: schedules against the least that any can move, at the boundary and in the memory that is asked for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from pebble.errors import InputError, check_flag
from pebble.families import kernel_family
from pebble.reports.bound import wants_l2
from pebble.reports.chosen import Own
from pebble.reports.kernel_compare import Comparison, compare_kernels
from pebble.reports.simulated_kernel import KernelOptions
from pebble.reports.target import TargetOptions, check_options
from pebble.workloads.base import Workload

if TYPE_CHECKING:
    from pebble.reports.exact import ExactComparison
    from pebble.reports.sm_compare import SmComparison


def compare(
    workload: Workload,
    schedules: str | Sequence[str] = "all",
    schedule: Own | Sequence[Own] | None = None,
    *,
    residual: bool = False,
    level: str | None = None,
    buffers: str | None = None,
    omega: str | float | None = None,
    topology: str | None = None,
    accumulator: str | None = None,
    energy: str | None = None,
    exact: bool = False,
    time_limit: float | None = None,
    progress: Callable[[Any], Any] | None = None,
    stop: threading.Event | None = None,
    **options: Unpack[KernelOptions],
) -> Comparison | SmComparison | ExactComparison:
    """What schedules move, against the least that any can move: between L2 and DRAM, between L2 and SMs, or exactly.

    Parameters
    ----------
    workload : Gemm, GroupedGemm, Ffn or Attention
    schedules : str or sequence of str
        ``"all"``, or names: the tile orders of ``pebble schedules`` for a GEMM, schedules of the family for others.
    schedule : str, Path, callable or TileTable, or a sequence of these
        Beside them, tiles of your own; see `pebble.simulate`.
    residual : bool
        ffn: read the input again to add it to the output.
    level : {"dram", "l2"}, optional
        The boundary; by default l2 with buffers. At l2 schedules under explicit control are compared, ``cache`` is the
        storage of one SM, and of the kernel's options only ``sms`` and ``tile`` have a meaning.
    buffers : {"sm-local", "connected"}, optional
        Whether an SM can copy from others; by default, at l2, sm-local.
    omega, topology
        Connected: the cost of a value copied between SMs, in reads of L2 (0.25), and the network (all-to-all).
    accumulator : {"fp32", "fp16"}, optional
        With a GPU: the type that sums are kept in, which may change the peak that the floor on time uses (fp32).
    energy : {"7nm", "k40"}, optional
        With a GPU: the published table of an energy estimate.
    exact : bool
        Solve the tile game of a small grid, in a ``cache`` of a few tiles, and play the orders of a GEMM in it, one
        tile operation at a time; of the kernel's options only ``tile`` has a meaning.
    time_limit : float, optional
        With ``exact``: seconds for the solver (60).
    progress : callable, optional
        Called with the number of schedules; what it returns is called with the name of each that is done. With
        ``exact``: called with the interval now and then, a `Progress`.
    stop : threading.Event, optional
        With ``exact``: set it to get the interval at once.
    **options
        Where and how it runs: `KernelOptions`.

    Returns
    -------
    Comparison, SmComparison or ExactComparison
        The first with what was done by then, and a note, when interrupted by KeyboardInterrupt; the second for l2, the
        third with ``exact``.

    Raises
    ------
    InputError
        Arguments that are malformed or contradict each other.
    UnknownNameError
        No such schedule, policy, level or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.compare(pebble.Gemm(1024, 1024, 1024), ["row", "hilbert"], cache="1MiB", sms=16)
    >>> [t.order for t in found.orders], found.orders[0].dram_bytes >= found.trace.bound.bytes
    (['hilbert', 'row'], True)
    """
    kernel_family(workload)  # refused before anything else is looked at
    check_options(options, KernelOptions.__optional_keys__)
    check_flag("residual", residual)
    check_flag("exact", exact)
    if progress is not None and not callable(progress):
        raise InputError(f"progress: got {repr(progress)[:40]}, expected a function.")
    l2 = wants_l2(level, buffers, {"omega": omega, "topology": topology})
    asked = "--level l2" if level is not None else f"--buffers {buffers}"
    if (l2 or exact) and options.get("accumulators") is not None:
        what = "--exact" if exact else asked
        raise InputError(f"--accumulate: got it with {what}, whose games count values, not bytes; leave it out.")
    if l2 and exact:
        raise InputError("--exact: got it with --level l2 or --buffers, expected one of them: it plays in one memory.")
    if time_limit is not None and not exact:
        raise InputError("--time-limit: expected --exact with it: only a solver takes as long as it may.")
    for option, value in (("accumulator", accumulator), ("energy", energy)):
        if value is not None and (l2 or exact):
            raise InputError(f"--{option}: got it with --level l2, --buffers or --exact, where no time is told.")
    where: TargetOptions = {key: options.get(key) for key in TargetOptions.__optional_keys__}  # type: ignore[assignment]
    if l2:
        from pebble.reports.sm_compare import compare_sms

        if residual or schedules != "all" or schedule is not None:
            option = "residual" if residual else "schedules" if schedule is None else "schedule"
            raise InputError(
                f"--{option}: got it with {asked}, where each family has schedules of its own; leave it out."
            )
        _without(options, ("sms", "tile"), asked)
        kernel = {"sms": options.get("sms"), "tile": options.get("tile")}
        return compare_sms(workload, buffers, omega=omega, topology=topology, **kernel, **where)  # type: ignore[arg-type]
    if exact:
        from pebble.reports.exact import compare_exactly

        _without(options, ("tile",), "--exact")
        if schedule is not None:
            raise InputError("--schedule: got it with --exact, which plays orders that have names; leave it out.")
        solver = {"time_limit": 60.0 if time_limit is None else time_limit, "progress": progress, "stop": stop}
        return compare_exactly(workload, schedules, tile=options.get("tile"), **solver, **where)  # type: ignore[arg-type]
    shown = progress or (lambda total: lambda name: None)
    timed = {"accumulator": accumulator, "energy": energy}
    return compare_kernels(workload, schedules, schedule, residual=residual, progress=shown, **timed, **options)


def _without(options: KernelOptions, known: tuple[str, ...], what: str) -> None:
    """Refuse an option of kernels that would change nothing."""
    for name in options.keys() - TargetOptions.__optional_keys__ - set(known):
        option = name.replace("_", "-")
        raise InputError(f"--{option}: got it with {what}, where no kernel is simulated; leave it out.")
