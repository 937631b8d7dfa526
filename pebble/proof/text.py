"""A proof as a short list of blocks, written as Markdown or LaTeX.

In the text of a block, ``$...$`` is mathematics and ```...``` is code, in either format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
_QED = r"$\Box$"  # ends the proof
_HEAD = r"""\documentclass{article}
\usepackage[margin=1in]{geometry}
\usepackage{amsmath,amssymb,amsthm,graphicx}
\newtheorem{theorem}{Theorem}
\setlength{\parindent}{0pt}
\setlength{\parskip}{6pt}
\emergencystretch=4em
\newsavebox{\wide}
\newcommand{\fitted}[1]{% nothing leaves the margins, however long the numbers
  \sbox{\wide}{$\displaystyle #1$}%
  \[\ifdim\wd\wide>\linewidth\resizebox{\linewidth}{!}{\usebox{\wide}}\else\usebox{\wide}\fi\]}
\begin{document}"""
_SOURCES = {
    "Hong and Kung (1981)": (
        "hongkung1981",
        r"J.-W. Hong and H. T. Kung. \emph{I/O complexity: the red-blue pebble game}. "
        "STOC 1981, pages 326--333.",
    ),
    "Loomis and Whitney (1949)": (
        "loomiswhitney1949",
        r"L. H. Loomis and H. Whitney. \emph{An inequality related to the isoperimetric inequality}. "
        "Bulletin of the American Mathematical Society 55(10), 1949, pages 961--962.",
    ),
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


def markdown(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown with formulas between dollars, as GitHub shows them."""
    return "\n\n".join(_MARKDOWN[kind].format(text) for kind, text in blocks) + "\n"


def latex(blocks: Iterable[Block]) -> str:
    """The blocks as a LaTeX article: a theorem, its proof, what follows, and the sources that the text names.

    It needs amsmath, amssymb, amsthm, geometry and graphicx; a formula that is too wide is scaled to the line.
    """
    rest = list(blocks)
    ends = next((i for i, block in enumerate(rest) if _QED in block.text), -1)
    out, opened = [_HEAD], ""
    for i, (kind, text) in enumerate(rest):
        if kind == "title":
            out.append(f"\\title{{{_escaped(text)}}}\n\\date{{}}\n\\maketitle")
        elif kind == "formula":
            out.append(f"\\fitted{{{text}}}")
        elif kind == "text":
            out.append(_cited(_escaped(text.replace(_QED, "").rstrip())))
        else:
            if opened == "theorem":
                out.append("\\end{theorem}")
                opened = ""
            if text == "Statement":
                opened = "theorem"
                out.append("\\begin{theorem}")
            elif text == "The game" or i > ends:
                out.append(f"\\section*{{{_escaped(text)}}}")
            else:
                if not opened:
                    opened = "proof"
                    out.append("\\begin{proof}")
                out.append(f"\\textbf{{{_escaped(text)}.}}")
        if i == ends and opened == "proof":
            out.append("\\end{proof}")
            opened = ""
    if opened:
        out.append(f"\\end{{{opened}}}")
    named = [source for name, source in _SOURCES.items() if any(name in block.text for block in rest)]
    if named:
        items = "\n".join(f"\\bibitem{{{key}}} {text}" for key, text in named)
        out.append(f"\\begin{{thebibliography}}{{{len(named)}}}\n{items}\n\\end{{thebibliography}}")
    return "\n\n".join([*out, "\\end{document}\n"])


def _cited(text: str) -> str:
    for name, (key, _) in _SOURCES.items():
        text = text.replace(name, f"{name.partition(' (')[0]}~\\cite{{{key}}}")
    return text


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
