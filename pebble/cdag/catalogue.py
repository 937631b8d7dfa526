"""Families of DAGs with their parameters: the patterns that are no workload, and what a workload family fills in.

Reading this imports no networkx; building a DAG does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pebble.cdag.building import FORMS, Dag
from pebble.cdag.patterns import diamond_dag, dpgrid_dag, fft_dag, stencil1d_dag, stencil2d_dag, tree_dag
from pebble.cdag.products import matrix_chain_dag
from pebble.errors import InputError
from pebble.workloads.parameters import Parameter, needed, optional, read_values
from pebble.workloads.workload import DTYPE_BYTES, default_out_dtype, element_bytes


@dataclass(frozen=True)
class DagFamily:
    """A family of DAGs: its builder takes the parameters by keyword; the example is small, as on the command line."""

    name: str
    help: str
    builder: Callable[..., Dag]
    parameters: tuple[Parameter, ...]
    example: str

    def build(self, values: Mapping[str, object], variant: str | None = None) -> Dag:
        """Build a DAG from parameters by name, ``{"m": 2, "n": 2, "k": 3}``; one left out, or None, takes its default.

        Where sums have a form and none is given, every variant but ``in-place`` takes the form ``chain``.

        Raises
        ------
        InputError
            A parameter missing, foreign to the family, out of range, or an unknown choice.
        """
        parameters = read_values(self.name, self.parameters, values)
        if SUMS[0] in self.parameters and variant not in (None, "in-place"):
            parameters.setdefault("form", "chain")
        dtype, out_dtype = parameters.pop("dtype", None), parameters.pop("out_dtype", None)
        if dtype is not None:
            parameters["in_bytes"] = element_bytes(dtype)
            parameters["out_bytes"] = element_bytes(out_dtype or default_out_dtype(dtype))
        elif out_dtype is not None:
            raise InputError("--out-dtype: got it without --dtype, expected both; values weigh 1 each without a type.")
        return self.builder(**parameters)

    def label(self, values: Mapping[str, object]) -> str:
        """One line for titles: ``gemm -m 2 -n 2 -k 3``."""
        words = [self.name]
        for parameter in self.parameters:
            value = values.get(parameter.name)
            if value is not None and value is not False:
                words += parameter.words(value)
        return " ".join(words)


_SIDE = needed(size="points, or side of the grid")
_STEPS = needed(steps="times that all points are updated")
SUMS = (
    Parameter("--form", "choice", "sums in one cell, by chained multiply-adds, or products added up", choices=FORMS),
    Parameter("--tile", "extents", "extents of a tile operation, which is one node: 1 in each dimension by default"),
    Parameter(
        "--dtype", "choice", "weigh values in bytes of this type (by default each weighs 1)", choices=(*DTYPE_BYTES,)
    ),
    Parameter("--out-dtype", "choice", "type of the output (the inputs', bf16 for fp8)", choices=(*DTYPE_BYTES,)),
)

PATTERNS: dict[str, DagFamily] = {
    family.name: family
    for family in (
        DagFamily(
            "matrix-chain",
            "((M1 M2) M3) ..., tiles over the dims",
            matrix_chain_dag,
            (Parameter("--dims", "extents", "p x q x r x s: M1 is p x q, M2 q x r ...", required=True), *SUMS),
            "--dims 2x2x2x2",
        ),
        DagFamily(
            "tree",
            "a reduction tree",
            tree_dag,
            (*needed(leaves="inputs of the tree"), *optional(arity="operands of each addition (2)")),
            "--leaves 8",
        ),
        DagFamily("diamond", "a square grid from corner to corner", diamond_dag, _SIDE, "--size 4"),
        DagFamily("dpgrid", "a square grid inside a border of inputs", dpgrid_dag, _SIDE, "--size 3"),
        DagFamily("fft", "the butterfly", fft_dag, _SIDE, "--size 8"),
        DagFamily("stencil1d", "3 points over time", stencil1d_dag, (*_SIDE, *_STEPS), "--size 4 --steps 3"),
        DagFamily(
            "stencil2d",
            "5 points over time",
            stencil2d_dag,
            (*needed(rows="rows of points", cols="columns of points"), *_STEPS),
            "--rows 3 --cols 3 --steps 2",
        ),
    )
}
