"""The best schedule beside a simulated kernel fits in the memory that the bound is about: so many bytes and values."""

from __future__ import annotations

import pytest

import pebble


@pytest.mark.parametrize(
    ("workload", "schedule"),
    [
        (pebble.Ffn(8192, 4096, 11008, gated=True), "separate:row"),  # in bytes alone 12,779,130 values would be held
        (pebble.Gemm(4096, 4096, 4096), "row"),
        (pebble.GroupedGemm((700, 300), 512, 1024), "row"),
    ],
)
def test_it_holds_no_more_values_than_the_kernel_can(workload: pebble.Workload, schedule: str) -> None:
    result = pebble.compare(workload, gpu="a40", schedules=[schedule])
    assert result.explicit.peak_elements <= result.trace.capacity.elements
    assert result.explicit.bytes >= result.trace.bound.bytes
    if result.separate is not None and result.explicit.name.startswith("unfused"):
        assert result.explicit.bytes >= result.separate.bound.bytes
