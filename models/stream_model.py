"""Kernels that memory binds: how many items a thread should have, and how wide its loads, from bytes in flight.

By Little's law latency times bandwidth must be under way for the whole bandwidth. Threads that are resident each keep
``unroll`` loads of ``vector`` bytes under way; so items a thread follow from what an SM holds of threads. Among the
ways that keep enough under way the one with the fewest loads a thread is taken, then the widest vector: the fewest
instructions. Where none keeps enough, the one that keeps most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pebble.errors import InputError, UnknownNameError
from pebble.models.kernel_fit import OTHER_REGISTERS
from pebble.models.machine import Machine
from pebble.units import ceil_div

KINDS: dict[str, str] = {
    "elementwise": "y := f(x1, x2, ...), --inputs arrays",
    "reduction": "one sum of all items",
    "softmax": "of each row of --row items; a row that a block can keep is read once, else twice",
    "norm": "layer or RMS norm of each row of --row items, as softmax; weights stay in cache",
    "dequantize": "weights of --bits bits with a 16-bit scale for each --group of them",
    "halo": "a convolution of (2 RADIUS + 1)^2 on square tiles of --side outputs: each block also reads its halo",
    "sgd": "an optimizer step: parameters and gradients; weights in fp32 beside narrower parameters (--master-dtype)",
    "momentum": "the same with one moment of each parameter (--moment-dtype)",
    "adam": "the same with two moments of each parameter",
}
MOMENTS = {"sgd": 0, "momentum": 1, "adam": 2}  # of each parameter, by optimizer
VECTOR_BYTES = (16, 8, 4, 2, 1)  # widths of a load instruction
UNROLLS = (1, 2, 4, 8)
THREADS = 256
_SCALE_BITS = 16
_ITEM_REGISTERS = 64  # of a thread, for the items of a row that a block keeps
_MOST_THREADS, _MOST_BLOCKS, _MOST_REGISTERS, _REGISTER_BYTES = 1024, 32, 255, 4


@dataclass(frozen=True)
class StreamArray:
    """An array of an optimizer step: its name, bytes of an item, and whether items are read and written."""

    name: str
    item_bytes: int
    read: bool
    written: bool


@dataclass(frozen=True)
class StreamKernel:
    """A kernel that reads and writes its items in order.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    items : int
        Items of the output; of the input for a reduction.
    value_bytes : int
        Of an item of the input; of the output for ``dequantize``.
    inputs, row, bits, group, side, radius : int
        See `KINDS`; ``row`` 0: one row.
    threads : int
        Of a block.
    gradient_bytes, moment_bytes, master_bytes : int
        Of an optimizer step: of a gradient (0: as of a parameter), of a moment, and of a weight that is kept beside its
        parameter (0: none is, and the parameter itself is read and written).

    Raises
    ------
    UnknownNameError
        Another kind.
    InputError
        A number below 1, threads that are no multiple of 32, or rows that do not divide the items.
    """

    kind: str
    items: int
    value_bytes: int
    inputs: int = 1
    row: int = 0
    bits: int = 4
    group: int = 128
    side: int = 16
    radius: int = 1
    threads: int = THREADS
    gradient_bytes: int = 0
    moment_bytes: int = 4
    master_bytes: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownNameError("kernel", self.kind, KINDS, "pebble stream --help")
        for name in ("items", "value_bytes", "inputs", "bits", "group", "side", "radius", "threads"):
            value = vars(self)[name]
            if not 1 <= value <= 2**50:
                raise InputError(f"--{name}: got {value}, expected a whole number from 1 to 2^50.")
        if self.threads % 32 or self.threads > _MOST_THREADS:
            raise InputError(f"--threads: got {self.threads}, expected a multiple of 32 up to {_MOST_THREADS}.")
        if self.bits not in (1, 2, 3, 4, 6, 8):
            raise InputError(f"--bits: got {self.bits}, expected 1, 2, 3, 4, 6 or 8 bits of a weight.")
        if self.row and self.items % self.row:
            raise InputError(f"--row: got {self.row}, expected a divisor of the {self.items} items.")

    @property
    def arrays(self) -> tuple[StreamArray, ...]:
        """What an optimizer step reads and writes of each parameter, once; nothing of another kernel."""
        if self.kind not in MOMENTS:
            return ()
        kept = self.master_bytes > 0
        moments = [StreamArray(f"moment {n + 1}", self.moment_bytes, True, True) for n in range(MOMENTS[self.kind])]
        return (
            StreamArray("gradients", self.gradient_bytes or self.value_bytes, True, False),
            *([StreamArray("master weights", self.master_bytes, True, True)] if kept else []),
            *moments,
            StreamArray("parameters", self.value_bytes, not kept, True),
        )

    @property
    def row_items(self) -> int:
        """Items of a row."""
        return self.row or self.items

    @property
    def keeps_row(self) -> bool:
        """Whether the threads of a block can keep a row in registers, as softmax and norm want."""
        return self.row_items * self.value_bytes <= self.threads * _ITEM_REGISTERS * _REGISTER_BYTES

    @property
    def passes(self) -> int:
        """Times that the input is read from memory or L2."""
        return 2 if self.kind in ("softmax", "norm") and not self.keeps_row else 1

    @property
    def load_bits(self) -> float:
        """Bits that are loaded for an item, each time it is read."""
        value = 8 * self.value_bytes
        if self.arrays:
            return 8 * sum(array.item_bytes for array in self.arrays if array.read)
        if self.kind == "elementwise":
            return self.inputs * value
        if self.kind == "dequantize":
            return self.bits + _SCALE_BITS / self.group
        if self.kind == "halo":
            return value * (self.side + 2 * self.radius) ** 2 / self.side**2
        return value

    @property
    def item_bits(self) -> int:
        """Bits of an item of one array that is loaded, of several the widest."""
        if self.arrays:
            return 8 * max(array.item_bytes for array in self.arrays if array.read)
        return self.bits if self.kind == "dequantize" else 8 * self.value_bytes

    @property
    def load_bytes(self) -> int:
        """Bytes that all blocks load."""
        return round(self.items * self.load_bits * self.passes / 8)

    @property
    def store_bytes(self) -> int:
        """Bytes that they store."""
        if self.arrays:
            return self.items * sum(array.item_bytes for array in self.arrays if array.written)
        return 0 if self.kind == "reduction" else self.items * self.value_bytes

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that cross DRAM at least: a halo and a second pass may come from L2."""
        loads = self.items * (8 * self.value_bytes if self.kind == "halo" else self.load_bits) / 8
        return round(loads) + self.store_bytes


