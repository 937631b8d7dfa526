"""``pebble bound dag.json --capacity 8``: every general theorem on a DAG, and a pebbling beside the best of them."""

from __future__ import annotations

import argparse
from pathlib import Path

from pebble.cli import _output
from pebble.cli._in_time import Clock, OutOfTimeError, interruptible
from pebble.cli._target import positive, seconds
from pebble.errors import InputError
from pebble.units import MAX_SIZE

SUFFIXES = (".json", ".graphml", ".hdag")


def add_dag_bound_arguments(parser: argparse.ArgumentParser) -> None:
    """What a DAG needs instead of a memory."""
    group = parser.add_argument_group("for a file dag.json, dag.graphml or dag.hdag instead of a workload")
    group.add_argument("--capacity", metavar="S", help="pebbles (with weights: weight units) that fit in fast memory")
    group.add_argument("--variant", metavar="V", help="the game, as for `pebble solve`")
    group.add_argument("--time-limit", metavar="SECONDS", default="10", help="for each theorem that can use it (10)")


def is_dag_file(workload: str) -> bool:
    """Whether the WORKLOAD argument names a file."""
    return workload.lower().endswith(SUFFIXES)


def run_dag_bound(args: argparse.Namespace) -> int:
    """Bound a DAG from both sides and print."""
    if args.capacity is None:
        raise InputError("--capacity missing: expected --capacity NUMBER, the pebbles that fit in fast memory.")
    given = [option for option in ("gpu", "machine", "cache") if getattr(args, option) is not None]
    if given:
        raise InputError(f"{args.workload}: got --{given[0]}, expected --capacity NUMBER: a DAG has no bytes.")
    capacity = positive("--capacity", args.capacity, MAX_SIZE)
    limit = seconds("--time-limit", args.time_limit)

    from pebble.bounds.dag import DagBound, best_bound, dag_bounds_in_turn
    from pebble.dag.io import read_dag
    from pebble.game import Game, Variant
    from pebble.solvers import solve

    variant = None if args.variant is None else Variant.parse(args.variant)
    clock = Clock(limit)
    games: list[Game] = []
    known: list[DagBound] = []
    with interruptible(clock.stop):

        def prove() -> None:
            games.append(Game.from_dag(read_dag(Path(args.workload)), variant))
            for bound in dag_bounds_in_turn(games[0], capacity, limit):
                known.append(bound)

        try:
            clock.finish(prove, limited=False)
        except OutOfTimeError:
            if not known:
                raise KeyboardInterrupt from None
        game, bounds = games[0], tuple(known)
        best = best_bound(bounds)
        assert best.value is not None
        found = solve(
            game,
            capacity,
            solver="heuristic",
            time_limit=limit,
            known_lower_bound=best.value,
            stop=clock.stop,
            general_bounds=False,
        )
        upper = found.upper_bound
    document = {
        "workload": {"label": args.workload, "family": "dag", "values": game.size, "operations": len(game.tasks)},
        "capacity": {"elements": capacity, "bytes": None, "what": "pebbles"},
        "buffers": "single",
        "variant": str(game.variant),
        "recompute": "allowed" if game.variant.recompute else "forbidden",
        "lower_bound": {"elements": best.value, "bytes": None, "method": best.name, "certificate": {"note": best.note}},
        "upper_bound": None if upper is None else {"elements": upper, "bytes": None, "schedule": found.upper_from},
        "gap": None if upper is None or best.value == 0 else upper / best.value,
        "bounds": [bound.to_json() for bound in bounds],
    }
    code = 130 if clock.stop.is_set() else 0
    if args.json:
        _output.print_json(document)
        return code
    say = _output.say
    say(f"{args.workload}: {game.size} values, {len(game.tasks)} operations, {game.variant}, capacity {capacity}")
    print()
    say(f"lower bound  {best.value} ({best.name}: {best.note}): no pebbling costs less")
    say("upper bound  none found" if upper is None else f"upper bound  {upper} ({found.upper_from}): replayed")
    print()
    for bound in bounds:
        value = "not here" if bound.value is None else str(bound.value)
        say(
            f"{bound.name}: {value}: {bound.note} [{bound.source}; holds for {', '.join(map(str, bound.variants))}]",
            "  ",
        )
    print()
    say("interrupted." if code else "`pebble solve` looks for the optimum between the two.")
    return code
