"""The cheapest pebbling of a computation DAG, proved, or the tightest interval when time runs out.

examples:
  pebble solve gemm -m 2 -n 2 -k 3 --capacity 5
  pebble solve diamond --size 4 --capacity 3 --variant recompute
  pebble solve dag.json --capacity 8 --time-limit 60 --json
  pebble solve gemm -m 2 -n 2 -k 1 --capacity 3 --buffers connected --sms 2 --omega 0.25
  pebble solve ffn --tokens 256 --d-model 128 --hidden 512 --tile 128x128x64 --gpu h100 --buffers connected --sms 2 \
      --omega measured --level dram --balanced
"""

from __future__ import annotations

import argparse
import math
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pebble.api.games import solve
from pebble.cli import _output
from pebble.cli._arguments import add_dag_arguments, explicit_parameters, family_help
from pebble.cli._output import stages
from pebble.cli._sms import add_buffer_arguments
from pebble.errors import GapOpenError, InfeasibleError, InputError
from pebble.game import Variant
from pebble.reports.on_sms import shown_cost
from pebble.reports.solve import Solution, shown, shown_memories
from pebble.system.clock import Clock, OutOfTimeError, interruptible
from pebble.system.files import check_output

if TYPE_CHECKING:
    from pebble.solvers import Progress

