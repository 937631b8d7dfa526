"""Random instances against the theorems: no schedule may move less than is proved.

    python benchmarks/gap/refute.py gemm 100000 [--bytes] [--seed 1]

Of every instance each theorem of its family is asked by itself (with ``--bytes`` in bytes, of random widths), and the
best schedule; those that are told what is proved already are told nine tenths of it. Prints how
many there were, how often a schedule that moves something twice meets a theorem, how close they come then, and every
instance where a theorem is above a schedule; exit code 1 if there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from math import exp, log

from pebble.bounds import Accounting, Chain, Goal, LineProblem, Use
from pebble.bounds.lagrangian import lagrangian_chains
from pebble.bounds.lagrangian_bound import THEOREM
from pebble.bounds.lagrangian_search import Search
from pebble.bounds.line_search import line_bound
from pebble.bounds.uses import weighted
from pebble.errors import InfeasibleError
from pebble.families import accounting, family_of
from pebble.workloads import Attention, Ffn, Gemm
from pebble.workloads.widths import FastMemory, Widths
from pebble.workloads.workload import Workload

Found = tuple[str, int]  # a theorem, and what it proves


def side(draw: random.Random, most: int = 400) -> int:
    """1 to ``most``, small ones as often as large ones."""
    return int(exp(draw.uniform(0, log(most + 1))))


def gemm(draw: random.Random) -> Workload:
    """C := A B, or C += A B; every other one with one side that may be long."""
    sides = [side(draw), side(draw), side(draw, draw.choice([400, 20_000]))]
    draw.shuffle(sides)
    return Gemm(*sides, accumulate=draw.random() < 0.2)


def ffn(draw: random.Random) -> Workload:
    """Two products in a row, or gated."""
    return Ffn(side(draw), side(draw), side(draw), side(draw), gated=draw.random() < 0.3)


def attention(draw: random.Random) -> Workload:
    """One head, or several that share keys; often of few values for many keys, as whole passes need."""
    many = draw.choice([400, 20_000])
    return Attention(side(draw, many), side(draw, many), side(draw, 64), heads=2, kv_heads=draw.choice([1, 2]))


FAMILIES: dict[str, Callable[[random.Random], Workload]] = {"gemm": gemm, "ffn": ffn, "attention": attention}


def random_widths(draw: random.Random) -> Widths:
    """Those of data types, or any."""
    if draw.random() < 0.6:
        return draw.choice([Widths(2, 4, 4, 2), Widths(1, 4, 4, 2), Widths(1, 4, 4, 1), Widths(2, 4, 4, 4)])
    read, written = draw.randint(1, 4), draw.randint(1, 4)
    return Widths(read, read + draw.randint(0, 4), written + draw.randint(0, 4), written)


def proved(terms: Accounting, uses: tuple[Use, ...], capacity: int, schedule: int) -> Iterator[Found]:
    """What each theorem says of all groups, where it takes a search with a few multipliers."""
    goal = Goal(capacity, schedule * 9 // 10 // terms.groups)
    for use in uses:
        if use.slow:
            lines = tuple(problem for other in uses for problem in other.about if isinstance(problem, LineProblem))
            if terms.chain is not None and lines:
                name = THEOREM.name
                yield from ((name, terms.groups * units) for units in searched(terms.chain, lines, capacity))
        else:
            yield from ((proof.theorem.name, terms.groups * proof.bytes) for proof in use.proofs(goal))


def searched(chain: Chain, lines: Sequence[LineProblem], capacity: int) -> Iterator[int]:
    """What Theorem 10 says with a few multipliers, whether or not it is worth a search."""
    widths = lines[0].widths
    for problem in lagrangian_chains(chain, widths):
        h = max((line_bound(item, capacity) for item in lines), key=lambda single: single.elements).segments
        search = Search(problem, capacity // widths.unit)
        search.solve(max(2, min(h, problem.work // 2)), close=0.02)
        if (result := search.exact()) is not None:
            yield result.bytes


def least_bytes(workload: Workload, widths: Widths) -> int:
    """Every operand moved as often as it must be."""
    traffic = {True: 0, False: 0}
    for operand in workload.operands:
        traffic[operand.written] += operand.elements * (operand.read + operand.written)
    return widths.written * traffic[True] + widths.read * traffic[False]


def instance(draw: random.Random, family: str, in_bytes: bool) -> tuple[str, int, int, list[Found]] | None:
    """What it is, what every schedule moves, the best one, and the theorems; None where nothing fits."""
    workload = FAMILIES[family](draw)
    spec, most = accounting(workload), sum(operand.elements for operand in workload.operands)
    capacity = int(exp(draw.uniform(log(3), log(4 + most))))
    if draw.random() < 0.5:  # where one operand fits just not
        capacity = max(3, int(draw.choice(workload.operands).elements / draw.uniform(0.9, 3)))
    try:
        if not in_bytes:
            schedule = family_of(workload).best_schedule(workload, FastMemory.of_values(capacity, workload))
            if schedule is None:
                return None
            result = list(proved(spec, spec.uses, capacity, schedule.elements))
            return f"{workload.label}, {capacity} values", workload.compulsory_elements, schedule.elements, result
        widths = random_widths(draw)
        memory = FastMemory(capacity * widths.read, widths)
        wide = family_of(workload).best_schedule(workload, memory)
        label = f"{workload.label}, {memory.bytes} bytes, {widths}"
        if wide is None:
            return None
        result = list(proved(spec, weighted(spec.uses, widths), memory.bytes, wide.bytes))
        return label, least_bytes(workload, widths), wide.bytes, result
    except InfeasibleError:
        return None


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line, and try so many instances."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("family", choices=[*FAMILIES])
    parser.add_argument("count", type=int)
    parser.add_argument("--bytes", action="store_true", help="the theorems in bytes, of random widths")
    parser.add_argument("--seed", type=int, default=1)
    spec = parser.parse_args(arguments)
    draw, tried, met, above, closest = random.Random(spec.seed), 0, 0, 0, dict[str, float]()
    try:
        while tried < spec.count:
            result = instance(draw, spec.family, spec.bytes)
            if result is None:
                continue
            label, least, schedule, theorems = result
            tried += 1
            met += schedule > least and any(moved == schedule for _, moved in theorems)
            for name, proved_moves in theorems:
                if schedule > least:
                    closest[name] = max(closest.get(name, 0.0), proved_moves / schedule)
                if proved_moves > schedule:
                    above += 1
                    print(f"ABOVE: {name} {proved_moves:,} > {schedule:,}: {label}", flush=True)
    except KeyboardInterrupt:
        print("interrupted: so far")
    near = ", ".join(f"{name} {share:.6f} of it at most" for name, share in closest.items())
    met_text = f"{met:,} schedules above the compulsory meet a theorem"
    print(f"{tried:,} instances of {spec.family}: {above} violations, {met_text}; {near}")
    return int(above > 0)


if __name__ == "__main__":
    sys.exit(main())
