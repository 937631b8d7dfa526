"""The least traffic any schedule can have, proved, beside the best schedule known; --explain: all that is known of it.

examples:
  pebble bound gemm -m 8192 -n 8192 -k 8192 --cache 40MiB
  pebble bound llama-3-8b:gate_up --tokens 8192 --gpu h100-sxm5-80gb
  pebble bound gemm -m 8192 -n 8192 -k 8192 --dtype fp16 --gpu rtx4090 --accumulator fp16 --energy 7nm
  pebble bound ffn --tokens 8192 --d-model 4096 --hidden 11008 --cache 40MiB
  pebble bound attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB
  pebble bound gemm-backward -m 8192 -n 8192 -k 8192 --cache 40MiB
  pebble bound dag.json --capacity 8
  pebble bound gemm -m 8192 -n 8192 -k 8192 --gpu h200-sxm-141gb --buffers connected --omega 0.25
  pebble bound gemm -m 4096 -n 4096 -k 4096 --cache 228KiB --sms 108 --buffers sm-local --multicast 4

With --gpu it also says the least time: operations, DRAM and L2 at rates that are never exceeded.
With --buffers sm-local, pooled or connected, --cache is the storage of one SM and the traffic is that from L2 to SMs.
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from pebble.api.traffic import bound
from pebble.bounds import LowerBound, WeightedBound
from pebble.bounds.cases_bound import THEOREM as BY_CASES
from pebble.cli import _output
from pebble.cli._arguments import (
    add_accumulate_argument,
    add_machine_arguments,
    add_workload_arguments,
    is_dag_file,
    seconds,
    where,
    workload_of,
)
from pebble.cli._floor import add_time_arguments, print_energy, print_floor
from pebble.cli._sms import add_buffer_arguments, add_level_arguments, print_sm_bound
from pebble.errors import InputError
from pebble.families import family_of
from pebble.reports.bound import Bound
from pebble.reports.kernel_time import floor_word
from pebble.reports.sm_bound import SmBound
from pebble.reports.target import PARTIAL_SUMS
from pebble.system.clock import interruptible
from pebble.system.files import check_output
from pebble.timing.floor import TITLES, TimeFloor
from pebble.units import format_bytes, format_capacity, format_ratio, format_seconds

if TYPE_CHECKING:
    from pebble.reports.dag_bound import DagBounds


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble bound``."""
    add_workload_arguments(parser)
    add_machine_arguments(parser)
    add_time_arguments(parser)
    add_accumulate_argument(parser)
    parser.add_argument("--sms", metavar="P", help="processors for the parallel bound (the chip's SMs, else 1)")
    parser.add_argument(
        "--recompute",
        choices=("forbidden", "allowed"),
        default="forbidden",
        help="whether a value may be computed twice; the bound for one GEMM holds either way",
    )
    parser.add_argument(
        "--cases",
        metavar="N",
        help="ffn, attention, layers: tell N cases of segments' shares apart, for a higher bound; 400 take minutes",
    )
    parser.add_argument("--certificate", metavar="FILE", help="write the proof, for `pebble verify`")
    add_buffer_arguments(parser)
    add_level_arguments(parser)
    parser.add_argument(
        "--explain", action="store_true", help="the proof, the schedule, other capacities, floors, published bounds"
    )
    group = parser.add_argument_group("for a DAG in a file instead of a workload")
    group.add_argument("--capacity", metavar="S", help="pebbles (with weights: weight units) that fit in fast memory")
    group.add_argument("--variant", metavar="V", help="the game, as for `pebble solve`")
    group.add_argument("--time-limit", metavar="SECONDS", default="10", help="for each theorem that can use it (10)")


def run(args: argparse.Namespace) -> int:
    """Bound and print."""
    is_dag = is_dag_file(args.workload)
    if args.certificate is not None:
        check_output(args.certificate, "--certificate")
    if args.certificate is not None and is_dag:
        raise InputError("--certificate: for a DAG use `pebble solve DAG --capacity S --certificate FILE`.")
    stop = threading.Event()
    with interruptible(stop) if is_dag else nullcontext():
        result = _bound(args, is_dag, stop)
    if args.certificate is not None:
        if isinstance(result, SmBound):
            _say_less(result, result.certify(args.certificate)["claims"])
        elif isinstance(result, Bound):
            result.certify(args.certificate)
    if args.json:
        _output.print_report(result)
    elif isinstance(result, Bound):
        _print(result, args.explain)
    elif isinstance(result, SmBound):
        print_sm_bound(result)
    else:
        _print_dag(result, stop.is_set())
    return 130 if stop.is_set() else 0


