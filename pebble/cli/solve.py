"""The cheapest pebbling of a computation DAG, proved, or the tightest interval when time runs out.

examples:
  pebble solve gemm -m 2 -n 2 -k 3 --capacity 5
  pebble solve diamond --size 4 --capacity 3 --variant recompute
  pebble solve dag.json --capacity 8 --time-limit 60 --json
  pebble solve gemm -m 2 -n 2 -k 1 --capacity 3 --buffers connected --sms 2 --omega 0.25
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.cli import _output
from pebble.cli._buffers import add_buffer_arguments, read_buffers
from pebble.cli._dag import add_dag_arguments, family_help, read_dag_argument
from pebble.cli._in_time import Clock, OutOfTimeError, interruptible
from pebble.cli._target import positive
from pebble.errors import GapOpenError, InfeasibleError, InputError
from pebble.files import check_output
from pebble.game import SINGLE, BufferModel, Cost, Game, Variant, replay
from pebble.game.moves import cost_to_json

if TYPE_CHECKING:
    from pebble.solvers import Progress, SolveResult

MAX_CAPACITY = 2**60
_SHOWN_MOVES = 400
_MAX_SMS = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble solve``."""
    from pebble.solvers import SOLVERS

    add_dag_arguments(parser)
    parser.add_argument(
        "--capacity", required=True, metavar="S", help="pebbles (with weights: weight units) that fit in fast memory"
    )
    parser.add_argument(
        "--variant",
        metavar="V",
        help=f"{', '.join(Variant)}; default in-place for a DAG with accumulators, one-shot for any other",
    )
    parser.add_argument("--solver", default="auto", metavar="NAME", help=f"{', '.join(SOLVERS)}; default auto")
    parser.add_argument("--time-limit", default="60", metavar="SECONDS", help="default 60")
    parser.add_argument("--seed", default="0", metavar="N", help="default 0")
    parser.add_argument("--require-optimal", action="store_true", help="exit 3 unless the optimum is proved")
    parser.add_argument(
        "--certificate",
        metavar="FILE",
        help="write the pebbling and a proof of the bound (looked for as long as --time-limit, 120 s at least)",
    )
    add_buffer_arguments(parser)
    parser.add_argument("--sms", metavar="P", help="with --buffers: memories, --capacity each (2)")
    parser.add_argument("--tasks-per-sm", metavar="N", help="with --buffers: no SM does more operations (no limit)")
    parser.epilog = family_help()


def run(args: argparse.Namespace) -> int:
    """Solve, print the interval and the moves."""
    capacity = _number("--capacity", args.capacity)
    seed = _number("--seed", args.seed)
    time_limit = _seconds(args.time_limit)
    variant = None if args.variant is None else Variant.parse(args.variant)
    buffers, most = _read_memories(args)
    if args.certificate is not None:
        check_output(args.certificate, "--certificate")
    clock = Clock(time_limit)
    with interruptible(clock.stop):
        try:
            label, game = clock.finish(lambda: _read(args, variant))
        except OutOfTimeError:
            return _nothing_known(args, capacity, clock)
        from pebble.solvers import solve
        from pebble.solvers.explicit_start import explicit_pebbling

        try:
            with _progress() as show:
                result = solve(
                    game,
                    capacity,
                    None,
                    args.solver,
                    time_limit,
                    seed,
                    show,
                    upper_hint=None if buffers else lambda: explicit_pebbling(game, capacity),
                    stop=clock.stop,
                    started=clock.started,
                    buffers=buffers,
                    most_tasks_per_sm=most,
                )
        except InfeasibleError as error:
            if args.json:
                _output.print_json(_infeasible(label, capacity, game.variant, args, error))
            raise
        if args.certificate is not None:
            _certify(game, capacity, result, args.certificate, clock)
        if args.json:
            _output.print_json(_document(label, capacity, result, game))
        else:
            _print(label, capacity, result)
        sys.stdout.flush()
    if clock.stop.is_set():
        return 130
    if args.require_optimal and result.status != "optimal":
        raise GapOpenError(
            f"--require-optimal: got {result.status} with the interval {_shown(result.lower_bound)} to "
            f"{_shown(result.upper_bound)} ({result.stop_reason}), expected a proved optimum; give it more "
            "--time-limit, or another --solver."
        )
    return 0


def _read_memories(args: argparse.Namespace) -> tuple[BufferModel | None, int | None]:
    """The memories, None for one, and the most tasks per SM."""
    if args.buffers is None or args.buffers == "single":
        for option in ("sms", "omega", "topology", "tasks_per_sm"):
            if getattr(args, option) is not None:
                raise InputError(
                    f"--{option.replace('_', '-')}: expected --buffers sm-local, pooled or connected with it."
                )
        return None, None
    if args.certificate is not None:
        raise InputError("--certificate: the checker does not know games of several memories yet; leave it out.")
    most = None if args.tasks_per_sm is None else positive("--tasks-per-sm", args.tasks_per_sm, 10**6)
    return read_buffers(args, 2 if args.sms is None else positive("--sms", args.sms, _MAX_SMS)), most


