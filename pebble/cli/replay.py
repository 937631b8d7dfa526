"""A pebbling of your own: checked move by move, costed, and set beside the optimum.

MOVES is a JSON file: a list of moves, or what `pebble solve --json` prints. A move is ["load", "a"], ["store", "a"],
["compute", "c"], ["delete", "a"], or ["slide", "c", "a"] where c takes the place of a; with several memories the SM
comes third and the source of a copy last. Exit code 5 when a move is illegal.

examples:
  pebble replay dag.json moves.json --capacity 3
  pebble replay gemm -m 2 -n 2 -k 2 moves.json --capacity 5
"""

from __future__ import annotations

import argparse
import threading

from pebble.api.games import replay
from pebble.cli import _output
from pebble.cli._arguments import add_dag_arguments, explicit_parameters, family_help, seconds
from pebble.cli._sms import add_buffer_arguments
from pebble.reports.solve import shown, shown_memories
from pebble.system.clock import interruptible


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble replay``."""
    add_dag_arguments(parser)
    parser.add_argument("moves", metavar="MOVES", help="a JSON file of moves")
    parser.add_argument("--capacity", required=True, metavar="S", help="pebbles that fit in fast memory")
    parser.add_argument("--variant", metavar="V", help="the game, as for `pebble solve`")
    parser.add_argument("--time-limit", default="10", metavar="SECONDS", help="to look for the optimum (10)")
    add_buffer_arguments(parser)
    parser.add_argument("--sms", metavar="P", help="with --buffers: memories, --capacity each (2)")
    parser.epilog = f"{family_help()}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """Check, and print what the moves cost."""
    memories = {key: vars(args)[key] for key in ("buffers", "sms", "omega", "topology")}
    limit, stop = seconds("--time-limit", args.time_limit), threading.Event()
    with interruptible(stop):
        result = replay(
            args.dag,
            args.moves,
            args.capacity,
            variant=args.variant,
            unit_weights=args.unit_weights,
            time_limit=limit,
            stop=stop,
            **memories,
            **explicit_parameters(args),
        )
    code = 130 if stop.is_set() else 0 if result.legal else 5
    if args.json:
        _output.print_report(result)
        return code
    say, spec = _output.say, result.replayed
    say(f"{result.label}, {shown_memories(result.capacity, result.buffers)}, {result.game.variant}")
    if spec.illegal is not None or spec.played is None:
        say(str(spec.illegal))
    else:
        played = spec.played
        copied = sum(sm.copies for sm in played.per_sm)
        moved = f"{played.loads} loaded, {played.stores} stored" + (f", {copied} copied" if copied else "")
        say(f"legal        costs {shown(spec.cost)}: {moved}; holds {played.peak}")
    proof = "compulsory bound" if spec.solved is None else ", ".join(spec.solved.proof)
    say(f"lower bound  {shown(spec.lower_bound)} ({proof}): no pebbling costs less")
    if spec.optimal:
        say("optimal: no pebbling is cheaper (proved)")
    elif spec.upper_bound is not None and spec.upper_bound != spec.cost:
        best = "the optimum" if spec.optimum is not None else "the best known"
        say(f"{best} costs {shown(spec.upper_bound)}; `pebble solve` shows it")
    return code
