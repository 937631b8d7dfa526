"""Layers that are alike, told together: operations called ``0.qkv``, ``1.qkv`` ... as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pebble.units import format_bytes


def in_any_layer(name: str) -> str:
    """The name of an operation or tensor without the number of its layer.

    Examples
    --------
    >>> in_any_layer("31.gate_up"), in_any_layer("lm_head")
    ('gate_up', 'lm_head')
    """
    return re.sub(r"^\d+\.", "", name)


def saved_between(tensors: Iterable[tuple[str, int, str, Sequence[str]]]) -> list[str]:
    """A sentence for each tensor that fusing can keep on chip, those of equal layers together, the largest first.

    Parameters
    ----------
    tensors : iterable of (str, int, str, sequence of str)
        Name, bytes, its writer and its readers.
    """
    alike: dict[tuple[str, ...], list[tuple[str, int, str, Sequence[str]]]] = {}
    for item in tensors:
        name, _, writer, readers = item
        alike.setdefault(tuple(map(in_any_layer, (name, writer, *readers))), []).append(item)
    results = []
    for (name, writer, *readers), items in alike.items():
        if len(items) == 1:
            name, _, writer, readers = items[0][0], 0, items[0][2], list(items[0][3])
        of = f" of {len(items)} layers" if len(items) > 1 else ""
        traffic = sum(item[1] for item in items)
        results.append((traffic, f"{format_bytes(traffic)}: {name}{of}, from {writer} to {', '.join(readers[:4])}"))
    return [text for _, text in sorted(results, key=lambda result: -result[0])]
