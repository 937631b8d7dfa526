"""``export``: a schedule as a table for whoever runs it: csv, npy, json, kernels in Triton, headers for CUDA."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pebble.errors import InputError, UnknownNameError, check_text
from pebble.families import kernel_family
from pebble.models.machine import Machine, load_machine, machine_names
from pebble.reports.default_kernel import advised_kernel, who_advises
from pebble.reports.fit import ORIGINS
from pebble.reports.kernel_notes import kernel_notes
from pebble.reports.options import spelled_out
from pebble.reports.refusals import check_seed
from pebble.reports.report import Report
from pebble.reports.schedule_names import Own
from pebble.reports.simulated_kernel import KernelOptions, SimulatedKernel
from pebble.reports.target import check_options, find_gpu
from pebble.schedules.export.cuda import cuda_header, statement
from pebble.schedules.export.cutlass import cutlass_header
from pebble.schedules.export.torch_module import torch_source
from pebble.schedules.export.triton import check_kernels, triton_source
from pebble.schedules.export.tuners import cublaslt_attributes, cutlass_testlist, helion_config, inductor_table
from pebble.schedules.tables import TileTable
from pebble.schedules.tables.files import npy_bytes, table_document, write_csv
from pebble.schedules.tables.own import FixedTable
from pebble.schedules.tables.registry import check_table
from pebble.schedules.tables.source import own_schedule
from pebble.system.files import check_output, write_bytes
from pebble.tuning.worth import SAME
from pebble.units import ceil_div, counted, format_bytes, format_seconds
from pebble.workloads.workload import Workload

FORMATS: dict[str, tuple[str, Callable[[TileTable], str | bytes]]] = {
    "csv": (".csv", lambda table: write_csv(table, statement(table))),
    "npy": (".npy", npy_bytes),
    "json": (".json", lambda table: json.dumps(table_document(table)) + "\n"),
    "triton": (".py", triton_source),
    "torch": (".py", lambda table: torch_source([table])),
    "cuda": (".h", cuda_header),
    "inductor": (".json", inductor_table),
    "cutlass": (".h", cutlass_header),
    "cutlass-profiler": (".csv", lambda table: cutlass_testlist(table, _capability(table))),
    "cublaslt": (".json", cublaslt_attributes),
    "helion": (".json", lambda table: helion_config(table, _capability(table))),
}
_HEADERS, _KERNELS = ("cuda", "cutlass"), ("triton", "torch")
_FEWER = 1.03  # times the fewest bytes are more: so far a kernel that is simulated in part may be off
_HOW = {"waves": "waves", "free": "free", "persistent": "free", "dynamic": "free", "staggered": "staggered"}


@dataclass(frozen=True, repr=False)
class Exported(Report):
    """A schedule as a table.

    Attributes
    ----------
    table : TileTable
        What runs when, with the workload, the launch and the traffic that is predicted for it.
    format : str
        One of ``FORMATS``.
    content : bytes
        Of the file.
    notes : tuple of str
    """

    table: TileTable
    format: str
    content: bytes
    notes: tuple[str, ...] = ()

    question = "export"

    @property
    def machine(self) -> Machine | None:
        sku = self.table.launch.machine
        return load_machine(sku) if sku in machine_names() else None  # not for a machine file of the user's

    @property
    def text(self) -> str:
        """The content as text; errors for a .npy file as `bytes.decode` has them."""
        return self.content.decode()

    def summary(self) -> str:
        return "; ".join(statement(self.table))

    def rows(self) -> list[dict[str, Any]]:
        """The table: a row per block."""
        document = table_document(self.table)
        return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]

    def document(self) -> dict[str, Any]:
        about = {key: value for key, value in table_document(self.table).items() if key not in ("columns", "rows")}
        size = {"blocks": self.table.blocks, "waves": self.table.waves}
        return {"schedule": self.table.name, **about, "format": self.format, **size, "notes": list(self.notes)}

    def save(self, path: str | Path) -> None:
        """Write the file.

        Raises
        ------
        InputError
            It cannot be written.
        """
        write_bytes(path, self.content, "--out: ")


@spelled_out(KernelOptions)
def export(
    schedule: Own,
    workload: Workload | None = None,
    format: str = "json",
    also: Sequence[str | Path] = (),
    **options: Unpack[KernelOptions],
) -> Exported:
    """A schedule as a table for whoever runs it.

    Parameters
    ----------
    schedule : str, Path, callable or TileTable
        A name, tiles of your own, or a table that was saved; as `pebble.simulate` takes it.
    workload : Gemm, GroupedGemm, Ffn or Attention, optional
        A saved table says itself what it is for.
    format : str
        ``csv``, ``npy`` or ``json``: wave, slot, tile row and column, first k step and k direction of each block (more
        columns for an ffn). ``triton``: a file that runs, checks and times the schedule with PyTorch and Triton alone.
        ``torch``: a module with operators of PyTorch that run it. ``cuda``: a header that maps wave and slot to the
        block's work. ``cutlass``: one with a tile scheduler for CUTLASS 3. ``inductor``, ``helion``,
        ``cutlass-profiler``, ``cublaslt``: tile, stages and walk of a GEMM in the words of these tuners.
    also : sequence of str or Path
        Saved tables more, for ``torch``: its operators choose among all by shape.
    **options
        Where and how it runs: `KernelOptions`; by default with as many stages as fit, at most 2 to 4.

    Returns
    -------
    Exported
        With ``.save(path)``.

    Raises
    ------
    InputError
        A schedule that has no table, or is none of this workload; for ``triton`` what its kernels do not compute.
    UnknownNameError
        No such schedule, format or GPU.

    Examples
    --------
    >>> import pebble
    >>> found = pebble.export("grouped-2", pebble.Gemm(512, 512, 512), "csv", cache="1MiB", sms=8)
    >>> found.text.splitlines()[4:7]
    ['wave,slot,row,col,k_start,k_direction', '0,0,0,0,0,1', '0,1,1,0,0,1']
    """
    if check_text("--format", format, ", ".join(FORMATS)) not in FORMATS:
        raise UnknownNameError("format", format, FORMATS, "pebble export --help")
    notes: tuple[str, ...] = ()
    if workload is None:
        extra = [name for name, value in options.items() if value not in (None, False)]
        own = own_schedule(schedule)
        if not isinstance(own, FixedTable) or extra:
            got = f"--{extra[0].replace('_', '-')}" if extra and isinstance(own, FixedTable) else "no workload"
            raise InputError(
                f"export: got {got}, expected SCHEDULE WORKLOAD and where it runs, or a saved table (.json) alone, "
                "which says itself what it is for."
            )
        table = own.tile_table
        check_table(table)
    else:
        check_options(options, KernelOptions.__optional_keys__, "export")
        table, notes = _made(schedule, workload, options, format)
    if also and format != "torch":
        raise InputError(f"--also: got it with --format {format}, expected torch, whose module chooses among tables.")
    if format in _KERNELS:
        chip, sku = options.get("gpu") or options.get("machine"), table.launch.machine
        known = find_gpu(chip) if chip is not None else load_machine(sku) if sku in machine_names() else None
        _check_vendor(format, known)
        notes = (*notes, *_time_note(format, table))
    content = torch_source([table, *map(_saved, also)]) if also else FORMATS[format][1](table)
    return Exported(table, format, content.encode() if isinstance(content, str) else content, notes)


def _saved(path: str | Path) -> TileTable:
    """A table that was saved, checked."""
    own = own_schedule(str(path))
    if not isinstance(own, FixedTable):
        raise InputError(f"--also: got {path}, expected tables that were saved as .json.")
    check_table(own.tile_table)
    return own.tile_table


def _capability(table: TileTable) -> float | None:
    """The compute capability of the GPU that a table is for, where that is known."""
    sku = table.launch.machine
    return load_machine(sku).capability if sku in machine_names() else None


def _time_note(format: str, table: TileTable) -> list[str]:
    """What kernels do for time's sake, and what that leaves of the prediction."""
    if table.launch.execution != "waves":
        return []
    if format == "torch":
        return [
            "the module takes the tiles in the table's order, dealt evenly; the predicted bytes are those of the "
            "table's waves"
        ]
    if kernel_family(table.workload).kernel.exported_template(table.workload) == "decode":
        return [
            f"the file deals the keys of all heads evenly to its blocks, however {table.name} splits them; the "
            f"predicted bytes are those of {table.name}"
        ]
    rounds = sum(ceil_div(blocks, table.launch.wave_blocks) for blocks in np.bincount(table.column("phase")).tolist())
    return [
        f"the file runs its fastest way: the tiles in the table's order, dealt evenly, {counted(rounds, 'round')} for "
        f"{counted(table.waves, 'wave')}; the predicted bytes are those of the waves, which it runs with --how waves"
    ]


