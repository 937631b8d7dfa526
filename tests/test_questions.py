"""The page of questions says what its commands print; a sentence that is no longer true cannot be rendered."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("update_questions", DOCS / "update_questions.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


questions = _load()
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
    found = questions.sections(PAGE)
    assert list(found) == [template.stem for template in questions.TEMPLATES] and len(found) >= 13
    for name, text in found.items():
        assert re.search(r"^   \$ (pebble|python) ", text, re.MULTILINE), name
        (figure,) = re.findall(r"\.\. image:: (figures/[\w-]+\.svg)", text)
        assert (DOCS / figure).is_file() and f"docs/{figure}" in text.split(".. image::")[0], name
        assert len(numbers(text.split(":alt:")[1])) >= 3, name


def test_the_page_is_the_first_in_the_index() -> None:
    first = re.search(r"\.\. toctree::\n(?:   :.*\n)*\n   (\S+)", (DOCS / "index.rst").read_text())
    assert first is not None and first[1] == "questions"


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
