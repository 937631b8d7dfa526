"""``stream``: items a thread and vector width of a kernel that memory binds, from bytes in flight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from pebble.errors import InputError
from pebble.models.machine import Machine
from pebble.models.sm_constants import Constant, dram_constants, own_constant
from pebble.models.stream_model import MOMENTS, StreamKernel, StreamModel, stream_model
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
            "kernel": {name: value for name, value in vars(kernel).items() if kernel.arrays or name not in _OF_STEPS},
            **({"arrays": [vars(array) for array in kernel.arrays]} if kernel.arrays else {}),
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
    gradient_dtype, moment_dtype, master_dtype : str
        sgd, momentum, adam: types of gradients (those of parameters), of moments (fp32), and of the weights that are
        kept beside narrower parameters (fp32; ``"none"`` where none are).
    """

    inputs: int | str | None
    row: int | str | None
    bits: int | str | None
    group: int | str | None
    side: int | str | None
    radius: int | str | None
    threads: int | str | None
    gradient_dtype: str | None
    moment_dtype: str | None
    master_dtype: str | None


_OF_STEPS = {"gradient_bytes": "gradient_dtype", "moment_bytes": "moment_dtype", "master_bytes": "master_dtype"}
NO_MASTER = "none"


def _step_bytes(kind: str, dtype: str, options: Mapping[str, object]) -> dict[str, int]:
    """Bytes of gradients, moments and master weights of an optimizer step, from the types that are given.

    Raises
    ------
    InputError
        A type with another kernel, or of moments where there are none.
    UnknownNameError
        No such type.
    """
    given = {name: value for name in _OF_STEPS.values() if (value := options.get(name)) is not None}
    foreign = set(given) if kind not in MOMENTS else {"moment_dtype"} & set(given) if not MOMENTS[kind] else set()
    for name in sorted(foreign):
        what = "momentum or adam" if kind in MOMENTS else ", ".join(MOMENTS)
        raise InputError(f"--{name.replace('_', '-')}: got it with {kind}, expected {what}; leave it out.")
    if kind not in MOMENTS:
        return {}
    width = element_bytes(dtype)
    without = given.get("master_dtype") == NO_MASTER
    named = {key: given[name] for key, name in _OF_STEPS.items() if name in given}
    sizes = {key: element_bytes(str(of)) for key, of in named.items() if not (without and key == "master_bytes")}
    return {"master_bytes": 4 if width < 4 and "master_dtype" not in given else 0, **sizes}


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
    """Items a thread and vector width of an elementwise kernel, reduction, softmax, norm, halo or optimizer step.

    Parameters
    ----------
    kind : str
        ``elementwise``, ``reduction``, ``softmax``, ``norm``, ``dequantize``, ``halo``, ``sgd``, ``momentum`` or
        ``adam``.
    items : int
        Of the output; of the input for a reduction; parameters of an optimizer step.
    dtype : str
        Of the items; of the output for ``dequantize``; of the parameters of an optimizer step.
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
    >>> pebble.stream("adam", 10**9, gpu="h100-sxm5-80gb").model.kernel.compulsory_bytes  # 28 bytes a parameter
    28000000000
    """
    chip = chip_of(gpu, machine)
    check_options(options, StreamShape.__optional_keys__, "stream")
    counts = {name: value for name, value in options.items() if value is not None and name not in _OF_STEPS.values()}
    sizes = {name: whole(f"--{name}", value, 1, 2**50) for name, value in counts.items()}
    sizes |= _step_bytes(kind, dtype, options)
    kernel = StreamKernel(kind, whole("--items", items, 1, 2**50), element_bytes(dtype), **sizes)
    latency, rate = dram_constants(chip)
    if dram_latency is not None:
        latency = own_constant("dram_latency", dram_latency)
    return Stream(chip, stream_model(chip, kernel, latency.value * rate.value), latency, rate)
