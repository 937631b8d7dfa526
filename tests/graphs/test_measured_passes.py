"""Whole forward passes measured on an H100, beside what an audit of the named model proves of their products."""

from __future__ import annotations

from pathlib import Path

import pytest

import pebble
from pebble.counters import read_profile
from pebble.counters.limits import computes

REPORTS = Path(__file__).parents[1] / "counters" / "data" / "forward"


@pytest.mark.parametrize(
    ("model", "tokens", "over"), [("llama-2-13b", 512, 1.07), ("llama-3-8b", 1024, 1.27), ("qwen2.5-7b", 384, 1.04)]
)
def test_no_pass_moves_less_than_its_products_must(model: str, tokens: int, over: float) -> None:
    """Products and attention, each a kernel by itself from a cold L2; the figures that the page on audits quotes."""
    audit = pebble.audit(model, tokens=tokens, gpu="h100-sxm5-80gb")
    alone = sum(floor.alone_bytes for floor in audit.floors if floor.operation.kind in ("product", "attention"))
    launches = [
        launch
        for launch in read_profile(REPORTS / f"{model}-{tokens}.csv").launches
        if str(computes(launch)) in ("gemm", "attention") or "splitKreduce" in launch.kernel
    ]
    moved = sum((launch.value("dram_read_bytes") or 0) + (launch.value("dram_write_bytes") or 0) for launch in launches)
    assert moved >= alone and moved / alone == pytest.approx(over, abs=0.005)
