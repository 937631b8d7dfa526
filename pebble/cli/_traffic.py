"""Printing one simulation: the numbers that `simulate` and `simulate --trace` share."""

from __future__ import annotations

from typing import Any

from pebble.cli import _output
from pebble.simulation import Traffic
from pebble.units import format_bytes


def traffic_json(traffic: Traffic) -> dict[str, Any]:
    """The counts as plain data."""
    counts = traffic.counts
    return {
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
    }


def print_traffic(traffic: Traffic) -> None:
    """The table by operand, and what follows from it."""
    counts = traffic.counts
    rows = [
        [name, format_bytes(moved["read_bytes"]), format_bytes(moved["write_bytes"])]
        for name, moved in traffic.by_operand().items()
    ]
    rows.append(["total", format_bytes(traffic.dram_read_bytes), format_bytes(traffic.dram_write_bytes)])
    print(_output.table(["operand", "DRAM read", "DRAM write"], rows))
    unit = "lines" if counts.unit_bytes == 128 else "sectors"
    print(f"{unit} touched {counts.accesses_lines:,}, without a fetch {counts.hits_lines:,} ({traffic.hit_rate:.2%})")
    if traffic.residue_bytes:
        print(f"of the writes {format_bytes(traffic.residue_bytes)} are still dirty in the cache at the end")
    if counts.block_steps:
        print(f"block steps with both tiles in the cache: {traffic.both_hit_share:.2%}")