def _read(args: argparse.Namespace, variant: Variant | None) -> tuple[str, Game]:
    label, dag = read_dag_argument(args, variant)
    return label, Game.from_dag(dag, variant)


def _nothing_known(args: argparse.Namespace, capacity: int, clock: Clock) -> int:
    """Say that the time was over before there was a game to solve; the exit code."""
    reason = f"{clock.why_over()}, before the DAG was ready"
    document: dict[str, Any] = {
        "instance": args.dag,
        "capacity": capacity,
        "variant": args.variant,
        "solver": args.solver,
        "status": "unknown",
        "lower_bound": 0,
        "upper_bound": None,
        "stop_reason": reason,
        "seconds": round(clock.passed, 3),
        "moves": [],
    }
    if args.json:
        _output.print_json(document)
    else:
        _output.say(f"{args.dag}, capacity {capacity}: nothing proved yet: {reason}")
    sys.stdout.flush()
    if clock.stop.is_set():
        return 130
    if args.require_optimal:
        raise GapOpenError(f"--require-optimal: got nothing ({reason}), expected a proved optimum; give it more time.")
    return 0


def _certify(game: Game, capacity: int, result: SolveResult, path: str, clock: Clock) -> None:
    """Write the certificate, and say so where it proves less than was solved."""
    from pebble.proof.optimum import solve_certificate

    seconds = max(120.0, clock.seconds)
    try:
        document = clock.finish(lambda: solve_certificate(game, capacity, result, Path(path), seconds), limited=False)
    except OutOfTimeError:
        print(f"note: interrupted; {path} is not written", file=sys.stderr)
        return
    proved = document["claims"][-1]["cost"]
    if proved < result.lower_bound:
        print(
            f"note: the certificate proves a lower bound of {proved}, not of {result.lower_bound}: no proof of it was "
            "found that can be checked without search",
            file=sys.stderr,
        )


def _document(label: str, capacity: int, result: SolveResult, game: Game) -> dict[str, Any]:
    document: dict[str, Any] = {"instance": label, "capacity": capacity, "variant": str(result.variant)}
    if result.buffers != SINGLE:
        memories = result.buffers.to_json()
        document |= {"buffers": memories.pop("kind"), **memories, "per_sm": None}
        if result.pebbling is not None:
            each = [sm.to_json() for sm in replay(game, result.pebbling).per_sm]
            document["per_sm"] = {key: [sm[key] for sm in each] for key in each[0]}
    return document | {
        "solver": result.solver,
        "status": result.status,
        "lower_bound": cost_to_json(result.lower_bound),
        "upper_bound": cost_to_json(result.upper_bound),
        "proof": list(result.proof),
        "upper_from": result.upper_from,
        "stop_reason": result.stop_reason,
        "seconds": round(result.seconds, 3),
        "details": dict(result.details),
        "moves": [move.to_json() for move in result.moves],
    }


def _shown(cost: Cost | None) -> str:
    return "none" if cost is None else str(cost) if isinstance(cost, int) else f"{float(cost):g}"


def _infeasible(
    label: str, capacity: int, variant: Variant, args: argparse.Namespace, error: InfeasibleError
) -> dict[str, Any]:
    return {
        "instance": label,
        "capacity": capacity,
        "variant": str(variant),
        "solver": args.solver,
        "status": "infeasible",
        "lower_bound": None,
        "upper_bound": None,
        "stop_reason": str(error),
        "moves": [],
    }


def _print(label: str, capacity: int, result: SolveResult) -> None:
    say = _output.say
    each = f"capacity {capacity}" if result.buffers == SINGLE else f"{result.buffers}, capacity {capacity} each"
    say(f"{label}, {each}, {result.variant}")
    say(f"lower bound  {_shown(result.lower_bound)} ({', '.join(result.proof)}): no pebbling costs less")
    if result.upper_bound is None:
        say("upper bound  none: no pebbling found")
    else:
        moves = len(result.moves)
        say(f"upper bound  {_shown(result.upper_bound)} ({result.upper_from}): {moves} moves, replayed")
    say(f"{result.status}: {result.stop_reason} ({result.solver}, {result.seconds:.1f} s)")
    if result.moves:
        print()
        shown = result.moves[:_SHOWN_MOVES]
        say("; ".join(map(str, shown)) + ("" if len(shown) == len(result.moves) else "; ... (--json has all)"))


def _number(option: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        raise InputError(f"{option}: got {text!r}, expected a plain whole number such as 6.")
    number = int(text)
    if not 0 <= number <= MAX_CAPACITY:
        raise InputError(f"{option}: got {number}, expected a whole number from 0 to 2^60.")
    return number


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 1e9:
        raise InputError(f"--time-limit: got {text!r}, expected seconds, more than 0 and at most 1e9, such as 60.")
    return value


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None] | None]:
    """The interval on one line of stderr, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    with console.status("reading the DAG") as status:

        def show(now: Progress) -> None:
            low, high = _shown(now.lower_bound), _shown(now.upper_bound)
            status.update(f"lower bound {low}, upper bound {high}, {now.seconds:.0f} s")

        yield show
