"""Whether a kernel can exist on a GPU: what its blocks keep on an SM, beside what an SM has.

A block keeps its accumulators in registers (in tensor memory where the SM has one), and in shared memory the input
tiles that it keeps and ``stages`` sets of those that stream by. Accumulators are fp32 whatever the inputs are. They are
dealt to the fewest threads that can have them, each of which also needs ``OTHER_REGISTERS``.

The estimate is lenient on purpose: a kernel that is refused cannot be written, one that is admitted may still spill.
So a kernel that fits never holds more values than the SMs have room for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pebble.models.machine import Machine
from pebble.units import format_capacity

ACCUMULATOR_BYTES = 4
OTHER_REGISTERS = 32
"""Registers of a thread beside its accumulators: fragments of the operands, addresses, counters. A guess: CUTLASS
leaves a Hopper consumer 240 registers, whose tiles have at most 208 accumulators a thread."""
MAX_STAGES = 64
# What holds where a machine file says nothing: every NVIDIA GPU of compute capability 3.5 or more
_REGISTERS_PER_THREAD, _THREADS_PER_BLOCK, _WARP = 255, 1024, 32
_RESERVED_BYTES = 1024  # of shared memory, for each block, where a block cannot have all of it
_MOST_BLOCKS = 64  # at once on an SM, where the machine file gives no limit
_REGISTER_BYTES, _REGISTER_GRANULE = 4, 8  # registers are given to threads in eights


@dataclass(frozen=True)
class KernelNeeds:
    """What one block of a kernel keeps on its SM.

    Attributes
    ----------
    accumulators : int
        Values in fp32.
    resident : int
        Input values in shared memory as long as the block runs.
    stage : int
        Input values of one stage: the tiles of one step.
    stages : int
        Steps whose tiles are there at once.
    value_bytes : int
        Width of an input value.
    stage_more_bytes : int
        Shared memory of a stage beside its tiles: scales, barriers.
    more_bytes : int
        Shared memory beside the stages: a tile of the output, what else is kept.
    threads : int
        Of the block; 0: the fewest that can have the accumulators.
    """

    accumulators: int
    resident: int
    stage: int
    stages: int
    value_bytes: int
    stage_more_bytes: int = 0
    more_bytes: int = 0
    threads: int = 0

    @property
    def values(self) -> int:
        """Values of any kind that the block holds."""
        return self.accumulators + self.resident + self.stages * self.stage

    @property
    def accumulator_bytes(self) -> int:
        """Bytes of the accumulators."""
        return self.accumulators * ACCUMULATOR_BYTES

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory."""
        return self.resident * self.value_bytes + self.stages * self.stage_bytes + self.more_bytes

    @property
    def stage_bytes(self) -> int:
        """Bytes of shared memory of one stage."""
        return self.stage * self.value_bytes + self.stage_more_bytes


@dataclass(frozen=True)
class Over:
    """A limit that a kernel breaks.

    Attributes
    ----------
    limit : str
        As the machine file calls it: ``registers_per_sm``, ``shared_per_block`` ...
    needed, available : int
        Bytes of a store; registers, threads or blocks else.
    """

    limit: str
    needed: int
    available: int

    def __str__(self) -> str:
        if self.limit.endswith(("thread", "blocks_per_sm")) or self.limit.startswith("threads"):
            what = self.limit.replace("_sm", "_SM").replace("_", " ")
            return f"{self.needed:,} {what}, of which there are {self.available:,}"
        store, of = self.limit.replace("_", " ").split(" per ")
        of = {"sm": "an SM", "block": "a block"}[of]
        store = {"shared": "shared memory"}.get(store, store)
        return f"{format_capacity(self.needed)} of {store}, of which {of} has {format_capacity(self.available)}"


