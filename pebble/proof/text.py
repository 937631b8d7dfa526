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
    """One block: ``title``, ``section``, ``text``, ``formula`` or ``item``."""

    kind: str
    text: str


def written(*parts: str) -> list[Block]:
    """Blocks from text: paragraphs between empty lines; ``# `` a title, ``## `` a section, ``$$ `` a formula, ``- `` an item.

    Examples
    --------
    >>> written("## Sum\\n\\n$$ 1 + 1\\n= 2")
    [Block(kind='section', text='Sum'), Block(kind='formula', text='1 + 1 = 2')]
    """
    kinds = {"#": "title", "##": "section", "$$": "formula", "-": "item"}
    found = []
    for part in parts:
        for paragraph in re.split(r"\n\s*\n", part):
            words = paragraph.split()
            kind = kinds.get(words[0], "text") if words else ""
            if kind:
                found.append(Block(kind, " ".join(words if kind == "text" else words[1:])))
    return found


def number(value: int | Fraction) -> str:
    """A number for a formula, grouped by thousands; a fraction with two decimals, rounded down."""
    if isinstance(value, Fraction) and value.denominator > 1:
        hundredths = value.numerator * 100 // value.denominator
        return f"{hundredths // 100:,}".replace(",", r"\,") + f".{hundredths % 100:02d}\\ldots"
    return f"{int(value):,}".replace(",", r"\,")


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown with formulas between dollars, as GitHub shows them."""
    forms = {"title": "# {}", "section": "## {}", "formula": "$$\n{}\n$$", "item": "- {}", "text": "{}"}
    return _joined(blocks, lambda kind, text: forms[kind].format(text)) + "\n"


def latex(blocks: Iterable[Block]) -> str:
    """The blocks as a LaTeX article that needs amsmath alone."""
    forms = {
        "title": "\\title{{{}}}\n\\date{{}}\n\\maketitle",
        "section": "\\section*{{{}}}",
        "formula": "\\[\n{}\n\\]",
        "item": "\\noindent\\textbullet\\ {}",
        "text": "{}",
    }

    def form(kind: str, text: str) -> str:
        return forms[kind].format(text if kind == "formula" else _escaped(text))

    head = (
        "\\documentclass{article}\n\\usepackage{amsmath}\n\\setlength{\\parindent}{0pt}\n\\setlength{\\parskip}{6pt}\n"
    )
    return f"{head}\\begin{{document}}\n{_joined(blocks, form)}\n\\end{{document}}\n"


def _joined(blocks: Iterable[Block], form: object) -> str:
    assert callable(form)
    out = ""
    before = ""
    for kind, text in blocks:
        out += "" if not out else "\n" if kind == before == "item" else "\n\n"
        out += form(kind, text)
        before = kind
    return out


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
