"""What the order of tests must not decide, and what the operating system does."""

import sys

import ortools.sat.python.cp_model  # noqa: F401  # PuLP imports highspy, and ortools can only be loaded before that
import pytest
from hypothesis import HealthCheck, settings

# how long an example takes, or is drawn, says how busy the machine is
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.platform == "win32":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="needs POSIX"))
