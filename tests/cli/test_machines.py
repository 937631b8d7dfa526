"""``pebble machines``."""

import json
from pathlib import Path

import pytest

import pebble
from pebble.cli import main
from pebble.reports.report import SCHEMA

SHORT = """\
name = "[red]My GPU[/red]"
sms = { value = 10, unit = "SM", source = "[link=x]counted[/link]" }
stores.l2 = { value = 1, unit = "MiB" }
stores.l1_shared_per_sm = { value = 64, unit = "KiB" }
stores.registers_per_sm = { value = 64, unit = "KiB" }
"""


def lines(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["machines"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line}
    assert rows["a100-sxm4-40gb"] == ["108", "40", "MiB", "87.25", "MiB", "1,555", "2"]
    assert rows["a40"] == ["84", "6", "MiB", "37.5", "MiB", "695.8", "1"]
    assert rows["mi300x"] == ["304", "32", "MiB", "468.5", "MiB", "5,300", "8"]
    assert max(map(len, out.splitlines())) <= 60


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "--json"]) == 0
    machines = {load["sku"]: load for load in json.loads(capsys.readouterr().out)["machines"]}
    assert len(machines) == 14
    assert machines["h100-sxm5-80gb"]["on_chip_bytes"] == 121_634_816
    assert machines["h100-sxm5-80gb"]["dram_bytes_per_second"] == 3.35e12


def test_explain(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["machines", "b200-sxm"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines()]
    assert ["tensor_memory_per_sm", "256", "KiB", "148", "37", "MiB"] in rows
    assert ["sum", "237.5", "MiB"] in rows
    assert "132,644,864" in out
    assert max(map(len, out.splitlines())) <= 60


def test_every_number_shown_points_at_its_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["machines", "a100-sxm4-80gb"]) == 0
    rows = lines(capsys)
    note = next(row[-1] for row in rows if row[:1] == ["latency.l2_far"])
    assert any(row[:1] == [note] and "survey" in row for row in rows)


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "a40", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["quantities"]["stores.l2"] == {
        "value": 6,
        "unit": "MiB",
        "mark": "vendor",
        "source": "vendor specification",
    }
    assert [store["total_bytes"] for store in data["stores"]] == [6 * 2**20, 84 * 131_072, 84 * 262_144]


def test_own_file_is_shown_as_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SHORT)
    assert main(["machines", "--machine", str(path)]) == 0
    out = capsys.readouterr().out
    assert "[red]My GPU[/red] (mine)" in out
    assert "[link=x]counted[/link]" in out
    assert "2.25 MiB" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["a100-"], "a100-sxm4-40gb or a100-sxm4-80gb"),
        (["a40", "--machine", "x.toml"], "give one of them"),
        (["--machine", "/nowhere/x.toml"], "cannot be read"),
    ],
)
def test_mistakes(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert says in captured.err
    assert captured.err.count("\n") == 1


def test_help_tells_the_file_format(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["machines", "--help"])
    out = capsys.readouterr().out
    assert "stores.registers_per_sm" in out
    assert 'l2 = { value = 40, unit = "MiB" }' in out


@pytest.mark.parametrize(
    "words",
    [["machines"], ["machines", "a40"], ["schedules"], ["schedules", "row"], ["schedules", "row", "--grid", "2x2"]],
)
def test_lists_say_their_schema_version_and_command(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["version"]) == (SCHEMA, pebble.__version__)
    assert document["command"] == " ".join(["pebble", *words, "--json"])


def test_a_short_name_says_which_part_it_stands_for(capsys: pytest.CaptureFixture[str]) -> None:
    shape = ["gemm", "-m", "4k", "-n", "1K", "-k", "64"]
    assert main(["bound", *shape, "--gpu", "H200"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "pebble: H200 is taken as h200-sxm-141gb\n"
    assert captured.out.startswith("gemm m=4096 n=1024 k=64 bf16")
    assert main(["machines", "4090"]) == 0
    assert "rtx4090" in capsys.readouterr().out
