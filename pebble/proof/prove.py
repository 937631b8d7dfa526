"""The proof of a bound for a reader, with the numbers of the instance filled in. It follows the certificate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pebble.certificate.lower import Part, _chain, _parts, strict_stores
from pebble.certificate.statement import Workload, read_workload
from pebble.proof.geometry_text import geometry, recompute_geometry, tied_geometry
from pebble.proof.text import Block, latex, markdown, number

_GAMES = {
    "gemm": "$C$ ($m \\times n$) $:= A$ ($m \\times k$) $B$ ($k \\times n$), one multiply-add $C_{ij} "
    "\\mathrel{+}= A_{il} B_{lj}$ "
    "per triple $(i, j, l)$, in any order",
    "conv2d": "the convolution, one multiply-add per output pixel, output channel and tap, in any order",
    "ffn": "$H := \\mathrm{act}(A B)$ and $Y := H D$ with $A$ ($m \\times k$), $B$ ($k \\times f$), $D$ ($f "
    "\\times l$), "
    "multiply-adds in any order; $H$ need never be in slow memory",
    "attention": "per group of query heads that share keys and values, with their queries stacked: "
    "$H := \\mathrm{softmax}(A B)$ and $Y := H D$ with $A = Q$ ($m \\times k$), $B = K^{T}$ ($k \\times f$), $D = V$ "
    "($f \\times l$); a probability takes the place of its score",
}


def prove(label: str, document: dict[str, Any], command: str, form: str = "markdown") -> str:
    """The proof as text, ``"markdown"`` or ``"latex"``; the rest as for `proof_blocks`."""
    blocks = proof_blocks(label, document, command)
    return latex(blocks) if form == "latex" else markdown(blocks)


def proof_blocks(label: str, document: dict[str, Any], command: str) -> list[Block]:
    """The proof that a certificate encodes, as text.

    Parameters
    ----------
    label : str
        The workload, for the title.
    document : dict
        A certificate of `pebble.proof.certificate.bound_certificate`.
    command : str
        The command that writes that certificate, for the reader.
    """
    workload = read_workload(document["statement"]["workload"], "workload")
    claim = document["claims"][0]
    blocks = [
        Block("title", f"A lower bound on the data movement of {label}"),
        Block("section", "Statement"),
        Block("text", _statement(workload, claim)),
        Block("section", "The game"),
        *_game(workload, claim),
        *_proof(workload, claim),
        Block("section", "Result"),
        *_result(workload, claim),
    ]
    for other in document["claims"][1:]:
        blocks += _other(claim, other)
    blocks += [
        Block("section", "Checking it"),
        Block(
            "text",
            f"`{command} --certificate c.json` writes every number of this proof as an exact fraction. `pebble "
            f"verify "
            "c.json` checks them with whole numbers alone; the checker shares no code with the search that "
            "found them.",
        ),
    ]
    return blocks


def _statement(workload: Workload, claim: dict[str, Any]) -> str:
    return (
        f"Every schedule of `{workload.label}` whose fast memory holds at most $S = "
        f"{number(claim['capacity_elements'])}$ "
        f"values makes at least $Q = {number(claim['elements'])}$ loads and stores, "
        f"${number(claim['bytes'])}$ bytes."
    )


def _game(workload: Workload, claim: dict[str, Any]) -> list[Block]:
    again = {
        "forbidden": "No value is computed twice.",
        "allowed": "Values may be computed again."
        if workload.family in ("ffn", "attention")
        else "Values may be computed again: only one completion of each output is useful, so it does not help.",
    }[claim["game"]["recompute"]]
    begins = "the first one begins the accumulator free of charge."
    if workload.option.get("accumulate_into"):
        begins = "the accumulator starts in slow memory with the value that is added to."
    text = (
        f"Computed is {_GAMES[workload.family]}. A value is in slow memory, in fast memory, or in both; at most "
        f"$S$ are in "
        "fast memory at any moment. At the start all inputs are in slow memory and fast memory is empty; at the "
        "end all "
        f"outputs are in slow memory. A multiply-add needs its operands and its accumulator in fast memory; {begins} "
        f"Loads and stores cost one each. {again}"
    )
    return [Block("text", text), Block("formula", ",\\quad ".join(_dimensions(workload)))]


def _dimensions(workload: Workload) -> list[str]:
    size = workload.size
    if workload.family == "gemm":
        return [f"{x} = {number(size[x])}" for x in "mnk"]
    if workload.family == "conv2d":
        part = _parts(workload)["convolution"]
        names = (
            ("pixels", part.box.rows),
            ("channels", part.box.cols),
            ("taps", part.box.depth),
            ("R", part.box.overlap),
        )
        return [f"\\text{{{n}}} = {number(x)}" if len(n) > 1 else f"{n} = {number(x)}" for n, x in names]
    m, k, f, l, cells = _chain(workload)
    found = [f"{n} = {number(x)}" for n, x in zip("mkfl", (m, k, f, l), strict=True)]
    if workload.family == "attention":
        found += [f"\\text{{scores}} = {number(cells)}", f"\\text{{groups}} = {number(workload.groups)}"]
    return found


def _proof(workload: Workload, claim: dict[str, Any]) -> list[Block]:
    proof, capacity = claim["proof"], claim["capacity_elements"]
    spilled = strict_stores(workload, capacity) if claim["game"]["recompute"] == "forbidden" else 0
    if proof["theorem"] == "compulsory":
        terms = " + ".join(number(o.elements * o.moves) for o in workload.operands.values())
        names = ", ".join(f"`{name}`" for name in workload.operands)
        blocks = [
            Block("section", "Every value moves once"),
            Block(
                "text",
                f"Every input is read and every output written at least once: {names} (twice if read and written).",
            ),
            Block("formula", f"Q \\ge {terms} = {number(workload.compulsory)}"),
        ]
        return blocks + (_strict(workload, spilled, 2) if spilled else [])
    if proof["theorem"] == "segments":
        part = _parts(workload)[proof["form"]]
        return [*_segments(part, proof), *geometry(part.box, proof), *_arithmetic(part, proof, capacity)] + (
            _strict(workload, spilled, 1) if spilled else []
        )
    if proof["theorem"] == "tied segments":
        return tied_geometry(workload, proof, capacity)
    return recompute_geometry(workload, proof, capacity)


def _segments(part: Part, proof: dict[str, Any]) -> list[Block]:
    h = proof["segments"]
    begun = (
        " A cell of $H$ begun and never stored enters free: subtract the number of these cells." if part.cells else ""
    )
    more = {
        True: " What is loaded besides in any case is added at the end.",
        False: "",
    }[bool(part.more)]
    return [
        Block("section", "Segments"),
        Block(
            "text",
            f"Cut the schedule into $h = {number(h)}$ segments, each with a fixed share of the "
            f"${number(part.products)}$ "
            "multiply-adds. A value is touched in a segment if an operation of the segment reads or updates it. "
            "Then it was "
            "in fast memory when the segment began, or is loaded in it, or is an accumulator begun in it (once "
            "in all). "
            "The first segment begins empty, and at each of the $h - 1$ cuts at most $S$ values are held. Every "
            "output "
            f"begun free is stored at the end, so beginnings of outputs are paid for by stores.{begun}{more} Hence",
        ),
        Block(
            "formula",
            "Q \\ge \\sum_{s=1}^{h} x(v_s) - (h - 1) S"
            + (f" - {number(part.cells)}" if part.cells else "")
            + (f" + {number(part.more)}" if part.more else ""),
        ),
        Block("text", "where $x(v)$ is the least number of values that any $v$ multiply-adds touch."),
    ]


def _arithmetic(part: Part, proof: dict[str, Any], capacity: int) -> list[Block]:
    h = proof["segments"]
    touched = sum((s["segments"] * Fraction(s["touched"]) for s in proof["shares"]), Fraction(0))
    total = -(-touched.numerator // touched.denominator)
    terms = " + ".join(f"{number(s['segments'])} \\cdot {number(Fraction(s['touched']))}" for s in proof["shares"])
    result = total - (h - 1) * capacity - part.cells + part.more
    return [
        Block("section", "Arithmetic"),
        Block("formula", f"\\sum_s x(v_s) \\ge {terms} \\quad\\Rightarrow\\quad \\sum_s x(v_s) \\ge {number(total)}"),
        Block(
            "text",
            "(a count of values is a whole number, so the sum is rounded up; the exact fractions are in the "
            "certificate).",
        ),
        Block(
            "formula",
            f"Q \\ge {number(total)} - {number(h - 1)} \\cdot {number(capacity)}"
            + (f" - {number(part.cells)}" if part.cells else "")
            + (f" + {number(part.more)}" if part.more else "")
            + f" = {number(result)}",
        ),
    ]


def _strict(workload: Workload, spilled: int, times: int) -> list[Block]:
    moves = "stored" if times == 1 else "stored and loaded again"
    return [
        Block("section", "Strict softmax"),
        Block(
            "text",
            "When the last score of a row enters its sum, all scores of that row are computed and none is used. "
            "At most "
            f"$S - 1$ of them are in fast memory beside the sum; the others are {moves}: ${number(spilled)}$ "
            f"per group, on top.",
        ),
    ]


def _result(workload: Workload, claim: dict[str, Any]) -> list[Block]:
    blocks = []
    if workload.groups > 1:
        blocks.append(
            Block(
                "text",
                f"The ${number(workload.groups)}$ groups share no value. The moves of one group's values in any "
                f"schedule are "
                "a schedule of that group with at most $S$ values held, so the bounds of all groups add.",
            )
        )
    blocks.append(Block("formula", f"Q \\ge {number(claim['elements'])}"))
    narrow = workload.narrow
    blocks.append(
        Block(
            "text",
            f"In bytes: each transfer moves at least ${narrow}$, and wider values are charged their width on "
            f"the transfers "
            f"that surely happen: ${number(claim['bytes'])}$ bytes. $\\blacksquare$".replace("\\blacksquare", "\\Box"),
        )
    )
    return blocks


def _other(claim: dict[str, Any], other: dict[str, Any]) -> list[Block]:
    if other["claim"] == "lower bound":
        return [
            Block("section", "With separate kernels"),
            Block(
                "text",
                "If every intermediate is stored by one kernel and loaded by the next, the same argument gives "
                f"$Q \\ge {number(other['elements'])}$.",
            ),
        ]
    moved = other["moved"]
    parts = [f"{name} ${number(n)}$" for name, n in moved["loads"].items() if n]
    stores = [f"{name} ${number(n)}$" for name, n in moved["stores"].items() if n]
    gap = Fraction(other["elements"], claim["elements"])
    return [
        Block("section", "A schedule"),
        Block(
            "text",
            f"A schedule that holds at most ${number(moved['peak_elements'])}$ values loads {', '.join(parts)} "
            f"and stores "
            f"{', '.join(stores)}: ${number(other['elements'])}$ in all, ${_ratio(gap)}$ times the bound. Its "
            f"blocks are in "
            "the certificate, from which the checker recomputes this traffic.",
        ),
    ]


def _ratio(gap: Fraction) -> str:
    thousandths = -(-gap.numerator * 1000 // gap.denominator)
    return f"{thousandths // 1000}.{thousandths % 1000:03d}"