def runs_on(machine: Machine | None, table: TileTable) -> bool:
    """Whether a Triton file of this table would run there."""
    try:
        _check_vendor("triton", machine)
        check_kernels(table, "triton")
    except InputError:
        return False
    return True


def _check_vendor(format: str, machine: Machine | None) -> None:
    """Refuse a chip that the file of ``triton`` does not run on; of one that nobody knows nothing is said."""
    if machine is not None and machine.vendor not in ("", "NVIDIA"):
        raise InputError(
            f"--format {format}: got it for {machine.name}, expected an NVIDIA GPU, which the file needs; "
            "--format csv, npy or json writes the table for a kernel of your own."
        )


def _made(schedule: Own, workload: Workload, options: KernelOptions, format: str) -> tuple[TileTable, tuple[str, ...]]:
    """The table of a schedule of a workload, with what is predicted for it."""
    family = kernel_family(workload)
    fastest = family.kernel.exported_tile(workload) if format in _KERNELS and options.get("tile") is None else None
    if fastest is not None:
        options = {**options, "tile": str(fastest)}
    kernel = advised_kernel(workload, **options)
    check_seed(options, kernel.config.execution.kind)
    config = kernel.config
    if config.execution.blocks_in_cluster > 1:
        raise InputError(
            f"--cluster: got {options.get('cluster')} with export, expected none: tables have no clusters; leave it "
            "out."
        )
    if config.execution.kind not in _HOW:
        raise InputError(
            f"--execution: got {config.execution.name}, expected for a table waves (blocks of a wave wait for "
            "each other), free, persistent or dynamic-S (they run free) or staggered."
        )
    order = family.read_schedule(schedule)
    table = family.table(workload, order, config)
    check_table(table)
    traffic = family.simulate(workload, order, config)
    stages, most = kernel.stages, family.kernel.exported_stages(config.tile)
    origins = {"tile": ORIGINS.get(kernel.fitted.tile_from), "stages": ORIGINS.get(kernel.fitted.stages_from)}
    if kernel.fitted.stages_from == "default":
        stages = min(most, family.kernel.bare_stages)
    elif kernel.fitted.stages_from == "fits":
        stages = min(most, kernel.stages)
        origins["stages"] = f"{origins['stages']}, at most {most}"
    why = [f"{what}: {how}" for what, how in origins.items() if how is not None]
    notes = [f"{'; '.join(why)}; `pebble tile` ranks others by modelled time"] * bool(why)
    if fastest is not None:
        notes = [f"the tile {fastest} is the one that the file's kernel is fastest with; --tile asks for another"]
    elif kernel.fitted.tile_from == "advised":
        notes = ["tile and stages are those that `pebble advise` picks"]
        notes += _other_orders(workload, order, kernel, options)
    launch = replace(
        table.launch,
        stages=stages,
        execution=_HOW[config.execution.kind],
        machine=kernel.target.machine.sku if kernel.target.machine else "",
        read_bytes=traffic.dram_read_bytes,
        write_bytes=traffic.dram_write_bytes,
    )
    return replace(table, launch=launch), (*kernel_notes(workload, kernel, [order.name]), *notes)