@dataclass(frozen=True)
class Fit:
    """How a kernel sits on an SM.

    Attributes
    ----------
    needs : KernelNeeds
        Of one block.
    blocks_per_sm : int
        Blocks that run at once on the SM.
    threads : int
        Of one block.
    registers_per_thread : int
    register_bytes, tensor_bytes, shared_bytes : int
        Of the SM, all its blocks together; shared memory with what the system reserves.
    over : tuple of Over
        The limits that it breaks; empty for a kernel that can exist.
    """

    needs: KernelNeeds
    blocks_per_sm: int
    threads: int
    registers_per_thread: int
    register_bytes: int
    tensor_bytes: int
    shared_bytes: int
    over: tuple[Over, ...]

    @property
    def fits(self) -> bool:
        """Whether the kernel can exist."""
        return not self.over

    @property
    def accumulators_per_thread(self) -> int:
        """Accumulators in the registers of each thread; 0 where they stand in tensor memory."""
        return 0 if self.tensor_bytes else -(-self.needs.accumulators // self.threads)

    def to_json(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "accumulator_bytes_per_block": self.needs.accumulator_bytes,
            "shared_bytes_per_block": self.needs.shared_bytes,
            "threads_per_block": self.threads,
            "registers_per_thread": self.registers_per_thread,
            "register_bytes_per_sm": self.register_bytes,
            "tensor_memory_bytes_per_sm": self.tensor_bytes,
            "shared_bytes_per_sm": self.shared_bytes,
            "limits_broken": [over.limit for over in self.over],
        }


def fits(machine: Machine, needs: KernelNeeds, blocks_per_sm: int = 1) -> Fit:
    """How a kernel sits on an SM of a machine, and which limits it breaks.

    A limit that the machine file leaves out is not checked; shared memory is then the whole store, and registers,
    threads of a block and warps are those of any NVIDIA GPU.

    Parameters
    ----------
    machine : Machine
    needs : KernelNeeds
        Of one block.
    blocks_per_sm : int
        Blocks that run at once on an SM.

    Returns
    -------
    Fit
        Cost: none to speak of.

    Examples
    --------
    >>> from pebble.models.machine import load_machine
    >>> h100 = load_machine("h100-sxm5-80gb")
    >>> fits(h100, KernelNeeds(128 * 256, 0, 64 * (128 + 256), 4, 2)).fits
    True
    >>> str(fits(h100, KernelNeeds(512 * 512, 0, 64 * 1024, 1, 2)).over[0])
    '1.12 MiB of registers, of which an SM has 256 KiB'
    """
    tensor = machine.store_bytes("tensor_memory_per_sm")
    in_registers = 0 if tensor else needs.accumulators
    most = machine.limit("registers_per_thread") or _REGISTERS_PER_THREAD
    threads, each = _threads(machine, in_registers, most, needs.threads)
    allocated = -(-each // _REGISTER_GRANULE) * _REGISTER_GRANULE
    shared, per_block = _shared_limits(machine)
    reserved = min(_RESERVED_BYTES, shared - per_block)
    result = Fit(
        needs,
        blocks_per_sm,
        threads,
        each,
        blocks_per_sm * threads * allocated * _REGISTER_BYTES,
        blocks_per_sm * needs.accumulator_bytes if tensor else 0,
        blocks_per_sm * (needs.shared_bytes + reserved),
        (),
    )
    checks = (  # what no tile can mend comes first
        ("blocks_per_sm", blocks_per_sm, machine.limit("blocks_per_sm")),
        ("registers_per_sm", result.register_bytes, machine.store_bytes("registers_per_sm")),
        ("tensor_memory_per_sm", result.tensor_bytes, tensor),
        ("shared_per_block", needs.shared_bytes, per_block),
        ("shared_per_sm", result.shared_bytes, shared),
        ("registers_per_thread", each, most),
        ("threads_per_block", threads, machine.limit("threads_per_block")),
        ("threads_per_sm", blocks_per_sm * threads, machine.limit("threads_per_sm")),
    )
    return replace(result, over=tuple(Over(*check) for check in checks if check[1] > check[2] > 0))


def most_stages(machine: Machine, needs: KernelNeeds, blocks_per_sm: int = 1) -> int:
    """The most stages whose tiles fit in shared memory, from 1 to ``MAX_STAGES``; 1 also where not even one fits."""
    shared, per_block = _shared_limits(machine)
    reserved = min(_RESERVED_BYTES, shared - per_block)
    resident = needs.resident * needs.value_bytes + needs.more_bytes
    capacity = min(per_block, shared // blocks_per_sm - reserved) - resident
    return max(1, min(MAX_STAGES, capacity // needs.stage_bytes))


def most_blocks(machine: Machine, needs: KernelNeeds) -> Fit:
    """How the kernel sits with as many blocks at once as an SM takes; with one where not even that fits."""
    result = fits(machine, needs)
    while result.fits:
        more = fits(machine, needs, result.blocks_per_sm + 1)
        if not more.fits or more.blocks_per_sm > _MOST_BLOCKS:
            break
        result = more
    return result


def warp_threads(machine: Machine) -> int:
    """Threads of a warp, or of what takes its place."""
    return machine.limit("threads_per_warp") or _WARP


def _threads(machine: Machine, accumulators: int, most: int, threads: int) -> tuple[int, int]:
    """The threads that were asked for, else the fewest that can have the accumulators; and the registers of each.

    The fewest are a power of two or a multiple of four warps.
    """
    if threads:
        return threads, -(-accumulators // threads) + OTHER_REGISTERS
    warp = warp_threads(machine)
    limit = machine.limit("threads_per_block") or _THREADS_PER_BLOCK
    for warps in (1, 2, *range(4, limit // warp + 1, 4)):
        threads = warps * warp
        each = -(-accumulators // threads) + OTHER_REGISTERS
        if each <= most:
            break
    return threads, each


def _shared_limits(machine: Machine) -> tuple[int, int]:
    """Shared memory of an SM and of a block, in bytes."""
    store = machine.store_bytes("l1_shared_per_sm") or machine.store_bytes("lds_per_sm")
    shared = min(store, machine.shared_bytes_per_sm or store)
    return shared, min(shared, machine.shared_bytes_per_block or shared)
