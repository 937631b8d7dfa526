"""``decode``: a decode step of one layer: its least traffic, the KV cache's share, and whether the rest stays on chip.

One new token per sequence attends to ``context`` keys. Each K and V value is used by the one query of its group of
heads only, so every schedule reads the KV cache once, and the attention bound says so. The weights are read
once for the whole batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from pebble.errors import InputError
from pebble.families import lower_bound
from pebble.models.machine import Machine
from pebble.reports.options import spelled_out
from pebble.reports.report import Report
from pebble.reports.target import Target, TargetOptions, read_target
from pebble.reports.timed import check_time_options
from pebble.timing.floor import MICRO, TimeFloor, floor_of
from pebble.units import format_capacity
from pebble.workloads import Attention, check_dimension, element_bytes, model_shape, named_gemm
from pebble.workloads.named import ModelShape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BATCHES = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = tuple(2**i for i in range(10, 18))
_KEY_TILE = 128  # keys whose scores a flash kernel holds at a time


@dataclass(frozen=True)
class DecodeStep:
    """The least traffic of one layer in one decode step.

    Attributes
    ----------
    batch, context : int
        Sequences, and keys that each query sees.
    attention_bound_bytes : int
        Proven: Q, the KV cache and O of the attention, at the on-chip capacity.
    kv_bytes : int
        The KV cache alone.
    weight_bytes : int
        QKV, output projection and FFN weights, once for the batch.
    activation_bytes : int
        The layer's input and output, and the new K and V.
    intermediate_bytes : int
        Most bytes of intermediate values (Q, scores, hidden layer ...) that live at one time.
    operations : int
        Two for each multiply-add of the layer.
    """

    batch: int
    context: int
    attention_bound_bytes: int
    kv_bytes: int
    weight_bytes: int
    activation_bytes: int
    intermediate_bytes: int
    operations: int

    @property
    def layer_bytes(self) -> int:
        """Least traffic of the layer: KV cache, weights, activations."""
        return self.kv_bytes + self.weight_bytes + self.activation_bytes

    @property
    def kv_share(self) -> float:
        """The KV cache's share of the layer's least traffic."""
        return self.kv_bytes / self.layer_bytes

    def floor(self, machine: Machine, dtype: str, accumulator: str) -> TimeFloor:
        """No launch of the layer takes less time: its bytes are compulsory, whatever is kept on chip."""
        operations = (self.operations, "two for each multiply-add of the weights and the attention")
        dram = (self.layer_bytes, "compulsory: KV cache, weights, activations")
        return floor_of(machine, dtype, accumulator, operations, dram)

    def to_json(self, on_chip_bytes: int) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "batch": self.batch,
            "context": self.context,
            "attention_bound_bytes": self.attention_bound_bytes,
            "kv_bytes": self.kv_bytes,
            "weight_bytes": self.weight_bytes,
            "activation_bytes": self.activation_bytes,
            "layer_bytes": self.layer_bytes,
            "kv_share": self.kv_share,
            "intermediate_bytes": self.intermediate_bytes,
            "intermediates_fit_on_chip": self.intermediate_bytes <= on_chip_bytes,
        }


def decode_step(model: str, batch: int, context: int, on_chip_bytes: int, dtype: str = "bf16") -> DecodeStep:
    """One layer of a model in one decode step.

    Parameters
    ----------
    model : str
        A named model.
    batch, context : int
        Sequences, and keys per sequence, the new one included.
    on_chip_bytes : int
        Capacity for the attention bound.
    dtype : str
        Type of weights, activations and the KV cache.

    Raises
    ------
    UnknownNameError
        No such model or type.
    InputError
        A number below 1, or a model whose KV cache is kept compressed (DeepSeek-V3).
    """
    shape = model_shape(model)
    batch, context = check_dimension("batch", batch), check_dimension("context", context)
    if shape.value_head_dim != shape.head_dim:
        raise InputError(
            f"model: got {model}, which keeps its KV cache compressed, expected a model with plain heads, such as "
            "llama-3-8b."
        )
    width = element_bytes(dtype)
    heads, kv_heads, dim = shape.heads, shape.kv_heads, shape.head_dim
    attention = Attention(1, context, dim, heads=heads, kv_heads=kv_heads, batch=batch, dtype=dtype, out_dtype=dtype)
    bound = lower_bound(attention, on_chip_bytes // width)
    up = "gate_up" if shape.gated else "up"
    layers = [named_gemm(f"{model}:{layer}", batch, dtype) for layer in ("qkv", "o", up, "down")]
    weights = sum(layer.k * layer.n for layer in layers) * width
    activations = batch * (2 * shape.hidden + 2 * kv_heads * dim) * width
    return DecodeStep(
        batch=batch,
        context=context,
        attention_bound_bytes=bound.bytes,
        kv_bytes=2 * batch * kv_heads * context * dim * width,
        weight_bytes=weights,
        activation_bytes=activations,
        intermediate_bytes=batch * _most_live(shape, context) * width,
        operations=attention.flops + sum(layer.flops for layer in layers),
    )


def _most_live(shape: ModelShape, context: int) -> int:
    """Most intermediate values of one token that live at a time: in the attention, or in the FFN."""
    width = shape.heads * shape.head_dim
    residual = shape.hidden
    # Q, O, per head the scores of one tile of keys (flash kernels hold no more) and their maximum and sum
    attention = residual + 2 * width + shape.heads * (min(context, _KEY_TILE) + 2)
    ffn = residual + shape.hidden + (3 if shape.gated else 1) * shape.intermediate
    return max(attention, ffn)


@dataclass(frozen=True, repr=False)
class Decode(Report):
    """One decode step of one layer, for every batch and context length.

    Attributes
    ----------
    model, dtype : str
    target : Target
    on_chip_bytes : int
    steps : tuple of DecodeStep
        By context, then batch.
    accumulator : str
        The type that sums are kept in, for the floor on time.
    """

    model: str
    dtype: str
    target: Target
    on_chip_bytes: int
    steps: tuple[DecodeStep, ...]
    accumulator: str = "fp32"

    question = "decode"
    table_keys = ("batch", "context", "layer_bytes", "kv_bytes", "weight_bytes", "kv_share", "time_floor_us", "binds")

    @property
    def machine(self) -> Machine | None:
        return self.target.machine

    @property
    def where(self) -> str:
        """The machine or memory, for a reader."""
        if self.target.machine is not None:
            return self.target.machine.name
        assert self.target.cache is not None
        return f"a memory of {self.target.cache.text}"

    def summary(self) -> str:
        shares = [step.kv_share for step in self.steps]
        return (
            f"{self.model}, one layer, one decode step, {format_capacity(self.on_chip_bytes)} on chip: the KV cache is "
            f"{min(shares):.1%} to {max(shares):.1%} of the least traffic"
        )

    @cached_property
    def floors(self) -> tuple[TimeFloor, ...]:
        """The floor on the time of each step; empty without a machine."""
        if self.machine is None:
            return ()
        return tuple(step.floor(self.machine, self.dtype, self.accumulator) for step in self.steps)

    @property
    def verdict(self) -> str:
        """What sets the time of the steps, and the KV cache's share of it, in a line; empty without a machine."""
        known = [(step, floor, floor.binds) for step, floor in zip(self.steps, self.floors, strict=False)]
        if not all(part is not None for _, _, part in known) or not known:
            return ""
        by_dram = [(step, floor) for step, floor, part in known if part is not None and part.name == "dram"]
        shares = [(floor.dram_seconds(step.kv_bytes) or 0) / floor.seconds for step, floor in by_dram]
        all_of_them = f"{len(by_dram)} of {len(known)} steps are" if len(by_dram) < len(known) else "every step is"
        if any(floor.part("operations") is None for floor in self.floors):
            all_of_them = f"of what is known {all_of_them}"
        if not shares:
            return f"all {len(known)} steps are compute-bound at the bound"
        return (
            f"{all_of_them} DRAM-bound, at every order alike: all its bytes are compulsory; reading the KV cache is "
            f"{min(shares):.1%} to {max(shares):.1%} of that time"
        )

    def rows(self) -> list[dict[str, Any]]:
        """A row per context and batch."""
        rows = [step.to_json(self.on_chip_bytes) for step in self.steps]
        for row, step, floor in zip(rows, self.steps, self.floors, strict=False):
            row |= {f"{part.name}_us": part.seconds * MICRO for part in floor.parts}
            kv = floor.dram_seconds(step.kv_bytes)
            row |= {
                "kv_us": None if kv is None else kv * MICRO,
                "time_floor_us": floor.seconds * MICRO if floor.parts else None,
                "sustained_time_us": floor.sustained_seconds * MICRO if floor.parts else None,
                "binds": None if floor.binds is None else floor.binds.name,
            }
        return rows

    def document(self) -> dict[str, Any]:
        result = {"model": self.model, "dtype": self.dtype, "on_chip_bytes": self.on_chip_bytes, "steps": self.rows()}
        if self.floors:
            rates = [
                {"what": part.name, "rate": part.rate.to_json(part.unit), "theorem": part.theorem}
                for part in self.floors[0].parts
            ]
            result["time_floor"] = {
                "accumulator": self.accumulator,
                "parts": rates,
                "missing": list(self.floors[0].missing),
                "verdict": self.verdict or None,
            }
        return result

    def plot(self, ax: Axes | None = None) -> Axes:
        """The KV cache's share against the context length, a line per batch size."""
        from pebble.plots.choices import plot_decode

        return plot_decode(self._shares, self._title, ax)

    def figure(self) -> Figure:
        """The same as wide as a column of a paper."""
        from pebble.plots.choices import decode_figure

        return decode_figure(self._shares, self._title)

    @property
    def _title(self) -> str:
        return f"{self.model}, one layer, one decode step"

    @property
    def _shares(self) -> dict[int, dict[int, float]]:
        """The KV cache's share, by batch size and context."""
        result: dict[int, dict[int, float]] = {}
        for step in self.steps:
            result.setdefault(step.batch, {})[step.context] = step.kv_share
        return result


@spelled_out(TargetOptions)
def decode(model: str, dtype: str = "bf16", accumulator: str | None = None, **where: Unpack[TargetOptions]) -> Decode:
    """How much of a decode step's least traffic is the KV cache, for batch 1..64 and context 1k..128k.

    Parameters
    ----------
    model : str
        A named model.
    dtype : str
        Type of weights, activations and the KV cache.
    accumulator : {"fp32", "fp16"}, optional
        With a GPU: the type that sums are kept in, which may change the peak that the floor on time uses (fp32).
    **where
        Exactly one of ``gpu``, ``machine``, ``cache``, as for `pebble.bound`.

    Returns
    -------
    Decode

    Raises
    ------
    UnknownNameError
        No such model, type or GPU.
    InputError
        Malformed arguments, or a model whose KV cache is kept compressed.
    """
    target = read_target(**where)
    sums = check_time_options(target.machine, accumulator)
    on_chip = target.machine.on_chip_bytes if target.machine else target.size_bytes(element_bytes(dtype))
    steps = tuple(decode_step(model, b, c, on_chip, dtype) for c in CONTEXTS for b in BATCHES)
    return Decode(model, dtype, target, on_chip, steps, sums)
