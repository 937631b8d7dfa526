"""What the README shows is what the commands print."""

import re
import shlex
import sys
from pathlib import Path

import pytest

from pebble.cli import COMMANDS, main

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))
import quoted  # noqa: E402

README = (ROOT / "README.md").read_text()
SHOWN = re.findall(
    r"```sh\n(?:[^\n]*&& \S*)?(pebble [^\n]+)\n```\n+(?:prints\n+)?```text\n(.*?)\n```", README, re.DOTALL
)


def test_there_is_output_to_check() -> None:
    assert len(SHOWN) >= 2


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=[command for command, _ in SHOWN])
def test_output_is_current(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, shown: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    assert main(shlex.split(command)[1:]) == 0
    now = capsys.readouterr().out.strip()
    assert now == shown.strip() or (quoted.LAGRANGIAN in now and quoted.missing(shown, now) is None), now


def test_every_command_is_in_the_table() -> None:
    for name in COMMANDS:
        assert f"| `pebble {name}" in README, name


def test_the_python_of_the_readme_gives_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)\n```", README, re.DOTALL)
    names: dict[str, object] = {}
    checked = 0
    for line in code.splitlines():
        said = re.fullmatch(r"(\S.*?)\s+# (\d+)", line)
        if said:
            assert eval(said[1], names) == int(said[2]), line
            checked += 1
        elif line.startswith("# "):
            assert quoted.near(line, f"# {capsys.readouterr().out.strip()}"), line  # of the line before, which prints
            checked += 1
        elif not line.startswith("found.plot"):
            exec(line, names)
    assert checked >= 4


def test_the_shares_of_launches_are_those_recorded() -> None:
    summary = (ROOT / "benchmarks/hardware/predicted/summary.txt").read_text()
    text = " ".join(README.split())
    total = int(re.search(r"(\d+) with a prediction", summary)[1])
    assert f"[beside {total:,} measured launches]" in text
    result = re.findall(r"^(waves|free) +all +(\d+) +([\d.]+) +\S+ +(\d+)% +(\d+)%", summary, re.MULTILINE)
    (_, waves, mean, five, ten), (_, free, drifting, _, near) = result
    assert f"each wave, {waves} launches: {mean}; {five} % are within 5 % and {ten} % within 10 %" in text
    assert f"drift apart, {int(free):,} launches: {float(drifting):.2f}; {near} % are within 10 %" in text


def test_the_pebbling_shown_is_current(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ((command, shown),) = re.findall(r"```console\n\$ (pebble [^\n]+)\n(.*?)\n```", README, re.DOTALL)
    assert main(shlex.split(command)[1:]) == 0
    timeless = [re.sub(r"[\d.]+ s\)", "s)", text) for text in (capsys.readouterr().out.strip(), shown)]
    assert timeless[0] == timeless[1]
