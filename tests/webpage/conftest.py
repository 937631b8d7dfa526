"""Documents of documented commands, and pages made of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "documents"


@pytest.fixture
def golden() -> Callable[..., list[str]]:
    return lambda *names: [str(GOLDEN / f"{name}.json") for name in names]


@pytest.fixture
def data_of() -> Callable[[str], dict[str, Any]]:
    """The data that a page has inside."""

    def read(html: str) -> dict[str, Any]:
        (result,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
        read: dict[str, Any] = json.loads(result)
        return read

    return read
