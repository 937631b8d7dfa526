"""The data type that a kernel multiplies in: by what its counters tell of the pipes, and by its name where they do not.

Counters of operations on tensor cores by source type (``sm__ops_path_tensor_src_bf16_dst_fp32.sum``) tell it alone,
and so do FMA instructions of fp64, fp32 and fp16 where the tensor pipe is idle. A busy tensor pipe says less: its HMMA
instructions multiply bf16, fp16 and tf32 alike. Then the name decides, which is weaker evidence, or nothing does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from pebble.counters.names import operand_types
from pebble.counters.profile import MeasuredLaunch
from pebble.counters.quantities import SECTOR_BYTES

TENSOR_AT_WORK = 1.0  # percent of the time; below, a stray instruction
_OPERATIONS = re.compile(
    r"sm__ops_path_tensor(?:_op_[a-z]+)?_src_((?:[a-z]+[0-9]+_?)+?)(?:_(dst_[a-z]+[0-9]+))?(?:_(sparsity_o[nf]+))?\.sum"
)
_ASK_OPERATIONS = "sm__ops_path_tensor_src_bf16_dst_fp32.sum and its like of other types"
_ASK_TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
_ASK_FMA = "sm__sass_thread_inst_executed_op_{dfma,ffma,hfma}_pred_on.sum"
_CLASSES = {
    "hmma": ("bf16", "fp16", "tf32"), "gmma": ("bf16", "fp16", "tf32", "fp8", "int8"), "imma": ("int8",),
    "dmma": ("fp64",),
}  # fmt: skip
_SINCE = {"fp16": 7.0, "int8": 7.2, "bf16": 8.0, "tf32": 8.0, "fp64": 8.0, "fp8": 8.9}  # compute capability
_LETTERS = {"fp64": "d", "fp32": "f", "fp16": "h"}
_COUNTED = {
    "fp64": "double_fma_instructions", "fp32": "fma_instructions", "fp16": "half_fma_instructions",
}  # fmt: skip
_SHARE = (
    0.25  # of fp64 instructions beside those of another pipe, which also count addresses, from which fp64 multiplies
)
_STRAY = 0.05  # of all operations on tensor cores
_WARP, _LEAST_K = 32, 8.0
BYTES = {"fp8": 1, "int8": 1, "bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4, "fp64": 8}


@dataclass(frozen=True)
class TypeVerdict:
    """The data type of a launch's products.

    Attributes
    ----------
    types : tuple of str
        Those that fit: one where it is told, several where it is ambiguous, none where nothing was multiplied or
        nothing tells.
    evidence : str
        What says so.
    ask : str
        Metrics that would decide; empty where none are needed.
    """

    types: tuple[str, ...]
    evidence: str
    ask: str = ""

    @property
    def ambiguous(self) -> bool:
        """More than one type fits."""
        return len(self.types) > 1

    @property
    def text(self) -> str:
        """In words."""
        ask = f"; profile {self.ask}" if self.ask else ""
        if not self.types:
            return f"not told: {self.evidence}{ask}"
        *others, last = self.types
        said = f"ambiguous: {', '.join(others)} or {last}" if others else last
        return f"{said}: {self.evidence}{ask}"


def tensor_operations(launch: MeasuredLaunch) -> dict[str, float]:
    """Operations on tensor cores (2 a product) by source type, of the types that the report counts.

    Totals of a type go before their parts by result and by sparsity.

    Examples
    --------
    >>> from pebble.counters import Metric
    >>> parts = {"fp16_dst_fp16": 0, "fp16_dst_fp32": 8.0, "tf32_dst_fp32": 0.0}
    >>> tensor_operations(MeasuredLaunch("0", "gemm", {
    ...     f"sm__ops_path_tensor_src_{key}.sum": Metric(float(value), "") for key, value in parts.items()}))
    {'fp16': 8.0, 'tf32': 0.0}
    """
    parts: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for name, metric in launch.metrics.items():
        if name.startswith("sm__ops_path_tensor") and isinstance(metric.value, float):
            said = _OPERATIONS.fullmatch(name)
            if said:
                key = said[2] or "", said[3] or ""
                parts[said[1]][key] = parts[said[1]].get(key, 0.0) + metric.value
    results = {}
    for source, by in parts.items():
        whole = {result: value for (result, sparsity), value in by.items() if not sparsity}
        for (result, sparsity), value in by.items():
            if sparsity and (result, "") not in by:
                whole[result] = whole.get(result, 0.0) + value
        results[source] = whole[""] if "" in whole else sum(whole.values())
    return results


def data_type(launch: MeasuredLaunch) -> TypeVerdict:
    """The type that a launch multiplies in.

    Examples
    --------
    >>> from pebble.counters import Metric
    >>> count = {"sm__sass_thread_inst_executed_op_dfma_pred_on.sum": Metric(2.0**33, "inst")}
    >>> data_type(MeasuredLaunch("0", "product", count)).text
    'fp64: 8,589,934,592 fp64 instructions of threads (FMA, add, multiply)'
    """
    named = operand_types(launch.kernel)
    counted = tensor_operations(launch)
    total = sum(counted.values())
    if total:
        main = {source: value for source, value in counted.items() if value >= _STRAY * total}
        types = tuple(kind for source in main for kind in source.split("_"))
        said = ", ".join(f"{value:,.4g} of {source.replace('_', ' or ')}" for source, value in main.items())
        return TypeVerdict(types, f"operations on tensor cores: {said}")
    percent, classes = launch.value("tensor_percent"), _classes(launch)
    if any(classes.values()) or (percent or 0.0) >= TENSOR_AT_WORK:
        return _on_tensor_cores(
            launch, named, percent, [kind for kind, busy in classes.items() if busy and kind != "any"], counted
        )
    idle = percent is not None or bool(counted) or bool(classes)
    return _on_other_pipes(launch, named, idle)


def _classes(launch: MeasuredLaunch) -> dict[str, bool]:
    """Which kinds of tensor instructions were at work, of those that the report counts."""
    result: dict[str, bool] = {}
    every = launch.value("tensor_instructions")
    if every is not None:
        result["any"] = every > 0
    for name, metric in launch.metrics.items():
        at = name.find("pipe_tensor_op_")
        if at < 0 or not isinstance(metric.value, float):
            continue
        kind, _, rest = name[at + len("pipe_tensor_op_") :].partition(".")
        kind = kind.removesuffix("_cycles_active")
        if kind in _CLASSES and (not rest.endswith("peak_sustained") or "pct_of_peak" in rest):
            least = TENSOR_AT_WORK if "pct_of_peak" in rest else 0.5
            result[kind] = result.get(kind, False) or metric.value >= least
    return result


def _on_tensor_cores(
    launch: MeasuredLaunch, named: tuple[str, ...], percent: float | None, kinds: list[str], counted: dict[str, float]
) -> TypeVerdict:
    """The tensor pipe was busy, and no counter of a type says with which."""
    every = tuple(dict.fromkeys(kind for key in kinds or _CLASSES for kind in _CLASSES[key]))
    if not kinds and launch.value("double_tensor_percent") == 0:
        every = tuple(kind for kind in every if kind != "fp64")
    try:
        capability = float(launch.compute_capability)
    except ValueError:
        capability = max(_SINCE.values())
    types = tuple(kind for kind in every if kind not in counted and _SINCE[kind] <= capability)
    busy = f" ({percent:.1f} %)" if percent is not None else ""
    how = f", with {' and '.join(kind.upper() for kind in kinds)} instructions" if kinds else ""
    said = f"the tensor pipe is at work{busy}{how}"
    if named == ("fp32",) and "tf32" in types:  # fp32 operands go through tensor cores as tf32
        return TypeVerdict(("tf32",), f"{said}, and the name says fp32, which tensor cores multiply as tf32")
    both = tuple(kind for kind in named if kind in types)
    if len(both) == 1 or types == both:
        return TypeVerdict(both, f"{said}, and the name says so" if len(types) > 1 else said)
    if len(types) == 1:
        return TypeVerdict(types, said)
    other = f"; the name says {' or '.join(named)}" if named else ""
    return TypeVerdict(both or types, f"{said}, which multiplies each of these{other}", _ASK_OPERATIONS)


def _on_other_pipes(launch: MeasuredLaunch, named: tuple[str, ...], idle: bool) -> TypeVerdict:
    """The tensor pipe was idle, or the report does not say."""
    threads = {kind: _instructions(launch, kind) for kind in _LETTERS}
    double, full, half = (threads[kind] or 0.0 for kind in _LETTERS)
    by_pipe = "_pipe_" in getattr(launch.find("fma_instructions"), "metric", "")

    def said(kind: str) -> str:
        if by_pipe and kind == "fp32":
            return f"{threads[kind]:,.0f} instructions of threads on the fp32 pipe, which counts addresses too"
        return f"{threads[kind]:,.0f} {kind} instructions of threads (FMA, add, multiply)"

    name = f"the name alone says {' or '.join(named)}" if named else "the name says none"
    if not max(double, full, half):
        if None not in threads.values() and idle:
            return TypeVerdict((), "no FMA instructions and an idle tensor pipe: it multiplies nothing")
        lacking = ([_ASK_FMA] if None in threads.values() else []) + ([] if idle else [_ASK_TENSOR])
        return TypeVerdict(named, f"{name}, and the report counts none of it", " and ".join(lacking))
    if double >= _SHARE * max(full, half):
        beside = f", beside {full:,.0f} of fp32" if full else ""
        return TypeVerdict(("fp64",), said("fp64") + beside)
    kinds: tuple[str, ...] = ("fp32",)
    if half > full:
        kinds = tuple(kind for kind in named if kind in ("fp16", "bf16")) or ("fp16", "bf16")
    main = "fp16" if half > full else "fp32"
    stored = (launch.value("l1_store_sectors") or 0.0) * SECTOR_BYTES / BYTES[main]
    enough = named == kinds or (stored and max(full, half) >= _LEAST_K * stored)
    if not enough and idle and by_pipe and main == "fp32":
        return TypeVerdict(named, f"{said(main)}, and an idle tensor pipe", _ASK_FMA)
    if not enough and not idle:
        others = named or ("a type of tensor cores",)
        text = f"{said(main)}, and the report does not say whether the tensor pipe multiplied too"
        return TypeVerdict((*kinds, *(kind for kind in others if kind not in kinds)), text, _ASK_TENSOR)
    how = ", with an idle tensor pipe" if idle else ""
    other = [kind for kind in named if kind not in kinds]
    kept = f"; the name says {' or '.join(other)}, which may be how values are kept" if other else ""
    if len(kinds) > 1:
        how += ", which are those of bf16 too"
    return TypeVerdict(kinds, f"{said(main)}{how}{kept}")


def _instructions(launch: MeasuredLaunch, kind: str) -> float | None:
    """Instructions of threads that multiply or add in a type; None where the report counts none."""
    fma = launch.value(_COUNTED[kind])
    known = [] if fma is None else [fma * _WARP]
    for operation in ("add", "mul"):
        for unit in ("smsp", "sm"):
            name = f"{unit}__sass_thread_inst_executed_op_{_LETTERS[kind]}{operation}_pred_on.sum"
            value = launch.metrics.get(name)
            if value is not None and isinstance(value.value, float):
                known.append(value.value)
                break
    return sum(known) if known else None
