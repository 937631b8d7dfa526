"""Numbers in the words and tables of pages are what their commands say now."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import claims
import update_pages

CASES = [
    pytest.param(claim, id=f"{claim.page.name}-{number}", marks=[pytest.mark.slow] if claim.slow else [])
    for number, claim in enumerate(claims.claims())
]


@pytest.mark.parametrize("claim", CASES)
def test_a_page_says_what_its_commands_say(claim: claims.Claim) -> None:
    page, parts = claim.page.read_text(), claims.parts(update_pages.told(claim.words))
    assert parts
    wrong = [result for part in parts if (result := claims.missing(page, part, claim.near))]
    assert not wrong, "\n".join(wrong)


PAGE = "A product\nmoves 12.5 MB\nin 1,024 steps, 40 MiB.\n\nAnother moves 7 MB."


def test_a_stale_number_is_found_and_made_anew() -> None:
    assert claims.parts("a product\n moves\n \nb") == ["a product moves", "b"]
    now = "A product moves 13.25 MB in 96 steps, 40 MiB."
    assert claims.missing(PAGE, now) == (
        f"the page says: A product moves 12.5 MB in 1,024 steps, 40 MiB.\nthe commands say: {now}"
    )
    fresh = claims.updated(PAGE, now)
    assert fresh == "A product\nmoves 13.25 MB\nin 96 steps, 40 MiB.\n\nAnother moves 7 MB."
    assert claims.missing(fresh, now) is None


def test_numbers_of_a_linear_program_may_be_near() -> None:
    page = "at least 810,709,740 bytes, 1.16 of 7 segments"
    near = "at least 810,610,458 bytes, 1.17 of 7 segments"
    assert claims.missing(page, near) is not None and claims.missing(page, near, near=True) is None
    for far in ("at least 820,709,740 bytes, 1.16 of 7", "at least 810,709,740 bytes, 1.18 of 7", near[:-10] + "8"):
        assert claims.missing(page, far, near=True) is not None


@pytest.mark.parametrize(("part", "places"), [("moves 7 MB", 2), ("A product costs 7 MB", 0), ("oves 7 MB.", 0)])
def test_words_name_one_place(part: str, places: int) -> None:
    wrong = claims.missing(PAGE, part)
    assert wrong is not None and f"stand in {places} places" in wrong
    assert claims.updated(PAGE, part) == PAGE


def test_records_are_rows_of_numbers() -> None:
    first = update_pages.rows("benchmarks/gap/prices.csv")[0]
    assert (first["family"], first["kibibytes"]) == ("gemm", 6144) and first["gap"] >= 1
