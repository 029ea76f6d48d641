"""What every test stands on: no settings of the person who runs it, and no network beyond this machine."""

import asyncio
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.isolation import clean_environment, interrupts_heard, loopback_only
from tools import programs

if TYPE_CHECKING:
    from tests.fakes.postgres_server import PostgresServer

__all__ = [
    "isolated",
    "postgres",
    "postgres_programs",
    "postgres_template",
    "pytest_collection_finish",
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_xdist_auto_num_workers",
]


def pytest_configure() -> None:
    interrupts_heard()
    # A machine that stands still for a second makes no property false.
    settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("unhurried")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """For `-n auto`: two for each core, since tests wait half of their time, for disks, terminals and processes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 2 * cores


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests first in the share that each worker begins with, so that none runs alone at the end."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    kinds = [
        [item for item in items if bool(item.get_closest_marker("slow")) is is_long] for is_long in (True, False)
    ]
    items[:] = [item for number in range(workers) for kind in kinds for item in _share(kind, number, workers)]


def _share(items: list[pytest.Item], number: int, workers: int) -> list[pytest.Item]:
    return items[len(items) * number // workers : len(items) * (number + 1) // workers]


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


@pytest.fixture(scope="session")
def postgres_programs() -> Path:
    """The folder of PostgreSQL's programs, for a test that starts a server of its own."""
    from tests.fakes.postgres_server import find_programs  # noqa: PLC0415 - few tests need it

    found = find_programs()
    if found is None:
        if os.environ.get("TEST_POSTGRES") == "required":
            pytest.fail("no PostgreSQL server was found, and this run requires one")
        pytest.skip("no PostgreSQL server was found (apt install postgresql)")
    return found


@pytest.fixture(scope="session")
def postgres(postgres_programs: Path) -> "Iterator[PostgresServer]":
    """The PostgreSQL server of this test process."""
    from tests.fakes.postgres_server import running_server  # noqa: PLC0415 - as above

    with running_server(postgres_programs) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_template(postgres: "PostgresServer", tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with empty tables on that server, for tests to copy."""
    from graph_agent.config.paths import ServerPath  # noqa: PLC0415 - as above
    from graph_agent.storage import open_database  # noqa: PLC0415 - as above

    url = postgres.create_database()

    async def create() -> None:
        await (await open_database(ServerPath.from_url(url, tmp_path_factory.mktemp("servers")))).close()

    asyncio.run(create())
    return url
