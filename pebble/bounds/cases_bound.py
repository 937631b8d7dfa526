"""What Theorem 15 (`pebble.bounds.cases`) proves on an instance, for the checker and for a reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pebble.bounds.cases import Parting, Prices, Tree
from pebble.bounds.lagrangian_bound import ChainBound
from pebble.bounds.line_search import GATED
from pebble.bounds.numbers import number
from pebble.bounds.proofs import Theorem
from pebble.workloads.widths import ALIKE

THEOREM = Theorem("Theorem 15", "pebble.bounds.cases")
METHOD = "line accounting by cases"
METHOD_IN_BYTES = "line accounting by cases in bytes"


@dataclass(frozen=True)
class CasesBound(ChainBound):
    """Theorem 15 on an instance."""

    METHODS = (METHOD, METHOD_IN_BYTES)
    rank = 5

    capacity: int  #: S, in units of the widths, as all that follows
    sizes: tuple[int, ...]  #: products of each segment
    tree: Tree  #: its cases, and the prices of each
    elements: int  #: moved at least
    theorem: Theorem = THEOREM  #: what it rests on

    @property
    def segments(self) -> int:
        """How many the schedule is cut into."""
        return len(self.sizes)

    @property
    def cases(self) -> int:
        """How many there are."""
        return sum(isinstance(node, Prices) for node in self.tree)

    def to_json(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        in_bytes = {} if self.problem.widths == ALIKE else {"form": self.form, "unit_bytes": self.unit}
        return {
            **in_bytes,
            "products": self.problem.work,
            "segments": self.segments,
            "cases": self.cases,
            "held_at_cuts": (self.segments - 1) * self.capacity,
            "added_elements": self.problem.added,
        }

    def claim(self) -> dict[str, Any]:
        """The cases with their prices; the checker finds what values are charged itself."""
        return {
            "theorem": "cases of shares",
            "form": self.form,
            "sizes": list(self.sizes),
            "cases": [_node_json(node) for node in self.tree],
            "least": self.elements,
        }

    argument = ""  #: it names the numbers of the instance, so it is told of each

    def text(self, traffic: Mapping[str, int]) -> str:
        """The argument, and how many cases there are; their prices are in the certificate."""
        problem, h = self.problem, number(self.segments)
        first, second = problem.products
        widths = ""
        if problem.widths != ALIKE:
            widths = rf"""
        Widths are in units of {self.unit} bytes, as all that follows, where $S = {number(self.capacity)}$: an input
        and a complete cell take $w = {problem.read}$, a partial sum of $H$ takes $p_H = {problem.hidden}$, one of the
        output $p = {problem.partial}$, and a complete output $w_o = {problem.written}$.
        """
        return rf"""
        ## Segments and cases

        There are ${number(first)}$ first multiply-adds, of $H = A B$, and ${number(second)}$ second ones, of $Y = H D$.
        Cut the schedule into $h = {h}$ segments of $n_t = {", ".join(map(number, self.sizes))}$ of them. How many of
        these are first ones, $v_t$, depends on the schedule. So distinguish cases: boxes $l_t \le v_t \le u_t$. The
        first is the box of all, and each is parted into two at a number of one $v_t$, until there are {
            number(self.cases)
        } in
        all; boxes that no $v$ of sum ${number(first)}$ is in are left out. Every schedule is in one of them, and each
        has prices of its own: $\rho_t$ of a unit of room at the cut after segment $t$; $\mu_t, \mu_t', \mu_t''$ of the
        entropies of its multiply-adds, of its first and of its second ones; and $\alpha_t$ for a first one on its line
        of $A$, of $B$ and on its cell, and for a second one on its line of $D$, of $Y$ and on its cell.{widths}

        Between two segments that touch it a value is held over all cuts between, and pays $\rho$ at each for its width,
        or it leaves and returns: a load, or for a partial sum a store and a load, besides the first load of an input
        and the last store of an output. A cell of $H$ begins free. From its last first multiply-add on it is held each
        time, or stored once and loaded. At most $S$ is held at a cut.

        Let $c$ be the multiply-adds of a segment on one line. Over the lines of $A$, of $B$ and cells $\sum c \ln c \le
        v_t \ln v_t$ for first ones, since the entropies of each coordinate of one of them given the other two add up to
        at most that of all three; for second ones with $n_t - v_t$; for all with $n_t$; and along each direction
        $\sum c$ is $v_t$ or $n_t - v_t$. With all prices therefore

        $$ Q \ge \sum_{{\text{{values}}}} M - S \sum_t \rho_t - \sum_t \max_{{v = l_t, u_t}} \psi_t(v),

        where $\psi_t$, what a segment takes off, is convex in $v$, so that its larger end stands for it,

        $$ \psi_t(v) = \mu_t n_t \ln n_t + \mu_t' v \ln v + \mu_t'' (n_t - v) \ln (n_t - v) + (\alpha_t^A + \alpha_t^B +
        \alpha_t^C)\, v + (\alpha_t^D + \alpha_t^Y + \alpha_t^E)(n_t - v),

        and $M$ the least that a value is charged, its moves, its room, and $(\mu_t + \mu_t') c \ln c + \alpha_t c$ for
        each of its parts ($\mu_t''$ for second ones; where a cell has both, $\mu_t$ of both together), over all sets of
        segments that touch it. In each set, for every $\theta$, a part is charged $\theta c - \mu e^{{(\theta - \alpha)
        / \mu - 1}}$ or more, so that a good $\theta$ gives a bound.
        {GATED.get(problem.form, "")}
        ## Arithmetic

        In each of the ${number(self.cases)}$ cases, with the prices in the certificate, at least

        $$ Q \ge {number(self.elements)}
        """


def _node_json(node: Parting | Prices) -> dict[str, Any]:
    """A parting, or a case and its prices in whole multiples of 2^-64."""
    if isinstance(node, Parting):
        return {"segment": node.segment + 1, "most": node.most}
    return {field: list(prices) for field, prices in node._asdict().items()}
