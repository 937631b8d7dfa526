"""What the order of tests must not decide, and what the operating system does."""

import sys
from collections.abc import Generator

import ortools.sat.python.cp_model  # noqa: F401  # PuLP imports highspy, and ortools can only be loaded before that
import pytest
from hypothesis import HealthCheck, settings

from tests.slow_cases import listed, processor_seconds, test_of

# how long an example takes, or is drawn, says how busy the machine is
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--times", metavar="FILE", help="write the processor seconds of each test")


@pytest.hookimpl(tryfirst=True)  # before -m is read
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if sys.platform == "win32":
        for item in items:
            if item.get_closest_marker("posix"):
                item.add_marker(pytest.mark.skip(reason="needs POSIX"))
    slow, here = listed(), {item.nodeid for item in items}
    for item in items:
        if item.nodeid in slow:
            item.add_marker("slow")
    tests = {test_of(case) for case in here}
    gone = sorted(case for case in slow - here if test_of(case) in tests)
    if gone and not any("::" in name for name in config.invocation_params.args):
        raise pytest.UsageError(f"tests/slow_cases.txt: no such case as {gone[0]}, and {len(gone) - 1} more.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    before = processor_seconds()
    result = yield
    if path := item.config.getoption("--times"):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{processor_seconds() - before:.3f}\t{item.nodeid}\n")
    return result
