"""The least traffic any schedule can have, proved, beside the best schedule known and the published bounds.

examples:
  pebble bound gemm -m 8192 -n 8192 -k 8192 --cache 40MiB
  pebble bound llama-3-8b:gate_up --tokens 8192 --gpu h100-sxm5-80gb
  pebble bound ffn --tokens 8192 --d-model 4096 --hidden 11008 --cache 40MiB
  pebble bound attention --queries 32768 --keys 32768 --head-dim 128 --cache 228KiB
  pebble bound dag.json --capacity 8
  pebble bound gemm -m 8192 -n 8192 -k 8192 --gpu h200-sxm-141gb --buffers connected --omega 0.25
  pebble bound gemm -m 4096 -n 4096 -k 4096 --cache 228KiB --sms 108 --buffers sm-local --multicast 4

With --buffers sm-local, pooled or connected, --cache is the storage of one SM and the traffic is that from L2 to SMs.
"""

from __future__ import annotations

import argparse
from typing import Any

from pebble.bounded import Answer, answer, to_json
from pebble.bounds import lower_bound
from pebble.capacity import Capacity, cache_capacity, chip_capacity
from pebble.cli import _output
from pebble.cli._buffers import add_buffer_arguments, add_level_arguments, l2_document, print_l2, wants_l2
from pebble.cli._dag_bound import add_dag_bound_arguments, is_dag_file, run_dag_bound
from pebble.cli._target import MAX_SMS, add_machine_arguments, positive, read_target
from pebble.cli._workload import AnyWorkload, add_workload_arguments, read_workload
from pebble.errors import InputError
from pebble.files import check_output
from pebble.units import Size, format_bytes, format_capacity


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
    parser.add_argument("--certificate", metavar="FILE", help="write the proof, for `pebble verify`")
    add_buffer_arguments(parser)
    add_level_arguments(parser)
    add_dag_bound_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Print the bound."""
    if is_dag_file(args.workload):
        if args.certificate is not None:
            raise InputError("--certificate: for a DAG use `pebble solve DAG --capacity S --certificate FILE`.")
        return run_dag_bound(args)
    workload = read_workload(args)
    target = read_target(args)
    if args.certificate is not None:
        check_output(args.certificate, "--certificate")
    if wants_l2(args):
        if args.certificate is not None:
            raise InputError("--certificate: the checker does not know the bounds of several SMs yet; leave it out.")
        document = l2_document(args, workload, target)
        if args.json:
            _output.print_json(document)
        else:
            print_l2(document)
        return 0
    others: list[Capacity] = []
    if target.machine is not None:
        capacity = chip_capacity(target.machine, workload)
        l2 = target.machine.l2_bytes
        others.append(cache_capacity(Size(l2, None, f"the L2 alone, {format_capacity(l2)}"), workload))
        processors = target.machine.sms
    else:
        assert target.cache is not None
        capacity = cache_capacity(target.cache, workload)
        processors = 1
    if args.sms is not None:
        processors = positive("--sms", args.sms, MAX_SMS)
    found = answer(workload, capacity.elements, capacity.schedule_elements, processors, args.recompute == "allowed")
    document = bound_document(workload, found, capacity, args.recompute == "allowed", others)
    if args.certificate is not None:
        from pebble.proof.certificate import bound_certificate, write_certificate

        write_certificate(bound_certificate(workload, found), args.certificate)
    if args.json:
        _output.print_json(document)
    else:
        _print(workload, capacity, document)
    return 0


def bound_document(
    workload: AnyWorkload, found: Answer, capacity: Capacity, recompute: bool, others: list[Capacity]
) -> dict[str, Any]:
    """Everything that ``pebble bound`` says, as plain data."""
    # without a schedule nothing is refuted: any number may still be a bound
    known = found.upper.elements if found.upper is not None else None
    return {
        "workload": {"label": workload.label, **workload.to_json()},
        "capacity": capacity.to_json(),
        "buffers": "single",
        "level": "dram",
        "recompute": "allowed" if recompute else "forbidden",
        **to_json(found),
        "published": [formula.to_json(found.lower.elements, known) for formula in found.formulas],
        "other_capacities": [
            {"capacity": o.to_json(), "lower_bound": lower_bound(workload, o.elements, recompute).to_json()}
            for o in others
        ],
    }


def _print(workload: AnyWorkload, capacity: Capacity, document: dict[str, Any]) -> None:
    lower, upper, separate = (document.get(key) for key in ("lower_bound", "upper_bound", "separate_kernels_bound"))
    assert lower is not None
    say = _output.say
    say(workload.label)
    say(
        f"capacity ({capacity.what}): {capacity.elements:,} elements, {format_capacity(capacity.bytes)}: "
        f"{capacity.detail}"
    )
    print()
    game = "" if workload.family == "gemm" else f" (recomputation {document['recompute']})"
    segments = lower["certificate"].get("segments", 1)
    say(
        f"lower bound  {lower['elements']:,} elements, {format_bytes(lower['bytes'])} ({lower['method']}"
        f"{f', {segments:,} segments' if segments > 1 else ''}): no schedule moves less"
        f"{game}"
    )
    if upper is not None:
        say(
            f"upper bound  {upper['elements']:,} elements, {format_bytes(upper['bytes'])} ({upper['schedule']}): "
            "a legal schedule"
            f"{', which computes every value once' if document['recompute'] == 'allowed' else ''}"
        )
        say(f"gap          {document['gap']:.4g}")
    else:
        say("upper bound  none: no schedule of ours covers this case")
    if separate is not None:
        say(
            f"separate     {separate['elements']:,} elements, {format_bytes(separate['bytes'])}: the least when every "
            f"intermediate goes through memory; over the lower bound {document['separate_over_fused_bound']:.4g}"
        )
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
