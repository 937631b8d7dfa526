"""The workload that a document is about, made again from its plain data, and where its schedules ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pebble.errors import InputError
from pebble.families import DTYPES, FAMILIES
from pebble.webpage.documents import Document, Fields
from pebble.workloads.base import Workload


def workload_of(fields: Fields) -> Workload:
    """The workload; InputError where the family or a dimension is none."""
    spec: Mapping[str, Any] = fields.part("workload").plain
    family = FAMILIES.get(str(spec.get("family")))
    if family is None:
        raise InputError(
            f"report: {fields.where}: got the family {str(spec.get('family'))[:40]!r}, expected a known one."
        )
    names = [p.name for p in (*family.parameters, *DTYPES)]
    return family.read({name: spec[name] for name in names if spec.get(name) not in (None, False)})


def title_of(documents: Sequence[Document]) -> str:
    """What documents are about: the first two subjects, and how many more there are."""
    subjects = list(dict.fromkeys(map(_subject, documents)))
    named, others = subjects[:2], len(subjects) - 2
    return "; ".join(named) + (f"; and {others} more" if others > 0 else "")


def _subject(document: Document) -> str:
    """The workload, of a named model its name alone, or the game of a document; else the document's name."""
    fields = Fields(document.data, document.name)
    if isinstance(document.data.get("workload"), Mapping):
        return fields.part("workload").text("label", document.name).partition(" (")[0]
    return fields.text("instance", document.name)


def setting(fields: Fields, tiles: Sequence[str] = ()) -> str:
    """Machine, kernel and cache in a line; ``tiles`` are the schedules' own, if they name any."""
    parts = []
    if "machine" in fields:
        parts.append(fields.part("machine").text("name", "a machine"))
    if "kernel" in fields:
        kernel = fields.part("kernel")
        if "sms" in kernel:
            tile = kernel.text("tile", "?") if not tiles else tiles[0] if len(tiles) == 1 else ""
            parts += [f"tile {tile}" if tile else f"{len(tiles)} tiles", f"{kernel.whole('sms')} SMs"]
        if "cache_bytes" in kernel:
            parts.append(f"cache {kernel.whole('cache_bytes') / 2**20:.4g} MiB")
        parts += [kernel.text(key) for key in ("policy", "execution") if key in kernel]
    return ", ".join(parts)
