"""Help fits the terminal, and ratios near 1 are told from 1."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest

import pebble
from pebble.cli import COMMANDS, main
from pebble.units import format_ratio

LISTS = [["schedules"], ["schedules", "deepgemm", "--grid", "5x7"], ["workloads"], ["machines"], ["--help"]]


@pytest.mark.parametrize("words", [*([name, "--help"] for name in COMMANDS), *LISTS], ids=" ".join)
def test_nothing_is_wider_than_sixty_columns(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    if words[-1] == "--help" and len(words) > 1:
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 0
    else:
        assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert [line for line in lines if len(line) > 60] == []


def test_orders_are_one_line_each_for_grep(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["schedules"]) == 0
    assert all("[" in line and line.endswith("]") for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (1.0, ".4g", "1"),
        (1.00034, ".4g", "1.0003"),
        (1.0 + 1e-9, ".3f", "1.000000001"),
        (0.99996, ".3f", "0.99996"),
        (1.234567, ".4g", "1.235"),
        (1.0, ".2f", "1.00"),
        (12.0, ".2f", "12.00"),
    ],
)
def test_only_one_is_one(value: float, spec: str, text: str) -> None:
    assert format_ratio(value, spec) == text


def test_a_gap_in_the_fourth_digit_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bound", "gemm", "-m", "8192", "-n", "8192", "-k", "1", "--cache", "8191el"]) == 0
    assert "gap          1.0001\n" in capsys.readouterr().out
    bound = pebble.bound(pebble.Gemm(8192, 8192, 1), cache="8191el")
    assert str(bound).endswith("(1.0001x)") and bound.gap is not None and bound.gap > 1


@pytest.mark.parametrize("name", ["tune", "stream", "time", "verify"])
def test_paragraphs_are_broken_anew(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(SystemExit):
        main([name, "--help"])
    about = capsys.readouterr().out.partition("\n\n")[2].partition("\npositional")[0].partition("\noptions")[0]
    for paragraph in about.strip().split("\n\n"):
        lines = paragraph.splitlines()
        assert all(not line.startswith(" ") for line in lines)
        for line, after in itertools.pairwise(lines):
            assert len(line) + 1 + len(after.split()[0]) > 58, paragraph  # argparse leaves two columns free


@pytest.mark.parametrize("columns", ["60", "110", "200"])
def test_each_action_has_a_line_of_its_own(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["ncu", "--help"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    results = [words[2] for words in lines if words[:2] == ["pebble", "ncu"]]
    assert results[:7] == ["report", "which", "compare", "dims", "law", "model", "row"]


def test_help_is_the_same_where_python_drops_docstrings() -> None:
    code = """
from pebble.cli import COMMANDS, main
for command in COMMANDS:
    try:
        main([command, "--help"])
    except SystemExit:
        pass
"""
    entries = [
        subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True).stdout
        for flags in ([], ["-OO"])
    ]
    assert entries[0] == entries[1] and "the proved bound" in entries[0]


@pytest.mark.parametrize(("command", "told"), [("advise", False), ("time", False), ("bound", True)])
def test_help_names_families_that_the_command_takes(
    command: str, told: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    text = capsys.readouterr().out
    workload = " ".join(text.split()).partition("or MODEL:LAYER")[0]
    assert ("conv2d," in workload) == ("--in-channels" in text) == told and "latent-attention" in text
    shape = "conv2d --in-channels 3 --out-channels 4 --height 5 --width 5 --kernel 3 --gpu a40"
    assert main([command, *shape.split()]) == (0 if told else 2)
    assert told or "`pebble bound` takes this one" in capsys.readouterr().err
