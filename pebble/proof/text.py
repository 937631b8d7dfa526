"""A proof as a short list of blocks, written as Markdown or LaTeX.

In the text of a block, ``$...$`` is mathematics and ```...``` is code, in either format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

_SPECIAL = {c: "\\" + c for c in "&%#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}
_PIECES = re.compile(r"(\$[^$]*\$|`[^`]*`)")


class Block(NamedTuple):
    """One block: ``title``, ``section``, ``text`` or ``formula``."""

    kind: str
    text: str


_KINDS = {"# ": "title", "## ": "section", "$$ ": "formula"}
_MARKDOWN = {"title": "# {}", "section": "## {}", "formula": "$$\n{}\n$$", "text": "{}"}
_LATEX = {
    "title": "\\title{{{}}}\n\\date{{}}\n\\maketitle",
    "section": "\\section*{{{}}}",
    "formula": "\\[\n{}\n\\]",
    "text": "{}",
}


def written(*parts: str) -> list[Block]:
    """Blocks from paragraphs: ``#`` begins a title, ``##`` a section, ``$$`` a formula.

    Examples
    --------
    >>> written("## Sum\\n\\n$$ 1 + 1\\n= 2")
    [Block(kind='section', text='Sum'), Block(kind='formula', text='1 + 1 = 2')]
    """
    paragraphs = (p for part in parts for p in re.split(r"\n\s*\n", part.strip()) if p)
    lines = (re.sub(r"\s*\n\s*", " ", paragraph.strip()) for paragraph in paragraphs)
    marked = ((next((m for m in _KINDS if line.startswith(m)), ""), line) for line in lines)
    return [Block(_KINDS.get(mark, "text"), line.removeprefix(mark)) for mark, line in marked]


def number(value: int | Fraction) -> str:
    """A number for a formula, grouped by thousands; a fraction with two decimals, rounded down."""
    if isinstance(value, Fraction) and value.denominator > 1:
        hundredths = value.numerator * 100 // value.denominator
        return f"{hundredths // 100:,}".replace(",", r"\,") + f".{hundredths % 100:02d}\\ldots"
    return f"{int(value):,}".replace(",", r"\,")


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown with formulas between dollars, as GitHub shows them."""
    return "\n\n".join(_MARKDOWN[kind].format(text) for kind, text in blocks) + "\n"


def latex(blocks: Iterable[Block]) -> str:
    """The blocks as a LaTeX article that needs amsmath alone."""
    body = (_LATEX[kind].format(text if kind == "formula" else _escaped(text)) for kind, text in blocks)
    head = r"\documentclass{article},\usepackage{amsmath},\setlength{\parindent}{0pt},\setlength{\parskip}{6pt}"
    return "\n".join([*head.split(","), r"\begin{document}", "\n\n".join(body), r"\end{document}", ""])


def _escaped(text: str) -> str:
    """Text with LaTeX's own characters escaped, formulas as they are, code in typewriter."""
    out = []
    for piece in _PIECES.split(text):
        if piece.startswith("$"):
            out.append(piece)
        elif piece.startswith("`"):
            out.append("\\texttt{" + "".join(_SPECIAL.get(c, c) for c in piece[1:-1]).replace("--", "-{}-") + "}")
        else:
            out.append("".join(_SPECIAL.get(c, c) for c in piece))
    return "".join(out)


def decimal(p: Fraction) -> str:
    """A fraction from 0 to 1 to six places, cut off."""
    return "1" if p == 1 else f"0.{p.numerator * 10**6 // p.denominator:06d}"


def signed(value: Fraction) -> str:
    """A fraction to nine places, cut off."""
    billionths = abs(value.numerator) * 10**9 // value.denominator
    return f"{'-' if value < 0 else ''}{billionths // 10**9}.{billionths % 10**9:09d}\\ldots"


def tail(less: int, more: int) -> str:
    """What a formula ends with."""
    return (f" - {number(less)}" if less else "") + (f" + {number(more)}" if more else "")
