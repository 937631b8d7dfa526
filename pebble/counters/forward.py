"""The layers of a model in the launches of a forward pass: which kernels repeat, and how often.

A layer of a transformer has one attention, so the products between one attention and the next are those of one layer:
the projection of the first's result, its feed-forward network, and the second's queries, keys and values. Where the
same products follow each attention, each is a layer more. What precedes the first attention says how many products make
queries, keys and values; what is left after the last layer's own is the projection to the vocabulary. Attention without
a kernel of its own is a softmax between two products, which belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pebble.counters.limits import computes
from pebble.counters.names import Operation
from pebble.counters.profile import MeasuredLaunch, Profile, check_one_gpu
from pebble.errors import InputError
from pebble.system.files import shown

_HELPS = re.compile(  # attention, or is called after a product, but is neither
    r"combine|reshape_and_cache|merge|metadata|rotary|rope|^triton_(?:poi|red|per)_|prepare|copy|_bwd_", re.IGNORECASE
)
_REDUCES = re.compile(r"splitk_?reduce|split_k_reduce|splitkreduce", re.IGNORECASE)
_SOFTMAX = re.compile(r"softmax", re.IGNORECASE)
Signature = tuple[str, tuple[int, int, int] | None]


@dataclass(frozen=True)
class Product:
    """A product, and the kernel that adds up its parts where it was split along K."""

    launch: MeasuredLaunch
    reduced_by: MeasuredLaunch | None = None

    @property
    def stores(self) -> MeasuredLaunch:
        """The launch that stores the result."""
        return self.reduced_by or self.launch

    @property
    def signature(self) -> Signature:
        """What is the same in every layer."""
        return self.launch.kernel, self.launch.grid


@dataclass(frozen=True)
class ForwardPass:
    """The layers of one pass.

    Attributes
    ----------
    layers : int
        Attentions that follow one another with the same products between.
    passes : int
        How often that happens in the report.
    inputs : tuple of tuple of Product
        For each product before the attention, that of each layer.
    after : tuple of tuple of Product
        For each product between the attention and the end of its layer, that of each layer.
    attention : tuple of MeasuredLaunch
    batched : bool
        Attention is products and a softmax, not one kernel.
    head : tuple of Product
        What follows the last layer.
    notes : tuple of str
    """

    layers: int
    passes: int
    inputs: tuple[tuple[Product, ...], ...]
    after: tuple[tuple[Product, ...], ...]
    attention: tuple[MeasuredLaunch, ...]
    batched: bool
    head: tuple[Product, ...]
    notes: tuple[str, ...]


def forward_pass(profile: Profile) -> ForwardPass:
    """The layers in a report of a whole forward pass.

    Raises
    ------
    InputError
        Launches of several GPUs; a report that is damaged, has fewer than two attentions, or begins or ends inside a
        layer.
    """
    name = shown(profile.path)
    check_one_gpu(profile.launches, "model")
    damage = [note for note in profile.notes if "could not be read" in note or "cut off" in note]
    if damage:
        raise InputError(f"model: {name}: {damage[0]}; expected a whole report, as layers are counted in it.")
    attentions, gaps, batched = _gaps(profile.launches)
    if len(attentions) < 2:
        raise InputError(
            f"model: {name}: got {len(attentions)} attention kernels (flash, fmha, sdpa, or a softmax between two "
            "products), expected one a layer; profile every kernel of a whole forward pass."
        )
    keys = [tuple(product.signature for product in gap) for gap in gaps]
    first, length = _longest_run(keys[1:-1])
    key, last = keys[1 + first], first + length  # the attentions of the run: first to last
    if not length or not key:
        raise InputError(f"model: {name}: no products lie between its attentions; expected those of the layers.")
    count = _common(keys[first], key, back=True)
    if not 0 < count < len(key):
        raise InputError(
            f"model: {name}: before its first attention are no products of a layer, so it begins inside one; expected "
            "a whole forward pass."
        )
    own = len(key) - count
    if _common(keys[last + 1], key[:own]) < own:
        there = len(gaps[last + 1])
        what = f"{there} of {own} products" if there < own else "other products than in the layers before"
        raise InputError(
            f"model: {name}: it ends inside layer {length + 1}, {what} after the attention; expected a whole forward "
            "pass."
        )
    layers = [(gaps[i][-count:], gaps[i + 1][:own]) for i in range(first, last + 1)]
    rest = gaps[last + 1][own:]
    if last + 1 < len(attentions):  # what follows is another pass, or layers of another kind
        rest = rest[: len(rest) - min(len(rest), count)]
    passes, notes = _others(keys[1:-1], key, length)
    return ForwardPass(
        length + 1,
        passes,
        tuple(zip(*(inputs for inputs, _ in layers), strict=True)),
        tuple(zip(*(after for _, after in layers), strict=True)),
        tuple(attentions[first : last + 1]),
        batched,
        tuple(rest),
        notes,
    )


def _gaps(launches: Sequence[MeasuredLaunch]) -> tuple[list[MeasuredLaunch], list[list[Product]], bool]:
    """The attentions, the products before, between and after them, and whether they are products themselves."""
    fused = any(_is_attention(launch) for launch in launches)
    attentions: list[MeasuredLaunch] = []
    gaps: list[list[Product]] = [[]]
    waiting = False  # for the product after a softmax
    for launch in launches:
        if _REDUCES.search(launch.kernel):
            if gaps[-1]:
                gaps[-1][-1] = Product(gaps[-1][-1].launch, launch)
        elif _is_attention(launch) or (not fused and _SOFTMAX.search(launch.kernel) and gaps[-1]):
            attentions.append(launch if fused else gaps[-1].pop().launch)
            gaps.append([])
            waiting = not fused
        elif not _HELPS.search(launch.kernel) and computes(launch) is Operation.GEMM:
            if not waiting:
                gaps[-1].append(Product(launch))
            waiting = False
    return attentions, gaps, not fused


def _is_attention(launch: MeasuredLaunch) -> bool:
    return computes(launch) is Operation.ATTENTION and not _HELPS.search(launch.kernel)


def _longest_run(keys: Sequence[object]) -> tuple[int, int]:
    """Where the longest run of equal keys begins, and how long it is; the first of several."""
    best, begin = (0, 0), 0
    for i in range(len(keys) + 1):
        if i == len(keys) or keys[i] != keys[begin]:
            if i - begin > best[1]:
                best = begin, i - begin
            begin = i
    return best


def _common(single: Sequence[object], other: Sequence[object], back: bool = False) -> int:
    """How many are the same, from the front or the back."""
    step = -1 if back else 1
    count = 0
    for a, b in zip(single[::step], other[::step], strict=False):
        if a != b:
            break
        count += 1
    return count


def _others(
    keys: Sequence[tuple[Signature, ...]], key: tuple[Signature, ...], length: int
) -> tuple[int, tuple[str, ...]]:
    """How many such runs there are, and a note on attentions outside of them."""
    runs, at, outside = 0, 0, 0
    while at < len(keys):
        end = at
        while end < len(keys) and keys[end] == keys[at]:
            end += 1
        alike = keys[at] == key and end - at == length
        runs += alike
        outside += 0 if alike else end - at
        at = end
    more = outside - max(0, runs - 1)  # between two passes lies one that is like none
    note = f"{more} more attentions are not followed by the products of these layers: other passes, or other layers"
    return runs, (note,) * (more > 0)
