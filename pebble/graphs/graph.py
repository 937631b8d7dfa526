"""A graph of operations on tensors: what each must read and write, with views resolved to what they look at.

Every count is from below: what an operation surely reads, however it is written. A view of a tensor moves nothing; what
is read through it is at most what it shows, and at most what each tensor on the way to the stored one holds (``expand``
shows values more than once). Of what an index chooses only the least is counted.

What is written in place, over an input or over a part of a tensor, is taken off what is read of that tensor.

An operation of whose result only a part is used need not be done whole: in the graph nothing is counted of what it
reads. Where a mask hides values of a result, whatever made them is taken to read its operands (each row of a mask
leaves something), but not to do all of its work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from pebble.workloads.workload import Workload

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Tensor:
    """What is stored by itself: an input, a weight, or what an operation computes."""

    name: str
    elements: int
    width: int  #: bytes of an element
    role: str  #: ``input``, ``weight``, ``cache`` (keys and values of earlier tokens) or ``computed``
    parent: str = ""  #: of a piece that shares no element with its siblings: what it is a piece of


@dataclass(frozen=True)
class Use:
    """Elements of a tensor that are surely read, or written."""

    tensor: str
    elements: int
    extra: bool = False  #: no operand of the operation's workload
    masked: bool = False  #: all of it, but for what a mask hides


@dataclass(frozen=True)
class Operation:
    """What one kernel does."""

    name: str
    kind: str
    reads: tuple[Use, ...]
    writes: tuple[Use, ...]
    workload: Workload | None = None
    known: bool = True
    counted: bool = True  #: whether every algorithm makes its multiply-adds (a convolution may be made with fewer)
    chain: Workload | None = None  #: with the product before it and what is between: two products in a row
    work: Workload | None = None  #: whose multiply-adds it makes, where no theorem on its bytes is used


@dataclass(frozen=True)
class Graph:
    """Operations in an order in which they can run."""

    name: str
    tensors: Mapping[str, Tensor]
    operations: tuple[Operation, ...]
    outputs: tuple[Use, ...]
    views: int = 0  #: operations that move nothing
    overwritten: Mapping[str, int] = field(default_factory=dict)  #: elements written in place, by stored tensor
    assumption: str = ""  #: of the values, on which what is read depends

    def bytes_of(self, uses: Sequence[Use]) -> int:
        """Bytes of elements, each counted once however many uses there are."""
        counts: dict[str, int] = {}
        for use in uses:
            counts[use.tensor] = max(counts.get(use.tensor, 0), use.elements)
        whole: dict[str, int] = {}
        for name, count in counts.items():
            parent = self.tensors[name].parent
            if parent:  # siblings share nothing
                whole[parent] = whole.get(parent, 0) + count
        for parent, count in whole.items():
            counts[parent] = max(counts.get(parent, 0), min(count, self.tensors[parent].elements))
        roots = (name for name in counts if not self.tensors[name].parent)
        return sum(counts[name] * self.tensors[name].width for name in roots)

    def root(self, name: str) -> str:
        """The stored tensor that a piece is of; itself where it is no piece."""
        return self.tensors[name].parent or name

    @cached_property
    def readers(self) -> dict[str, tuple[Operation, ...]]:
        """Who reads each stored tensor."""
        result: dict[str, list[Operation]] = {}
        for operation in self.operations:
            for name in dict.fromkeys(self.root(use.tensor) for use in operation.reads):
                result.setdefault(name, []).append(operation)
        return {name: tuple(who) for name, who in result.items()}

    @cached_property
    def writers(self) -> dict[str, Operation]:
        """Who computes each tensor."""
        return {use.tensor: operation for operation in self.operations for use in operation.writes}

    @cached_property
    def stored(self) -> frozenset[str]:
        """Computed tensors that must be in slow memory at the end."""
        return frozenset(
            self.root(use.tensor) for use in self.outputs if self.tensors[self.root(use.tensor)].role == "computed"
        )

    @cached_property
    def needed(self) -> dict[str, str]:
        """Of each operation whose results are used: ``all``, or ``some`` where a mask hides a part."""
        levels, result = dict[str, str](), dict[str, str]()

        def need(use: Use, level: str) -> None:
            if self.root(use.tensor) in self.overwritten:  # what was written over need not have been made
                return
            if use.masked or use.elements == self.tensors[use.tensor].elements:
                mine = "some" if use.masked or level == "some" else "all"
                levels[use.tensor] = min(levels.get(use.tensor, mine), mine)  # "all" comes first

        pieces: dict[str, list[str]] = {}
        for name, tensor in self.tensors.items():
            if tensor.parent:
                pieces.setdefault(tensor.parent, []).append(name)
        for use in self.outputs:
            need(use, "all")
        for operation in reversed(self.operations):
            wanted = []
            for use in operation.writes:
                parts = pieces.get(use.tensor, [])
                covered = sum(self.tensors[name].elements for name in parts if name in levels)
                if parts and covered == use.elements:
                    wanted.append(max(levels[name] for name in parts))
                if use.tensor in levels:
                    wanted.append(levels[use.tensor])
            if wanted:
                result[operation.name] = min(wanted)
                for use in operation.reads if operation.known else ():
                    need(use, min(wanted))
        return result

    @cached_property
    def fused(self) -> dict[str, dict[str, int]]:
        """Bytes that surely move if all is one kernel, by operation and tensor: an input once, at the first of those
        that read most of it."""
        result: dict[str, dict[str, int]] = {operation.name: {} for operation in self.operations}
        uses: dict[str, dict[str, list[Use]]] = {}
        for operation in self.operations:
            for use in operation.reads if operation.known and operation.name in self.needed else ():
                if self.tensors[name := self.root(use.tensor)].role != "computed":
                    uses.setdefault(name, {}).setdefault(operation.name, []).append(use)
        for name, by_reader in uses.items():
            most = max(by_reader, key=lambda reader: self.bytes_of(by_reader[reader]))
            read = self.bytes_of([use for reads in by_reader.values() for use in reads])
            less = self.overwritten.get(name, 0) * self.tensors[name].width
            result[most][name] = max(0, read - less)
        for operation in self.operations:
            for name in {use.tensor for use in operation.writes} & self.stored:
                results = [use for use in self.outputs if self.root(use.tensor) == name]
                result[operation.name][name] = self.bytes_of(results)
        return result


@dataclass(frozen=True)
class View:
    """A tensor as an operation sees it."""

    tensor: str
    shape: Shape
    dtype: str
    elements: int  #: of what is stored, that it shows at least

    @property
    def size(self) -> int:
        """Elements that it shows, some perhaps more than once."""
        return prod(self.shape)

    @property
    def plain(self) -> bool:
        """Whether it shows each element once."""
        return self.elements == self.size


@dataclass
class Builder:
    """A graph in the making."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    view_operations: int = 0
    overwritten: dict[str, int] = field(default_factory=dict)

    def tensor(self, name: str, shape: Shape, dtype: str, width: int, role: str) -> None:
        """Something that is stored."""
        self.tensors[name] = Tensor(name, prod(shape), width, role)
        self.views[name] = View(name, shape, dtype, prod(shape))

    def view(self, name: str, source: View, shape: Shape, elements: int | None = None) -> None:
        """Another look at it; ``elements`` where fewer are shown than the shapes tell."""
        shown = min(source.elements, prod(shape)) if elements is None else elements
        self.views[name] = View(source.tensor, shape, source.dtype, shown)
        self.view_operations += 1

    def pieces(self, names: Sequence[str], source: View, shapes: Sequence[Shape]) -> None:
        """Views of one tensor that share nothing."""
        stored = self.tensors[source.tensor]
        for name, shape in zip(names, shapes, strict=True):
            if stored.parent or not source.plain:  # a piece of a piece: what it shows, no more
                self.view(name, source, shape)
                continue
            self.tensors[name] = Tensor(name, prod(shape), stored.width, stored.role, stored.name)
            self.views[name] = View(name, shape, source.dtype, prod(shape))
        self.view_operations += 1

    def operation(
        self,
        name: str,
        kind: str,
        reads: Sequence[Use],
        results: Sequence[tuple[str, Shape, str, int]],
        workload: Workload | None = None,
        known: bool = True,
        counted: bool = True,
    ) -> None:
        """A kernel with results of (name, shape, data type, bytes of an element)."""
        for result, shape, dtype, width in results:
            self.tensor(result, shape, dtype, width, "computed")
        writes = tuple(Use(result, prod(shape)) for result, shape, _, _ in results)
        self.operations.append(Operation(name, kind, tuple(reads), writes, workload, known, counted))

    def write_over(self, name: str, target: View) -> None:
        """What follows is read where it was written."""
        root = self.tensors[target.tensor].parent or target.tensor
        self.overwritten[root] = self.overwritten.get(root, 0) + target.size
        self.views[name] = target

    def graph(self, outputs: Sequence[str]) -> Graph:
        """What was made."""
        uses = tuple(Use(v.tensor, v.elements) for v in (self.views[name] for name in outputs))
        operations = tuple(self.operations)
        return Graph(self.name, self.tensors, operations, uses, self.view_operations, self.overwritten)


def masked(view: View) -> Use:
    """A mask chooses what is read of it; nothing is sure."""
    return Use(view.tensor, 0, masked=view.elements > 0)


def use(view: View, elements: int | None = None, extra: bool = False) -> Use:
    """All that a view shows is read, or so many elements."""
    return Use(view.tensor, view.elements if elements is None else min(elements, view.elements), extra)