@dataclass(frozen=True)
class StreamPlan:
    """One way to write the kernel.

    Attributes
    ----------
    vector_bytes, unroll : int
        Width of a load, and loads of each array that a thread issues before it uses the first.
    items_per_thread : int
        That these loads bring.
    registers_per_thread : int
        About.
    threads_per_sm : int
        Resident on an SM, as limits and the size of the problem allow.
    bytes_in_flight : float
        On an SM.
    share : float
        Of what Little's law asks for; at least 1 is enough for the whole bandwidth.
    waves : int
        Rounds of blocks, where a thread does no more than its items.
    """

    vector_bytes: int
    unroll: int
    items_per_thread: int
    registers_per_thread: int
    threads_per_sm: int
    bytes_in_flight: float
    share: float
    waves: int

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return dict(vars(self))


@dataclass(frozen=True)
class StreamModel:
    """What Little's law asks for, and the ways to have it.

    Attributes
    ----------
    kernel : StreamKernel
    needed_bytes : float
        In flight on an SM, for the whole bandwidth of DRAM.
    plans : tuple of StreamPlan
        The one to take first.
    least_seconds : float
        Compulsory bytes over bandwidth.
    """

    kernel: StreamKernel
    needed_bytes: float
    plans: tuple[StreamPlan, ...]
    least_seconds: float

    @property
    def best(self) -> StreamPlan:
        """The one to take."""
        return self.plans[0]


