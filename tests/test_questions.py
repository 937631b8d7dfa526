"""The page of questions says what its commands print; a sentence that is no longer true cannot be rendered."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


sys.path.insert(0, str(DOCS))
import update_pages as questions  # noqa: E402

PAGE = questions.PAGE.read_text()
CASES = [
    pytest.param(template, id=template.stem, marks=[pytest.mark.slow] if questions.is_slow(template) else [])
    for template in questions.TEMPLATES
]


def numbers(text: str) -> list[str]:
    """Numbers with their units' letters, in order."""
    return re.findall(r"\d[\d,.]*\d|\d", text)


@pytest.mark.parametrize("template", CASES)
def test_the_page_says_what_the_commands_print(template: Path, tmp_path: Path) -> None:
    shown = questions.sections(PAGE)[template.stem]
    now = questions.rendered(template, f"{tmp_path}/")
    assert numbers(now) == numbers(shown)
    assert now == shown
    drawn = re.findall(r"docs/figures/(question-\w+\.svg)", shown)
    assert drawn
    for name in drawn:
        assert (tmp_path / name).stat().st_size > 2000


def test_every_question_is_on_the_page_with_a_command_a_figure_and_an_answer() -> None:
    result = questions.sections(PAGE)
    assert list(result) == [template.stem for template in questions.TEMPLATES] and len(result) >= 13
    for name, text in result.items():
        assert re.search(r"^   \$ (pebble|python) ", text, re.MULTILINE), name
        figures = re.findall(r"\.\. image:: (figures/[\w-]+\.svg)", text)
        assert figures, name
        for figure in figures:
            assert (DOCS / figure).is_file() and f"docs/{figure}" in text.split(".. image::")[0], name
        assert len(numbers(text.split(":alt:")[1])) >= 3, name


def test_the_page_comes_first_in_the_index_after_those_for_each_reader() -> None:
    first = re.search(r"\.\. toctree::\n(?:   :.*\n)*\n((?:   \S+\n)+)", (DOCS / "index.rst").read_text())
    assert first is not None and first[1].split()[:4] == ["engineer", "author", "teacher", "questions"]


def test_a_claim_that_fails_is_refused(tmp_path: Path) -> None:
    template = tmp_path / "00-false.jinja"
    template.write_text("{{ holds(1 > 2) }}")
    with pytest.raises(AssertionError, match=r"00-false\.jinja: a sentence of the page"):
        questions.rendered(template)
    template.write_text("{{ holds(2 > 1) }}so")
    assert questions.rendered(template) == "so\n"


def test_a_command_that_fails_is_refused() -> None:
    with pytest.raises(RuntimeError, match="exit code 2"):
        questions.run("pebble bound gemm -m 0 -n 1 -k 1 --cache 6MiB", "docs/figures/")


def test_plateaus() -> None:
    curve: dict[str, Any] = {
        "capacities_bytes": [1, 2, 4, 8, 16],
        "schedules": [{"name": "row", "dram_bytes": [9, 5, 5, 5, 3]}],
    }
    assert questions.plateau(curve, "row", 4) == [2, 8]
    assert questions.plateau(curve, "row", 1) == [1, 1]


def test_numbers_are_rounded_to_digits() -> None:
    assert [questions.number(x) for x in (0.01234, 1.5, 459.2, 1787.0, 0)] == ["0.0123", "1.50", "459", "1,787", "0"]


def test_long_commands_break_where_a_shell_lets_them() -> None:
    answer = questions.Answer()
    answer.command = "pebble compare gemm " + " ".join(f"--option-{i} value" for i in range(12))
    block = questions.shown(answer)
    assert max(map(len, block.split("\n"))) <= questions.WIDTH
    joined = re.sub(r" \\\n +", " ", block)
    assert f"$ {answer.command}" in joined


def test_a_page_is_made_from_its_template_alone(tmp_path: Path) -> None:
    for template in questions.PAGES:
        assert (DOCS / template.stem).is_file() and questions.is_slow(template)


@pytest.mark.slow
@pytest.mark.parametrize("template", questions.PAGES, ids=lambda path: path.stem)
def test_a_whole_page_says_what_its_commands_print(template: Path, tmp_path: Path) -> None:
    assert questions.rendered(template, f"{tmp_path}/") == (DOCS / template.stem).read_text()


@pytest.mark.parametrize(("buffers", "told"), [("pooled", "pooled"), ("sm-local", "sm-local")])
def test_rows_of_the_page_of_buffers(buffers: str, told: str) -> None:
    row = re.search(rf"^\| {told} \|(.*)\|$", (DOCS / "buffers.md").read_text(), re.MULTILINE)
    assert row is not None
    for chip, shown in zip(("a100-sxm4-40gb", "h200-sxm-141gb"), row[1].split("|"), strict=True):
        command = f"pebble bound gemm -m 8192 -n 8192 -k 8192 --gpu {chip} --buffers {buffers}"
        document = questions.run(command, "docs/figures/")
        bounds = [document[key]["bytes"] for key in ("lower_bound", "balanced_bound", "upper_bound")]
        assert shown.strip() == " / ".join(f"{value / 1e6:,.0f}" for value in bounds)
