"""``advise``: what to run for a workload on a GPU, what it should take, and how far that is from what is proved."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from pebble.errors import InputError
from pebble.families import kernel_family
from pebble.models.kernel_fit import warp_threads
from pebble.models.launches import MEASURED_DTYPE, ExportedFiles, Launches, exported_files, launches_like
from pebble.models.machine import Machine
from pebble.reports.default_kernel import as_advised
from pebble.reports.export import Exported, export, runs_on
from pebble.reports.kernel_time import MILLI, floor_word, kernel_floor, sustained_note, time_notes
from pebble.reports.report import Report
from pebble.reports.simulated_kernel import Bounded, SimulatedKernel, read_kernel, trace_bound
from pebble.reports.target import MAX_SMS, chip_of, whole
from pebble.timing.floor import TimeFloor
from pebble.tuning import Progress, as_progress, with_bar
from pebble.tuning.advisors import TimedKernel
from pebble.tuning.choice import Choice, Question, choose, chooser
from pebble.units import ceil_div, format_bytes
from pebble.workloads.workload import Workload

TRIED = (
    "tried are tiles whose steps of k are one cache line and whose results pass through shared memory; a kernel of "
    "other steps, or without, may be modelled as faster: `pebble time --tile` and pebble.integrations take it"
)


class Against(NamedTuple):
    """What is run elsewhere, or without advice.

    Attributes
    ----------
    what : str
        For a reader.
    order : str
    timed : TimedKernel
        That order in the advised kernel.
    """

    what: str
    order: str
    timed: TimedKernel


@dataclass(frozen=True, repr=False)
class KernelAdvice(Report):
    """What ``pebble advise`` found.

    Attributes
    ----------
    workload : Workload
    kernel : Kernel
        Tile, stages, blocks an SM and execution.
    choice : Choice
        The order with its modelled time, and what else was tried.
    floor : TimeFloor
        No launch of this kernel takes less, whatever its order: proved at the vendor's peaks.
    bound : Bounded
        No order of this kernel moves fewer bytes between L2 and DRAM.
    table : str
        The file that it was saved to; empty where it was not.
    """

    workload: Workload
    kernel: SimulatedKernel
    choice: Choice
    floor: TimeFloor
    bound: Bounded
    table: str = ""

    question = "advise"
    table_keys = ("tile", "order", "stages", "sustained_ms", "single_ms", "dram_bytes")
    bar_keys = ("sustained_ms", "single_ms")

    @property
    def machine(self) -> Machine:
        assert self.kernel.target.machine is not None
        return self.kernel.target.machine

    @property
    def best(self) -> TimedKernel:
        """The kernel to run."""
        return self.choice.best

    @property
    def order(self) -> str:
        """In which its tiles are walked."""
        return str(self.best.advice.schedule.name)

    @property
    def warps(self) -> int:
        """Of a block, those that only load among them."""
        return ceil_div(self.best.advice.threads, warp_threads(self.machine))

    @cached_property
    def against(self) -> tuple[Against, ...]:
        """Other orders in common use in the same kernel, and on a chip of NVIDIA's the walk of its library."""
        family, config = kernel_family(self.workload), self.kernel.config
        timed = {family.walk(self.workload, item.advice.schedule, config): item for item in self.choice.orders}
        names = {name: f"{name} in the same kernel" for name in family.baseline}
        if family.library and "nvidia" in self.machine.vendor.lower():
            library, name = family.library
            names[name] = f"{library}, modelled: {name} in the same kernel"
        result = []
        for name, what in names.items():
            item = timed.get(family.walk(self.workload, family.parse_schedule(name), config))
            if item is not None and (item is not self.best or name in family.library):
                result.append(Against(what, name, item))
        return tuple(result)

    @property
    def launches(self) -> Launches | None:
        """Measured launches of the family on the chip, as short or as long; None where there are none."""
        known = self.workload.dtype == MEASURED_DTYPE
        kind = self.workload.family, self.machine.sku, self.kernel.config.execution.name
        return launches_like(*kind, self.best.time.seconds * MILLI) if known else None

    @property
    def exported(self) -> ExportedFiles | None:
        """Measured files like it on the chip; None where there are none."""
        kernel = kernel_family(self.workload).kernel
        template = kernel.exported_template(self.workload)
        kind = self.workload.family if template == kernel.template else template
        modelled = self.writable is not None and self.best.sustained is not None
        known = modelled and self.workload.dtype == MEASURED_DTYPE
        return exported_files(kind, self.machine.sku, self.best.seconds * MILLI) if known else None

    @property
    def over_bound(self) -> float:
        """Times the bytes that are proved to be needed."""
        return self.best.time.dram_bytes / self.bound.bound.bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the figures."""
        tried = [TRIED] if kernel_family(self.workload).one_product else []
        return *time_notes(self.workload), sustained_note(self.best.sustained is not None, self.workload), *tried

    def summary(self) -> str:
        best = self.best
        return (
            f"{self.workload.label} on {self.machine.name}: tile {self.kernel.tile}, {self.kernel.stages} stages, "
            f"order {self.order}: {best.seconds * MILLI:.4g} ms by the model, {format_bytes(best.time.dram_bytes)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per kernel that was timed: the one to run, then the others by time."""
        tried, family = (*self.choice.orders, *self.choice.tiles), kernel_family(self.workload)
        return [
            {
                "tile": family.tile_text(family.cut_tile(item.advice.tile, self.workload)),
                "order": item.advice.schedule.name,
                "stages": item.advice.stages,
                "blocks_per_sm": item.advice.blocks_per_sm,
                **_taken(item),
            }
            for item in sorted(tried, key=lambda timed: (timed is not self.best, timed.seconds, timed.time.dram_bytes))
        ]

    def document(self) -> dict[str, Any]:
        time = self.best.time
        return {
            "workload": {"label": self.workload.label, **self.workload.to_json()},
            "kernel": {**self.kernel.to_dict(), "warps": self.warps, "order": self.order},
            "expect": {
                **_taken(self.best),
                "binds": next(iter(time.binds)),
                "simulated_share": time.simulated_share,
            },
            "against": [{"what": item.what, "order": item.order, **_taken(item.timed)} for item in self.against],
            "limit": {
                "ms": self.floor.seconds * MILLI,
                "binds": floor_word(self.floor),
                "dram_bytes": self.bound.bound.bytes,
                "ratio_to_lower_bound": self.over_bound,
                "lower_bound": self.bound.to_json(),
            },
            "confidence": {
                "cache_model": self.machine.default_model.mark,
                "sustained": "modelled" if self.best.sustained else "not modelled: of a single launch",
                "launches": None if self.launches is None else self.launches._asdict(),
                "exported": None if self.exported is None else self.exported._asdict(),
            },
            "tried": self.rows(),
            "table": self.table or None,
            "notes": list(self.notes),
        }

    @cached_property
    def writable(self) -> tuple[TimedKernel, str] | None:
        """The first of the orders that has a table, and what `pebble export` writes of it; some walks of KV have none.

        That is a Triton file where it runs, else the table itself.
        """
        family, config = kernel_family(self.workload), self.kernel.config
        for item in self.choice.orders:
            try:
                table = family.table(self.workload, item.advice.schedule, config)
            except InputError:
                continue
            return item, "triton" if runs_on(self.machine, table) else "csv"
        return None

    def saved(self, path: str | Path) -> KernelAdvice:
        """The same, written as a table (.json), which `pebble export` and `pebble simulate` read.

        Raises
        ------
        InputError
            Its order has no table, or the file cannot be written.
        """
        self.export().save(path)
        return replace(self, table=str(path))

    def export(self, format: str = "json") -> Exported:
        """The advised schedule as a table, a Triton file or a CUDA header; arguments and errors as `pebble.export`."""
        config = self.kernel.config
        return export(
            self.order, self.workload, format,
            gpu=self.machine, tile=str(config.tile), sms=config.sms, blocks_per_sm=config.blocks_per_sm,
            stages=self.kernel.stages, execution=config.execution.name,
        )  # fmt: skip


