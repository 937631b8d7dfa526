"""The picture of an audit: operations one below the other, what each moves alone and in the graph at least, what was
measured, and arcs for the tensors between them, those that fusing saves most drawn thick.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from pebble.errors import InputError
from pebble.graphs.layers import in_any_layer, saved_between
from pebble.units import format_bytes, format_ratio
from pebble.webpage.documents import Document, Fields

MOST = 200  # operations in a picture, those that move most
MARKED = 3
_ROW, _TOP = 26, 40
_ARCS, _NAMES, _BARS, _FIGURES = 130, 250, 250, 230  # widths, from the left


@dataclass(frozen=True)
class _Row:
    """An operation of the picture."""

    name: str
    kind: str
    alone: int
    fused: int
    measured: int | float | None


@dataclass(frozen=True)
class AuditPicture:
    """A document of ``pebble audit`` for a page.

    Attributes
    ----------
    title, about : str
    rows : tuple
        Operations, in the order of the graph.
    arcs : tuple of (int, int, int)
        Row of the writer, row of a reader, and rank of the tensor by what fusing saves, from 0.
    saves : tuple of str
        A sentence for each of the tensors that fusing saves most with.
    left_out : int
        Operations that move less than those shown.
    """

    title: str
    about: str
    rows: tuple[_Row, ...]
    arcs: tuple[tuple[int, int, int], ...]
    saves: tuple[str, ...]
    left_out: int


def picture_of(document: Document) -> AuditPicture:
    """The picture of a document; InputError where it is none of `pebble audit`."""
    fields = Fields(document.data, document.name)
    single = [
        _Row(
            part.text("name"), part.text("kind"), part.whole("alone_bytes"), part.whole("fused_bytes"),
            part.maybe("measured_bytes"),
        )
        for part in fields.parts("operations")
    ]  # fmt: skip
    if not single:
        raise InputError(f"report: {document.name}: operations: got none, expected one or more.")
    every, names = _alike(single)
    largest = sorted(range(len(every)), key=lambda i: -every[i].alone)[:MOST]
    rows = [every[i] for i in sorted(largest)]
    place = {row.name: i for i, row in enumerate(rows)}
    between = fields.parts("between")
    moved: dict[tuple[str, str], int] = {}  # by tensor, those of equal layers as one
    ends: dict[tuple[str, str], dict[tuple[int, int], None]] = {}
    for item in between:
        writer, tensor = names.get(item.text("writer"), ""), in_any_layer(item.text("tensor"))
        moved[writer, tensor] = moved.get((writer, tensor), 0) + item.whole("bytes")
        readers = (names.get(name, "") for name in item.texts("readers"))
        if writer in place:
            lines = ((place[writer], place[reader]) for reader in readers if reader in place)
            ends.setdefault((writer, tensor), {}).update(dict.fromkeys(lines))
    ranks = {tensor: rank for rank, tensor in enumerate(sorted(moved, key=lambda tensor: -moved[tensor]))}
    arcs = [
        (*line, ranks[tensor]) for tensor in sorted(ends, key=lambda tensor: ranks[tensor]) for line in ends[tensor]
    ]
    saves = saved_between(
        (item.text("tensor"), item.whole("bytes"), item.text("writer"), item.texts("readers")) for item in between
    )[:MARKED]
    graph = fields.part("graph")
    floor, unfused = graph.whole("floor_bytes"), graph.whole("one_kernel_an_operation_bytes")
    about = (
        f"{fields.part('machine').text('name')}: at least {format_bytes(floor)} however operations are fused; "
        f"one kernel an operation moves at least {format_bytes(unfused)}"
    )
    if "assumption" in fields:
        about += f"; {fields.text('assumption')}"
    about += _measured(single)
    return AuditPicture(
        fields.text("target"), about, tuple(rows), tuple(arcs), tuple(saves), len(every) - len(rows)
    )  # fmt: skip


def _alike(rows: list[_Row]) -> tuple[list[_Row], dict[str, str]]:
    """Operations of equal layers added up, and the name of the sum by that of each; none where one was measured."""
    groups: dict[tuple[str, str], list[_Row]] = {}
    apart = any(row.measured is not None for row in rows)
    for row in rows:
        groups.setdefault((row.name if apart else in_any_layer(row.name), row.kind), []).append(row)
    results, names = [], dict[str, str]()
    for (name, kind), group in groups.items():
        title = group[0].name if len(group) == 1 else f"{len(group)} x {name}"
        results.append(_Row(title, kind, sum(r.alone for r in group), sum(r.fused for r in group), group[0].measured))
        names |= {row.name: title for row in group}
    return results, names


def _measured(rows: list[_Row]) -> str:
    """How far the kernels that were measured are from their floors."""
    known = [row for row in rows if row.measured is not None and row.alone]
    if not known:
        return ""
    ratio = sum(row.measured or 0 for row in known) / sum(row.alone for row in known)
    which = "the kernel that was measured moves" if len(known) == 1 else f"{len(known)} measured kernels move"
    return f"; {which} {format_ratio(ratio, '.2f')} times the proved least"


def svg(picture: AuditPicture, ident: str) -> str:
    """Arcs, names, bars and figures, a line an operation."""
    width, height = _ARCS + _NAMES + _BARS + _FIGURES, _TOP + _ROW * len(picture.rows) + 8
    most = max(max(row.alone, row.measured or 0) for row in picture.rows) or 1
    measured = ", measured" * any(row.measured is not None for row in picture.rows)
    parts = [
        f'<svg viewBox="0 0 {width} {height}" width="{width}" class="audit" role="img" aria-labelledby="{ident}-t">',
        f'<title id="{ident}-t">What each operation moves at least: {escape(picture.title)}</title>',
        f'<text x="{_ARCS}" y="20">operation</text>',
        f'<text x="{_ARCS + _NAMES}" y="20">alone, at least; filled: in the graph</text>',
        f'<text x="{width - 4}" y="20" text-anchor="end">alone, in the graph{measured}</text>',
    ]
    for writer, reader, rank in sorted(picture.arcs, key=lambda arc: -arc[2]):
        parts.append(_arc(writer, reader, rank))
    for number, row in enumerate(picture.rows):
        parts.append(_line(number, row, _BARS / most, width))
    return "".join([*parts, "</svg>"])


def _arc(writer: int, reader: int, rank: int) -> str:
    start, end = (_TOP + _ROW * row + _ROW / 2 for row in (writer, reader))
    bend = _ARCS - 12 - min(_ARCS - 20, 10 + 9 * abs(reader - writer))
    kind = "edge on" if rank < MARKED else "edge"
    return f'<path class="{kind}" d="M{_ARCS - 6} {start:g}C{bend} {start:g} {bend} {end:g} {_ARCS - 6} {end:g}"/>'


def _line(number: int, row: _Row, scale: float, width: int) -> str:
    top = _TOP + _ROW * number
    y, left = top + _ROW / 2 + 5, _ARCS + _NAMES
    name = row.name if len(row.name) <= 22 else row.name[:21] + "…"
    figures = f"{format_bytes(row.alone)}, {format_bytes(row.fused)}"
    mark = ""
    if row.measured is not None:
        figures += (
            f", {format_ratio(row.measured / row.alone, '.2f')}x" if row.alone else f", {format_bytes(row.measured)}"
        )
        at = left + row.measured * scale
        mark = f'<path class="measured" d="M{at:.1f} {top + 2}v{_ROW - 4}"/>'
    return (
        f'<g><title>{escape(row.name)}: {escape(row.kind)}</title><text x="{_ARCS}" y="{y:g}">{escape(name)}'
        f'<tspan class="kind" dx="6">{escape(row.kind)}</tspan></text>'
        f'<rect class="alone" x="{left}" y="{top + 6}" width="{row.alone * scale:.1f}" height="{_ROW - 12}"/>'
        f'<rect class="fused" x="{left}" y="{top + 6}" width="{row.fused * scale:.1f}" height="{_ROW - 12}"/>{mark}'
        f'<text x="{width - 4}" y="{y:g}" text-anchor="end">{figures}</text></g>'
    )
