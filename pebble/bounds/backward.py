r"""The backward pass of a product, :math:`dA = dC\,B^T` and :math:`dB = A^T dC`: two products that share :math:`dC`.

:math:`A` is :math:`m \times k`, :math:`B` :math:`k \times n`, :math:`dC` :math:`m \times n`.

**One box.** Let the multiply-add :math:`dA_{it} \mathrel{+}= dC_{ij} B_{tj}` be the point :math:`(i, j, t)` and
:math:`dB_{tj} \mathrel{+}= A_{it}\, dC_{ij}` the point :math:`(i, j, k + t)`. They fill a box :math:`m \times n \times
2 k`, and every value is a projection of it, each a different one: :math:`(i, t)` is a value of :math:`dA` or, from
:math:`k` on, of :math:`A`; :math:`(j, t)` one of :math:`B` or :math:`dB`; :math:`(i, j)` one of :math:`dC`.

**Theorem 13.** *The backward pass moves at least*

.. math:: Q \ge \sum_s x(v_s) - (h - 1) S

*for every* :math:`h` *and shares* :math:`v_s` *of the* :math:`2 m n k` *multiply-adds, with the* :math:`x` *of the box*
:math:`m \times n \times 2 k`; *and Theorem 7 holds with lines of* :math:`n` *products for values of* :math:`A` *and*
:math:`dA`, *of* :math:`m` *for* :math:`B` *and* :math:`dB`, *of* :math:`2 k` *for* :math:`dC`, *those of* :math:`dA`
*and* :math:`dB` *being outputs and the others inputs. It holds with recomputation too.*

*Proof.* Both theorems speak of points of a box and of values that are its projections; which of these are inputs and
which are cells enters through the accounting alone. A value that a segment touches was held at its start, or is loaded
in it, or is a cell of :math:`dA` or :math:`dB` that is initialised in it, once in all; and each of those is stored. So
nothing is taken off. Every computed value is an output, of which one completion is useful. :math:`\Box`

So the backward pass costs as much at least as one product with twice the depth: compulsory traffic, with :math:`dC`
counted once, and about :math:`4 m n k / \sqrt S`. Two products one after the other, each at its own bound, read
:math:`dC` twice.

**Theorem B7.** *In bytes, with* :math:`p'` *from* :math:`w_o` *to* :math:`p` *for an accumulator,*

.. math:: Q \ge \sum_s \min\{x_1(v_s), x_2(v_s)\} - (h - 1) S - (p' - w_o)(m k + k n),

*where* :math:`x_1(v)` *is the least* :math:`p' a + w b + w c` *and* :math:`x_2(v)` *the least* :math:`w a + p' b + w c`
*under the inequalities of the box.*

*Proof.* Let a segment do :math:`\mu v` of its :math:`v` multiply-adds for :math:`dA`, with :math:`a_1, b_1` values of
:math:`dA` and :math:`B`, and the others for :math:`dB`, with :math:`a_2, b_2` of :math:`A` and :math:`dB`; :math:`c` of
:math:`dC` serve both. It touches :math:`X = (p' a_1 + w b_1) + (w a_2 + p' b_2) + w c = \mu T_1 + (1 - \mu) T_2` with
:math:`T_1 = (p' a_1 + w b_1) / \mu + w c` and :math:`T_2 = (w a_2 + p' b_2) / (1 - \mu) + w c`, so the lesser of the
two at least. By Loomis and Whitney :math:`(\mu v)^2 \le a_1 b_1 c`, and :math:`\mu v \le n a_1`, :math:`\mu v \le m
b_1`, :math:`v \le 2 k c`: the numbers :math:`a_1 / \mu, b_1 / \mu, c` satisfy the inequalities of the box for :math:`v`
products. The others likewise. (If :math:`\mu` is 0 or 1, one of the two is not needed.) :math:`\Box` Of Theorem B3
nothing changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from pebble.bounds.box import Box
from pebble.bounds.line_search import ByLines
from pebble.bounds.lines import LineProblem, Lines
from pebble.bounds.proofs import Theorem
from pebble.bounds.segments import METHOD_IN_BYTES, Piece
from pebble.bounds.uses import Goal, GroupProof, Use
from pebble.workloads.widths import Widths

THEOREM = Theorem("Theorem 13", __name__)
IN_BYTES = Theorem("Theorem B7", __name__)
METHOD = "segment accounting for two products that share an operand"
FORM = "backward"
MULTIPLIERS = (1.0, 1.15, 1.3, 1.5, 1.75)


@dataclass(frozen=True)
class SharedPiece(Piece):
    """Two products that share an operand, dA = dC B^T and dB = A^T dC, as Theorem 13 has them in one box."""

    def at(self, widths: Widths) -> tuple[Piece, ...]:
        """The uses of Theorem B7 that are worth trying: cells may count less than they take."""
        w, p, written = widths.read, widths.partial, widths.written
        box = self.box
        outputs = (box.rows + box.cols) * box.depth // 2

        def use(charge: int) -> Piece:
            return replace(
                self,
                method=METHOD_IN_BYTES,
                initialised=(charge - written) * outputs,
                whole_numbers=False,
                theorem=IN_BYTES,
                widths=widths,
                charges=(0, charge),
                kinds=(box.weighed(charge, w, w), box.weighed(w, charge, w)),
                weights=(1, 1),
            )

        return tuple(use(charge) for charge in sorted({written, (written + p) // 2, p}))


def backward_uses(
    m: int,
    n: int,
    k: int,
    names: Sequence[str] = ("A", "dA", "B", "dB", "dC"),
    handed: Collection[str] = (),
    added: int = 0,
) -> tuple[Use, ...]:
    """Theorem 13 on the backward pass of an m x n x k product, by itself or as a part of a workload.

    Parameters
    ----------
    m, n, k : int
        Of the forward product C (m x n) := A (m x k) B (k x n), in values.
    names : sequence of str
        What A, dA, B, dB and dC are called.
    handed : collection of str
        Those that another part computes or uses: no move of them is certain.
    added : int
        Moves that are certain besides.
    """
    box, products = Box(m, n, 2 * k), (m * n * k, m * n * k)
    shapes = ((m * k, n, 1), (m * k, n, 2), (k * n, m, 1), (k * n, m, 2), (m * n, 2 * k, 1))
    kinds = tuple(
        Lines(name, count, length, int(name not in handed), again)
        for name, (count, length, again) in zip(names, shapes, strict=True)
    )
    initialised = sum(kind.count for kind in kinds if not kind.first)
    return (
        SharedPiece(FORM, METHOD, box, products, initialised, added, theorem=THEOREM),
        ByLines(LineProblem(FORM, kinds, sum(products), added, MULTIPLIERS, theorem=THEOREM)),
    )


@dataclass(frozen=True)
class InValues(Use):
    """A theorem whose form in bytes is not known here: it counts values alone."""

    use: Use

    @property
    def about(self) -> tuple[object, ...]:
        """As it is."""
        return self.use.about

    def proofs(self, goal: Goal) -> Iterable[GroupProof]:
        """As it is."""
        return self.use.proofs(goal)

    def on_sms(self) -> tuple[Use, ...]:
        """As it is, by values alone."""
        return tuple(map(InValues, self.use.on_sms()))