MAX_CAPACITY = 2**60
_SHOWN_MOVES = 400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble solve``."""
    from pebble.solvers import SOLVERS

    add_dag_arguments(parser)
    parser.add_argument("--capacity", metavar="S", help="pebbles (with weights: weight units) that fit in fast memory")
    parser.add_argument(
        "--gpu", metavar="SKU", help="instead: the shared memory of one SM; values weigh their bytes (bf16)"
    )
    parser.add_argument("--machine", metavar="FILE", help="instead: the same of a machine file of your own")
    parser.add_argument("--cache", metavar="SIZE", help="instead: a memory of this size, such as 228KiB")
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
    parser.add_argument(
        "--proof-log",
        action="store_true",
        help="with --certificate: prove the bound by cutting planes, in files .opb and .pbp beside it that checkers of "
        "others read (needs `pip install 'exact>=2.2'`)",
    )
    add_buffer_arguments(parser)
    parser.add_argument("--sms", metavar="P", help="with --buffers: memories, --capacity each (2)")
    parser.add_argument("--tasks-per-sm", metavar="N", help="with --buffers: no SM does more operations (no limit)")
    parser.add_argument("--balanced", action="store_true", help="with --buffers: no SM does more than its even share")
    parser.add_argument(
        "--split", metavar="P:Q", help="with --buffers: P SMs do the first product of a chain, Q the second"
    )
    parser.add_argument("--level", metavar="L", help="with --omega measured: loads and stores go to l2 or dram (l2)")
    parser.epilog = f"{family_help()}\n\n{parser.epilog}"


def run(args: argparse.Namespace) -> int:
    """Solve, print the interval and the moves."""
    capacity = None if args.capacity is None else _number("--capacity", args.capacity)
    seed = _number("--seed", args.seed)
    limit, stop = _seconds(args.time_limit), threading.Event()
    if args.certificate is not None:
        if args.buffers == "pooled" or (args.proof_log and args.buffers not in (None, "single")):
            raise InputError(
                f"--certificate: got --buffers {args.buffers}, expected single, or without --proof-log sm-local or "
                "connected."
            )
        check_output(args.certificate, "--certificate")
        if args.proof_log:  # before the time of a search is spent
            from pebble.proof.refutation import check_can_log

            check_can_log()
    elif args.proof_log:
        raise InputError("--proof-log: the log is part of a certificate; add --certificate c.json.")
    named = (
        "buffers",
        "sms",
        "omega",
        "topology",
        "tasks_per_sm",
        "balanced",
        "split",
        "level",
        "gpu",
        "machine",
        "cache",
    )
    memories = {key: vars(args)[key] for key in named}
    with interruptible(stop):
        try:
            with _progress() as show:
                best = solve(
                    args.dag,
                    capacity,
                    variant=args.variant,
                    solver=args.solver,
                    time_limit=limit,
                    seed=seed,
                    unit_weights=args.unit_weights,
                    progress=show,
                    stop=stop,
                    **memories,
                    **explicit_parameters(args),
                )
        except InfeasibleError as error:
            if args.json:
                nothing = {"status": "infeasible", "lower_bound": None, "stop_reason": str(error)}
                _output.print_json({**_unsolved(args, capacity), **nothing})
            raise
        except GapOpenError as error:
            return _nothing_known(args, capacity, error, stop.is_set())
        if args.json:
            _output.print_report(best)
        else:
            _print(best)
        sys.stdout.flush()
        if args.certificate is not None:
            _certify(best, args, limit, stop)
    if stop.is_set():
        return 130
    result = best.result
    if args.require_optimal and not best.optimal:
        raise GapOpenError(
            f"--require-optimal: got {result.status} with the interval {shown(result.lower_bound)} to "
            f"{shown(result.upper_bound)} ({result.stop_reason}), expected a proved optimum; give it more "
            "--time-limit, or another --solver."
        )
    return 0


def _unsolved(args: argparse.Namespace, capacity: int | None) -> dict[str, Any]:
    return {
        "instance": args.dag,
        "capacity": capacity,
        "variant": args.variant,
        "solver": args.solver,
        "upper_bound": None,
        "moves": [],
    }


def _nothing_known(args: argparse.Namespace, capacity: int | None, result: GapOpenError, interrupted: bool) -> int:
    """Say that the time was over before there was a game to solve; the exit code."""
    if args.json:
        nothing = {"status": "unknown", "lower_bound": 0, "stop_reason": result.reason}
        _output.print_json({**_unsolved(args, capacity), **nothing, "seconds": round(result.seconds, 3)})
    else:
        _output.say(
            f"{args.dag}{'' if capacity is None else f', capacity {capacity}'}: nothing proved yet: {result.reason}"
        )
    sys.stdout.flush()
    if interrupted:
        return 130
    if args.require_optimal:
        raise GapOpenError(
            f"--require-optimal: got nothing ({result.reason}), expected a proved optimum; give it more time."
        )
    return 0


def _certify(result: Solution, args: argparse.Namespace, limit: float, stop: threading.Event) -> None:
    """Write the certificate, and say what it proves; so too where that is less than was solved."""
    path, seconds, clock = args.certificate, max(120.0, limit), Clock(limit, stop)
    try:
        with stages(path) as tell:
            missed: list[str] = []
            told = (tell, missed.append)
            document = clock.finish(lambda: result.certify(path, seconds, args.proof_log, *told), limited=False)
    except OutOfTimeError:
        _output.tell(f"note: interrupted; {path} is not written")
        return
    proved = Fraction(document["claims"][-1]["cost"])
    if not args.json:
        from pebble.proof.optimum import proof_words

        words = proof_words(document)
        _output.say(
            f"certificate  {path}: at least {shown(proved)}, by {words}; found and checked in {clock.passed:.1f} s"
        )
    if proved < result.lower_bound:
        _output.tell(
            f"note: the certificate proves a lower bound of {shown(proved)}, not of {shown(result.lower_bound)}: "
            + "".join(missed[-1:] or ["no proof of it was found that can be checked without search"])
        )


def _print(solution: Solution) -> None:
    say, result, memory = _output.say, solution.result, solution.memory
    say(f"{solution.label}, {shown_memories(solution.capacity, result.buffers)}, {result.variant}")
    say(f"lower bound  {shown_cost(result.lower_bound, memory)} ({', '.join(result.proof)}): no pebbling costs less")
    if result.upper_bound is None:
        say("upper bound  none: no pebbling found")
    else:
        moves = len(result.moves)
        say(f"upper bound  {shown_cost(result.upper_bound, memory)} ({result.upper_from}): {moves} moves, replayed")
    say(f"{result.status}: {result.stop_reason} ({result.solver}, {result.seconds:.1f} s)")
    for note in memory.notes:
        say(f"note: {note}")
    if result.buffers.memories > 1 and memory.in_bytes:
        _print_on_sms(solution)
    elif result.moves:
        print()
        first = result.moves[:_SHOWN_MOVES]
        say("; ".join(map(str, first)) + ("" if len(first) == len(result.moves) else "; ... (--json has all)"))


def _print_on_sms(best: Solution) -> None:
    """Schedules in common use beside the one found, and this one line by line."""
    result, sms = best.result, best.result.buffers.sms
    rows = [*([] if best.own is None else [best.own]), *best.common]
    if rows:
        print()
        heads = ["schedule, replayed", "bytes", "x bound", "steps", *(f"tasks of SM {q}" for q in range(sms))]
        least = max(1, best.lower_bound)
        table = [
            [
                row.name,
                f"{float(row.cost):,.0f}",
                f"{float(row.cost / least):.2f}" if row.fits else "-",
                str(row.steps),
                *map(str, row.tasks),
            ]
            for row in rows
        ]
        print(_output.table(heads, table, keep=("bytes", "x bound")))
        if not all(item.fits for item in rows):
            why = f"more than {best.most_tasks} tasks" if best.split is None else "a task that it may not do"
            _output.say(f"-: an SM does {why} there; the bound is of games where none does")
    if result.moves:
        print()
        _output.say("what is found here, step by step (what is deleted is left out):")
        print(_timeline(best.timeline, sms))


def _timeline(lines: Sequence[Sequence[str]], sms: int) -> str:
    """A column an SM; a line an SM where they do not fit side by side, since no SM may be left out."""
    wide = [["step", *(f"SM {q}" for q in range(sms))]]
    wide += [[str(step), *cells] for step, cells in enumerate(lines, start=1)]
    if sum(max(len(row[i]) for row in wide) + 2 for i in range(1 + sms)) - 2 <= _output.width():
        return _output.table(wide[0], wide[1:], left=1 + sms)
    rows = [[str(step), f"SM {q}", row] for step, row_of in enumerate(lines, 1) for q, row in enumerate(row_of) if row]
    return _output.table(["step", "SM", "what it does"], rows, left=3)


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
            low, high = shown(now.lower_bound), shown(now.upper_bound)
            status.update(f"lower bound {low}, upper bound {high}, {now.seconds:.0f} s")

        yield show