def _say_less(result: SmBound, claims: Sequence[Mapping[str, Any]]) -> None:
    """Where a proof that is short enough to be checked says less than the bound, say so."""
    for key, claim in zip(("lower_bound", "balanced_bound"), claims, strict=True):
        bound, proved = result.answer[key]["elements"], claim["elements"]
        if proved < bound:
            _output.tell(f"note: the certificate proves {proved:,} elements, not {bound:,}")


def _bound(args: argparse.Namespace, is_dag: bool, stop: threading.Event) -> Bound | SmBound | DagBounds:
    return bound(
        args.workload if is_dag else workload_of(args),
        sms=args.sms,
        recompute=args.recompute == "allowed",
        cases=args.cases,
        accumulators=args.accumulate,
        buffers=args.buffers,
        omega=args.omega,
        topology=args.topology,
        multicast=args.multicast,
        level=args.level,
        accumulator=args.accumulator,
        energy=args.energy,
        capacity=args.capacity,
        variant=args.variant,
        time_limit=seconds("--time-limit", args.time_limit),
        stop=stop,
        **where(args),
    )


def _print(result: Bound, explain: bool) -> None:
    """What is proved, in a few lines; ``explain`` also where it comes from, and what others proved."""
    if not explain and result.timed is not None and result.timed.energy is not None:
        explain = True  # it was asked for
    if explain:
        _explain(result)
    else:
        _short(result)


def _without_cases(result: Bound) -> str:
    """Where cases were asked for and prove no more, words that say so."""
    used = not result.cases or BY_CASES.name in str(result.lower.theorem)
    return "" if used else f"; up to {result.cases:,} cases prove no more"


def _short(result: Bound) -> None:
    """The bound, the best schedule known, the gap, and the least time, a line each."""
    document, capacity, say = result.document(), result.capacity, _output.say
    lower, upper, separate = (document.get(key) for key in ("lower_bound", "upper_bound", "separate_kernels_bound"))
    assert lower is not None
    machine = result.target.machine
    say(result.workload.label + ("" if machine is None else f", {machine.name}"))
    what = "in all on-chip stores" if machine is not None else "one memory"
    sums = "; partial sums in fp32" if result.target.accumulator_bytes else ""
    elements = f": {capacity.elements:,} elements" * result.workload.whole_widths
    say(f"capacity     {format_capacity(capacity.bytes)}, {what}{elements}{sums}")
    helps = family_of(result.workload).recompute_helps
    game = f", recomputation {document['recompute']}" if helps else ""
    say(f"lower bound  {_counted(result.lower, lower)} ({lower['method']}): no schedule moves less")
    say(f"proof        {result.lower.theorem.short}{game}{_without_cases(result)}")
    if upper is None:
        say("upper bound  none: no schedule of ours covers this case")
    else:
        say(f"upper bound  {_moved(result, upper)}: a legal schedule is known")
        say(f"gap          {format_ratio(document['gap'])}{_with_state(result)}")
    if separate is not None:
        say(f"separate     {_separate(result, separate)}: proved")
    if result.timed is not None and result.timed.floor.parts:
        _short_floor(result.timed.floor)
    refuted = [bound["name"] for bound in document["published"] if bound["status"] == "refuted_here"]
    if refuted:
        say(f"published    {', '.join(refuted)}: REFUTED here")
    say("more         the proof, the schedule, other capacities and published bounds with --explain")


def _separate(result: Bound, separate: dict[str, Any]) -> str:
    """The least of kernels one after the other."""
    if result.parts:
        names = ", ".join(part["name"] for part in result.parts)
        return f"{format_bytes(separate['bytes'])} if its parts hand nothing on: {names}"
    return f"{_counted(result.separate, separate)} if every intermediate goes through memory"


def _short_floor(floor: TimeFloor) -> None:
    """The least time and its parts, in a line or two."""
    entries = []
    for part in floor.parts:
        types = f", sums in {floor.accumulator}" * (part.name == "operations" and floor.accumulator != "fp32")
        entries.append(
            f"{TITLES[part.name]} {format_seconds(part.seconds)}{types}{', a guess' * (part.rate.mark == 'guess')}"
        )
    left = f"; {' and '.join(floor.unknown)} left out, whose rates are not known" if floor.unknown else ""
    _output.say(
        f"time floor   {format_seconds(floor.seconds)}, {floor_word(floor)}, at peak rates: proved "
        f"({'; '.join(entries)}{left})"
    )


