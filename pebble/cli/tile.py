"""Block tile, stages and warps for a workload on a GPU: ranked by an advisor's rule, with the modelled time.

`ours`, first the kernel that `pebble advise` picks, takes least modelled time under the chip's own cache model, run
again and again where that is modelled; `deepgemm` and `deepgemm-2025-05` are DeepGEMM's rules. With --tile one kernel
of your own is explained, or refused with the limit that it breaks.

examples:
  pebble tile gemm -m 8192 -n 8192 -k 8192 --gpu h100-sxm5-80gb
  pebble tile gemm -m 4096 -n 7168 -k 16384 --dtype fp8 --gpu h100-sxm5-80gb --advisor deepgemm
  pebble tile gemm -m 4096 -n 4096 -k 4096 --gpu a100-sxm4-40gb --tile 128x128x32 --stages 3 --warps 8
  pebble tile llama-3-8b:attention --tokens 8192 --gpu h100-sxm5-80gb --json
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.cli._arguments import add_workload_arguments, workload_of
from pebble.cli._output import search_bar
from pebble.reports.target import whole
from pebble.reports.tile import Choice, OwnKernel, TileAdvice, tile
from pebble.tuning.advisors import ADVISORS
from pebble.units import format_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble tile``."""
    add_workload_arguments(parser, kernels=True)
    advisors = "; ".join(f"{name}: {advisor.what}" for name, advisor in ADVISORS.items())
    parser.add_argument("--advisor", metavar="NAME", default="ours", help=f"{advisors} (ours)")
    parser.add_argument("--top", metavar="N", default="10", help="kernels to show (10)")
    parser.add_argument(
        "--explain", action="store_true", help="what the first keeps on an SM and what hides its latency; notes"
    )
    parser.add_argument("--gpu", metavar="SKU", help="a GPU of `pebble machines`, such as h100-sxm5-80gb")
    parser.add_argument("--machine", metavar="FILE", help="a machine file of your own (`pebble machines --help`)")
    parser.add_argument("--sms", metavar="P", help="SMs that the kernel may use (all)")
    group = parser.add_argument_group("a kernel of your own")
    group.add_argument("--tile", metavar="BMxBNxBK", help="block tile")
    group.add_argument("--stages", metavar="N", help="steps whose tiles a block holds at once (what fits)")
    group.add_argument("--warps", metavar="N", help="of a block (the fewest that can have the accumulators)")
    group.add_argument("--blocks-per-sm", metavar="B", help="blocks that run at once on an SM (1)")
    group.add_argument("--registers", metavar="N", help="a budget for each thread, refused where it is too small")


def run(args: argparse.Namespace) -> int:
    """Rank and print."""
    top = whole("--top", args.top, 1, 10_000)
    own = OwnKernel(
        tile=args.tile, stages=args.stages, warps=args.warps, blocks_per_sm=args.blocks_per_sm, registers=args.registers
    )
    workload = workload_of(args)
    with search_bar() as show:
        result = tile(
            workload, args.advisor, gpu=args.gpu, machine=args.machine, sms=args.sms, progress=show, **own
        )  # fmt: skip
    if args.json:
        document = result.document()
        _output.print_report(result, configurations=document["configurations"][:top])
    else:
        _print(result, top, args.explain or args.tile is not None)
    return 0


def _print(result: TileAdvice, top: int, explain: bool) -> None:
    say = _output.say
    say(result.summary())
    print()
    if result.advisor is not None and result.advisor.measure:
        headers = ["tile", "stages", "warps", "SMs", "waves", "last", "order", "multicast", result.advisor.measure]
        print(
            _output.table(
                headers, [_by_rule(choice) for choice in result.choices[:top]], keep=(result.advisor.measure,)
            )
        )
    else:
        us = "us" if result.best.sustained_seconds is None else "sustained us"
        headers = ["tile", "stages", "warps", "per SM", "waves", "last", "order", "DRAM", us, "bound by"]
        print(_output.table(headers, [_by_time(choice) for choice in result.choices[:top]], keep=(us, "bound by")))
    if not explain:
        if result.advisor is not None and result.advisor.measure:
            say(f"note: {result.notes[0]}")
        say("more: what the first keeps on an SM, what hides its latency, and notes with --explain")
        return
    print()
    _explain(result.best)
    for note in result.notes:
        say(f"note: {note}")


def _by_rule(choice: Choice) -> list[str]:
    advice = choice.advice
    return [
        choice.tile,
        f"{advice.stages}",
        f"{choice.warps}",
        f"{advice.sms}",
        f"{choice.model.waves:,}",
        f"{choice.model.last_wave_use:.0%}",
        advice.schedule.name,
        advice.multicast,
        f"{advice.score:,.2f}".removesuffix(".00"),
    ]


def _by_time(choice: Choice) -> list[str]:
    advice, time, seconds = choice.advice, choice.time, choice.seconds
    assert time is not None and seconds is not None
    return [
        choice.tile,
        f"{advice.stages}",
        f"{choice.warps}",
        f"{advice.blocks_per_sm}",
        f"{choice.model.waves:,}",
        f"{choice.model.last_wave_use:.0%}",
        advice.schedule.name,
        format_bytes(time.dram_bytes),
        f"{seconds * 1e6:,.1f}",
        next(iter(time.binds)),
    ]


def _rounded(number: float) -> str:
    """A whole number, or two digits of one that is small."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def _explain(choice: Choice) -> None:
    """The model of the first kernel, part by part."""
    say, advice, model = _output.say, choice.advice, choice.model
    needs, fit = advice.needs, model.fit
    parts = [f"{advice.stages} stage{'s' * (advice.stages != 1)} of {model.stage_bytes:,}"]
    parts += [f"scales {model.scale_bytes:,}"] * (model.scale_bytes > 0)
    parts += [f"barriers {model.barrier_bytes:,}"] * (model.barrier_bytes > 0)
    parts += [f"output tile and the rest {model.output_bytes:,}"] * (model.output_bytes > 0)
    parts += [f"kept {needs.resident * needs.value_bytes:,}"] * (needs.resident > 0)
    say(f"{choice.tile}: shared memory of a block {needs.shared_bytes:,} bytes: {', '.join(parts)}")
    full = model.full.replace("_sm", "_SM").replace("shared_", "shared_memory_").replace("_", " ") or "no limit"
    held = f"{fit.accumulators_per_thread} of them fp32 accumulators"
    if fit.tensor_bytes:
        held = f"beside {needs.accumulators:,} fp32 accumulators in tensor memory"
    say(f"registers  about {fit.registers_per_thread} a thread, {held}; a further block an SM breaks {full}")
    blocks = " + ".join(f"{blocks:,}" for blocks in model.blocks)
    say(
        f"waves      {blocks} blocks on {advice.sms} SMs, {advice.blocks_per_sm} on each: {model.waves:,} "
        f"wave{'s' * (model.waves != 1)}, the last "
        f"{model.last_wave_use:.0%} full; {model.step.compute_cycles:,.0f} cycles of compute a k-tile"
    )
    for side in model.boundaries:
        say(
            f"{side.name:<10} {_rounded(side.intensity)} operations a byte, where {_rounded(side.balance)} keep all "
            f"SMs at their peak: {side.side} roof; in flight {side.held_bytes:,.0f} bytes, {side.latency_cycles:g} "
            f"cycles x {side.bytes_per_clock:.2f} B/clk need {side.needed_bytes:,.0f}; at least {side.least_stages} "
            "stages hide the latency"
        )
