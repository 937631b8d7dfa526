"""One tile order through one cache: DRAM traffic by operand, hits, and the share of block steps that hit.

examples:
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule grouped-8 --tile 128x128x64 --sms 108 --cache 40MiB
  pebble simulate gemm -m 8192 -n 8192 -k 8192 --schedule morton+sawtooth --gpu a40 --policy opt
  pebble simulate llama-2-7b:mlp --tokens 8192 --schedule row-fused-16 --gpu a40
"""

from __future__ import annotations

import argparse

from pebble.cli import _output
from pebble.cli._kernel import read_kernel
from pebble.cli._schedules import beside, simulate, traced
from pebble.cli._target import add_kernel_arguments, add_machine_arguments, read_target
from pebble.cli._workload import add_workload_arguments, read_workload
from pebble.models.cache_policy import policy_title
from pebble.units import format_bytes, format_capacity


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of ``pebble simulate``."""
    add_workload_arguments(parser)
    parser.add_argument(
        "--schedule",
        metavar="NAME",
        required=True,
        help="gemm: a tile order of `pebble schedules`; ffn, attention: as for `pebble compare`",
    )
    parser.add_argument("--residual", action="store_true", help="ffn: read the input again to add it to the output")
    group = parser.add_argument_group("side by side (attention and an FFN on one GPU)")
    group.add_argument("--beside", metavar="MODEL:mlp", help="run this FFN, of the same tokens, on some of the SMs")
    group.add_argument("--beside-sms", metavar="P", help="how many SMs it gets")
    group.add_argument("--beside-schedule", default="row-fused-16", metavar="NAME", help="its schedule (row-fused-16)")
    add_machine_arguments(parser)
    add_kernel_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Simulate and print."""
    workload = traced(read_workload(args))
    target = read_target(args)
    config, _, notes = read_kernel(args, workload, target)
    if args.beside:
        traffic = beside(args, workload, config)
    else:
        traffic = simulate(args.schedule, workload, config, args.residual)
    counts = traffic.counts
    if args.json:
        _output.print_json(
            {
                "workload": {"label": workload.label, **workload.to_json()},
                "schedule": traffic.order,
                "tile": str(config.tile),
                "sms": config.sms,
                "blocks_per_sm": config.blocks_per_sm,
                "cache_bytes": config.cache_bytes,
                "policy": config.policy,
                "accesses_lines": counts.accesses_lines,
                "hits_lines": counts.hits_lines,
                "fetched_lines": sum(counts.read_misses),
                "allocated_by_write_lines": sum(counts.write_misses),
                "dram_read_bytes": traffic.dram_read_bytes,
                "dram_write_bytes": traffic.dram_write_bytes,
                "dram_bytes": traffic.dram_bytes,
                "dirty_residue_bytes": traffic.residue_bytes,
                "unit_bytes": counts.unit_bytes,
                "l2_hit_rate": traffic.hit_rate,
                "block_steps": counts.block_steps,
                "both_tiles_hit_share": traffic.both_hit_share,
                "by_operand": traffic.by_operand(),
                "notes": notes,
            }
        )
        return 0
    _output.say(
        f"{workload.label}, {traffic.order}, tile {config.tile}, {config.wave_blocks} blocks at once, "
        f"{policy_title(config.policy)} cache of {format_capacity(config.cache_bytes)}"
    )
    rows = [
        [name, format_bytes(moved["read_bytes"]), format_bytes(moved["write_bytes"])]
        for name, moved in traffic.by_operand().items()
    ]
    rows.append(["total", format_bytes(traffic.dram_read_bytes), format_bytes(traffic.dram_write_bytes)])
    print(_output.table(["operand", "DRAM read", "DRAM write"], rows))
    print(f"lines touched {counts.accesses_lines:,}, without a fetch {counts.hits_lines:,} ({traffic.hit_rate:.2%})")
    if traffic.residue_bytes:
        print(f"of the writes {format_bytes(traffic.residue_bytes)} are still dirty in the cache at the end")
    if counts.block_steps:
        print(f"block steps with both tiles in the cache: {traffic.both_hit_share:.2%}")
    for note in notes:
        _output.say(f"note: {note}")
    return 0
