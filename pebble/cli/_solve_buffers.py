"""``pebble solve --buffers``: the game with several memories."""

from __future__ import annotations

import argparse
import threading
from typing import TYPE_CHECKING, Any

from pebble.cli import _output
from pebble.cli._buffers import read_buffers
from pebble.cli._target import positive
from pebble.errors import GapOpenError, InputError
from pebble.game import Variant
from pebble.game.buffer_model import BufferModel

if TYPE_CHECKING:
    from pebble.dag.base import Dag
    from pebble.solvers import SolveResult

_MAX_SMS = 16
_SHOWN_MOVES = 400


def add_solve_arguments(parser: argparse.ArgumentParser) -> None:
    """What several memories add to ``pebble solve``."""
    parser.add_argument("--sms", metavar="P", help="with --buffers: memories, --capacity each (2)")
    parser.add_argument("--tasks-per-sm", metavar="N", help="with --buffers: no SM does more operations (no limit)")


def read_solve_buffers(args: argparse.Namespace) -> BufferModel | None:
    """The buffer model, or None for the game of one memory.

    Raises
    ------
    InputError
        An option out of range, or without --buffers.
    """
    if args.buffers is None or args.buffers == "single":
        for option in ("sms", "omega", "topology", "tasks_per_sm"):
            if getattr(args, option) is not None:
                raise InputError(
                    f"--{option.replace('_', '-')}: expected --buffers sm-local, pooled or connected with it."
                )
        return None
    if getattr(args, "certificate", None) is not None:
        raise InputError("--certificate: the checker does not know games of several memories yet; leave it out.")
    return read_buffers(args, 2 if args.sms is None else positive("--sms", args.sms, _MAX_SMS))


def run_buffers(
    args: argparse.Namespace,
    label: str,
    dag: Dag,
    capacity: int,
    variant: Variant | None,
    buffers: BufferModel,
    time_limit: float,
    seed: int,
    stop: threading.Event,
) -> int:
    """Solve, print the interval and the moves.

    Raises
    ------
    GapOpenError
        ``--require-optimal`` and a gap is left.
    """
    from pebble.solvers import solve

    most = None if args.tasks_per_sm is None else positive("--tasks-per-sm", args.tasks_per_sm, 10**6)
    result = solve(
        dag, capacity, variant, args.solver, time_limit, seed, stop=stop, buffers=buffers, most_tasks_per_sm=most
    )
    if args.json:
        _output.print_json(_document(label, capacity, result, dag))
    else:
        _print(label, capacity, result)
    if stop.is_set():
        return 130
    if args.require_optimal and result.status != "optimal":
        raise GapOpenError(
            f"--require-optimal: got {result.status} with the lower bound {float(result.lower_bound):g} "
            f"({result.stop_reason}), expected a proved optimum; give it more --time-limit."
        )
    return 0


def _document(label: str, capacity: int, result: SolveResult, dag: Dag) -> dict[str, Any]:
    from pebble.game import replay

    document: dict[str, Any] = {
        "instance": label,
        "capacity": capacity,
        "variant": str(result.variant),
        "buffers": result.buffers.kind,
        "sms": result.buffers.sms,
        "omega": result.buffers.to_json()["omega"],
        "topology": result.buffers.to_json()["topology"],
        "solver": result.solver,
        "status": result.status,
        "lower_bound": _number(float(result.lower_bound)),
        "upper_bound": None if result.upper_bound is None else _number(float(result.upper_bound)),
        "proof": list(result.proof),
        "upper_from": result.upper_from,
        "stop_reason": result.stop_reason,
        "seconds": round(result.seconds, 3),
        "per_sm": None,
        "moves": [move.to_json() for move in result.moves],
    }
    if result.pebbling is not None:
        played = replay(dag, result.pebbling)
        document["per_sm"] = {
            "loads": [sm.loads for sm in played.per_sm],
            "stores": [sm.stores for sm in played.per_sm],
            "copies_in": [sm.copies for sm in played.per_sm],
            "tasks": [sm.computations for sm in played.per_sm],
        }
    return document


def _number(value: float) -> int | float:
    return int(value) if value.is_integer() else value


def _print(label: str, capacity: int, result: SolveResult) -> None:
    say = _output.say
    say(f"{label}, {result.buffers}, capacity {capacity} each, {result.variant}")
    say(f"lower bound  {float(result.lower_bound):g} ({', '.join(result.proof)}): no pebbling costs less")
    if result.upper_bound is None:
        say("upper bound  none: no pebbling found")
    else:
        say(f"upper bound  {float(result.upper_bound):g} ({result.upper_from}): {len(result.moves)} moves, replayed")
    say(f"{result.status}: {result.stop_reason} ({result.solver}, {result.seconds:.1f} s)")
    if result.moves:
        print()
        shown = result.moves[:_SHOWN_MOVES]
        words = [f"{m.op} {m.node} at {m.sm}" + ("" if m.source is None else f" from {m.source}") for m in shown]
        say("; ".join(words) + ("" if len(shown) == len(result.moves) else "; ... (--json has all)"))
