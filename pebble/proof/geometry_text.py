"""The geometric part of a proof, for a reader: why v multiply-adds touch at least x(v) values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pebble.certificate.geometry import Box
from pebble.certificate.lower import _chain
from pebble.certificate.statement import Workload
from pebble.proof.text import Block, number


def geometry(box: Box, proof: dict[str, Any]) -> list[Block]:
    """The inequalities, and for each size of segment the multipliers that turn them into a number."""
    overlap = f"{number(box.overlap)} " if box.overlap > 1 else ""
    blocks = [
        Block("section", "Geometry"),
        Block(
            "text",
            f"The multiply-adds are points of a box of ${number(box.rows)} \\times {number(box.cols)} \\times "
            f"{number(box.depth)}$, and the values they touch are its projections: $a$ along the columns, $b$ "
            f"along the rows, "
            "$c$ along the depth. By the inequality of Loomis and Whitney (1949), and because one value meets "
            "only so many "
            "others,",
        ),
        Block(
            "formula",
            f"v^2 \\le {overlap}a\\,b\\,c, \\qquad v \\le {number(box.overlap * box.cols)}\\,a, \\qquad "
            f"v \\le {number(box.rows)}\\,b, \\qquad v \\le {number(box.depth)}\\,c.",
        ),
    ]
    if box.overlap > 1:
        text = f"One input value serves up to $R = {box.overlap}$ pairs of a pixel and a tap, hence the factor."
        blocks.append(Block("text", text))
    for share in proof["shares"]:
        blocks += _share(box, share)
    return blocks


def _share(box: Box, share: dict[str, Any]) -> list[Block]:
    v, count = share["products"], share["segments"]
    head = f"For the ${number(count)}$ segments of $v = {number(v)}$ multiply-adds: "
    if "whole_numbers" in share:
        return [
            Block(
                "text",
                f"{head}no whole numbers with $a + b + c = {number(share['touched'] - 1)}$ satisfy all of these "
                f"(for each $a$ "
                f"the best $b$ and $c$ are as equal as the limits allow), so $x(v) \\ge {number(share['touched'])}$.",
            )
        ]
    p = [Fraction(x) for x in share["multipliers"]]
    limits: tuple[Fraction, ...] = box.least(v)
    used = [i for i in range(3) if p[i] > 0]
    rounded = "counts_at_least" in share
    limits = tuple(Fraction(-(-x.numerator // x.denominator)) for x in limits) if rounded else limits
    bound = Fraction(share["counts_at_least"] if rounded else share["touched"])
    if not used:
        root = f"3 (v^2{f' / {box.overlap}' if box.overlap > 1 else ''})^{{1/3}}"
        blocks = [
            Block("text", f"{head}by the arithmetic and geometric mean,"),
            Block("formula", f"a + b + c \\ge 3 (a b c)^{{1/3}} \\ge {root} \\ge {number(bound)}"),
        ]
    else:
        named = [f"${'abc'[i]} \\ge {number(limits[i])}$ with ${_decimal(p[i])}$" for i in used]
        blocks = [
            Block(
                "text",
                f"{head}weigh the limit{'s' if len(used) > 1 else ''} {' and '.join(named)}, and what is left "
                f"of each value by "
                "the arithmetic and geometric mean:",
            ),
            Block(
                "formula",
                "a + b + c \\ge "
                + " + ".join(f"{_decimal(p[i])}\\,{'abc'[i]}_{{\\min}}" for i in used)
                + " + 3 \\Big(\\prod_x (1 - p_x)\\, a b c\\Big)^{1/3} \\ge "
                + number(bound),
            ),
        ]
    if rounded:
        blocks.append(Block("text", f"Values are counted, so $x(v) \\ge {number(share['touched'])}$."))
    return blocks


def _decimal(p: Fraction) -> str:
    millionths = p.numerator * 10**6 // p.denominator
    return "1" if p == 1 else f"0.{millionths:06d}"


def recompute_geometry(workload: Workload, proof: dict[str, Any], capacity: int) -> list[Block]:
    """The theorem for schedules that may compute values of H and Y again."""
    _, k, _, l, cells = _chain(workload)
    h = proof["segments"]
    by_second = proof["theorem"] == "recompute, cut by second products"
    what = "products of $H D$" if by_second else "distinct products"
    touched = sum((s["segments"] * Fraction(s["touched"]) for s in proof["shares"]), Fraction(0))
    more = k * workload.size["hidden"] if workload.option.get("gated") else 0
    total = -(-touched.numerator // touched.denominator) - (h - 1) * capacity - (0 if by_second else cells) + more
    blocks = [
        Block("section", "Segments"),
        Block(
            "text",
            "Delete every operation whose result no stored output depends on; then each product of $H D$ is "
            "done once. For "
            "one cell of $H$ join two segments that touch it when the later one uses a copy carried over from the "
            "earlier (held at the cut, or loaded). There are at most as many segments as carried copies and "
            "components, "
            f"and each component completes the cell on its own, so it contains at least $k = {number(k)}$ "
            f"distinct products. "
            "With $v_1$ distinct products of $A B$ in a segment, cells touched are in all at most held, loaded and "
            "$\\sum v_1 / k$:",
        ),
        Block("formula", "Q \\ge \\sum_s \\Big[ X(v_{1,s}, v_{2,s}) - \\frac{v_{1,s}}{k} \\Big] - (h - 1) S"),
        Block(
            "text",
            f"Cut by {what} into $h = {number(h)}$ segments. "
            + (
                "For $e$ cells touched the bracket is linear in $v_1$ between $0$ and $k e$; both ends are "
                "bounded for every "
                "$e \\ge v_2 / l$."
                if by_second
                else "Segments have a share of the products of a schedule without recomputation; the last may "
                "have up to "
                f"twice as many. Each keeps at least $S$, so further segments do not lower the bound; and all "
                f"cells take "
                f"part in ${number(l)}$ products of $H D$ each."
            ),
        ),
        Block("section", "Arithmetic"),
    ]
    blocks += [
        Block(
            "text",
            f"${number(s['segments'])}$ segments of $v = {number(s['products'])}$ touch at least "
            f"${number(Fraction(s['touched']))}$ values each (multipliers in the certificate).",
        )
        for s in proof["shares"]
    ]
    tail = ("" if by_second else f" - {number(cells)}") + (f" + {number(more)}" if more else "")
    blocks.append(
        Block(
            "formula",
            f"Q \\ge {number(touched)} - {number(h - 1)} \\cdot {number(capacity)}{tail}"
            f" \\quad\\Rightarrow\\quad Q \\ge {number(total)}",
        )
    )
    if more:
        blocks.append(
            Block(
                "text", f"The up weights, which the gate's chain does not have, are loaded besides: ${number(more)}$."
            )
        )
    return blocks


def tied_geometry(workload: Workload, proof: dict[str, Any], capacity: int) -> list[Block]:
    """The theorem that ties gate and up cells together by their elementwise products."""
    _, _, _, l, cells = _chain(workload)
    h, weight, tau, phi = proof["segments"], *(Fraction(proof[x]) for x in ("lambda", "tau", "phi"))
    bound = h * phi + (weight - 2 - tau * l) * cells - (h - 1) * capacity
    return [
        Block("section", "Segments"),
        Block(
            "text",
            f"Cut the schedule into $h = {number(h)}$ segments of equal work. A value touched in a segment was "
            f"held when it "
            "began (at most $S$ at each cut), is loaded in it, or is an accumulator begun in it. Gate and up cells, "
            f"$2 m f = {number(2 * cells)}$, are begun free and need not be stored, so they are subtracted. The "
            f"elementwise "
            "product of a gate and an up cell is done in one segment, which touches both. With $T$ cells "
            "touched in a "
            "segment, $e$ of them gate cells, $v_1$ multiply-adds of gate and up, $v_2$ of down, and $M$ "
            "elementwise products,",
        ),
        Block("formula", "X \\ge T + v_1 G(T; \\min(m, 2f)) + v_2 G(e; \\min(m, f)), \\qquad M \\le \\min(e, T - e)"),
        Block(
            "text",
            "where $G(e; p)$ is $2 / \\sqrt{e}$ up to $p^2$ and $1/p + p/e$ beyond (Loomis and Whitney, and the "
            "sides of the box).",
        ),
        Block("section", "Arithmetic"),
        Block(
            "text",
            f"With $\\lambda = {_decimal(weight)}$ and $\\tau = {_signed(tau)}$ every segment has $X - \\lambda "
            f"M + \\tau v_2 \\ge "
            f"\\varphi = {number(phi)}$. The checker proves it on boxes of $T$ and $e$, in whole numbers. All "
            f"$M$ add up to "
            "$m f$ and all $v_2$ to $m f l$, so",
        ),
        Block(
            "formula",
            "Q \\ge h \\varphi + (\\lambda - 2 - \\tau l)\\, m f - (h - 1) S \\quad\\Rightarrow\\quad Q \\ge "
            + number(-(-bound.numerator // bound.denominator)),
        ),
    ]


def _signed(value: Fraction) -> str:
    millionths = abs(value.numerator) * 10**9 // value.denominator
    return f"{'-' if value < 0 else ''}{millionths // 10**9}.{millionths % 10**9:09d}\\ldots"
