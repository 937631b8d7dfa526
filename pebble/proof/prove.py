"""The proof of a bound for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from pebble.bounds import Accounting, LowerBound, Theorem, WeightedBound
from pebble.bounds.base import COQ_GAME
from pebble.bounds.numbers import number
from pebble.certificate.statement import Workload as Statement
from pebble.certificate.statement import read_workload
from pebble.errors import InputError
from pebble.families import accounting
from pebble.families.schedules import Explicit
from pebble.proof.certificate import Answer, workload_statement
from pebble.proof.text import Block, latex, markdown, written
from pebble.workloads.base import Workload
from pebble.workloads.widths import ALIKE


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
    text = bound.proof.text({name: operand.elements * operand.moves for name, operand in stated.operands.items()})
    if isinstance(bound.proof, WeightedBound):
        parts = [_statement_in_bytes(workload.label, bound), _game_in_bytes(bound, bound.proof), text]
    else:
        parts = [_statement(workload.label, bound), _game(stated, accounting(workload), bound), text]
        parts.append(_result(stated, bound))
    return written(*parts, *_after(result, command))


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

        An input takes $w = {w.read}$ bytes, held or moved, and so does an intermediate cell that is complete. A
        complete output takes $w_o = {w.written}$. A cell that is begun and not complete is a partial sum: one of the
        output takes $p = {w.partial}$ bytes, an intermediate one $p_H = {w.hidden}$, held, stored or loaded. At most
        $S$ bytes are held at any moment. {"Values may be computed again." if bound.recompute else ""}
        """


def _after(result: Answer, command: str) -> list[str]:
    """Separate kernels, a schedule, and how to check all this."""
    parts = []
    if result.separate is not None:
        parts.append(rf"""
        ## With separate kernels

        If every intermediate is stored by one kernel and loaded by the next, the same argument gives $Q \ge
        {_traffic(result.separate)}$.
        """)
    if result.upper is not None:
        parts.append(_schedule(result.upper, result.lower))
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


def _traffic(bound: LowerBound) -> str:
    """Elements, or bytes where they are what is proved."""
    return number(bound.bytes) + r"\text{ bytes}" if isinstance(bound.proof, WeightedBound) else number(bound.elements)


def _game(stated: Statement, problem: Accounting, bound: LowerBound) -> str:
    begins = "the first one begins the accumulator free of charge."
    if stated.option.get("accumulate_into"):
        begins = "the accumulator starts in slow memory with the value that is added to."
    again = "Values may be computed again" if bound.recompute else "No value is computed twice"
    if problem.chain is None and not problem.computed_once:
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
    return f"""
        ## A schedule

        A schedule that {text}, ${thousandths // 1000}.{thousandths % 1000:03d}$ times the bound. Its blocks are in the
        certificate, from which the checker recomputes room and traffic.
        """
