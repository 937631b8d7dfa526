r"""Bounds of parts add up: products that share nothing, or only values that one part makes and another uses.

**Theorem 6.** A workload consists of parts, each a set of products in a box, in any order and interleaving. Let an
operand value of a part be *handed over* when another part computes it, and a cell *handed over* when it is an operand
of another part. For each part cut the schedule by that part's work into :math:`h` segments and let :math:`X_s` be the
values that its operations touch in segment :math:`s`. If every value is computed once,

.. math:: Q \ge \sum_{\text{parts}} \max\Big(\text{own inputs and outputs},\;
          \sum_s X_s - (h - 1) S - \text{cells initialised and not stored} - \text{operands handed over}\Big),

where cells that are handed over count among those initialised and not stored.

*Proof.* Fix a part. A value touched in a segment was in fast memory at the segment's start (at most :math:`S` at each
of the :math:`h - 1` cuts; none at the first start), or was loaded in the segment before it was touched, or is a cell
initialised in it (once in all), or is an operand handed over that was completed in it (once in all). So :math:`\sum_s
X_s` is at most the part's loads, plus :math:`(h - 1) S`, plus its cells, plus its operands handed over; and each of its
outputs is stored. Now give every transfer to one part: those of weights, inputs and outputs of the workload to the part
they belong to; a load of a value that is handed over to the part that makes it while it is incomplete, and to the part
that uses it once it is complete. The part that makes it needs it in fast memory only before it is complete, the part
that uses it only after. So no transfer is counted twice, and the parts' bounds add, each with all of :math:`S`. The
first term of the maximum is the weights, inputs and outputs of the workload that belong to the part. (One part: Theorem
1.) :math:`\square`

**Alone.** Any theorem on a part as a workload of its own holds for it, less what is handed over: *a part moves at least
what it moves alone, less the bytes of the operands that it is handed and of the cells that it hands on.* *Proof.* From
a schedule of the workload keep what concerns the part's values; load each operand that is handed to it at the moment it
is complete, and store each cell that it hands on at the moment that one is. That is a schedule of the part alone, and
no more is held at any time. What it moves besides these loads and stores are transfers that the proof above gives to
the part. :math:`\square`

Without anything handed over (independent products) each part's projection is a legal schedule of that part alone, so
the sum holds with recomputation as well. Capacity may be held by any part at any time: no share of :math:`S` is
assumed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pebble.bounds.numbers import number
from pebble.bounds.proofs import ONCE, SingleClaim, Theorem
from pebble.bounds.segments import Segments
from pebble.bounds.uses import Goal, GroupProof, Subject, Use, best_of

THEOREM = Theorem("Theorem 6", __name__)
METHOD = "the bounds of its parts, added"


@dataclass(frozen=True)
class WorkloadPart(Subject):
    """One part of a workload, or several equal ones.

    Attributes
    ----------
    name : str
    uses : tuple of Use
        The theorems on it: of segments, where cells and operands that are handed over are among those
        ``initialised``; of lines, where no move of a value that is handed over is certain; others where none is.
    least : int
        Weights, inputs and outputs of the workload that belong to the part.
    count : int
        How many there are.
    alone : tuple of Use
        The theorems on it as a workload of its own, where it is handed values or hands them on.
    handed : int
        Values that it is handed and that it hands on.
    written : int
        Outputs of the workload that it writes; of a part that hands its results on none.
    hands_on : bool
        Whether it hands cells on beside outputs that it writes.
    besides : int
        Inputs of the workload that it reads besides, of which what the theorems count begins free.
    """

    name: str
    uses: tuple[Use, ...]
    least: int
    count: int = 1
    alone: tuple[Use, ...] = ()
    handed: int = 0
    written: int = 0
    hands_on: bool = False
    besides: int = 0


@dataclass(frozen=True)
class SumOfParts(SingleClaim):
    """Theorem 6 on an instance.

    Attributes
    ----------
    method : str
    parts : tuple of Part
    segments : tuple of GroupProof or None
        For each part a theorem, or None where its own inputs and outputs are the better bound.
    theorem : Theorem
        What the sum rests on.
    """

    method: str
    parts: tuple[WorkloadPart, ...]
    segments: tuple[GroupProof | None, ...]
    theorem: Theorem = THEOREM

    @property
    def elements(self) -> int:
        """Values moved at least."""
        return sum(part.count * of_part(part, result) for part, result in zip(self.parts, self.segments, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "parts": [
                {
                    "name": part.name,
                    "count": part.count,
                    "elements": of_part(part, result),
                    "own_inputs_and_outputs": part.least,
                    **({"form": result.form, **result.to_json()} if result else {}),
                }
                for part, result in zip(self.parts, self.segments, strict=True)
            ]
        }

    def claim(self) -> dict[str, Any]:
        """That of each part."""
        return {"theorem": "parts", "parts": [ONCE if result is None else result.claim() for result in self.segments]}

    def text(self, traffic: Mapping[str, int]) -> str:
        """What the parts are, and of each what it moves at least."""
        text = r"""
        ## Parts

        Fix a part and cut the schedule by its multiply-adds into $h$ segments. A value that its operations touch in a
        segment was in fast memory when the segment began (at most $S$ values at each of the $h - 1$ cuts, none at the
        start), or is loaded in it before it is touched, or is an accumulator initialised in it (once in all), or is an
        operand that another part computes and that is completed in it (once in all). A load of a value that passes
        from one part to another belongs to the first while the value is incomplete and to the second afterwards; every
        other transfer belongs to the part whose weight, input or output it moves. So no transfer is counted twice and
        the parts add up, each with all of $S$:

        $$ Q \ge \sum_{\text{parts}} \max\Big(\text{its own inputs and outputs},\ \sum_s x(v_s) - (h - 1) S -
        \text{initialised or completed free}\Big).
        """
        for part, result in zip(self.parts, self.segments, strict=True):
            times = f"{number(part.count)} times " if part.count > 1 else ""
            if result is None:
                text += f"""
        ## Part: {part.name}

        {times}its own inputs and outputs: ${number(part.least)}$.
        """
                continue
            if not isinstance(result, Segments):
                text += f"""
        ## Part: {part.name}

        {times}${number(result.elements)}$.
        """ + result.text(traffic)
                continue
            text += f"""
        ## Part: {part.name}

        {times}${number(result.elements)}$, from $h = {number(result.segments)}$ segments of
        ${number(result.piece.work)}$ multiply-adds; initialised or completed free, and not stored:
        ${number(result.piece.initialised)}$.
        """ + result.geometry()
        terms = " + ".join(number(p.count * of_part(p, s)) for p, s in zip(self.parts, self.segments, strict=True))
        return (
            text
            + f"""
        ## Together

        $$ Q \\ge {terms} = {number(self.elements)}
        """
        )


def of_part(part: WorkloadPart, result: GroupProof | None) -> int:
    """The bound of one part."""
    return part.least if result is None else result.elements


def bound_parts(parts: tuple[WorkloadPart, ...], capacity: int) -> SumOfParts:
    """Theorem 6 with the best theorem for each part."""
    return SumOfParts(METHOD, parts, tuple(best_of(part.uses, Goal(capacity, part.least)) for part in parts))
