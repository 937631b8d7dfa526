"""The proof by lines for a reader, with the numbers of the instance filled in."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pebble.bounds import LineBound, Lines
from pebble.bounds.chain_lines import Hidden
from pebble.bounds.lines import BITS, PRICE_BITS
from pebble.bounds.wide_lines import WideHidden
from pebble.proof.text import number


def line_proof(proof: LineBound) -> str:
    """The argument, the charge of each kind of values, and the sum."""
    h, problem, cut = number(proof.segments), proof.problem, proof.cut
    return rf"""
        ## Segments and lines

        Cut the schedule into $h = {h}$ segments of equal work, ${number(problem.work)}$ multiply-adds in all. Follow a
        value through the $s$ segments that touch it: between two that follow each other it is held over a cut, or it
        leaves fast memory and returns, which costs $b$ moves, 1 for an input and 2 for an accumulator (a store and a
        load); $a$ moves are certain, the first load of an input and the last store of an output. At most $S$ values are
        held at each cut. With a price $\rho = {number(Fraction(cut.rho, 1 << PRICE_BITS))}$ of a place at a cut,

        $$ Q + \rho (h - 1) S \ge \sum_{{\text{{values}}}} \big( a + (s - 1) \min(b, \rho) \big).

        The multiply-adds that use one value are its line. For one segment of $v$ multiply-adds, let $c$ be how many of
        them are on each line, over the lines of all operands. Take one of the $v$ at random: the entropies of each of
        its three coordinates given the other two add up to at most that of all three, $\ln v$, and so $\sum c \ln c \le
        v \ln v$. A line of $L$ that is touched in $s$ segments has $\sum c \ln c \ge \mathrm{{E}}(L, s)$, its value
        for parts as equal as whole numbers allow. For every $\mu \ge 0$ therefore

        $$ Q \ge \sum_{{\text{{values}}}} \min_s \big[ a + (s - 1) \min(b, \rho) + \mu\, \mathrm{{E}}(L, s) \big]
        - \mu \sum_i v_i \ln v_i - \rho (h - 1) S.
        {_HIDDEN + GATED.get(problem.form, "") if any(isinstance(kind, Hidden) for kind in problem.kinds) else ""}
        ## Arithmetic

        {line_sum(proof)}
        """


def line_sum(proof: LineBound) -> str:
    """The prices, the charge of each kind of values, and the sum."""
    problem, cut = proof.problem, proof.cut
    rows = "".join(
        _kind(kind, at, Fraction(kind.least(cut)[0], 1 << BITS))
        for kind, at in zip(problem.kinds, proof.minima, strict=True)
    )
    charged = Fraction(sum(kind.count * kind.least(cut)[0] for kind in problem.kinds), 1 << BITS)
    entropy = Fraction(cut.mu * problem.entropy_above(proof.segments), 1 << BITS)
    price = Fraction(cut.rho, 1 << PRICE_BITS)
    held = price * (proof.segments - 1) * proof.capacity
    return rf"""With $\mu = {_price(cut.mu)}$ the bracket, which is convex in $s$, is least at:
        {rows}
        $$ Q \ge {number(charged)} - {number(entropy)} - {number(held)}{_more(problem.added)}
        \quad\Rightarrow\quad Q \ge {number(proof.elements)}

        (a count of moves is a whole number, so it is rounded up; $\mu$ and $\rho$ are in the certificate as exact
        fractions, and the checker bounds the logarithms by a series).
        """


def lines_json(proof: LineBound) -> dict[str, Any]:
    """What a certificate says of a proof by lines: h, the prices, and for each kind where its charge is least."""
    mu, rho = (str(Fraction(price, 1 << PRICE_BITS)) for price in (proof.cut.mu, proof.cut.rho))
    minima = [list(at) if isinstance(at, tuple) else at for at in proof.minima]
    told = {"theorem": "lines", "form": proof.form, "segments": proof.segments}
    return {**told, "mu": mu, "rho": rho, "minima": minima}


_HIDDEN = r"""
        A cell of an intermediate has first products, $k$ in number, which complete it, and then $l$ second ones, which
        read it. It begins free and need not be stored. With first products in $s$ segments and second ones only in $j$
        further ones, it is held over cuts, or stored and loaded again between the $s$ (2 moves each), or stored once
        and loaded before each of the $j$: its bracket is $(s - 1) \rho + \min(j \rho, j + 1)$ and $\mu$ times the
        least $\sum c \ln c$, which is $\mathrm{E}(k + l, s + j)$ as long as the $j$ segments can have as many
        products as the others, and $\mathrm{E}(k, s) + \mathrm{E}(l, j)$ where they cannot.
        """


GATED = {
    "gated chain": r"""
        The columns of gate and up stand side by side. $H$ takes the place of the gate's cell; an up cell has first
        products only, begins free and ends nowhere.
        """,
    "gate's chain": """
        The up cells are left out: what is left is a schedule of the gate's chain, and every up weight is loaded
        besides, which is added at the end.
        """,
}


def _price(mu: int) -> str:
    """Mu as one over a number: it is small where lines are long."""
    return f"1 / {number(Fraction(1 << PRICE_BITS, mu))}" if mu else "0"


def _more(added: int) -> str:
    return f" + {number(added)}" if added else ""


def _kind(kind: object, at: object, charge: Fraction) -> str:
    if isinstance(kind, Hidden | WideHidden):
        where = f"in $n = {at}$ segments" if at else "with no segment that has both first and second products of it"
        if isinstance(at, tuple):
            where = f"$s = {at[0]}$ and $j' = {at[1]}$"
        products = f"${number(kind.k)}$ first and ${number(kind.l)}$ second products"
        if isinstance(kind, WideHidden):
            products = f"first products of work ${number(kind.k)}$ in all and second ones of ${number(kind.l)}$"
        return rf"""
        ${number(kind.count)}$ cells of {kind.name} with {products}: {where}, at least ${number(charge)}$ each.
        """
    assert isinstance(kind, Lines)
    many = kind.overlap
    spread = f" on {many} parallel lines (so in $s$ segments ${many} s$ parts at most)" if many > 1 else ""
    return rf"""
        ${number(kind.count)}$ values of {kind.name} with $L = {number(kind.length)}${spread}: $s = {at}$, at least
        ${number(charge)}$ each.
        """
