"""The values that Coq computes for what segments and lines have at least are those of the program's own search."""

import re
import shutil
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from pebble.bounds.box import Box
from pebble.bounds.lines import LOG_BITS, entropy_below

FORMAL = Path(__file__).parents[2] / "docs/formal"
EXAMPLE = re.compile(r"least (\d+) (\d+) (\d+) v \| v <- iota 0 (\d+)\] =\s*\[::([\d;\s]+)\]")


def test_least_values_are_those_of_the_program() -> None:
    result = EXAMPLE.findall((FORMAL / "Values.v").read_text())
    assert len(result) == 4
    for *sides, count, values in result:
        box = Box(*map(int, sides))
        assert [int(value) for value in values.split(";")] == [box.touched_whole(v) for v in range(int(count))]
        assert int(count) == box.rows * box.cols * box.depth + 1


def test_equal_parts_have_what_coq_computes() -> None:
    result = re.findall(r"even (\d+) s \| s <- iota 1 \d+\] = \[:: ([\d; ]+)\]", (FORMAL / "Values.v").read_text())
    assert len(result) == 2
    for length, values in result:
        powers = [int(value) for value in values.split(";")]
        assert len(powers) == int(length)
        for s, power in enumerate(powers, 1):
            logarithm = Decimal(entropy_below(int(length), s)) / (1 << LOG_BITS)
            assert Decimal(0) <= Decimal(power).ln() - logarithm < Decimal("1e-20")


def test_nothing_is_admitted() -> None:
    for path in FORMAL.glob("*.v"):
        assert not re.search(r"\b(Admitted|admit|Axiom|Axioms|Parameter|Conjecture|Abort)\b", path.read_text()), path


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("coqc") is None, reason="no coqc")
def test_the_proofs_are_accepted_without_axioms(tmp_path: Path) -> None:
    shutil.copytree(FORMAL, tmp_path / "formal", ignore=shutil.ignore_patterns("*.vo", "*.vos", "*.vok", "*.glob"))
    done = subprocess.run(["make", "-s", "-C", tmp_path / "formal"], capture_output=True, text=True, check=True)
    requested = (FORMAL / "Assumptions.v").read_text().count("Print Assumptions")
    assert done.stdout.splitlines() == ["Closed under the global context"] * requested