def _taken(timed: TimedKernel) -> dict[str, Any]:
    """What a kernel takes, modelled; where no sustained run is, that of a single launch stands for it."""
    return {
        "sustained_ms": timed.seconds * MILLI,
        "single_ms": timed.time.seconds * MILLI,
        "joules": None if timed.sustained is None else timed.sustained.total_joules,
        "dram_bytes": timed.time.dram_bytes,
    }


@with_bar
def advise(
    workload: Workload,
    *,
    gpu: str | Machine | None = None,
    machine: str | None = None,
    sms: int | str | None = None,
    save: str | Path | None = None,
    progress: Progress | bool = True,
) -> KernelAdvice:
    """What to run for a workload on a GPU.

    Parameters
    ----------
    workload : Workload
        GEMM, grouped GEMM, FFN, attention or latent attention.
    gpu, machine : str
        A SKU, or a machine file.
    sms : int, optional
        SMs that the kernel may use; by default all.
    save : str or Path, optional
        Where the schedule is written as a table (.json), which `pebble export` and `pebble simulate` read.
    progress : bool or callable
        False: no bar, which else is shown on a terminal and in a notebook. Or a function: called with
        each kernel that is about to be timed.

    Returns
    -------
    KernelAdvice
        Cost: a few seconds.

    Raises
    ------
    InputError
        No kernels of the family, a machine without rates, or a file that cannot be written.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.advise(pebble.Gemm(4096, 4096, 4096), gpu="a40")
    >>> found.kernel.tile, found.order
    ('128x128x64', 'grouped-8+sawtooth')
    """
    chip = chip_of(gpu, machine)
    count = chip.sms if sms is None else whole("--sms", sms, 1, min(MAX_SMS, chip.sms))
    family = kernel_family(workload)
    choice = choose(workload, chip, count, as_progress(progress))
    advice = choice.best.advice
    tile, blocks, stages = str(advice.tile), advice.blocks_per_sm, advice.stages
    how = chooser(Question(workload, chip, count)).timer.execution.name
    kernel = as_advised(
        read_kernel(workload, gpu=chip, tile=tile, sms=count, blocks_per_sm=blocks, stages=stages, execution=how)
    )
    family.check(workload, kernel.config)
    result = KernelAdvice(workload, kernel, choice, kernel_floor(workload, kernel), trace_bound(workload, kernel))
    return result if save is None else result.saved(save)
