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
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebble.cli import _output
from pebble.cli._buffers import add_buffer_arguments
from pebble.cli._dag import add_dag_arguments, family_help, read_dag_argument
from pebble.cli._solve_buffers import add_solve_arguments, read_solve_buffers, run_buffers
from pebble.errors import GapOpenError, InfeasibleError, InputError
from pebble.game import Game, Variant

if TYPE_CHECKING:
    from pebble.dag.base import Dag
    from pebble.solvers import Progress, SolveResult

MAX_CAPACITY = 2**60
_SHOWN_MOVES = 400
_PATIENCE_SECONDS = 2.0


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
    add_solve_arguments(parser)
    parser.epilog = family_help()


def run(args: argparse.Namespace) -> int:
    """Solve, print the interval and the moves."""
    capacity = _number("--capacity", args.capacity)
    seed = _number("--seed", args.seed)
    time_limit = _seconds(args.time_limit)
    variant = None if args.variant is None else Variant.parse(args.variant)
    buffers = read_solve_buffers(args)
    if buffers is not None and args.certificate is not None:
        raise InputError("--certificate: the checker does not know games with several memories yet; leave it out.")
    stop = threading.Event()
    with _interruptible(stop):
        from pebble.solvers import solve

        label, dag = read_dag_argument(args, variant)
        if buffers is not None:
            return run_buffers(args, label, dag, capacity, variant, buffers, time_limit, seed, stop)
        from pebble.solvers.explicit_start import explicit_pebbling

        try:
            game = Game.from_dag(dag, variant)
            hint = explicit_pebbling(game, capacity)
            with _progress() as show:
                result = solve(game, capacity, None, args.solver, time_limit, seed, show, upper_hint=hint, stop=stop)
        except InfeasibleError as error:
            if args.json:
                _output.print_json(_infeasible(label, capacity, variant or Variant.default_for(dag), args, error))
            raise
        if args.certificate is not None and not stop.is_set():
            _certify(dag, capacity, result, args.certificate, max(120.0, time_limit))
        if args.json:
            _output.print_json(_document(label, capacity, result))
        else:
            _print(label, capacity, result)
        sys.stdout.flush()
    if stop.is_set():
        return 130
    if args.require_optimal and result.status != "optimal":
        upper = "no pebbling" if result.upper_bound is None else str(result.upper_bound)
        raise GapOpenError(
            f"--require-optimal: got the interval {result.lower_bound} to {upper} ({result.stop_reason}), expected "
            "a proved optimum; give it more --time-limit, or another --solver."
        )
    return 0


def _certify(dag: Dag, capacity: int, result: SolveResult, path: str, seconds: float) -> None:
    """Write the certificate, and say so where it proves less than was solved."""
    from pebble.game import Game
    from pebble.proof.optimum import solve_certificate

    document = solve_certificate(Game.from_dag(dag, result.variant), capacity, result, Path(path), seconds)
    proved = document["claims"][-1]["cost"]
    if proved < result.lower_bound:
        print(
            f"note: the certificate proves a lower bound of {proved}, not of {result.lower_bound}: no proof of it was "
            "found that can be checked without search",
            file=sys.stderr,
        )


def _document(label: str, capacity: int, result: SolveResult) -> dict[str, Any]:
    return {
        "instance": label,
        "capacity": capacity,
        "variant": str(result.variant),
        "solver": result.solver,
        "status": result.status,
        "lower_bound": result.lower_bound,
        "upper_bound": result.upper_bound,
        "proof": list(result.proof),
        "upper_from": result.upper_from,
        "stop_reason": result.stop_reason,
        "seconds": round(result.seconds, 3),
        "details": dict(result.details),
        "moves": [move.to_json() for move in result.moves],
    }


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
    say(f"{label}, capacity {capacity}, {result.variant}")
    say(f"lower bound  {result.lower_bound} ({', '.join(result.proof)}): no pebbling costs less")
    if result.upper_bound is None:
        say("upper bound  none: no pebbling found")
    else:
        say(f"upper bound  {result.upper_bound} ({result.upper_from}): {len(result.moves)} moves, replayed")
    say(f"{result.status}: {result.stop_reason} ({result.solver}, {result.seconds:.1f} s)")
    if result.moves:
        print()
        shown = result.moves[:_SHOWN_MOVES]
        words = [f"{m.op} {m.node}" + (f" from {m.source}" if m.source else "") for m in shown]
        say("; ".join(words) + ("" if len(shown) == len(result.moves) else "; ... (--json has all)"))


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
def _interruptible(stop: threading.Event) -> Iterator[None]:
    """Turn the first Ctrl-C into a request to stop with what is known; one that comes later interrupts for good."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    asked = math.inf

    def ask(_number: int, _frame: object) -> None:
        nonlocal asked
        if time.monotonic() > asked + _PATIENCE_SECONDS:  # a terminal or a shell may send one signal twice
            raise KeyboardInterrupt
        asked = min(asked, time.monotonic())
        stop.set()

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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
            upper = "-" if now.upper_bound is None else str(now.upper_bound)
            status.update(f"lower bound {now.lower_bound}, upper bound {upper}, {now.seconds:.0f} s")

        yield show
