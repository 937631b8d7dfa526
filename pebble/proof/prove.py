"""The proof of a bound for a reader, with the numbers of the instance filled in: a short list of blocks, written as
Markdown or LaTeX.

In the text of a block, ``$...$`` is mathematics and ```...``` is code, in either format.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from pebble.bounds import Accounting, LowerBound, Theorem, WeightedBound
from pebble.bounds.numbers import number
from pebble.bounds.proofs import COQ_GAME
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.statement import read_workload
from pebble.errors import InputError
from pebble.families import accounting
from pebble.families.schedules import Explicit
from pebble.proof.certificate import Answer, upper_claim, workload_statement
from pebble.workloads.widths import ALIKE
from pebble.workloads.workload import Workload

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


def prove(workload: Workload, result: Answer, command: str, form: str = "markdown") -> str:
    """The proof as text, ``"markdown"`` or ``"latex"``; the rest as for `proof_blocks`."""
    if form not in ("markdown", "latex"):
        raise InputError(f"form: got {repr(form)[:40]}, expected 'markdown' or 'latex'.")
    blocks = proof_blocks(workload, result, command)
    return latex(blocks) if form == "latex" else markdown(blocks)


def proof_blocks(workload: Workload, result: Answer, command: str) -> list[Block]:
    """The proof of a lower bound, as text.

    Parameters
    ----------
    workload : Workload
    result : Answer
        Its bounds, and its best schedule.
    command : str
        The command that writes the certificate, for the reader.
    """
    bound = result.lower
    stated = read_workload(workload_statement(workload), "workload")
    traffic = {name: operand.elements * operand.moves for name, operand in stated.operands.items()}
    text = bound.proof.text(traffic)
    if isinstance(bound.proof, WeightedBound):
        game = bound.proof.game or _game_in_bytes(bound, bound.proof)
        parts = [_statement_in_bytes(workload.label, bound), game, text]
    else:
        parts = [_statement(workload.label, bound), _game(workload, accounting(workload), bound), text]
        parts.append(_result(workload, bound))
    return written(*parts, *_after(result, command, stated))


def _statement(label: str, bound: LowerBound) -> str:
    return rf"""
        # A lower bound on the data movement of {label}

        ## Statement

        Every schedule of `{label}` whose fast memory holds at most $S = {number(bound.capacity)}$ values
        makes at least $Q = {number(bound.elements)}$ loads and stores, ${number(bound.bytes)}$ bytes.
        """


def _statement_in_bytes(label: str, bound: LowerBound) -> str:
    capacity = number(bound.instance["capacity_bytes"])
    return rf"""
        # A lower bound on the data movement of {label}

        ## Statement

        Every schedule of `{label}` in $S = {capacity}$ bytes of fast memory moves at least $Q = {number(bound.bytes)}$
        bytes.
        """


def _game_in_bytes(bound: LowerBound, proof: WeightedBound) -> str:
    w = proof.widths
    return rf"""
        ## The game

        The game is after Hong and Kung (1981). An input takes $w = {w.read}$ bytes, held or moved, and so does an
        intermediate cell that is complete. A complete output takes $w_o = {w.written}$. A cell that is initialised and
        not complete is a partial sum: one of
        the output takes $p = {w.partial}$ bytes, an intermediate one $p_H = {w.hidden}$, held, stored or loaded. At
        most $S$ bytes are held at any moment. {"Values may be computed again." if bound.recompute else ""}
        """


def _after(result: Answer, command: str, stated: Statement) -> list[str]:
    """Separate kernels, a schedule, and how to check all this; ``stated`` as a certificate does."""
    parts = []
    if result.separate is not None:
        parts.append(rf"""
        ## With separate kernels

        If every intermediate is stored by one kernel and loaded by the next, the same argument gives $Q \ge
        {_traffic(result.separate, isinstance(result.lower.proof, WeightedBound))}$.
        """)
    if result.upper is not None:
        told = False
        with suppress(InputError):  # more than a certificate would hold
            told = upper_claim(stated, result.upper) is not None
        parts.append(_schedule(result.upper, result.lower, told))
    theorem = result.lower.theorem
    parts.append(f"""
        ## Checking it

        The bound rests on {theorem.name}, stated and proved in `{theorem.stated_in}`: {_verified(theorem)}.

        `{command} --certificate c.json` writes every number of this proof as an exact fraction. `pebble verify c.json`
        checks them with whole numbers alone; the checker shares no code with the search that found them.
        """)
    return parts


def _verified(theorem: Theorem) -> str:
    """Who has checked the proof of the theorem; the numbers of an instance are another matter."""
    if theorem.coq:
        return f"Coq accepts the proof {COQ_GAME} (`{theorem.formal}`)"
    return "that proof is on paper, no proof assistant has checked it"


def _traffic(bound: LowerBound, in_bytes: bool) -> str:
    """Elements, or bytes where they are what is proved."""
    told = in_bytes or isinstance(bound.proof, WeightedBound)
    return number(bound.bytes) + r"\text{ bytes}" if told else number(bound.elements)


def _game(workload: Workload, problem: Accounting, bound: LowerBound) -> str:
    begins = "the first one begins the accumulator free of charge."
    if workload.values().get("accumulate"):
        begins = "the accumulator starts in slow memory with the value that is added to."
    again = "Values may be computed again" if bound.recompute else "No value is computed twice"
    if problem.recomputation_is_idle:
        again += ": only one completion of each output is useful, so it does not help"
    names = {name: name if len(name) == 1 else "\\text{" + name.replace("_", "\\_") + "}" for name in problem.symbols}
    sizes = ",\\quad ".join(f"{names[name]} = {number(size)}" for name, size in problem.symbols.items())
    return rf"""
        ## The game

        The game is after Hong and Kung (1981). Computed is
        {problem.game}. A value is in slow memory, in fast memory, or in both; at most $S$ are in fast memory
        at any moment. At the start all inputs are in slow memory and fast memory is empty; at the end all outputs are
        in slow memory. A multiply-add needs its operands and its accumulator in fast memory; {begins} Loads and stores
        cost one each. {again}.

        $$ {sizes}
        """


def _result(workload: Workload, bound: LowerBound) -> str:
    groups, several = "", bound.instance.get("independent_groups", 1)
    if several > 1:
        groups = f"""The ${number(several)}$ groups share no value. The moves of one group's values in any
        schedule are a schedule of that group with at most $S$ values held, so the bounds of all groups add."""
    return rf"""
        ## Result

        {groups}

        $$ Q \ge {number(bound.elements)}

        In bytes: each transfer moves at least ${workload.narrowest_bytes}$, and wider values are charged their width on
        the transfers that surely happen: ${number(bound.bytes)}$ bytes. $\Box$
        """


def _schedule(schedule: Explicit, bound: LowerBound, told: bool) -> str:
    memory = schedule.memory
    if memory.widths == ALIKE:
        each = (
            ", ".join(f"{name} ${number(n)}$" for name, n in traffic.items() if n)
            for traffic in (schedule.loads, schedule.stores)
        )
        loads, stores = each
        over = Fraction(schedule.elements, bound.elements)
        text = f"""holds at most ${number(schedule.peak_elements)}$ values loads {loads} and stores {stores}:
        ${number(schedule.elements)}$ in all"""
    else:
        over = Fraction(schedule.bytes, bound.bytes)
        text = f"""fits in ${number(memory.bytes)}$ bytes, where a partial sum takes ${memory.widths.partial}$ of them,
        moves ${number(schedule.bytes)}$ bytes"""
    thousandths = ceil(1000 * over)
    where = "Its blocks are in the certificate, from which the checker recomputes room and traffic." if told else ""
    return f"""
        ## A schedule

        A schedule that {text}, ${thousandths // 1000}.{thousandths % 1000:03d}$ times the bound. {where}
        """
