r"""What a net of SMs costs at least: a linear program over ways to take SMs together, whose dual is a certificate.

Take the SMs of a group as one memory. Then :math:`L` loads, :math:`W` stores and the copies that cross from group to
group are at least the bound :math:`B` of so many memories, each the size of the largest group
(`pebble.bounds.memories`). A copy inside a group is free there. Now average over several ways to cut the same net into
groups of the same size: with :math:`H_k` hops of kind k in all, of which a share :math:`r_k` at most crosses,

.. math:: L + W + \sum_k r_k H_k \ge B.

- *Ring:* the arcs of :math:`g` SMs begin anywhere. Of :math:`P` edges :math:`\lceil P / g \rceil` are between arcs; a
  copy over :math:`h` edges crosses no more often than they do together.
- *All joined, clusters, mesh, two partitions:* all that reach each other as one, each half, each SM alone. Groups in
  between prove nothing more: with shares drawn at random, :math:`r = (P - g) / (P - 1)`, or in a mesh of shifted blocks
  of :math:`a \times a`, :math:`r = 1 / a`, the bound of :math:`g` SMs, which falls like :math:`1 / \sqrt g` or faster,
  lies on or below the line between the other two.

A hop costs :math:`\omega`. So for multipliers :math:`y_i \ge 0` with :math:`\sum_i y_i \le 1` and :math:`\sum_i y_i
r_{ik} \le \omega` for every k, the cost is at least :math:`\sum_i y_i B_i`: the dual of "least cost, whatever is loaded
and copied". The best multipliers are found exactly, by the simplex method in fractions, and are the certificate. Where
all are one hop apart they are :math:`1 - \omega` for all as one and :math:`\omega` for each alone. In a ring of 132
they take arcs of :math:`1 / \omega` SMs, each as one memory, and prove up to 1.8 times as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from pebble.game.buffer_model import Topology
from pebble.units import ceil_div

_ALL_SIZES = 8  # arcs that are tried: each up to here, then in steps of a quarter


class Grouping(NamedTuple):
    """A way to take SMs together, averaged over its positions in the net."""

    sms: int
    """SMs of a group, at most."""
    rates: tuple[Fraction, ...]
    """Of the hops of each kind, the share that crosses from group to group, at most."""


class Program(NamedTuple):
    """The best that multipliers prove."""

    value: Fraction
    multipliers: tuple[Fraction, ...]


def groupings(net: Topology) -> tuple[Grouping, ...]:
    """Ways to take the SMs of a net together, from all that can reach each other down to each alone.

    Examples
    --------
    >>> [(way.sms, str(*way.rates)) for way in groupings(Topology("ring", 6))]
    [(6, '0'), (5, '1/3'), (4, '1/3'), (3, '1/3'), (2, '1/2'), (1, '1')]
    """
    sms, none, every = net.sms, Fraction(0), Fraction(1)
    if net.name == "ring":
        sizes = {*range(1, min(_ALL_SIZES, sms) + 1)}
        while (last := max(sizes)) < sms:
            sizes.add(min(sms, last + 1 + last // 4))
        return tuple(Grouping(g, (Fraction(ceil_div(sms, g) if g < sms else 0, sms),)) for g in sorted(sizes)[::-1])
    if net.name == "partitions-2":  # a way from half to half is two hops
        cases = Grouping(sms, (none, none)), Grouping(sms // 2, (none, every / 2)), Grouping(1, (every, every / 2))
        return cases if sms > 2 else cases[:2]
    together = Grouping(net.group, (none,))
    return (together, Grouping(1, (every,))) if net.group > 1 else (together,)


def best_program(values: Sequence[int], cases: Sequence[Grouping], omega: Fraction) -> Program:
    """The multipliers that prove most, where the groupings are bounded by these values and a hop costs omega.

    Examples
    --------
    >>> best_program([10, 100], groupings(Topology("all-to-all", 2)), Fraction(1, 4)).value
    Fraction(65, 2)
    """
    rows = [
        [Fraction(1) for _ in cases],
        *([grouping.rates[k] for grouping in cases] for k in range(len(cases[0].rates))),
    ]
    return _maximum([Fraction(value) for value in values], rows, [Fraction(1), *[omega] * (len(rows) - 1)])


def _maximum(gains: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], limits: Sequence[Fraction]) -> Program:
    """Most gain of y >= 0 with rows y <= limits >= 0, by the simplex method; by Bland's rule it ends."""
    count, height = len(gains), len(rows)
    table = [[*row, *(Fraction(i == j) for j in range(height)), limits[i]] for i, row in enumerate(rows)]
    costs = [*(-gain for gain in gains), *[Fraction(0)] * (height + 1)]
    basis = [count + i for i in range(height)]
    while (enter := next((j for j in range(count + height) if costs[j] < 0), None)) is not None:
        ratios = [(row[-1] / row[enter], basis[i], i) for i, row in enumerate(table) if row[enter] > 0]
        at = min(ratios)[2]  # the first row bounds every sum, so there is one
        basis[at] = enter
        table[at] = [x / table[at][enter] for x in table[at]]
        for row in (*(row for i, row in enumerate(table) if i != at), costs):
            if factor := row[enter]:
                row[:] = [x - factor * y for x, y in zip(row, table[at], strict=True)]
    multipliers = [Fraction(0)] * (count + height)
    for i, j in enumerate(basis):
        multipliers[j] = table[i][-1]
    return Program(costs[-1], tuple(multipliers[:count]))
