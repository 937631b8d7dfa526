"""The workload families, one file each, and the one registry of them.

A new family is its shape in `pebble.workloads`, a file here, its schedule in `pebble.schedules`, a line in
`FAMILIES`, and an entry in the checker of certificates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pebble.bounds import Accounting, LowerBound
from pebble.cdag.building import Dag
from pebble.cdag.catalogue import PATTERNS, DagFamily
from pebble.errors import InputError, UnknownNameError
from pebble.families.attention import ATTENTION
from pebble.families.backward import ATTENTION_BACKWARD, FFN_BACKWARD, GEMM_BACKWARD
from pebble.families.conv2d import CONV2D
from pebble.families.einsum import EINSUM
from pebble.families.family import DTYPES, Family, KernelFamily
from pebble.families.ffn import FFN
from pebble.families.gemm import GEMM
from pebble.families.grouped import GROUPED
from pebble.families.latent import LATENT
from pebble.families.layer import LAYER
from pebble.families.scaled import SCALED, SCALED_FFN
from pebble.families.schedules import BALANCED, Explicit, OnSms
from pebble.game import Variant
from pebble.simulation import KernelConfig, Traffic
from pebble.workloads import model_names, named_workload
from pebble.workloads.parameters import needed, read_values
from pebble.workloads.workload import Workload, default_out_dtype

__all__ = [
    "BALANCED",
    "DAG_FAMILIES",
    "DTYPES",
    "FAMILIES",
    "NAMED",
    "Explicit",
    "Family",
    "KernelFamily",
    "OnSms",
    "accounting",
    "build_dag",
    "command_words",
    "family_of",
    "find_dag_family",
    "find_family",
    "kernel_family",
    "lower_bound",
    "read_workload",
    "schedules_help",
    "simulate",
    "workload",
]

FAMILIES: dict[str, Family[Any]] = {
    family.name: family
    for family in (
        GEMM,
        GROUPED,
        FFN,
        ATTENTION,
        LATENT,
        LAYER,
        CONV2D,
        EINSUM,
        SCALED,
        SCALED_FFN,
        GEMM_BACKWARD,
        FFN_BACKWARD,
        ATTENTION_BACKWARD,
    )
}
DAG_FAMILIES: dict[str, DagFamily] = {
    **{name: family.dag for name, family in FAMILIES.items() if family.dag is not None},
    **PATTERNS,
}
# what a named model has beside its linear layers
NAMED = {
    "MODEL:mlp": ("the whole FFN of a named model, gated where the model's is", "llama-2-7b:mlp --tokens 8192"),
    "MODEL:layer": ("a whole layer in prefill, everything between may stay on chip", "llama-3-8b:layer --tokens 8192"),
    "MODEL:attention": ("causal prefill attention of one layer, all heads", "llama-3-8b:attention --tokens 8192"),
}
TOKENS = needed(tokens="rows of the activations")


def find_family(workload: object) -> Family[Any] | None:
    """The family of a workload; None of what is none."""
    return next((family for family in FAMILIES.values() if isinstance(workload, family.shape)), None)


def family_of(workload: Workload) -> Family[Any]:
    """The family of a workload.

    Raises
    ------
    InputError
        Not a workload.
    """
    family = find_family(workload)
    if family is not None:
        return family
    raise InputError(
        f"workload: got {type(workload).__name__} {str(workload)[:60]!r}, expected a workload such as "
        "pebble.Gemm(8192, 8192, 8192) or pebble.workload('llama-2-7b:mlp', tokens=8192)."
    )


def accounting(workload: Workload) -> Accounting:
    """What the family of a workload tells the theorems; errors as `family_of`."""
    return family_of(workload).accounting(workload)


def lower_bound(workload: Workload, capacity: int, recompute: bool = False, cases: int = 0) -> LowerBound:
    """The best proven lower bound on the traffic of a workload; arguments and errors as `pebble.bounds.lower_bound`.

    Examples
    --------
    >>> from pebble.workloads import Attention, Conv2d, Ffn, Gemm
    >>> lower_bound(Gemm(8192, 8192, 8192), 40 * 2**19).elements
    273262469
    >>> lower_bound(Ffn(8192, 4096, 11008), 40 * 2**19).elements // 10**6
    278
    >>> lower_bound(Attention(32768, 32768, 128), 228 * 2**9).elements
    604633088
    >>> lower_bound(Conv2d(1, 1, 1, 3, 3, 2), 100).elements
    17
    """
    return family_of(workload).lower_bound(workload, capacity, recompute, cases=cases)


def kernel_family(workload: Workload) -> KernelFamily[Any, Any]:
    """The family of a workload that has GPU kernels to simulate.

    Raises
    ------
    InputError
        It has none.
    """
    family = family_of(workload)
    if family.simulated is None:
        traced = ", ".join(name for name, other in FAMILIES.items() if other.simulated)
        raise InputError(f"got {workload.label}, expected one of {traced}: {family.instead(workload)}.")
    return family.simulated


def simulate(workload: Workload, schedule: Any, config: KernelConfig, residual: bool = False) -> Traffic:
    """What one schedule of a workload moves; arguments and errors as `KernelFamily.simulate`."""
    return kernel_family(workload).simulate(workload, schedule, config, residual)


_ELSEWHERE = {  # names that other programs have
    **dict.fromkeys(("batched", "batched-gemm", "bmm"), "gemm with --batch"),
    **dict.fromkeys(("matmul", "mm", "linear"), "gemm"),
    **dict.fromkeys(("mlp", "swiglu"), "ffn (--gated for SwiGLU), or a layer such as llama-3-8b:mlp"),
    **dict.fromkeys(("moe", "grouped-gemm", "grouped_gemm"), "grouped"),
    **dict.fromkeys(("mha", "gqa", "sdpa", "flash-attention"), "attention"),
    "decode": "attention with --queries 1",
    "mla": "latent-attention",
    **dict.fromkeys(("conv", "convolution"), "conv2d"),
}


def read_workload(name: str, values: Mapping[str, object]) -> Workload:
    """A workload by the name of its family, or of a layer of a named model, and its parameters.

    Parameters
    ----------
    name : str
        ``gemm``, ``ffn`` ... or ``MODEL:LAYER``.
    values : mapping
        By keyword, as numbers or as text.

    Raises
    ------
    InputError
        A parameter missing, foreign or malformed.
    UnknownNameError
        No such family, model, layer or data type.
    """
    name = name.lower()
    values_of = {
        key: value.lower() if "dtype" in key and isinstance(value, str) else value for key, value in values.items()
    }
    if name in FAMILIES:
        return FAMILIES[name].read(values_of)
    if ":" in name:
        extra = () if name.endswith((":mlp", ":attention", ":layer")) else GEMM.parameters[-1:]
        read = read_values(name, (*TOKENS, *extra, *DTYPES), values_of)
        return named_workload(name, **read)
    if name in model_names():
        raise InputError(
            f"workload: got {name!r} without a layer, expected MODEL:LAYER such as {name}:qkv; "
            f"`pebble audit {name}` takes it whole."
        )
    known = [*FAMILIES, *(f"{m}:qkv" for m in model_names())]
    raise UnknownNameError("workload", name, known, "pebble workloads", _ELSEWHERE.get(name, ""))


def workload(name: str, **parameters: Any) -> Workload:
    """A workload by the name of its family, or a layer or block of a named model.

    Parameters
    ----------
    name : str
        ``"gemm"``, ``"ffn"``, ``"attention"``, ``"conv2d"`` ...; or ``"MODEL:LAYER"`` as ``pebble workloads`` lists
        them, such as ``"llama-2-7b:mlp"``.
    **parameters
        Of the family, as its class takes them; ``tokens`` for a layer; ``dtype``, ``out_dtype``.

    Returns
    -------
    Gemm, GroupedGemm, Ffn, Attention, LatentAttention, Conv2d, Einsum or TransformerLayer

    Raises
    ------
    InputError
        A parameter missing, foreign or malformed.
    UnknownNameError
        No such family, model, layer or data type.

    Examples
    --------
    >>> import pebble
    >>> pebble.workload("llama-3-8b:o", tokens=512).flops
    17179869184
    """
    if not isinstance(name, str):
        raise InputError(f"workload: got {name!r}, expected a name such as 'gemm' or 'llama-2-7b:mlp'.")
    return read_workload(name, parameters)


def schedules_help() -> str:
    """What names ``--schedules`` takes, for every family."""
    kinds = [(name, family.simulated) for name, family in FAMILIES.items()]
    return "; ".join(f"{name}: {kernels.schedules_help}" for name, kernels in kinds if kernels is not None)


def command_words(workload: Workload) -> list[str]:
    """A workload as it is written on the command line."""
    family = family_of(workload)
    values, name = workload.values(), workload.name
    usual = {"dtype": "bf16", "out_dtype": default_out_dtype(workload.dtype)}
    types = [word for p in DTYPES if values[p.name] != usual[p.name] for word in (p.option, values[p.name])]
    if ":" in name and name.partition(":")[0] in model_names():
        return [name, "--tokens", str(workload.token_rows or 1), *types]
    return [*family.words(workload), *types]


def build_dag(name: str, values: Mapping[str, object], variant: Variant | None = None) -> Dag:
    """A DAG of a family; arguments and errors as `DagFamily.build` and `find_dag_family`.

    Examples
    --------
    >>> build_dag("tree", {"leaves": 8}).number_of_nodes()
    15
    """
    return find_dag_family(name).build(values, variant)


def find_dag_family(name: str) -> DagFamily:
    """The family of DAGs of that name.

    Raises
    ------
    UnknownNameError
        No such family; the message offers the nearest.
    """
    if name not in DAG_FAMILIES:
        raise UnknownNameError("family of DAGs", name, DAG_FAMILIES, "pebble dag --help")
    return DAG_FAMILIES[name]