def stream_model(machine: Machine, kernel: StreamKernel, needed_bytes: float) -> StreamModel:
    """Rank vector widths and items a thread.

    Parameters
    ----------
    machine : Machine
    kernel : StreamKernel
    needed_bytes : float
        In flight on an SM for the whole bandwidth: latency of a miss times the SM's share of DRAM.

    Returns
    -------
    StreamModel
        Cost: none to speak of.

    Raises
    ------
    InputError
        No load fits the rows: they are not whole bytes.
    """
    plans = [_plan(machine, kernel, needed_bytes, machine.sms, *way) for way in _launch_shapes(kernel)]
    if not plans:
        raise InputError(
            f"--row: got {kernel.row_items} items of {kernel.item_bits} bits, expected rows of whole bytes; pad "
            "the rows."
        )
    bandwidth = machine.dram_bytes_per_second or math.inf
    return StreamModel(kernel, needed_bytes, tuple(sorted(plans, key=_rank)), kernel.compulsory_bytes / bandwidth)


def _launch_shapes(kernel: StreamKernel) -> Iterator[tuple[int, int]]:
    row_bits = kernel.row_items * kernel.item_bits
    for vector in VECTOR_BYTES:
        whole = row_bits % (8 * vector) == 0 and vector * 8 % kernel.item_bits == 0  # else loads are not aligned
        if whole or (kernel.kind == "dequantize" and row_bits % (8 * vector) == 0):
            for unroll in UNROLLS:
                yield vector, unroll


def _plan(
    machine: Machine, kernel: StreamKernel, needed: float, sms: int, vector: int, unroll: int
) -> StreamPlan:  # fmt: skip
    arrays = kernel.inputs if kernel.kind == "elementwise" else 1
    items = 8 * vector * unroll // kernel.item_bits
    # a narrower array of an optimizer step has narrower loads of as many items
    loaded = round(items * kernel.load_bits / 8) if kernel.arrays else vector * unroll * arrays
    if kernel.kind in ("softmax", "norm") and kernel.keeps_row:  # each thread keeps its part of the row
        items = max(items, ceil_div(kernel.row_items, kernel.threads))
    # what was loaded, and for weights also what they unpack to
    unpacked = 0 if kernel.arrays else items * kernel.value_bytes
    held = loaded + unpacked if kernel.kind == "dequantize" else max(loaded, unpacked * arrays)
    registers = OTHER_REGISTERS + ceil_div(held, _REGISTER_BYTES)
    by_registers = machine.store_bytes("registers_per_sm") // (ceil_div(registers, 8) * 8 * _REGISTER_BYTES)
    limit = machine.limit("threads_per_sm") or _MOST_THREADS
    slots = min(machine.limit("blocks_per_sm") or _MOST_BLOCKS, min(limit, by_registers) // kernel.threads)
    if registers > (machine.limit("registers_per_thread") or _MOST_REGISTERS):
        slots = 0
    blocks = ceil_div(kernel.items, items * kernel.threads)
    resident = min(slots, ceil_div(blocks, sms)) * kernel.threads
    # a problem too small for all threads keeps only itself under way
    in_flight = min(resident * loaded, kernel.items * kernel.load_bits / 8 / sms)
    waves = ceil_div(blocks, slots * sms) if slots else 0
    return StreamPlan(vector, unroll, items, registers, resident, in_flight, in_flight / needed, waves)


def _rank(plan: StreamPlan) -> tuple[bool, float, int, int]:
    enough = plan.share >= 1
    return not enough, 0.0 if enough else -plan.share, plan.unroll, -plan.vector_bytes
