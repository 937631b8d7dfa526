"""The heads of an attention, and the named models that have the dimensions of a forward pass."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pebble.counters.architecture import Architecture
from pebble.counters.forward import ForwardPass
from pebble.counters.profile import MeasuredLaunch
from pebble.counters.stores import HEAD_DIMS, read_heads
from pebble.workloads.named import model_names, model_shape

_NAMED_DIM = re.compile(
    r"sdpa_sm[0-9]+_flash_fprop_\w*?_[0-9]+x[0-9]+x([0-9]+)_|kernel_traits<\s*(?:\(int\))?([0-9]+)|(?:hdim|head_?dim|_hd)_?([0-9]+)|_d(64|80|96|128|256)(?![0-9])",
    re.IGNORECASE,
)
_PADDED_TO = 32  # flash kernels round the values of a head up to a multiple
_LEAST = 0.02  # that a width may be off those of a model


@dataclass(frozen=True)
class Heads:
    """Heads that fit an attention.

    Attributes
    ----------
    heads, key_heads : int
        Of queries; of keys and values.
    dim : int
        Values a head.
    """

    heads: int
    key_heads: int
    dim: int


@dataclass(frozen=True)
class HeadsVerdict:
    """What the attention's launches say of heads.

    Attributes
    ----------
    readings : tuple of Heads
        One where it is told, several where it is ambiguous, none where no usual width of a head divides the queries.
    evidence : tuple of str
        What narrowed them down.
    """

    readings: tuple[Heads, ...]
    evidence: tuple[str, ...]

    @property
    def text(self) -> str:
        """In words."""
        if not self.readings:
            return "not told: no usual number of values a head divides the queries"
        said = [
            f"{h.heads} of {h.dim} values, {h.key_heads if h.key_heads != h.heads else 'as many'} for keys and values"
            for h in self.readings
        ]
        why = f" ({'; '.join(self.evidence)})" if self.evidence else ""
        if len(said) == 1:
            return said[0] + why
        return f"ambiguous: {'; or '.join(said)}{why}; the attention's grid, its name or its stores would decide"


def heads_of(found: ForwardPass, fit: Architecture) -> HeadsVerdict:
    """The heads that the widths of queries and keys allow, narrowed down by the attention's name, grid and stores."""
    left = list(_by_width(fit))
    evidence = []
    first = found.attention[0]
    said = _NAMED_DIM.search(first.kernel)
    if said:
        dim = int(next(group for group in said.groups() if group))
        left, told = _narrowed(left, [h for h in left if dim - _PADDED_TO < h.dim <= dim])
        evidence += [f"the kernel's name says {dim} values"] * told
    for sides, what in _sides(first, found.batched):
        left, told = _narrowed(left, [h for h in left if h.heads in sides])
        if told:
            evidence.append(what)
            break
    stored = first.value("l1_store_sectors")
    if stored and not found.batched:
        pairs = {(heads, dim) for heads, dim, _ in read_heads(round(stored), round(fit.tokens))}
        left, told = _narrowed(left, [h for h in left if (h.heads, h.dim) in pairs])
        evidence += ["its stores are those of a log-sum-exp a head beside the result"] * told
    return HeadsVerdict(tuple(left), tuple(evidence))


def _narrowed(left: list[Heads], some: list[Heads]) -> tuple[list[Heads], bool]:
    """Those that the evidence leaves, and whether it is any."""
    return (some, True) if some else (left, False)


def _by_width(fit: Architecture) -> list[Heads]:
    results = []
    for dim in HEAD_DIMS:
        heads, keys = round(fit.query_width / dim), round(fit.key_width / dim)
        whole = all(
            count and abs(count * dim / width - 1) <= max(_LEAST, fit.off)
            for count, width in ((heads, fit.query_width), (keys, fit.key_width))
        )
        if whole and heads % keys == 0:
            results.append(Heads(heads, keys, dim))
    return results


def _sides(launch: MeasuredLaunch, batched: bool) -> list[tuple[set[int], str]]:
    """Sides of the grid that may be heads: those beside the first, then both together (with the batch).

    Of products, which are told by two sides, only the third.
    """
    if launch.grid is None:
        return []
    x, y, z = launch.grid
    grid = f"the grid of {x} x {y} x {z}"
    y = 1 if batched else y
    return [({y, z} - {1}, f"{grid} has a side of them"), ({y * z} - {1}, f"{grid} has as many")]


@dataclass(frozen=True)
class ModelFit:
    """A named model beside a forward pass.

    Attributes
    ----------
    name : str
    differs : tuple of str
        In what, as ``40 layers, not 38``; empty where it fits.
    """

    name: str
    differs: tuple[str, ...]


def models_beside(fit: Architecture, heads: HeadsVerdict) -> tuple[ModelFit, ...]:
    """Every named model, those that differ in least first."""
    return tuple(sorted((_beside(name, fit, heads) for name in model_names()), key=lambda one: len(one.differs)))


def _beside(name: str, fit: Architecture, heads: HeadsVerdict) -> ModelFit:
    shape = model_shape(name)
    differs = [] if shape.layers == fit.layers else [f"{shape.layers} layers, not {fit.layers}"]
    known: Sequence[tuple[str, int, float | None]] = (
        ("width", shape.hidden, fit.hidden),
        ("inner width", shape.intermediate, fit.intermediate),
        ("width of queries", shape.heads * shape.head_dim, fit.query_width),
        ("width of keys", shape.kv_heads * shape.head_dim, fit.key_width),
        ("vocabulary", shape.vocab, fit.vocabulary),
    )
    differs += [
        f"{what} {model}, not {value:.0f}"
        for what, model, value in known
        if value is not None and abs(value / model - 1) > max(_LEAST, fit.off)
    ]
    if shape.gated != fit.gated:
        differs.append("gated" if shape.gated else "not gated")
    if heads.readings and not any((h.heads, h.dim) == (shape.heads, shape.head_dim) for h in heads.readings):
        differs.append(f"{shape.heads} heads of {shape.head_dim} values")
    return ModelFit(name, tuple(differs))