def _other_orders(workload: Workload, order: Any, kernel: SimulatedKernel, options: KernelOptions) -> list[str]:
    """What the order of fewest bytes would save, and that of least time, of those that ``advise`` times in this kernel.

    Nothing is simulated that ``advise`` does not simulate; no word of an order that it does not time.
    """
    who, family, config = who_advises(workload, options), kernel_family(workload), kernel.config
    if who is None or config.execution != who.timer.config(who.kernel).execution:
        return []
    try:
        orders = [item for item in who.choice.orders if item.advice.tile == who.kernel.tile]
    except InputError:  # too large to simulate
        return []
    walk = family.walk(workload, order, config)
    own = next((item for item in orders if family.walk(workload, item.advice.schedule, config) == walk), None)
    if own is None:
        return []
    pick, least = who.choice.best, min(orders, key=lambda item: (item.time.dram_bytes, item.seconds))
    saves = own.time.dram_bytes > _FEWER * least.time.dram_bytes
    others = {least.advice.schedule.name: least} if saves else {}
    if pick is not own and own.seconds > SAME * pick.seconds:
        others[pick.advice.schedule.name] = pick
    if not others:
        return []
    said = []
    for name, item in others.items():
        who_picks = ", which `pebble advise` picks," if item is pick else ""
        fewer = own.time.dram_bytes - item.time.dram_bytes
        bytes_text = f"move {format_bytes(abs(fewer))} {'less' if fewer >= 0 else 'more'}"
        said.append(f"{name}{who_picks} would {bytes_text} and take {format_seconds(item.seconds, own.seconds)}")
    kind = "single launches" if own.sustained is None else "sustained"
    head = f"modelled ({kind}, {len(orders)} orders that `pebble advise` times in this kernel): {order.name} takes "
    return [f"{head}{format_seconds(own.seconds)}; {'; '.join(said)}"]


def check_file(path: str, format: str) -> None:
    """Refuse a file that could not be written, or whose name says another format; errors as for `check_output`."""
    if format in FORMATS:
        suffix = FORMATS[format][0]
        check_output(path, "--out", (suffix, ".cuh", ".hpp") if format in _HEADERS else (suffix,))
