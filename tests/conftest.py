"""What every test stands on: no settings of the person who runs it, and no network beyond this machine."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.isolation import clean_environment, interrupts_heard, loopback_only
from tools import programs

__all__ = ["isolated", "pytest_collection_finish", "pytest_configure"]


def pytest_configure() -> None:
    interrupts_heard()
    # A machine that stands still for a second makes no property false.
    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")


def pytest_collection_finish() -> None:
    # Thousands of collected tests live to the end: the collector need not look at them again and again.
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """A home of its own for each test; yields the addresses outside this machine that the test tried to reach."""
    # A process never again trusts a folder that its commands could write. Here it would get a new one with each
    # test, and look every program up in view of all of them.
    programs._excluded.clear()
    with clean_environment(tmp_path_factory.mktemp("home")), loopback_only() as attempts:
        yield attempts
    if attempts:
        pytest.fail(f"the test tried to reach the network: {', '.join(attempts)}; use a server on 127.0.0.1")
