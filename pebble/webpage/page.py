"""The page itself: sections for what there is, data as JSON, styles and scripts inside, nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

import pebble
from pebble.errors import InputError
from pebble.units import format_bytes, format_ratio
from pebble.webpage import audits, bands, pebblings
from pebble.webpage.documents import Document, Fields, listed
from pebble.webpage.drawing import SHOWN, LogAxis, bytes_text, curve_of, curve_svg, mark
from pebble.webpage.gaps import Bar, GapTable, Pair, Solved, Swept, SweptQuestion, gap_table, pairs, swept
from pebble.webpage.walks import Walks, walks_of

MAX_PAGE_BYTES = 48 * 2**20
SCRIPTS = ("page.js", "plots.js", "walks.js", "pebblings.js")
_FIRST_ROWS = 40
_MARKS = {"bound": "▲", "explicit": "◇", "order": "●"}  # told apart without colour


@dataclass
class _Section:
    """A part of the page: its heading, and its content so far."""

    ident: str
    heading: str
    lead: str
    parts: list[str] = field(default_factory=list)


def page_of(documents: Sequence[Document], title: str) -> tuple[str, dict[str, int]]:
    """The page, and how many entries each of its sections has.

    Raises
    ------
    InputError
        A document that cannot be shown, or a page that becomes too large.
    """
    data: dict[str, Any] = {}
    sections = [
        _gap_section(documents),
        _sweep_section(documents),
        _curve_section(documents, data),
        _walk_section(documents, data),
        _band_section(documents, data),
        _measured_section(documents),
        _pebbling_section(documents, data),
        _audit_section(documents),
        _certificate_section(documents),
    ]
    there = [section for section in sections if section.parts]
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(name) for name in SCRIPTS) + "\n})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    filled = {
        "title": escape(title),
        "version": escape(pebble.__version__),
        "hash": digest,
        "style": _asset("style.css"),
        "script": script,
        "navigation": "".join(f'<li><a href="#{s.ident}">{s.heading}</a></li>' for s in there),
        "sections": "".join(_section_html(section) for section in there),
        "data": json_for_html(data),
    }
    # one pass, so that what was filled in is never looked at for places to fill
    page = re.sub(r"\{\{([a-z]+)\}\}", lambda match: filled[match[1]], _asset("page.html"))
    if len(page) > MAX_PAGE_BYTES:
        raise InputError(
            f"report: the page has {len(page) // 2**20} MiB, expected at most {MAX_PAGE_BYTES // 2**20}; give fewer "
            "files."
        )
    return page, {section.ident: len(section.parts) for section in there}


def json_for_html(data: object) -> str:
    """JSON that can stand in a script element: no character in it begins or ends anything of HTML.

    Examples
    --------
    >>> json_for_html("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return files("pebble.webpage").joinpath("assets", name).read_text(encoding="utf-8")


def _section_html(section: _Section) -> str:
    ident = section.ident
    return (
        f'<section id="{ident}" aria-labelledby="{ident}-h"><h2 id="{ident}-h">{section.heading}</h2>'
        f"<p>{section.lead}</p>{''.join(section.parts)}</section>"
    )


def _article(title: str, where: str, body: str, notes: Iterable[str] = ()) -> str:
    about = f'<p class="where">{escape(where)}</p>' if where else ""
    listed_notes = "".join(f"<li>{escape(note)}</li>" for note in notes)
    text = f"<details><summary>Notes</summary><ul>{listed_notes}</ul></details>" if listed_notes else ""
    return f"<article><h3>{escape(title)}</h3>{about}{body}{text}</article>"


def _breakable(name: str) -> str:
    """A name of an order, which a narrow column may break behind a plus."""
    return escape(name).replace("+", "+<wbr>")


def _gap_section(documents: Sequence[Document]) -> _Section:
    result = _Section(
        "gap", "Gap table",
        "What each schedule moves, over the least that any can move. "
        "▲ proved bound, ◇ schedule under explicit control, ● simulated order"
        '<span class="bars">; the bars have a log scale</span>.',
    )  # fmt: skip
    for document in documents:
        if document.kind in ("compare", "simulate", "tune", "bound"):
            table = gap_table(document)
            result.parts.append(_article(table.title, table.where, _gap_html(table), table.notes))
    return result


def _gap_html(table: GapTable) -> str:
    axis = LogAxis.around([bar.traffic for bar in table.bars if bar.traffic > 0])

    def row(bar: Bar) -> str:
        share = axis.percent(bar.traffic) if bar.traffic > 0 else 0
        ratio = "–" if bar.ratio is None else f"{format_ratio(bar.ratio)}×"
        size = format_bytes(bar.traffic) if table.unit == "bytes" else f"{bar.traffic:,.0f}"
        return (
            f'<tr class="{bar.kind}"><th scope="row"><span class="kind" aria-hidden="true">{_MARKS[bar.kind]}</span> '
            f"{_breakable(bar.name)}<small>{escape(bar.detail)}</small></th><td>{size}</td><td>{ratio}</td>"
            f'<td class="bar"><span style="width:{share:.1f}%"></span></td></tr>'
        )

    words = bytes_text if table.unit == "bytes" else "{:,.0f}".format
    ticks = "".join(f'<i style="left:{axis.percent(tick):.1f}%">{words(tick)}</i>' for tick in axis.ticks)
    lines = ",".join("linear-gradient(var(--line),var(--line))" for _ in axis.ticks)
    places = ",".join(f"{axis.percent(tick):.1f}% 0" for tick in axis.ticks)
    head = (
        f'<colgroup><col span="3"><col class="bar" style="background-image:{lines};background-position:{places}">'
        f'</colgroup><thead><tr><th scope="col">What</th>'
        f'<th scope="col">{"Moves" if table.unit == "bytes" else "Values"}</th><th scope="col">Over bound</th>'
        f'<th scope="col" class="bar" aria-label="on a log scale">{ticks}</th></tr></thead>'
    )
    first, rest = table.bars[:_FIRST_ROWS], table.bars[_FIRST_ROWS:]
    body = f"<table>{head}<tbody>{''.join(map(row, first))}</tbody></table>"
    if rest:
        body += (
            f"<details><summary>{len(rest)} more</summary><table>{head}<tbody>{''.join(map(row, rest))}</tbody></table>"
            "</details>"
        )
    return body


def _sweep_section(documents: Sequence[Document]) -> _Section:
    result = _Section(
        "sweeps", "Sweeps",
        "For every workload and place, the order that moves least and the one that moves most; those whose best order "
        "is farthest from the proved bound first. For every game, what is proved and what the best pebbling costs.",
    )  # fmt: skip
    for document in documents:
        if document.kind == "results":
            spec = swept(document)
            count = len(spec.questions) + len(spec.solved)
            statuses = ", ".join(f"{count:,} {status}" for status, count in sorted(spec.statuses.items()))
            about = f"{count:,} question{'s' * (count != 1)}; rows: {statuses or 'none'}"
            result.parts.append(_article(spec.title, about, _swept_html(spec)))
    return result


def _swept_html(spec: Swept) -> str:
    def questions(item: SweptQuestion) -> str:
        ratio = "–" if item.ratio is None else f"{format_ratio(item.ratio)}×"
        others = f" and {item.ties - 1} that move the same" if item.ties > 1 else ""
        best = f"best of {item.orders}: {item.best}{others}"
        if item.ties < item.orders:
            best += f"; most: {item.worst}, {format_bytes(item.worst_bytes)}"
        return (
            f'<tr><th scope="row">{escape(item.workload)}<small>{escape(item.where)}</small>'
            f"<small>{escape(best)}</small></th><td>{ratio}</td><td>{format_bytes(item.best_bytes)}</td></tr>"
        )

    def solved(item: Solved) -> str:
        costs = "".join("<td>–</td>" if cost is None else f"<td>{cost:,}</td>" for cost in (item.lower, item.upper))
        return f'<tr><th scope="row">{escape(item.workload)}<small>{escape(item.where)}</small></th>{costs}</tr>'

    body = ""
    for heads, rows in (
        (("Workload", "Over bound", "Best moves"), [questions(each_item) for each_item in spec.questions]),
        (("Game", "Proved", "Found"), [solved(element) for element in spec.solved]),
    ):
        body += f'<div class="filtered"></div>{_table(heads, rows)}' if rows else ""
    return body


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{word}</th>' for word in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _key(rank: int, name: str, line: bool = True, marked: bool = False) -> str:
    """An entry of a legend: the line or the mark of series number ``rank``, or both."""
    drawn = '<path class="line" d="M2 8H38"/>' * line + mark(rank, 20, 8) * marked
    return f'<li class="s s{rank}"><svg viewBox="0 0 40 16" aria-hidden="true">{drawn}</svg>{escape(name)}</li>'


def _curve_section(documents: Sequence[Document], data: dict[str, Any]) -> _Section:
    result = _Section(
        "curves", "Ski-slopes",
        "What each schedule moves at every cache size, over the proved bound. Point at a curve, or use the arrow keys.",
    )  # fmt: skip
    for number, document in enumerate(d for d in documents if d.kind == "curve"):
        curve, ident = curve_of(document), f"curve{number}"
        data[ident] = {"kind": "curve", **curve.to_json()}
        keys = "".join(_key(s.rank, s.name, marked=0 < s.rank <= SHOWN) for s in curve.series if s.rank <= SHOWN)
        others = len(curve.series) - SHOWN - 1
        keys += f"<li>thin: {others} more</li>" if others > 0 else ""
        body = (
            f'<div class="widget" data-id="{ident}"><ul class="legend">{keys}</ul>{curve_svg(curve, ident)}'
            '<p class="readout" role="status"></p></div>'
        )
        result.parts.append(_article(curve.title, curve.where, body, curve.notes))
    return result


def _walk_section(documents: Sequence[Document], data: dict[str, Any]) -> _Section:
    result = _Section(
        "walks", "Tile walks",
        "Tile by tile: when each is computed, on which SM, and whether what it reads was in the cache. "
        "◐ the operand of its row (A, X, H, Q) was there, ◑ that of its column (B, weights, K and V), ● both, × "
        "neither; there means half of its tiles or more. The thick frame is this step, thin ones run meanwhile.",
    )  # fmt: skip
    for number, document in enumerate(d for d in documents if d.kind == "compare" and "kernel" in d.data):
        walks: Walks | None = walks_of(document)
        if walks is None:
            continue
        left_out = [f"without a walk: {reason}" for reason in walks.left_out]
        if walks.orders:
            data[f"walk{number}"] = {"kind": "walk", **walks.to_json()}
            body = f'<div class="widget" data-id="walk{number}"></div>'
            result.parts.append(_article(walks.title, walks.about, body, left_out))
        else:
            why = "No walk is shown: no reduction to so few tiles ranks these orders as the gap table does."
            result.parts.append(_article(walks.title, "", f"<p>{why}</p>", left_out))
    return result


def _band_section(documents: Sequence[Document], data: dict[str, Any]) -> _Section:
    result = _Section(
        "bands", "Band heights of a feed-forward network",
        "A band of rows goes through both products before the next begins, so every band reads all weights once.",
    )  # fmt: skip
    for number, document in enumerate(d for d in documents if d.kind == "compare" and "kernel" in d.data):
        spec = bands.bands_of(document)
        if spec is None:
            continue
        data[f"bands{number}"] = {"kind": "bands", **spec.to_json()}
        keys = (
            _key(0, "proved lower bound") + _key(1, "schedule under explicit control, which has the whole memory")
            + _key(2, "simulated orders", line=False, marked=True)
        )  # fmt: skip
        picture = f'<ul class="legend">{keys}</ul>{bands.svg(spec, f"bands{number}")}'
        body = f'<div class="widget" data-id="bands{number}">{picture}</div>'
        result.parts.append(_article(spec.title, spec.where, body))
    return result


def _measured_section(documents: Sequence[Document]) -> _Section:
    result = _Section(
        "measured", "Predicted against measured",
        "DRAM bytes that counters read, beside what the documents above predict for the same launch; the worst first. "
        "A prediction counts lines that are still dirty in the cache at the end; a counter that stops with the kernel "
        "does not see them.",
    )  # fmt: skip
    if not any(d.kind in ("measured", "ncu") for d in documents):
        return result
    spec, alone = pairs(documents)

    def row(pair: Pair) -> str:
        return (
            f'<tr><th scope="row">{escape(pair.name)}</th><td>{format_bytes(pair.measured)}</td>'
            f"<td>{format_bytes(pair.predicted)}</td><td>{pair.error:+.1%}</td></tr>"
        )

    body = _table(("Launch", "Measured", "Predicted", "Error"), map(row, spec))
    others = f"{alone:,} measured launches are of no machine, shape, type, tile and order that a document here predicts"
    if not spec:
        body = f"<p>{others}; give the page a <code>pebble compare --json</code> of one of them.</p>"
    notes = [others] if alone and spec else []
    heading = f"{len(spec)} launch{'es' * (len(spec) != 1)}" if spec else "Nothing to compare"
    result.parts.append(_article(heading, "", body, notes))
    return result


def _pebbling_section(documents: Sequence[Document], data: dict[str, Any]) -> _Section:
    result = _Section(
        "pebblings", "Pebblings",
        "Move by move: a red pebble (disc) is a value in fast memory, a blue one (square) a value in slow memory. "
        "Only loads, stores and copies cost.",
    )  # fmt: skip
    for number, document in enumerate(d for d in documents if d.kind == "solve"):
        stepper, ident = pebblings.stepper_of(document), f"pebbling{number}"
        data[ident] = {"kind": "pebbling", **stepper.to_json()}
        body = f'<div class="widget" data-id="{ident}"><div class="wide">{pebblings.svg(stepper, ident)}</div></div>'
        result.parts.append(_article(stepper.title, stepper.about, body))
    for document in documents:
        if document.kind == "replay":
            fields = Fields(document.data, document.name)
            legal = document.data["legal"] is True
            cost = f"legal, costs {fields.number('cost'):g}" if legal else f"illegal: {fields.text('illegal', '?')}"
            least = f"; at least {fields.number('lower_bound'):g} is proved" if "lower_bound" in fields else ""
            where = f"{fields.text('variant', '')}, {fields.number('capacity'):g} pebbles, replayed"
            result.parts.append(_article(fields.text("instance"), where, f"<p>{escape(cost + least)}</p>"))
    return result


def _audit_section(documents: Sequence[Document]) -> _Section:
    result = _Section(
        "audit", "Whole models",
        "What each operation moves at least as a kernel of its own, proved, and, filled, what it adds to the floor of "
        "the graph, in which all that lies between may stay on chip. A line shows what was measured. Arcs are tensors "
        "that one operation writes and another reads; fusing saves most, at most, along the thick ones.",
    )  # fmt: skip
    for number, document in enumerate(d for d in documents if d.kind == "audit"):
        picture = audits.picture_of(document)
        left = f"{picture.left_out} operations that move less are not shown" if picture.left_out else ""
        saves = "".join(f"<li>{escape(text)}</li>" for text in picture.saves)
        body = f'<div class="wide">{audits.svg(picture, f"audit{number}")}</div>'
        body += f"<p>Kept on chip, these save most, at most:</p><ol>{saves}</ol>" if saves else ""
        result.parts.append(_article(picture.title, picture.about, body, [left] if left else []))
    return result


def _certificate_section(documents: Sequence[Document]) -> _Section:
    result = _Section(
        "certificates", "Certificates",
        "Checked by the stand-alone checker when this page was made. Save one and check it again: "
        "<code>pebble verify FILE</code>.",
    )  # fmt: skip
    for document in documents:
        if document.kind in ("certificate", "verify"):
            single = listed(document)
            sign = {"verified": "✓", "refused": "✗"}.get(single.verdict, "?")
            body = f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in single.sentences)}</ul>"
            if single.link:
                body += (
                    f'<p><a download="{escape(single.name)}" href="{single.link}">Save {escape(single.name)}</a></p>'
                )
            result.parts.append(_article(single.name, f"{sign} {single.verdict}", body))
    return result
