r"""``audit``: what each operation of a model must move, alone and fused, and what fusing can save at most.

**One kernel an operation.** Each kernel finds its operands in slow memory and leaves its results there, so it moves at
least each operand and each result once; a product, a convolution or attention at least what its theorem says with all
of the chip's memory, and its other operands (a bias) besides.

**The graph.** However operations are fused, inputs and weights that are read come once and outputs leave once; an
intermediate may stay on chip. A product that shares none of its operands with another operation moves at least what
it moves alone, less what others hand to it, and less its result if that need not be stored; if either is so, where
every value is computed once. *Proof.* From a schedule of the graph keep the moves and computations of the product's
values, load each operand that another computes when that is complete, and store each result then that is not stored:
a schedule of the product alone, in the same memory. Transfers of a complete value belong to its reader, so none
counts twice (Theorem 6). The same holds of two products in a row with an activation between. What the product owns of
inputs and outputs is the least of its part.

**Saved at most:** the floor of one kernel an operation, less that of the graph. Of a tensor in between: its store, and
a load by each reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pebble.errors import InfeasibleError, InputError, PebbleError
from pebble.families import family_of
from pebble.graphs.graph import Graph, Operation
from pebble.models.machine import Machine
from pebble.models.rates import peak_dram, peak_operations
from pebble.reports.capacity import chip_capacity
from pebble.reports.report import Report
from pebble.units import format_bytes, format_ratio, format_seconds
from pebble.workloads.workload import Workload

_SUMS = 4  # bytes of a partial sum: matrix units accumulate in fp32


@dataclass(frozen=True)
class OperationFloor:
    """The least that an operation moves and takes."""

    operation: Operation
    alone_bytes: int  #: as a kernel of its own
    fused_bytes: int  #: of its inputs and outputs of the graph, each counted at one operation
    part_bytes: int  #: what a theorem adds to that in the graph
    once: bool  #: whether that needs every value to be computed once
    multiply_adds: int  #: that every algorithm makes
    alone_seconds: float
    theorem: str

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        workload = self.operation.workload
        return {
            "name": self.operation.name,
            "kind": self.operation.kind,
            "known": self.operation.known,
            "workload": None if workload is None else workload.label,
            "alone_bytes": self.alone_bytes,
            "alone_us": 1e6 * self.alone_seconds,
            "fused_bytes": self.fused_bytes + self.part_bytes,
            "theorem": self.theorem,
        }


@dataclass(frozen=True)
class Between:
    """A tensor that one operation writes and others read."""

    name: str
    bytes: int  #: moved if it goes through memory
    writer: str
    readers: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"tensor": self.name, "bytes": self.bytes, "writer": self.writer, "readers": list(self.readers)}


@dataclass(frozen=True)
class WrittenOut:
    """Attention in several operations: a product, a softmax of it, a product with that."""

    operations: tuple[str, ...]
    alone_bytes: int  #: one kernel an operation
    fused_bytes: int  #: what comes from outside, and the result, once

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        fields = {"alone_bytes": self.alone_bytes, "fused_bytes": self.fused_bytes}
        return {"operations": list(self.operations), **fields}


@dataclass(frozen=True, repr=False)
class Audit(Report):
    """The floors of a graph of operations.

    Attributes
    ----------
    graph : Graph
    gpu : Machine
    measured : mapping of str to int
        DRAM bytes of operations whose kernels were measured.

    Raises
    ------
    InputError
        Measured is an operation that is not there.
    """

    graph: Graph
    gpu: Machine
    measured: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = {operation.name for operation in self.graph.operations}
        if strange := [name for name in self.measured if name not in names]:
            some = ", ".join(sorted(names)[:6])
            raise InputError(f"measured: got {strange[0]!r}, expected operations of {self.graph.name}, such as {some}.")

    question = "audit"
    table_keys = ("name", "kind", "alone_bytes", "fused_bytes", "theorem")
    bar_keys = ("alone_bytes",)

    @property
    def machine(self) -> Machine | None:
        return self.gpu

    @cached_property
    def floors(self) -> tuple[OperationFloor, ...]:
        """Of every operation that moves anything."""
        known: dict[Workload, tuple[int, str]] = {}
        results = {operation.name: self._floor(operation, known) for operation in self.graph.operations}
        for operation in self.graph.operations:
            if operation.chain is None or self.graph.needed.get(operation.name) != "all":
                continue
            between = self.graph.writers[operation.reads[0].tensor]
            first = self.graph.writers[between.reads[0].tensor]
            if operation.chain not in known:
                known[operation.chain] = _bound(operation.chain, self.gpu, recompute=False)
            part, _ = self._part((first, between, operation), known[operation.chain][0])
            if part > results[first.name].part_bytes + results[operation.name].part_bytes:
                results[first.name] = replace(results[first.name], part_bytes=0, once=False)
                results[operation.name] = replace(results[operation.name], part_bytes=part, once=True)
        return tuple(results.values())

    def _floor(self, operation: Operation, known: dict[Workload, tuple[int, str]]) -> OperationFloor:
        graph, workload, own = self.graph, operation.workload, self.graph.fused[operation.name]
        work = workload or operation.work
        traffic = graph.bytes_of(operation.reads) + graph.bytes_of(operation.writes)
        theorem, part, once = "each operand and result once", 0, False
        adds = work.multiply_adds if work is not None and operation.counted else 0
        if workload is not None:
            if workload not in known:
                known[workload] = _bound(workload, self.gpu)
            bound, name = known[workload]
            extra = graph.bytes_of([use for use in operation.reads if use.extra])
            if bound + extra > traffic:
                traffic, theorem = bound + extra, name
            if graph.needed.get(operation.name) == "all":
                part, once = self._part((operation,), bound)
        seconds = max(self.dram_seconds(traffic), self._work_seconds(work, adds))
        return OperationFloor(operation, traffic, sum(own.values()), part, once and part > 0, adds, seconds, theorem)

    def _part(self, chain: tuple[Operation, ...], bound: int) -> tuple[int, bool]:
        """Bytes of the values of an operation, or several in a row, that a theorem adds in the graph, none where one
        shares an operand; and whether values must be computed once."""
        graph = self.graph
        inside = {use.tensor for operation in chain[:-1] for use in operation.writes}
        reads = [use for operation in chain for use in operation.reads if not use.extra]
        operands = [use for use in reads if use.tensor not in inside]
        names = [use.tensor for use in reads]
        if any(graph.tensors[name].parent or len(graph.readers[name]) > 1 or name in graph.stored for name in names):
            return 0, False
        own = {name: traffic for operation in chain for name, traffic in graph.fused[operation.name].items()}
        least = sum(own.get(name, 0) for name in (*names, *(use.tensor for use in chain[-1].writes)))
        handed = graph.bytes_of([use for use in operands if graph.tensors[use.tensor].role == "computed"])
        result = sum(graph.bytes_of([use]) - own.get(use.tensor, 0) for use in chain[-1].writes)  # some may be stored
        return max(0, bound - handed - result - least), handed + result > 0

    def dram_seconds(self, traffic: int) -> float:
        """Of bytes at the peak of DRAM."""
        rate = peak_dram(self.gpu)
        return 0.0 if rate is None else traffic / rate.per_second

    def _work_seconds(self, workload: Workload | None, adds: int) -> float:
        if workload is None or not adds:
            return 0.0
        types = {workload.dtype, "bf16"} if workload.dtype == "fp32" else {workload.dtype}  # tf32 is slower than bf16
        rates = [rate for dtype in types for sums in ("fp32", "fp16") if (rate := _peak(self.gpu, dtype, sums))]
        return 2 * adds / max(rates) if rates else 0.0

    @cached_property
    def floor_bytes(self) -> int:
        """Of the graph, however it is fused, every value computed once."""
        return sum(floor.fused_bytes + floor.part_bytes for floor in self.floors)

    @property
    def computed_once(self) -> bool:
        """Whether the floor is about schedules that compute nothing twice."""
        return any(floor.once for floor in self.floors)

    @property
    def compulsory_bytes(self) -> int:
        """Inputs that are read and outputs, once each: with recomputation too."""
        return sum(floor.fused_bytes for floor in self.floors)

    @cached_property
    def floor_parts(self) -> dict[str, int]:
        """Bytes of the floor: weights, KV cache, inputs and outputs once, and what theorems on products add."""
        roles = {"weight": "weights", "cache": "KV cache", "input": "inputs", "computed": "outputs"}
        result = dict.fromkeys(roles.values(), 0)
        for own in self.graph.fused.values():
            for name, traffic in own.items():
                result[roles[self.graph.tensors[name].role]] += traffic
        return result | {"products": sum(floor.part_bytes for floor in self.floors)}

    @property
    def floor_seconds(self) -> float:
        """The longer of all multiply-adds and of DRAM."""
        whole = (floor for floor in self.floors if self.graph.needed.get(floor.operation.name) == "all")
        works = ((floor.operation.workload or floor.operation.work, floor.multiply_adds) for floor in whole)
        work = sum(self._work_seconds(*of) for of in works)
        return max(work, self.dram_seconds(self.floor_bytes))

    @property
    def alone_bytes(self) -> int:
        """One kernel an operation; of those that are not known only what they write."""
        unknown = sum(self.graph.bytes_of(floor.operation.writes) for floor in self.unknown)
        return unknown + sum(floor.alone_bytes for floor in self.floors if floor.operation.known)

    @property
    def alone_seconds(self) -> float:
        """The same in time, one after the other."""
        unknown = sum(self.graph.bytes_of(floor.operation.writes) for floor in self.unknown)
        known = sum(floor.alone_seconds for floor in self.floors if floor.operation.known)
        return self.dram_seconds(unknown) + known

    @property
    def unknown(self) -> tuple[OperationFloor, ...]:
        """Operations of which it is not known what they read."""
        return tuple(floor for floor in self.floors if not floor.operation.known)

    @cached_property
    def between(self) -> tuple[Between, ...]:
        """Tensors that fusing can keep on chip, those that move most first."""
        graph = self.graph
        results = []
        for operation in graph.operations:
            for use in operation.writes:
                name, readers = use.tensor, graph.readers.get(use.tensor, ())
                if not readers:
                    continue
                loads = sum(
                    graph.bytes_of([u for u in reader.reads if graph.root(u.tensor) == name]) for reader in readers
                )
                traffic = loads + graph.bytes_of([use]) - graph.fused[operation.name].get(name, 0)  # stored anyway
                results.append(Between(name, traffic, operation.name, tuple(reader.name for reader in readers)))
        return tuple(sorted(results, key=lambda item: -item.bytes))

    @cached_property
    def written_out(self) -> tuple[WrittenOut, ...]:
        """Attention that is written out, and what it moves as one kernel at least."""
        graph, alone = self.graph, {floor.operation.name: floor.alone_bytes for floor in self.floors}
        results = []
        for softmax in (operation for operation in graph.operations if operation.kind == "softmax"):
            back, here = [softmax], softmax
            while here.kind in ("softmax", "elementwise") and here.reads:
                result = graph.writers.get(graph.root(here.reads[0].tensor))
                if result is None:
                    break
                here = result
                back.append(here)
            onward, there = list[Operation](), softmax
            while there.kind in ("softmax", "elementwise"):
                readers = graph.readers.get(there.writes[0].tensor, ())
                if len(readers) != 1:
                    break
                there = readers[0]
                onward.append(there)
            if here.kind != "product" or there.kind != "product":
                continue
            chain = [*reversed(back), *onward]
            inside = {use.tensor for operation in chain[:-1] for use in operation.writes}
            reads = [use for op in chain for use in op.reads if graph.root(use.tensor) not in inside]
            least = graph.bytes_of(reads) + graph.bytes_of(chain[-1].writes)
            names = tuple(operation.name for operation in chain)
            results.append(WrittenOut(names, sum(alone[name] for name in names), least))
        return tuple(results)

    def summary(self) -> str:
        return (
            f"{self.graph.name} on {self.gpu.name}: at least {format_bytes(self.floor_bytes)}, "
            f"{format_seconds(self.floor_seconds)}, however it is fused; one kernel an operation at least "
            f"{format_bytes(self.alone_bytes)}, {format_seconds(self.alone_seconds)}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per operation, in order; with what was measured, if anything was."""
        result = [floor.to_json() for floor in self.floors]
        for row in result if self.measured else ():
            traffic = self.measured.get(row["name"])
            over = traffic / row["alone_bytes"] if traffic is not None and row["alone_bytes"] else None
            row |= {"measured_bytes": traffic, "measured_over_alone": over}
        return result

    @property
    def measured_over_alone(self) -> float | None:
        """What measured kernels move over the proved least of the same operations; None where none was measured."""
        alone = sum(floor.alone_bytes for floor in self.floors if floor.operation.name in self.measured)
        return sum(self.measured.values()) / alone if alone else None

    @property
    def badge(self) -> dict[str, Any] | None:
        """What shields.io draws of an endpoint: kernels that were measured over their floors; None where none was."""
        over = self.measured_over_alone
        if over is None:
            return None
        shades = ((1.0, "lightgrey"), (1.1, "brightgreen"), (1.5, "green"), (3.0, "yellow"), (float("inf"), "orange"))
        color = next(color for below, color in shades if over < below)  # below 1 operands were in the cache
        message = f"{format_ratio(over, '.2f')}x the proved least"
        return {"schemaVersion": 1, "label": "DRAM traffic", "message": message, "color": color}

    def document(self) -> dict[str, Any]:
        return {
            "target": self.graph.name,
            **({"assumption": self.graph.assumption} if self.graph.assumption else {}),
            "graph": {
                "floor_bytes": self.floor_bytes,
                "floor_us": 1e6 * self.floor_seconds,
                "floor_parts_bytes": {name.replace(" ", "_").lower(): n for name, n in self.floor_parts.items()},
                "compulsory_bytes": self.compulsory_bytes,
                "one_kernel_an_operation_bytes": self.alone_bytes,
                "one_kernel_an_operation_us": 1e6 * self.alone_seconds,
                "saved_by_fusing_at_most_bytes": self.alone_bytes - self.floor_bytes,
                "computed_once": self.computed_once,
                "measured_over_alone": self.measured_over_alone,
            },
            "operations": self.rows(),
            "views": self.graph.views,
            "between": [item.to_json() for item in self.between],
            "attention_written_out": [item.to_json() for item in self.written_out],
            "unknown": [floor.operation.name for floor in self.unknown],
        }


def _bound(workload: Workload, machine: Machine, recompute: bool = True) -> tuple[int, str]:
    """Bytes that a kernel of it moves at least, and why; 0 where the chip holds no multiply-add."""
    try:
        capacity = chip_capacity(machine, workload, _SUMS)
        bound = family_of(workload).lower_bound(workload, capacity.elements, recompute, capacity.memory)
    except InfeasibleError:
        return 0, ""
    return bound.bytes, bound.theorem.name


def _peak(machine: Machine, dtype: str, sums: str) -> float | None:
    try:
        rate = peak_operations(machine, dtype, sums)
    except PebbleError:
        return None
    return None if rate is None else rate.per_second
