"""The proof of a bound for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from pebble.bounds import (
    Accounting,
    Box,
    Compulsory,
    LineBound,
    LowerBound,
    Parts,
    PassBound,
    PricedBound,
    Recomputed,
    Segments,
    Theorem,
    Tied,
    Wide,
)
from pebble.bounds.base import COQ_GAME
from pebble.bounds.parts import of_part
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.statement import read_workload
from pebble.errors import InputError
from pebble.families import accounting
from pebble.families.schedules import Explicit
from pebble.proof.certificate import Answer, workload_statement
from pebble.proof.chains import recomputed_text, tied_text
from pebble.proof.lines import line_proof
from pebble.proof.passes import pass_proof
from pebble.proof.priced import priced_proof
from pebble.proof.shares import Share, segment_shares, total
from pebble.proof.text import Block, decimal, latex, markdown, number, tail, written
from pebble.proof.widths import wide_blocks
from pebble.workloads.base import Workload
from pebble.workloads.widths import ALIKE


def prove(workload: Workload, found: Answer, command: str, form: str = "markdown") -> str:
    """The proof as text, ``"markdown"`` or ``"latex"``; the rest as for `proof_blocks`."""
    if form not in ("markdown", "latex"):
        raise InputError(f"form: got {repr(form)[:40]}, expected 'markdown' or 'latex'.")
    blocks = proof_blocks(workload, found, command)
    return latex(blocks) if form == "latex" else markdown(blocks)


def proof_blocks(workload: Workload, found: Answer, command: str) -> list[Block]:
    """The proof of a lower bound, as text.

    Parameters
    ----------
    workload : Workload
    found : Answer
        Its bounds, and its best schedule.
    command : str
        The command that writes the certificate, for the reader.
    """
    bound = found.lower
    stated = read_workload(workload_statement(workload), "workload")
    if isinstance(bound.proof, Wide):
        return written(*wide_blocks(workload.label, bound, bound.proof), *_after(found, command))
    parts = [
        rf"""
        # A lower bound on the data movement of {workload.label}

        ## Statement

        Every schedule of `{workload.label}` whose fast memory holds at most $S = {number(bound.capacity)}$ values
        makes at least $Q = {number(bound.elements)}$ loads and stores, ${number(bound.bytes)}$ bytes.
        """,
        _game(stated, accounting(workload), bound),
        _proof(stated, bound),
        _result(stated, bound),
    ]
    return written(*parts, *_after(found, command))


def _after(found: Answer, command: str) -> list[str]:
    """Separate kernels, a schedule, and how to check all this."""
    parts = []
    if found.separate is not None:
        parts.append(rf"""
        ## With separate kernels

        If every intermediate is stored by one kernel and loaded by the next, the same argument gives $Q \ge
        {_moved(found.separate)}$.
        """)
    if found.upper is not None:
        parts.append(_schedule(found.upper, found.lower))
    theorem = found.lower.theorem
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


def _moved(bound: LowerBound) -> str:
    """Elements, or bytes where they are what is proved."""
    return number(bound.bytes) + r"\text{ bytes}" if isinstance(bound.proof, Wide) else number(bound.elements)


def _game(stated: Statement, told: Accounting, bound: LowerBound) -> str:
    begins = "the first one begins the accumulator free of charge."
    if stated.option.get("accumulate_into"):
        begins = "the accumulator starts in slow memory with the value that is added to."
    again = "Values may be computed again" if bound.recompute else "No value is computed twice"
    if told.chain is None and not told.computed_once:
        again += ": only one completion of each output is useful, so it does not help"
    names = {name: name if len(name) == 1 else "\\text{" + name.replace("_", "\\_") + "}" for name in told.symbols}
    sizes = ",\\quad ".join(f"{names[name]} = {number(size)}" for name, size in told.symbols.items())
    return rf"""
        ## The game

        The game is after Hong and Kung (1981). Computed is
        {told.game}. A value is in slow memory, in fast memory, or in both; at most $S$ are in fast memory
        at any moment. At the start all inputs are in slow memory and fast memory is empty; at the end all outputs are
        in slow memory. A multiply-add needs its operands and its accumulator in fast memory; {begins} Loads and stores
        cost one each. {again}.

        $$ {sizes}
        """


def _proof(stated: Statement, bound: LowerBound) -> str:
    match bound.proof:
        case Compulsory() as proof:
            terms = " + ".join(number(o.elements * o.moves) for o in stated.operands.values())
            names = ", ".join(f"`{name}`" for name in stated.operands)
            return rf"""
        ## Every value moves once

        Every input is read and every output written at least once: {names} (twice if read and written).

        $$ Q \ge {terms} = {number(stated.compulsory)}
        """ + _strict(proof.added // 2, "stored and loaded again")
        case Segments() as proof:
            shares = segment_shares(proof)
            return (
                _segments(proof)
                + _geometry(proof.piece.box, shares)
                + _arithmetic(proof, shares)
                + _strict(proof.on_top, "stored")
            )
        case LineBound() as proof:
            return line_proof(proof)
        case PassBound() as proof:
            return pass_proof(proof)
        case PricedBound() as proof:
            return priced_proof(proof)
        case Parts() as proof:
            return _parts(proof)
        case Recomputed() as proof:
            return recomputed_text(proof)
        case Tied() as proof:
            return tied_text(proof)
    raise TypeError(f"no text for {bound.method}")


def _parts(proof: Parts) -> str:
    """What the parts are, and of each what it moves at least."""
    text = r"""
        ## Parts

        Fix a part and cut the schedule by its multiply-adds into $h$ segments. A value that its operations touch in a
        segment was in fast memory when the segment began (at most $S$ values at each of the $h - 1$ cuts, none at the
        start), or is loaded in it before it is touched, or is an accumulator begun in it (once in all), or is an
        operand that another part computes and that is completed in it (once in all). A load of a value that passes
        from one part to another belongs to the first while the value is incomplete and to the second afterwards; every
        other transfer belongs to the part whose weight, input or output it moves. So no transfer is counted twice and
        the parts add up, each with all of $S$:

        $$ Q \ge \sum_{\text{parts}} \max\Big(\text{its own inputs and outputs},\ \sum_s x(v_s) - (h - 1) S -
        \text{begun or completed free}\Big).
        """
    for part, found in zip(proof.parts, proof.segments, strict=True):
        times = f"{number(part.count)} times " if part.count > 1 else ""
        if found is None:
            text += f"""
        ## Part: {part.name}

        {times}its own inputs and outputs: ${number(part.least)}$.
        """
            continue
        if isinstance(found, LineBound):
            text += f"""
        ## Part: {part.name}

        {times}${number(found.elements)}$.
        """ + line_proof(found)
            continue
        shares = segment_shares(found)
        text += (
            f"""
        ## Part: {part.name}

        {times}${number(found.elements)}$, from $h = {number(found.segments)}$ segments of ${number(found.piece.work)}$
        multiply-adds; begun or completed free, and not stored: ${number(found.piece.begun)}$.
        """
            + _geometry(found.piece.box, shares)
            + _arithmetic(found, shares)
        )
    terms = " + ".join(number(p.count * of_part(p, s)) for p, s in zip(proof.parts, proof.segments, strict=True))
    return (
        text
        + f"""
        ## Together

        $$ Q \\ge {terms} = {number(proof.elements)}
        """
    )


def _segments(proof: Segments) -> str:
    piece, h = proof.piece, number(proof.segments)
    begun = (
        " A cell of $H$ begun and never stored enters free: subtract the number of these cells." if piece.begun else ""
    )
    more = " What is loaded besides in any case is added at the end." if piece.added else ""
    return rf"""
        ## Segments

        Cut the schedule into $h = {h}$ segments, each with a fixed share of the ${number(piece.work)}$ multiply-adds. A
        value is touched in a segment if an operation of the segment reads or updates it. Then it was in fast memory
        when the segment began, or is loaded in it, or is an accumulator begun in it (once in all). The first segment
        begins empty, and at each of the $h - 1$ cuts at most $S$ values are held. Every output begun free is stored at
        the end, so beginnings of outputs are paid for by stores.{begun}{more} Hence

        $$ Q \ge \sum_{{s=1}}^{{h}} x(v_s) - (h - 1) S{tail(piece.begun, piece.added)}

        where $x(v)$ is the least number of values that any $v$ multiply-adds touch.
        """


def _geometry(box: Box, shares: list[Share]) -> str:
    """The inequalities, and for each size of segment the multipliers that turn them into a number."""
    overlap = f"{number(box.overlap)} " if box.overlap > 1 else ""
    text = rf"""
        ## Geometry

        The multiply-adds are points of a box of ${number(box.rows)} \times {number(box.cols)} \times
        {number(box.depth)}$, and the values they touch are its projections: $a$ along the columns, $b$ along the rows,
        $c$ along the depth. By the inequality of Loomis and Whitney (1949), and because one value meets only so many
        others,

        $$ v^2 \le {overlap}a\,b\,c, \qquad v \le {number(box.overlap * box.cols)}\,a, \qquad v \le
        {number(box.rows)}\,b, \qquad v \le {number(box.depth)}\,c.
        """
    if box.overlap > 1:
        text += f"""
        One input value is met at up to $R = {box.overlap}$ places along the columns, hence the factor.
        """
    return text + "".join(_share(box, share) for share in shares)


def _share(box: Box, share: Share) -> str:
    v, touched = share.products, number(int(share.touched))
    head = f"For the ${number(share.segments)}$ segments of $v = {number(v)}$ multiply-adds:"
    if share.whole_numbers:
        return rf"""
        {head} no whole numbers with $a + b + c = {number(int(share.touched) - 1)}$ satisfy all of these (for each $a$
        the best $b$ and $c$ are as equal as the limits allow), so $x(v) \ge {touched}$.
        """
    rounded = share.rounded_from is not None
    bound = number(share.touched if share.rounded_from is None else share.rounded_from)
    weighed = [
        (name, Fraction(ceil(limit)) if rounded else limit, p)
        for name, limit, p in zip("abc", box.limits(v), share.multipliers, strict=True)
        if p > 0
    ]
    if not weighed:
        root = f"3 (v^2{f' / {box.overlap}' if box.overlap > 1 else ''})^{{1/3}}"
        text = rf"""
        {head} by the arithmetic and geometric mean,

        $$ a + b + c \ge 3 (a b c)^{{1/3}} \ge {root} \ge {bound}
        """
    else:
        limits = " and ".join(rf"${name} \ge {number(limit)}$ with ${decimal(p)}$" for name, limit, p in weighed)
        sides = " + ".join(rf"{decimal(p)}\,{name}_{{\min}}" for name, _, p in weighed)
        text = rf"""
        {head} weigh the limit{"s" if len(weighed) > 1 else ""} {limits}, and what is left of each value by the
        arithmetic and geometric mean:

        $$ a + b + c \ge {sides} + 3 \Big(\prod_x (1 - p_x)\, a b c\Big)^{{1/3}} \ge {bound}
        """
    if rounded:
        text += rf"""
        Values are counted, so $x(v) \ge {touched}$.
        """
    return text


def _arithmetic(proof: Segments, shares: list[Share]) -> str:
    piece, sum_touched = proof.piece, number(total(shares))
    terms = " + ".join(rf"{number(s.segments)} \cdot {number(s.touched)}" for s in shares)
    result = number(proof.elements - proof.on_top)
    return rf"""
        ## Arithmetic

        $$ \sum_s x(v_s) \ge {terms} \quad\Rightarrow\quad \sum_s x(v_s) \ge {sum_touched}

        (a count of values is a whole number, so the sum is rounded up; the exact fractions are in the certificate).

        $$ Q \ge {sum_touched} - {number(proof.segments - 1)} \cdot
        {number(proof.capacity)}{tail(piece.begun, piece.added)} = {result}
        """


def _strict(spilled: int, moves: str) -> str:
    if not spilled:
        return ""
    return f"""
        ## Strict softmax

        When the last score of a row enters its sum, all scores of that row are computed and none is used. At most $S -
        1$ of them are in fast memory beside the sum; the others are {moves}: ${number(spilled)}$ per group, on top.
        """


def _result(stated: Statement, bound: LowerBound) -> str:
    groups = ""
    if stated.groups > 1:
        groups = f"""The ${number(stated.groups)}$ groups share no value. The moves of one group's values in any
        schedule are a schedule of that group with at most $S$ values held, so the bounds of all groups add."""
    return rf"""
        ## Result

        {groups}

        $$ Q \ge {number(bound.elements)}

        In bytes: each transfer moves at least ${stated.narrow}$, and wider values are charged their width on the
        transfers that surely happen: ${number(bound.bytes)}$ bytes. $\Box$
        """


def _schedule(schedule: Explicit, bound: LowerBound) -> str:
    room = schedule.room
    if room.widths == ALIKE:
        each = (
            ", ".join(f"{name} ${number(n)}$" for name, n in moved.items() if n)
            for moved in (schedule.loads, schedule.stores)
        )
        loads, stores = each
        over = Fraction(schedule.elements, bound.elements)
        told = f"""holds at most ${number(schedule.peak_elements)}$ values loads {loads} and stores {stores}:
        ${number(schedule.elements)}$ in all"""
    else:
        over = Fraction(schedule.bytes, bound.bytes)
        told = f"""fits in ${number(room.bytes)}$ bytes, where a partial sum takes ${room.widths.partial}$ of them,
        moves ${number(schedule.bytes)}$ bytes"""
    thousandths = ceil(1000 * over)
    return f"""
        ## A schedule

        A schedule that {told}, ${thousandths // 1000}.{thousandths % 1000:03d}$ times the bound. Its blocks are in the
        certificate, from which the checker recomputes room and traffic.
        """