def _explain(result: Bound) -> None:
    workload, capacity, document = result.workload, result.capacity, result.document()
    lower, upper, separate = (document.get(key) for key in ("lower_bound", "upper_bound", "separate_kernels_bound"))
    assert lower is not None
    say = _output.say
    say(workload.label)
    elements = f"{capacity.elements:,} elements, " * workload.whole_widths
    say(f"capacity ({capacity.what}): {elements}{format_capacity(capacity.bytes)}: {capacity.detail}")
    if result.target.accumulator_bytes:
        say(f"partial sums in fp32: {PARTIAL_SUMS}")
    print()
    helps = family_of(workload).recompute_helps
    game = f" (recomputation {document['recompute']})" if helps else ""
    segments = lower["certificate"].get("segments", 1)
    say(
        f"lower bound  {_counted(result.lower, lower)} ({lower['method']}"
        f"{f', {segments:,} segments' if segments > 1 else ''}): no schedule moves less"
        f"{game}"
    )
    say(f"proof        {result.lower.theorem}{_without_cases(result)}")
    if upper is not None:
        say(
            f"upper bound  {_moved(result, upper)} ({upper['schedule']}): "
            "a legal schedule"
            f"{', which computes every value once' if document['recompute'] == 'allowed' else ''}"
        )
        say(f"gap          {format_ratio(document['gap'])}{_with_state(result)}")
    else:
        say("upper bound  none: no schedule of ours covers this case")
    if separate is not None:
        over = format_ratio(document["separate_over_fused_bound"])
        say(f"separate     {_separate(result, separate)}: the least then; over the lower bound {over}")
    if result.parts:
        _parts(result)
    for other, (_, known) in zip(document["other_capacities"], result.others, strict=True):
        bound = other["lower_bound"]
        memory = other["capacity"]["detail"].removeprefix("one explicitly managed memory of ")
        beyond = "; real kernels also hold values on the SMs and may go below this"
        if bound["bytes"] <= result.lower.bytes:
            beyond = "; more memory does not lower it"
        say(f"for a memory of {memory}: {_counted(known, bound)}{beyond}")
    if result.timed is not None:
        print()
        print_floor(result.timed.floor, result.verdict, workload.dtype)
        print_energy(result.timed)
    print()
    of = "elements" if workload.whole_widths else "values, each one whatever its format"
    _output.say(f"published bounds, loads + stores in {of}:")
    marks = {"proven": "proven", "not_proven_here": "not proven here", "refuted_here": "REFUTED here"}
    for bound in document["published"]:
        say(f"{bound['name']}: {bound['elements']:,}: {marks[bound['status']]}: {bound['note']}", "  ")


def _parts(result: Bound) -> None:
    """Each part alone and in the layer: what is proved, and what the best schedule known moves."""
    keys = ("alone_bytes", "alone_schedule_bytes", "bytes", "schedule_bytes")
    rows = [
        [part["name"], *("-" if part[key] is None else format_bytes(part[key]) for key in keys), part["theorem"]]
        for part in result.parts
    ]
    sums = [[part[key] for part in result.parts] for key in keys]
    rows.append(["all", *("-" if None in column else format_bytes(sum(column)) for column in sums), ""])
    print()
    print(_output.table(["part", "alone, at least", "schedule", "in the layer, at least", "schedule", "by"], rows))
    print()


def _with_state(result: Bound) -> str:
    """For attention: the same if softmax state took no room, which the bound does not count either."""
    if result.stateless is None or result.stateless_gap is None:
        return ""
    other = result.stateless
    traffic = f"{other.elements:,} elements, {format_bytes(other.bytes)}"
    return f" with softmax state; {format_ratio(result.stateless_gap)} without: {traffic} ({other.name})"


def _moved(result: Bound, fields: dict[str, Any]) -> str:
    """Elements and bytes of a schedule; bytes alone where elements are of formats that share scales."""
    return f"{fields['elements']:,} elements, " * result.workload.whole_widths + format_bytes(fields["bytes"])


def _counted(bound: LowerBound | None, fields: dict[str, Any]) -> str:
    """Elements and bytes; bytes alone where they are proved by a theorem in bytes."""
    traffic = format_bytes(fields["bytes"])
    return (
        traffic
        if bound is not None and isinstance(bound.proof, WeightedBound)
        else f"{fields['elements']:,} elements, {traffic}"
    )


def _print_dag(result: DagBounds, interrupted: bool) -> None:
    game, best, upper = result.game, result.best, result.upper
    say = _output.say
    say(f"{result.label}: {game.size} values, {len(game.tasks)} operations, {game.variant}, capacity {result.capacity}")
    print()
    say(f"lower bound  {best.value} ({best.name}: {best.note}): no pebbling costs less")
    say(f"proof        {best.theorem}")
    say("upper bound  none found" if upper is None else f"upper bound  {upper} ({result.upper_from}): replayed")
    print()
    for theorem in result.bounds:
        value = "not here" if theorem.value is None else str(theorem.value)
        say(
            f"{theorem.name}: {value}: {theorem.note} "
            f"[{theorem.source}; holds for {', '.join(map(str, theorem.variants))}]",
            "  ",
        )
    print()
    say("interrupted." if interrupted else "`pebble solve` looks for the optimum between the two.")
