"""Which cases of parametrized tests the quick suite leaves out, by the processor time that each took.

    python -m pytest -n 2 --times TIMES.tsv -m "slow or not slow"
    python -m tests.slow_cases TIMES.tsv            # writes tests/slow_cases.txt

Of a test that takes more than `MOST` seconds in all, the dearest cases are slow until the rest takes less or one is
left; cases below `LEAST` seconds never are. What pages quote is always tried (`ALWAYS`).
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
MOST, LEAST = 1.5, 0.25
ALWAYS = ("tests/golden/", "tests/docs/", "tests/test_questions", "tests/test_readme", "tests/cli/test_help",
          "tests/test_packaging", "tests/test_benchmarks")  # fmt: skip


def listed() -> frozenset[str]:
    """The cases that are slow."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines())


def test_of(case: str) -> str:
    """The test that a case belongs to."""
    return case.partition("[")[0]


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def chosen(seconds: dict[str, float]) -> list[str]:
    """The slow ones of cases that took so long."""
    cases: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for case, took in seconds.items():
        if not case.startswith(ALWAYS):
            cases[test_of(case)].append((took, case))
    result = []
    for each in cases.values():
        left = sum(took for took, _ in each)
        for took, case in sorted(each, reverse=True)[:-1]:
            if left <= MOST or took < LEAST:
                break
            left -= took
            result.append(case)
    return sorted(result)


def main() -> None:
    """Read the table, write the list."""
    lines = (line.split("\t", 1) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    LIST.write_text("".join(f"{case}\n" for case in chosen({case: float(took) for took, case in lines})), "utf-8")


if __name__ == "__main__":
    main()
