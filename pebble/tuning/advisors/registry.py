"""The advisors by name."""

from __future__ import annotations

from pebble.errors import UnknownNameError, check_text
from pebble.tuning.advisors.advisor import Advisor
from pebble.tuning.advisors.deepgemm import DeepGemm
from pebble.tuning.advisors.deepgemm_2025_05 import DeepGemm2025
from pebble.tuning.advisors.ours import Ours

ADVISORS: dict[str, Advisor] = {advisor.name: advisor for advisor in (Ours(), DeepGemm2025(), DeepGemm())}


def parse_advisor(name: str) -> Advisor:
    """An advisor by name.

    Raises
    ------
    UnknownNameError
        No such advisor.
    """
    text = check_text("advisor", name, ", ".join(ADVISORS)).strip().lower()
    if text not in ADVISORS:
        raise UnknownNameError("advisor", name, ADVISORS, "pebble tile --help")
    return ADVISORS[text]
