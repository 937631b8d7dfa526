"""Requests and sectors against a literal walk of every warp, lane by lane."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pebble
from pebble.cli import main
from pebble.counters.coalescing import Pattern, coalesce
from pebble.errors import InputError


def walked(p: Pattern) -> tuple[int, int]:
    """Requests and sectors, one lane after another."""
    requests: list[set[int]] = []

    def touch(lanes: list[tuple[int, int]]) -> None:
        results = set()
        for row, col in lanes:
            if row < p.rows and col < p.cols:
                start = (row * p.row_values + col * p.stride) * p.value_bytes + p.offset_bytes
                results |= {(start + i) // 32 for i in range(p.value_bytes * p.vector)}
        if results:
            requests.append(results)

    if p.threads is None:
        for row in range(p.rows):
            for first in range(0, p.cols, 32 * p.vector):
                touch([(row, first + lane * p.vector) for lane in range(32)])
    else:
        (wide, high), (across, down) = p.threads, p.each
        for top in range(0, p.rows, high * down):
            for left in range(0, p.cols, wide * across):
                for a in range(down):
                    for b in range(0, across, p.vector):
                        for first in range(0, wide * high, 32):
                            threads = range(first, min(first + 32, wide * high))
                            touch([(top + t // wide * down + a, left + t % wide * across + b) for t in threads])
    return len(requests), sum(map(len, requests))


@settings(max_examples=150, deadline=None)
@given(
    rows=st.integers(1, 40), cols=st.integers(1, 150), size=st.sampled_from([1, 2, 4, 8, 16]),
    vector=st.sampled_from([1, 1, 2, 4]), stride=st.integers(1, 12), offset=st.integers(0, 40), gap=st.integers(0, 9),
    threads=st.one_of(st.none(), st.tuples(st.integers(1, 40), st.integers(1, 12))),
    each=st.tuples(st.integers(1, 4), st.integers(1, 4)),
)  # fmt: skip
def test_repeats_are_counted_as_if_they_were_walked(rows, cols, size, vector, stride, offset, gap, threads, each):
    assume(vector * size <= 16)
    stride = stride if vector == 1 else 1
    each = (min(each[0] * vector, cols * vector), min(each[1], rows)) if threads else (1, 1)
    cols, gap = cols * vector, gap * vector
    pitch = (cols - 1) * stride + 1 + gap
    pattern = Pattern(rows, cols, size, vector, stride, offset * size * vector, pitch if gap else 0, threads, each)
    result = coalesce(pattern)
    assert (result.requests, result.sectors) == walked(pattern)
    values = rows * cols
    assert values * size / 32 <= result.sectors <= values
    assert result.least_sectors <= result.sectors <= result.most_sectors


@pytest.mark.parametrize(
    ("pattern", "requests", "sectors"),
    [
        (Pattern(1, 8192), 256, 1024),  # full warps side by side
        (Pattern(1, 8192, stride=2), 256, 2048),
        (Pattern(1, 8192, stride=8), 256, 8192),  # a sector a value
        (Pattern(1, 8192, offset_bytes=4), 256, 256 * 5),  # misaligned: each warp reaches into one sector more
        (Pattern(1, 8192, vector=4), 64, 1024),
        (Pattern(128, 4096, value_bytes=2), 128 * 128, 32768),
        (Pattern(128, 4096, value_bytes=4), 128 * 128, 65536),
        # measured on a GPU: 2048^2 results of 4 bytes, by scalars, by 4 x 4 a thread, by vectors of 4
        (Pattern(2048, 2048, threads=(32, 32)), 131072, 524288),
        (Pattern(2048, 2048, threads=(16, 16), each=(4, 4)), 131072, 2097152),
        (Pattern(2048, 2048, vector=4, threads=(16, 16), each=(4, 4)), 32768, 524288),
    ],
)
def test_counts_that_hardware_has(pattern, requests, sectors):
    result = coalesce(pattern)
    assert (result.requests, result.sectors) == (requests, sectors)


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ({"cols": 0}, "cols"),
        ({"cols": 8, "value_bytes": 3}, "bytes"),
        ({"cols": 8, "vector": 3}, "vector"),
        ({"cols": 8, "vector": 8}, "vector"),
        ({"cols": 10, "vector": 4}, "vector"),
        ({"cols": 8, "vector": 2, "stride": 2}, "vector"),
        ({"cols": 8, "offset_bytes": 2}, "offset"),
        ({"cols": 8, "rows": 2, "pitch": 7}, "pitch"),
        ({"cols": 8, "threads": (64, 64)}, "threads"),
        ({"cols": 8, "each": (2, 2)}, "each"),
        ({"cols": 8, "threads": (8, 1), "each": (9, 1)}, "each"),
        ({"cols": 2**21, "rows": 2**21}, "rows x cols"),
        ({"cols": "many"}, "cols"),
    ],
)
def test_what_makes_no_pattern_is_one_sentence(arguments, about):
    with pytest.raises(InputError, match=about):
        pebble.coalesce(**arguments)


def test_the_command_and_its_figure(tmp_path, capsys):
    figure = tmp_path / "a.svg"
    arguments = ["--rows", "2048", "--cols", "2048", "--threads", "16x16", "--each", "4x4"]
    assert main(["coalesce", *arguments, "--figure", str(figure)]) == 0
    said = capsys.readouterr().out
    assert "2,097,152" in said and "25.0%" in said and "524,288 to 4,194,304" in said
    assert "<svg" in figure.read_text()
    assert main(["coalesce", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sectors"] == 2097152 and document["contiguous"]["sectors"] == 524288
    assert document["first_request_bytes"][:3] == [0, 16, 32]
    for wrong in (["--cols", "x"], ["--cols", "8", "--threads", "16"], ["--cols", "8", "--threads", "0x1"], []):
        assert main(["coalesce", *wrong]) == 2
        assert capsys.readouterr().err.count("\n") == 1
