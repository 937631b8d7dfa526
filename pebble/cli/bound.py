"""The least traffic any schedule can have, proved, beside the best schedule known and the published bounds.

examples:
  pebble bound gemm -m 8192 -n 8192 -k 8192 --cache 40MiB
  pebble bound llama-3-8b:gate_up --tokens 8192 --gpu h100-sxm5-80gb
"""

from __future__ import annotations

import argparse
from typing import Any

from pebble.bounds import gemm_lower_bound, judge, published_gemm_bounds
from pebble.capacity import Capacity, cache_capacity, chip_capacity
from pebble.cli import _output
from pebble.cli._target import MAX_SMS, add_machine_arguments, positive, read_target
from pebble.cli._workload import add_workload_arguments, read_workload
from pebble.schedules.explicit import best_gemm_schedule
from pebble.units import Size, format_bytes, format_capacity
from pebble.workloads import Gemm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble bound``."""
    add_workload_arguments(parser)
    add_machine_arguments(parser)
    parser.add_argument("--sms", metavar="P", help="processors for the parallel bound (the chip's SMs, else 1)")
    parser.add_argument(
        "--recompute",
        choices=("forbidden", "allowed"),
        default="forbidden",
        help="whether a value may be computed twice; the bound for one GEMM holds either way",
    )


def run(args: argparse.Namespace) -> int:
    """Print the bound."""
    gemm = read_workload(args)
    target = read_target(args)
    others: list[Capacity] = []
    if target.machine is not None:
        capacity = chip_capacity(target.machine, gemm)
        l2 = target.machine.l2_bytes
        others.append(cache_capacity(Size(l2, None, f"the L2 alone, {format_capacity(l2)}"), gemm))
        processors = target.machine.sms
    else:
        assert target.cache is not None
        capacity = cache_capacity(target.cache, gemm)
        processors = 1
    if args.sms is not None:
        processors = positive("--sms", args.sms, MAX_SMS)
    document = bound_document(gemm, capacity, processors, args.recompute, others)
    if args.json:
        _output.print_json(document)
    else:
        _print(gemm, capacity, document)
    return 0


def bound_document(
    gemm: Gemm, capacity: Capacity, processors: int, recompute: str, others: list[Capacity]
) -> dict[str, Any]:
    """Everything that ``pebble bound`` says, as plain data."""
    lower = gemm_lower_bound(gemm, capacity.elements)
    upper = best_gemm_schedule(gemm, capacity.schedule_elements)
    published = [
        judge(formula, lower.elements, upper.elements)
        for formula in published_gemm_bounds(gemm, capacity.elements, processors)
    ]
    return {
        "workload": {"label": gemm.label, **gemm.to_json()},
        "capacity": capacity.to_json(),
        "buffers": "single",
        "recompute": recompute,
        "lower_bound": lower.to_json(),
        "upper_bound": {
            "elements": upper.elements,
            "bytes": upper.bytes,
            "schedule": upper.name,
            "details": upper.to_json(),
        },
        "gap": upper.elements / lower.elements,
        "published": [bound.to_json() for bound in published],
        "other_capacities": [
            {"capacity": other.to_json(), "lower_bound": gemm_lower_bound(gemm, other.elements).to_json()}
            for other in others
        ],
    }


def _print(gemm: Gemm, capacity: Capacity, document: dict[str, Any]) -> None:
    lower, upper = document["lower_bound"], document["upper_bound"]
    say = _output.say
    say(gemm.label)
    say(
        f"capacity ({capacity.what}): {capacity.elements:,} elements, {format_capacity(capacity.bytes)}: "
        f"{capacity.detail}"
    )
    print()
    segments = lower["certificate"]["segments"]
    say(
        f"lower bound  {lower['elements']:,} elements, {format_bytes(lower['bytes'])} ({lower['method']}"
        f"{f', {segments:,} segments' if segments > 1 else ''}): no schedule moves less"
    )
    say(
        f"upper bound  {upper['elements']:,} elements, {format_bytes(upper['bytes'])} ({upper['schedule']}): "
        "a legal schedule"
    )
    say(f"gap          {document['gap']:.4g}")
    for other in document["other_capacities"]:
        bound = other["lower_bound"]
        memory = other["capacity"]["detail"].removeprefix("one explicitly managed memory of ")
        say(
            f"for a memory of {memory}: {bound['elements']:,} elements, {format_bytes(bound['bytes'])}; real kernels "
            "also hold values on the SMs and may go below this"
        )
    print()
    print("published bounds, loads + stores in elements:")
    marks = {"proven": "proven", "not_proven_here": "not proven here", "refuted_here": "REFUTED here"}
    for bound in document["published"]:
        say(f"{bound['name']}: {bound['elements']:,}: {marks[bound['status']]}: {bound['note']}", "  ")
