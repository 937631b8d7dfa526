"""The bound in bytes: of each product, chain or kernel the theorem that proves most where values have widths.

The theorems are those of the classic game (`pebble.bounds.accounting`) with a width for each value; what they are asked
about is a group, a kernel or a part by itself, and what surely moves of it is charged its own width. Equal groups and
parts share no value, and each of two kernels starts from empty fast memory: as in the classic game the bounds add, each
with the full :math:`S`. A part of a layer moves what it moves alone, less what is handed over (`pebble.bounds.parts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pebble.bounds.accounting import KERNEL_BY_KERNEL, Accounting, kernel_uses
from pebble.bounds.chain import METHOD_IN_BYTES as CHAIN_METHOD
from pebble.bounds.numbers import number
from pebble.bounds.parts import WorkloadPart
from pebble.bounds.proofs import COMPULSORY, ONCE, InWidths, LowerBound, SingleClaim, Theorem, all_names
from pebble.bounds.segments import METHOD_IN_BYTES as METHOD
from pebble.bounds.segments import Piece
from pebble.bounds.uses import Goal, GroupProof, Use, best_of, weighted
from pebble.workloads.widths import FastMemory, Widths


def in_bytes(problem: Accounting, bound: LowerBound, memory: FastMemory, cases: int = 0) -> LowerBound:
    """The better of a bound that counts values and what Theorems B1 to B6 say in bytes.

    Parameters
    ----------
    problem : Accounting
    bound : LowerBound
        Of the same workload, whose capacity is at least as many values as may be in ``memory``.
    memory : FastMemory
        Bytes of fast memory, and what a value of each kind takes of them.
    cases : int
        As for `pebble.bounds.lower_bound`.

    Returns
    -------
    LowerBound
        ``bound`` itself where it proves no less, or where the theorems do not apply: computed again.
    """
    if memory.widths.uniform:
        return bound
    problems = _kernels(problem, bound, memory.widths)
    kernels = tuple(kernel.bound(memory.bytes, kernel.least) for kernel in problems)
    if len(problems) == 1:  # a search pays where it proves more than all that is known
        (only,), floor = problems, max(bound.bytes // problem.groups, kernels[0].bytes)
        if (result := only.bound(memory.bytes, floor, True, cases)).proof is not None:
            kernels = (result,)
    elif problem.computed_once:  # parts that hand values on
        each = zip(problems, kernels, strict=True)
        more = (part.bound(memory.bytes, known.bytes, True, cases) for part, known in each)
        kernels = tuple(new if new.proof else known for new, known in zip(more, kernels, strict=True))
    if problems and problem.parts and problem.uses:  # parts that are bounded as one besides
        whole = KernelProblem(weighted(problem.uses, memory.widths), problem.workload.compulsory_bytes, 1)
        joined = whole.bound(memory.bytes, sum(kernel.times * kernel.bytes for kernel in kernels))
        kernels = (joined,) if joined.proof is not None else kernels
    chain = problem.chain
    proof = WeightedBound(memory.widths, kernels, bound, chained=chain is not None)
    if proof.bytes <= bound.bytes:
        return bound
    instance = {**bound.instance, "capacity_bytes": memory.bytes}
    return replace(bound, bytes=proof.bytes, proof=proof, instance=instance)


class KernelProblem(NamedTuple):
    """A product, or a chain, that is bounded by itself where values have widths."""

    uses: tuple[Use, ...]  #: the theorems on it, where values have widths
    least: int  #: bytes that surely move
    times: int  #: how many equal ones there are
    handed: int = 0  #: bytes that it is handed or hands on, which only a kernel of its own moves
    besides: int = 0  #: bytes that surely move and that the theorems do not count

    def bound(self, capacity: int, floor: int, slow: bool = False, cases: int = 0) -> KernelBound:
        """What proves most of it, if more than ``floor``, among the theorems that take a search or the others."""
        uses = (use for use in self.uses if use.slow == slow)
        found = best_of(uses, Goal(capacity, floor + self.handed - self.besides, cases=cases))
        return KernelBound(found, self.least, self.times, self.handed, self.besides)


class KernelBound(NamedTuple):
    """What bounds one of these."""

    proof: GroupProof | None  #: None where what surely moves is as much
    least: int  #: bytes that surely move
    times: int  #: how many equal ones there are
    handed: int = 0  #: bytes that it is handed or hands on
    besides: int = 0  #: bytes that surely move and that the proof does not count

    @property
    def bytes(self) -> int:
        """Of one of them."""
        return self.least if self.proof is None else self.proof.bytes - self.handed + self.besides


def _kernels(problem: Accounting, bound: LowerBound, widths: Widths) -> list[KernelProblem]:
    """What is bounded by itself, in bytes; nothing where no theorem applies."""
    chain, least = problem.chain, problem.workload.compulsory_bytes // problem.groups
    if problem.parts:
        if not problem.computed_once:
            return [_part(part, widths) for part in problem.parts]
        linked = not (bound.recompute or bound.separate) and all(part.alone for part in problem.parts)
        return [_linked(part, widths) for part in problem.parts] if linked else []
    if (bound.recompute and not problem.recomputation_is_idle) or not problem.uses:
        return []
    if chain is None or not bound.separate:
        return [KernelProblem(weighted(problem.uses, widths), least, problem.groups)]
    # the first stores the cells of H complete, the second reads them
    m, k, f, l, cells, streams, w = chain.m, chain.k, chain.f, chain.l, chain.cells, chain.streams, widths.read
    inside = Widths(w, widths.hidden, widths.hidden, w)
    surely = w * (m * k + streams * k * f + cells), w * (cells + f * l) + widths.written * m * l
    each = zip(kernel_uses(chain), (inside, widths), surely, strict=True)
    return [KernelProblem(weighted(uses, of), traffic, problem.groups) for uses, of, traffic in each]


def _part(part: WorkloadPart, widths: Widths) -> KernelProblem:
    """One product among several: its inputs once, its outputs once, what is added to once more."""
    (piece,) = part.of(Piece)
    box = piece.box
    least = widths.read * (box.rows + box.cols) * box.depth + widths.written * (box.rows * box.cols + piece.added)
    return KernelProblem(weighted(part.uses, widths), least, part.count)


def _linked(part: WorkloadPart, widths: Widths) -> KernelProblem:
    """A part that is handed values, or hands them on: what is its own; the theorems on it alone.

    A schedule in widths is one in narrower widths that moves no more, and less where a value moves surely.
    """
    of = widths if part.written else Widths(widths.read, widths.hidden, widths.hidden, widths.read)
    least = widths.read * part.least + (of.written - of.read) * part.written
    besides = widths.read * part.besides
    if part.hands_on:  # cells of either kind count what the narrower takes; complete outputs are as wide as they are
        of = Widths(of.read, of.hidden, min(of.hidden, of.partial), min(of.read, of.written))
        besides += (widths.written - of.written) * part.written
    return KernelProblem(weighted(part.alone, of), least, part.count, widths.read * part.handed, besides)


@dataclass(frozen=True)
class WeightedBound(SingleClaim):
    """A bound in bytes that is above what counting values proves: of each kernel, part or group a theorem."""

    widths: Widths  #: what values take
    kernels: tuple[KernelBound, ...]  #: each kernel, part or group
    values: LowerBound  #: what counting values proves
    chained: bool = False  #: whether it is about two products in a row
    game: str = ""  #: what values take, for a reader, where `widths` do not say it

    @property
    def method(self) -> str:
        """What the bound is called."""
        proofs: list[object] = [kernel.proof for kernel in self.kernels]
        if self.game:
            return COMPULSORY.name if self.kernels[0].proof is None else self.kernels[0].proof.method
        named = [proof for proof in proofs if isinstance(proof, InWidths)]
        plain = CHAIN_METHOD if self.chained and not self.values.separate else METHOD
        strongest = max(named, key=lambda proof: proof.rank).METHODS[1] if named else plain
        return strongest + KERNEL_BY_KERNEL * self.values.separate

    @property
    def theorem(self) -> Theorem:
        """What the bounds of the kernels or groups rest on; that they add up is proved on paper."""
        used = [COMPULSORY if kernel.proof is None else kernel.proof.theorem for kernel in self.kernels]
        several = len(used) > 1
        together = KERNEL_BY_KERNEL if self.values.separate else ", part by part" if several else ""
        return Theorem(all_names(used) + together, __name__ if several else used[0].stated_in)

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return self.values.proof.elements

    @property
    def bytes(self) -> int:
        """Bytes moved at least, in all."""
        return sum(kernel.times * kernel.bytes for kernel in self.kernels)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        entries = [
            {
                **({} if kernel.proof is None else kernel.proof.to_json()),
                "surely_moved_bytes": kernel.least,
                "count": kernel.times,
                **({"handed_over_bytes": kernel.handed} if kernel.handed else {}),
                **({"besides_bytes": kernel.besides} if kernel.besides else {}),
            }
            for kernel in self.kernels
        ]
        proofs = [kernel.proof for kernel in self.kernels if kernel.proof is not None]
        shares = [proof.products // proof.segments for proof in proofs]
        cut = {"segments": max((proof.segments for proof in proofs), default=1)}
        described_shares = {"share_multiply_adds": min(shares, default=0)}
        return {**cut, **described_shares, "widths_bytes": self.widths.to_json(), "in_bytes": entries}

    def claim(self) -> dict[str, Any]:
        """That of each kernel."""
        kernels = [ONCE if kernel.proof is None else kernel.proof.claim() for kernel in self.kernels]
        return {"theorem": "segments in bytes", "kernels": kernels}

    def claims(self, bound: LowerBound) -> list[dict[str, Any]]:
        """What counting values proves, and that so many bytes move at least."""
        widths = {"partial_hidden": self.widths.hidden, "partial_output": self.widths.partial}
        own = {
            "claim": "lower bound in bytes",
            "game": bound.game,
            "widths_bytes": widths,
            "capacity_bytes": bound.instance["capacity_bytes"],
            "bytes": bound.bytes,
            "proof": self.claim(),
        }
        if self.game:  # values that differ in width are not counted
            return [own]
        return [*self.values.proof.claims(self.values), own]

    def text(self, traffic: Mapping[str, int]) -> str:
        """What holds for every kernel, then each, then the sum."""
        proofs = [kernel.proof for kernel in self.kernels if kernel.proof is not None]
        text = "".join(dict.fromkeys(proof.argument for proof in proofs))
        for kernel in self.kernels:
            text += _surely(kernel) if kernel.proof is None else kernel.proof.text(traffic) + _handed(kernel)
        terms = " + ".join(rf"{number(kernel.times)} \cdot {number(kernel.bytes)}" for kernel in self.kernels)
        return rf"""{text}
        ## Result

        $$ Q \ge {terms} = {number(self.bytes)}

        No schedule moves fewer bytes. $\Box$
        """


def _handed(kernel: KernelBound) -> str:
    if not kernel.handed:
        return ""
    besides = ""
    if kernel.besides:
        besides = f"""Besides, ${number(kernel.besides)}$ bytes surely move that are not counted here: what was saved of
        gate and up, of which $H$ is made, and what complete outputs are wider than the cells that are handed on."""
    return f"""
        In the whole ${number(kernel.handed)}$ bytes of this are handed over: load what is handed to this part when it
        is complete, store what it hands on when that is, and a schedule of the whole holds one of this part alone.
        {besides} So the whole moves ${number(kernel.bytes)}$ bytes of its values at least, and no transfer counts for
        two parts.
        """


def _surely(kernel: KernelBound) -> str:
    return f"""
        ## What surely moves

        ${number(kernel.times)}$ times: every input is read and every output written, ${number(kernel.least)}$ bytes.
        """
