"""A narrow terminal leaves out what the command is not about."""

from __future__ import annotations

import sys

import pytest

from pebble.cli import main, results

GEMM = ["gemm", "-m", "300", "-n", "177", "-k", "64"]


@pytest.mark.parametrize(
    ("words", "heads"),
    [
        (["curve", *GEMM, "--gpu", "l40s", "--points", "8", "--schedules", "row,snake-strips-16"], ["96MiB*"]),
        (["stream", "elementwise", "--items", "1000000", "--gpu", "a40"], ["bytes in flight", "of needed"]),
        (["time", *GEMM, "--gpu", "h100-sxm5-80gb", "--schedules", "row"], ["sustained", "modelled", "binds in"]),
        (["time", *GEMM, "--gpu", "a40", "--schedules", "row,column"], ["modelled", "x floor", "binds in"]),
    ],
    ids=["curve", "stream", "time", "time of single launches"],
)
def test_the_answer_stays(
    words: list[str], heads: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    top = lines[next(number for number, line in enumerate(lines) if line.startswith("---")) - 1]
    assert all(head in top for head in heads), top


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", *GEMM, "--gpu", "a40", "--schedule", "row", "--sensitivity"],
        ["simulate", *GEMM, "--gpu", "a40", "--schedule", "row", "--policy", "lru+persist-B-0.5"],
        ["bound", *GEMM, "--cache", "20KiB"],
    ],
    ids=["sensitivity", "set aside", "bound"],
)
def test_nothing_is_wider_than_the_terminal(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert main(words) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 40] == []


def test_messages_wrap_in_a_terminal_and_not_in_a_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = []
    monkeypatch.setenv("COLUMNS", "40")
    for terminal in (True, False):
        monkeypatch.setattr(sys.stderr, "isatty", lambda terminal=terminal: terminal)
        assert main(["simulate", *GEMM, "--gpu", "h200", "--schedule", "rows"]) == 2
        said.append(capsys.readouterr().err.splitlines())
    narrow, whole = said
    assert max(map(len, narrow)) <= 40 and len(whole) == 2  # what h200 stands for, and what is wrong
    assert " ".join(" ".join(narrow).split()) == " ".join(whole)


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_results_keep_schedule_and_figures(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [
        {
            "kind": "traffic", "status": "done", "workload": f"attention heads=32 batch={batch} queries=4096 keys=4096",
            "machine": f"h100-sxm5-{batch}0gb", "policy": f"model-of-the-cache-{batch}", "schedule": name,
            "l2_hit_rate": 0.5 / batch, "dram_bytes": 10**9 // batch, "ratio_to_lower_bound": 1 + 0.01 * batch,
        }
        for batch, name in ((1, "row"), (2, "hilbert"), (4, "snake-strips-16"))
    ]  # fmt: skip
    results._print_alike(rows, plain=False)
    shown = capsys.readouterr().out
    assert all(len(line) <= columns for line in shown.splitlines())
    for wanted in ("schedule", "ratio_to_lower_bound", "hilbert", "1.02"):
        assert wanted in shown.partition("left out")[0]
    assert columns == 60 or "dram_bytes" in shown.partition("left out")[0]
