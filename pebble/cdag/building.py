"""What every family of DAGs is built from: tiles, inputs, values, and sums in three forms.

networkx is imported when a DAG is made, not when this module is: the command line reads the catalogue of
families without paying for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, TypedDict, TypeGuard, runtime_checkable

from pebble.errors import InputError, UnknownNameError
from pebble.workloads.workload import check_dimension

if TYPE_CHECKING:
    import networkx as nx

Dag: TypeAlias = "nx.DiGraph[Hashable]"
FORMS = ("in-place", "chain", "separate")
MAX_NODES = 1_000_000


@runtime_checkable
class _Graph(Protocol):
    """What tells a directed graph of networkx, which need not be loaded to look, from files and workloads."""

    @property
    def nodes(self) -> Any:
        """Its nodes."""

    @property
    def pred(self) -> Any:
        """Before each node."""


def is_dag(source: object) -> TypeGuard[Dag]:
    """Whether it is a graph, not what one is made or read from."""
    return isinstance(source, _Graph)


class Finish(NamedTuple):
    """A step on a finished sum, such as an activation or a division.

    Attributes
    ----------
    symbol : str
        How it is written between the sum and the first operand: ``"/="``; without operands, a function: ``"act"``.
    operands : tuple of str
        Further values it takes.
    ordered : bool
        Whether it comes after all terms. In place, False lets it be done at any time, as one more update.
    """

    operation: str
    symbol: str
    operands: tuple[str, ...] = ()
    ordered: bool = True


def new_dag(nodes: int) -> Dag:
    """An empty DAG; InputError where the family will have more than ``MAX_NODES`` nodes."""
    if nodes > MAX_NODES:
        raise InputError(
            f"DAG: got a size that makes up to {nodes:,} nodes, expected at most {MAX_NODES:,}; "
            "use larger tiles, or `pebble bound`, which needs no DAG."
        )
    import networkx as nx

    return nx.DiGraph()


class SumOptions(TypedDict, total=False):
    """How a family of sums is built: the keywords of its builder, one for each attribute of `Sums`."""

    form: str
    tile: Sequence[int] | None
    in_bytes: int
    out_bytes: int


class Sums(NamedTuple):
    """How a family of sums is built.

    Attributes
    ----------
    form : str
        ``in-place`` (a cell per sum, its updates in any order), ``chain`` (multiply-adds in fixed order) or
        ``separate`` (products and binary additions).
    tile : sequence of int or None
        Extents of a tile operation, which is one node; edge tiles are short. By default 1 in each dimension.
    in_bytes, out_bytes : int
        Weight of one value of an input or an intermediate, and of the output. With both 1, weights count values.
    """

    form: str = "in-place"
    tile: Sequence[int] | None = None
    in_bytes: int = 1
    out_bytes: int = 1

    def split(self, extents: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The tiles of each dimension of a family, once the form and the number of tile extents are checked."""
        if self.form not in FORMS:
            raise UnknownNameError("form", self.form, FORMS, "pebble dag --help")
        tile = (1,) * len(extents) if self.tile is None else self.tile
        if len(tile) != len(extents):
            *first, last = extents
            raise InputError(
                f"tile: got {'x'.join(map(str, tile))}, expected {('two', 'three', 'four')[len(extents) - 2]} extents, "
                f"for {', '.join(first)} and {last}."
            )
        return [split(name, extent, part) for (name, extent), part in zip(extents.items(), tile, strict=True)]


def split(name: str, extent: int, tile: int = 1) -> tuple[int, ...]:
    """Lengths of the tiles of a dimension; the last one is short when they do not divide it.

    Examples
    --------
    >>> split("m", 5, 2)
    (2, 2, 1)
    """
    extent = check_dimension(name, extent)
    tile = check_dimension(f"tile of {name}", tile)
    if extent > tile * MAX_NODES:
        raise InputError(f"{name}: got {extent} in tiles of {tile}, expected at most {MAX_NODES:,} tiles.")
    whole, rest = divmod(extent, tile)
    return (tile,) * whole + ((rest,) if rest else ())


def name_of(operand: str, index: Sequence[int]) -> str:
    """``A[0,1]``."""
    return f"{operand}[{','.join(map(str, index))}]"


def add_input(dag: Dag, operand: str, index: Sequence[int], weight: int = 1) -> str:
    """Add an input (once) and return its name."""
    name = name_of(operand, index)
    if name not in dag:
        dag.add_node(name, operation="input", operand=operand, index=tuple(index), weight=weight)
    return name


