"""The families of DAGs by name, with their parameters, for the command line and whatever else takes a name.

Reading the catalogue imports no networkx; building a DAG does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from pebble.dag.attention import SOFTMAX, attention_dag
from pebble.dag.base import FORMS, Dag
from pebble.dag.conv2d import conv2d_dag
from pebble.dag.ffn import ffn_dag
from pebble.dag.fft import fft_dag
from pebble.dag.gemm import gemm_dag, matrix_chain_dag
from pebble.dag.grids import diamond_dag, dpgrid_dag
from pebble.dag.stencils import stencil1d_dag, stencil2d_dag
from pebble.dag.trees import tree_dag
from pebble.errors import InputError, UnknownNameError
from pebble.game import Variant
from pebble.workloads.base import DTYPE_BYTES, default_out_dtype, element_bytes

Kind = Literal["count", "extents", "choice", "flag"]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a family.

    Attributes
    ----------
    option : str
        As on the command line: ``"--head-dim"``, ``"-m"``.
    kind : str
        ``count`` (a whole number), ``extents`` (whole numbers, ``2x2x3``), ``choice`` or ``flag``.
    help : str
    required : bool
    choices : tuple of str
        For a choice.
    """

    option: str
    kind: Kind
    help: str
    required: bool = False
    choices: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The keyword of the builder: ``head_dim``."""
        return self.option.lstrip("-").replace("-", "_")


@dataclass(frozen=True)
class Family:
    """A family of DAGs.

    Attributes
    ----------
    name : str
    help : str
        What it is, in a line.
    build : callable
        Takes the parameters by keyword.
    parameters : tuple of Parameter
    example : str
        Small parameters, as on the command line.
    """

    name: str
    help: str
    build: Callable[..., Dag]
    parameters: tuple[Parameter, ...]
    example: str


def _needed(*options: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(option, "count", _COUNTS[option], required=True) for option in options)


def _count(*options: str) -> tuple[Parameter, ...]:
    return tuple(Parameter(option, "count", _COUNTS[option]) for option in options)


_COUNTS = {
    "-m": "rows of A and C",
    "-n": "columns of B and C",
    "-k": "columns of A, rows of B",
    "--tokens": "rows of X and Y",
    "--d-model": "columns of X",
    "--hidden": "columns of the hidden layer",
    "--d-out": "columns of Y (d-model by default)",
    "--queries": "rows of Q and O",
    "--keys": "rows of K and V",
    "--head-dim": "columns of Q, K, V and O",
    "--heads": "query heads (1)",
    "--kv-heads": "key-value heads, shared by groups of query heads (as many as heads)",
    "--batch": "independent samples (1)",
    "--in-channels": "channels of the input",
    "--out-channels": "channels of the output",
    "--height": "rows of the input",
    "--width": "columns of the input",
    "--kernel": "rows and columns of the kernel",
    "--stride": "distance between outputs, in inputs (1)",
    "--leaves": "inputs of the tree",
    "--arity": "operands of each addition (2)",
    "--size": "points, or side of the grid",
    "--steps": "times that all points are updated",
    "--rows": "rows of points",
    "--cols": "columns of points",
}
_SUMS = (
    Parameter("--form", "choice", "sums in one cell, by chained multiply-adds, or products added up", choices=FORMS),
    Parameter("--tile", "extents", "extents of a tile operation, which is one node: 1 in each dimension by default"),
    Parameter(
        "--dtype", "choice", "weigh values in bytes of this type (by default each weighs 1)", choices=(*DTYPE_BYTES,)
    ),
    Parameter("--out-dtype", "choice", "type of the output (the inputs', bf16 for fp8)", choices=(*DTYPE_BYTES,)),
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "gemm",
            "C := A B, tiles over m x n x k",
            gemm_dag,
            (*_needed("-m", "-n", "-k"), Parameter("--accumulate-into", "flag", "C += A B: C starts blue"), *_SUMS),
            "-m 2 -n 2 -k 3",
        ),
        Family(
            "matrix-chain",
            "((M1 M2) M3) ..., tiles over the dims",
            matrix_chain_dag,
            (Parameter("--dims", "extents", "p x q x r x s: M1 is p x q, M2 q x r ...", required=True), *_SUMS),
            "--dims 2x2x2x2",
        ),
        Family(
            "ffn",
            "act(X W1) W2, or gated; tiles over tokens x d-model x hidden x d-out",
            ffn_dag,
            (
                *_needed("--tokens", "--d-model", "--hidden"),
                *_count("--d-out"),
                Parameter("--gated", "flag", "gate and up products, activation, elementwise product, down"),
                *_SUMS,
            ),
            "--tokens 2 --d-model 2 --hidden 2",
        ),
        Family(
            "attention",
            "softmax(Q K^T) V; tiles over queries x keys x head-dim",
            attention_dag,
            (
                *_needed("--queries", "--keys", "--head-dim"),
                *_count("--heads", "--kv-heads", "--batch"),
                Parameter("--causal", "flag", "no query sees a later key"),
                Parameter("--softmax", "choice", "divide the output, or the scores (online)", choices=SOFTMAX),
                *_SUMS,
            ),
            "--queries 2 --keys 2 --head-dim 1",
        ),
        Family(
            "conv2d",
            "convolution without padding; tiles over in-channels x out-channels",
            conv2d_dag,
            (
                *_needed("--batch", "--in-channels", "--out-channels", "--height", "--width", "--kernel"),
                *_count("--stride"),
                *_SUMS,
            ),
            "--batch 1 --in-channels 1 --out-channels 1 --height 3 --width 3 --kernel 2",
        ),
        Family("tree", "a reduction tree", tree_dag, (*_needed("--leaves"), *_count("--arity")), "--leaves 8"),
        Family("diamond", "a square grid from corner to corner", diamond_dag, _needed("--size"), "--size 4"),
        Family("dpgrid", "a square grid inside a border of inputs", dpgrid_dag, _needed("--size"), "--size 3"),
        Family("fft", "the butterfly", fft_dag, _needed("--size"), "--size 8"),
        Family("stencil1d", "3 points over time", stencil1d_dag, _needed("--size", "--steps"), "--size 4 --steps 3"),
        Family(
            "stencil2d",
            "5 points over time",
            stencil2d_dag,
            _needed("--rows", "--cols", "--steps"),
            "--rows 3 --cols 3 --steps 2",
        ),
    )
}


def find_family(name: str) -> Family:
    """The family of that name.

    Raises
    ------
    UnknownNameError
        No such family; the message offers the nearest.
    """
    if name not in FAMILIES:
        raise UnknownNameError("family of DAGs", name, FAMILIES, "pebble dag --help")
    return FAMILIES[name]


def build_dag(name: str, values: Mapping[str, object], variant: Variant | None = None) -> Dag:
    """Build a DAG of a family.

    Parameters
    ----------
    name : str
    values : mapping
        Parameters by ``Parameter.name``, such as ``{"m": 2, "n": 2, "k": 3}``; those left out, or None, take their
        defaults.
    variant : Variant, optional
        The game to be played: where sums have a form and none is given, every variant but ``in-place`` takes the
        form ``chain``.

    Raises
    ------
    UnknownNameError
        No such family, or an unknown choice.
    InputError
        A parameter missing, foreign to the family, or out of range.

    Examples
    --------
    >>> build_dag("tree", {"leaves": 8}).number_of_nodes()
    15
    """
    family = find_family(name)
    given = {key: value for key, value in values.items() if value is not None and value is not False}
    options = {parameter.name: parameter.option for parameter in family.parameters}
    for key in given:
        if key not in options:
            option = f"--{key.replace('_', '-')}" if len(key) > 1 else f"-{key}"
            raise InputError(f"{name}: got {option}, expected only {', '.join(options.values())}; leave it out.")
    missing = [p.option for p in family.parameters if p.required and p.name not in given]
    if missing:
        raise InputError(
            f"{name}: {' and '.join(missing)} missing, expected as in `pebble dag {name} {family.example}`."
        )
    if "form" in options and variant not in (None, Variant.IN_PLACE):
        given.setdefault("form", "chain")
    if "accumulate_into" in given:
        given["accumulate"] = given.pop("accumulate_into")
    dtype, out_dtype = given.pop("dtype", None), given.pop("out_dtype", None)
    if dtype is not None:
        given["in_bytes"] = element_bytes(str(dtype))
        given["out_bytes"] = element_bytes(str(out_dtype or default_out_dtype(str(dtype))))
    elif out_dtype is not None:
        raise InputError("--out-dtype: got it without --dtype, expected both; values weigh 1 each without a type.")
    return family.build(**given)


def label_of(name: str, values: Mapping[str, object]) -> str:
    """One line for titles: ``gemm -m 2 -n 2 -k 3``."""
    words = [name]
    for parameter in find_family(name).parameters:
        value = values.get(parameter.name)
        if value is None or value is False:
            continue
        words.append(parameter.option)
        if parameter.kind == "extents" and isinstance(value, tuple | list):
            words.append("x".join(map(str, value)))
        elif parameter.kind != "flag":
            words.append(str(value))
    return " ".join(words)
