"""Where figures of blocks that run free are not reliable the screen says so, by the one rule that the pages quote."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pebble.api.traffic import compare, simulate
from pebble.families import kernel_family
from pebble.models.rates import LONG_STEPS, LONG_STEPS_ON_SM, drifts_far
from pebble.reports.kernel_notes import what_drifts
from pebble.reports.simulate import Simulation
from pebble.reports.simulated_kernel import read_kernel
from pebble.workloads import Attention, Ffn, Gemm, GroupedGemm
from pebble.workloads.workload import Workload

ROOT = Path(__file__).resolve().parents[2]
LONG = Gemm(1024, 1024, 8192)  # on one SM: 64 tiles of 128 steps


@pytest.mark.parametrize(
    ("workload", "sms", "said"),
    [
        (Ffn(65536, 4096, 11008), 84, "172 steps of k in a tile and 33,548 on an SM"),
        (Ffn(8192, 4096, 11008), 84, ""),  # 4,193 on an SM
        (Gemm(16384, 16384, 8192), 132, "128 steps of k in a tile and 15,887 on an SM"),
        (Gemm(16384, 16384, 8128), 132, ""),  # 127 steps
        (GroupedGemm((8192, 8192), 8192, 8192), 132, "128 steps of k in a tile and 7,943 on an SM"),
        (GroupedGemm((4096, 4096), 8192, 8192), 132, ""),
    ],
)
def test_long_products_drift(workload: Workload, sms: int, said: str) -> None:
    kernel = read_kernel(workload, gpu="h200-sxm-141gb", sms=sms)
    result = what_drifts(workload, kernel, ["row"], "free MB")
    assert (f"not reliable: free MB: with {said}" in " ".join(result)) if said else not result
    assert not what_drifts(workload, kernel, ["row"])  # in waves, and no column of free-running blocks


def test_heads_first_drifts_under_a_causal_mask_only() -> None:
    names = ["fa2", "fa2-heads-first", "fa2-heads-first+sawtooth"]
    for causal in (False, True):
        attention = Attention(1024, 1024, 64, heads=4, causal=causal)
        result = what_drifts(attention, read_kernel(attention, gpu="h100-sxm5-80gb"), names, "free MB")
        assert len(result) == causal
        assert all(text.startswith(f"not reliable: free MB of {', '.join(names[1:])}: causal") for text in result)


def test_the_screens_of_free_running_blocks_say_so() -> None:
    gpu = {"gpu": "h100-sxm5-80gb", "sms": 1, "tile": "128x128x64"}
    waves = compare(LONG, "row", **gpu)
    assert "not reliable: free MB: with 128 steps" in " ".join(waves.document()["notes"])
    free = compare(LONG, "row", execution="free", **gpu)
    assert "not reliable: the figures: with 128 steps" in " ".join(free.document()["notes"])
    for execution in ("waves", "free"):
        alone = simulate(LONG, "row", execution=execution, **gpu)
        assert isinstance(alone, Simulation)
        assert ("not reliable" in " ".join(alone.notes)) is (execution == "free")


def test_the_pages_quote_the_rule_and_how_often_it_holds() -> None:
    summary = (ROOT / "benchmarks/hardware/predicted/summary.txt").read_text()
    rows = re.findall(
        r"^free +(?:long products.*|all but these) +(\d+) +[\d.]+ +\S+ +\d+% +(\d+)%", summary, re.MULTILINE
    )
    (many, ten), (others, near) = rows
    pages = {name: " ".join((ROOT / name).read_text().split()) for name in ("README.md", "docs/executions.rst")}
    for text in pages.values():
        assert f"{LONG_STEPS} steps of k or more in a tile and over {LONG_STEPS_ON_SM:,} of them on an SM" in text
    assert (
        f"Of {many} launches of these two kinds {ten} % are predicted within 10 %, of {int(others):,} others {near} %"
        in (pages["docs/executions.rst"])
    )
    assert f"Of both kinds {ten} % are within 10 %; of all other free launches {near} %" in pages["README.md"]


def test_the_rule_is_at_its_numbers() -> None:
    assert drifts_far(LONG_STEPS, 47, 1) and not drifts_far(LONG_STEPS - 1, 1000, 1)
    assert not drifts_far(LONG_STEPS_ON_SM, 1, 1) and drifts_far(LONG_STEPS_ON_SM + 1, 1, 1)
    assert kernel_family(LONG).drifts(LONG, "row", read_kernel(LONG, gpu="h100-sxm5-80gb").config) == ""
