"""``stream``: items a thread and vector width of a kernel that memory binds, from bytes in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from pebble.models.machine import Machine
from pebble.models.sm_constants import Constant, dram_constants, own_constant
from pebble.models.stream_model import StreamKernel, StreamModel, stream_model
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.target import check_options, chip_of, whole
from pebble.units import format_seconds
from pebble.workloads.workload import element_bytes


@dataclass(frozen=True, repr=False)
class Stream(Report):
    """How to write the kernel.

    Attributes
    ----------
    gpu : Machine
    model : StreamModel
    latency, rate : Constant
        Cycles of a load that misses, and the SM's share of DRAM in bytes per clock.
    """

    gpu: Machine
    model: StreamModel
    latency: Constant
    rate: Constant

    question = "stream"

    @property
    def machine(self) -> Machine | None:
        return self.gpu

    def summary(self) -> str:
        best, kernel = self.model.best, self.model.kernel
        return (
            f"{kernel.kind} of {kernel.items:,} items on {self.gpu.name}: {best.items_per_thread} items a thread in "
            f"loads of {best.vector_bytes} bytes keep {best.bytes_in_flight:,.0f} bytes in flight on an SM, "
            f"{best.share:.0%} of what is needed; {format_seconds(self.model.least_seconds)} at least"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per width and number of loads, the one to take first."""
        return [plan.to_json() for plan in self.model.plans]

    def document(self) -> dict[str, Any]:
        kernel = self.model.kernel
        return {
            "kernel": {**vars(kernel)},
            "reads_per_item": kernel.passes,
            "load_bytes": kernel.load_bytes,
            "store_bytes": kernel.store_bytes,
            "compulsory_bytes": kernel.compulsory_bytes,
            "least_seconds": self.model.least_seconds,
            "latency_cycles": self.latency.value,
            "bytes_per_clock_per_sm": self.rate.value,
            "bytes_in_flight_needed_per_sm": self.model.needed_bytes,
            "plans": self.rows(),
        }


class StreamShape(TypedDict, total=False):
    """What some streaming kernels have.

    Attributes
    ----------
    inputs : int
        elementwise: arrays that are read.
    row : int
        softmax, norm: items of a row.
    bits, group : int
        dequantize: of a weight, and weights that share a scale.
    side, radius : int
        halo: of a tile, and how far it looks beyond.
    threads : int
        Of a block.
    """

    inputs: int | str | None
    row: int | str | None
    bits: int | str | None
    group: int | str | None
    side: int | str | None
    radius: int | str | None
    threads: int | str | None


@spelled_out(StreamShape)
def stream(
    kind: str,
    items: int | str,
    *,
    dtype: str = "bf16",
    gpu: str | Machine | None = None,
    machine: str | None = None,
    dram_latency: float | None = None,
    **options: Unpack[StreamShape],
) -> Stream:
    """Items a thread and vector width of an elementwise kernel, reduction, softmax, norm, dequantisation or halo.

    Parameters
    ----------
    kind : str
        ``elementwise``, ``reduction``, ``softmax``, ``norm``, ``dequantize`` or ``halo``.
    items : int
        Of the output; of the input for a reduction.
    dtype : str
        Of the items; of the output for ``dequantize``.
    gpu, machine : str
        A SKU, or a machine file.
    dram_latency : float, optional
        Cycles, instead of the machine file's.
    **options
        What some kernels have: `StreamShape`.

    Returns
    -------
    Stream

    Raises
    ------
    InputError
        A malformed number, or a machine file without what is needed.
    UnknownNameError
        An unknown kind or type.

    Examples
    --------
    >>> import pebble
    >>> pebble.stream("elementwise", 2**28, gpu="h100-sxm5-80gb").model.best.vector_bytes
    16
    """
    chip = chip_of(gpu, machine)
    check_options(options, StreamShape.__optional_keys__, "stream")
    sizes = {name: whole(f"--{name}", value, 1, 2**50) for name, value in options.items() if value is not None}
    kernel = StreamKernel(kind, whole("--items", items, 1, 2**50), element_bytes(dtype), **sizes)
    latency, rate = dram_constants(chip)
    if dram_latency is not None:
        latency = own_constant("dram_latency", dram_latency)
    return Stream(chip, stream_model(chip, kernel, latency.value * rate.value), latency, rate)