def add_matrix(dag: Dag, operand: str, rows: Sequence[int], cols: Sequence[int], width: int) -> None:
    """Add a matrix of inputs, one per tile, each weighing its elements times ``width``."""
    for i, height in enumerate(rows):
        for j, breadth in enumerate(cols):
            add_input(dag, operand, (i, j), height * breadth * width)


def add_value(
    dag: Dag,
    operand: str,
    index: Sequence[int],
    sources: Sequence[str],
    operation: str,
    *,
    weight: int = 1,
    output: bool = False,
    name: str | None = None,
) -> str:
    """Add a computed value, by default called ``operand[index]``, and the edges from its sources; return its name."""
    name = name_of(operand, index) if name is None else name
    dag.add_node(name, operation=operation, operand=operand, index=tuple(index), weight=weight)
    if output:
        dag.nodes[name]["output"] = True
    dag.add_edges_from((p, name) for p in sources)
    return name


def add_sum(
    dag: Dag,
    form: str,
    operand: str,
    index: Sequence[int],
    terms: Sequence[Sequence[str]],
    *,
    weight: int = 1,
    finish: Sequence[Finish] = (),
    output: bool = False,
    initial: bool = False,
) -> str:
    """Add a sum of products, and what is done to the finished sum.

    Parameters
    ----------
    form : str
        ``in-place``: one cell, a task per term in any order, then the finishing tasks. ``chain``: every
        partial sum a value of its own, in fixed order, each term one multiply-add. ``separate``: the products
        are values too, and are added one by one.
    terms : sequence of sequences of str
        The operands of each product, one or more.
    initial : bool
        The sum starts from a value that is in slow memory (C += A B).

    Returns
    -------
    str
        The name of the finished value, ``operand[index]`` in every form.
    """
    if form == "in-place":
        return _add_cell(dag, operand, index, terms, weight, finish, output, initial)
    start = [add_input(dag, f"{operand}0", index, weight)] if initial else []
    # steps: operation, names of operands, whether the previous step is an operand too
    steps: list[tuple[str, Sequence[str], bool]] = []
    name = name_of(operand, index)
    factors: Sequence[Sequence[str]] = terms
    if form == "separate" and len(terms) + len(start) > 1:
        factors = [
            [add_value(dag, operand, (*index, t), term, "multiply", weight=weight, name=f"{name}*{t}")]
            if len(term) > 1
            else term
            for t, term in enumerate(terms)
        ]
    pending = start  # the running sum while it is not yet a step
    for t, term in enumerate(factors):
        if len(term) == 1 and not pending and not steps and t + 1 < len(factors):
            pending = list(term)
            continue
        adds = bool(pending or steps)
        operation = "add" if len(term) == 1 else "multiply-add" if adds else "multiply"
        steps.append((operation, [*pending, *term], bool(steps)))
        pending = []
    steps += [(f.operation, f.operands, True) for f in finish]
    previous: list[str] = []
    for s, (operation, operands, chained) in enumerate(steps):
        sources = [*(previous if chained else []), *operands]
        if s + 1 < len(steps):
            previous = [add_value(dag, operand, (*index, s), sources, operation, weight=weight, name=f"{name}.{s}")]
    return add_value(dag, operand, index, sources, operation, weight=weight, output=output)


def _add_cell(
    dag: Dag,
    operand: str,
    index: Sequence[int],
    terms: Sequence[Sequence[str]],
    weight: int,
    finish: Sequence[Finish],
    output: bool,
    initial: bool,
) -> str:
    cell = name_of(operand, index)
    dag.add_node(cell, operation="accumulator", operand=operand, index=tuple(index), weight=weight)
    if output:
        dag.nodes[cell]["output"] = True
    if initial:
        dag.nodes[cell]["initial"] = True
    earlier: list[str] = []
    for term in terms:
        operation = "add" if len(term) == 1 else "multiply-add"
        earlier.append(_add_task(dag, f"{cell}+={'*'.join(term)}", operation, cell, term))
    for step in finish:
        shown = f"{cell}{step.symbol}{'*'.join(step.operands)}" if step.operands else f"{cell}={step.symbol}({cell})"
        task = _add_task(dag, shown, step.operation, cell, [*(earlier if step.ordered else []), *step.operands])
        earlier = [task] if step.ordered else [*earlier, task]
    return cell


def _add_task(dag: Dag, name: str, operation: str, cell: str, preds: Sequence[str]) -> str:
    dag.add_node(name, operation=operation, accumulator=cell)
    dag.add_edges_from((p, name) for p in preds)
    dag.add_edge(name, cell)
    return name
