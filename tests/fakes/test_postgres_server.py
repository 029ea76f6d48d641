import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from tests.fakes.postgres_server import PostgresServer, find_programs, running_server

pytestmark = pytest.mark.slow


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM things").fetchone()
    return int(row[0]) if row else -1


def test_each_test_has_a_database_of_its_own_made_from_a_template(postgres: PostgresServer) -> None:
    template = postgres.create_database()
    with psycopg.connect(template) as connection:
        connection.execute("CREATE TABLE things AS SELECT 1")

    one, other = postgres.create_database(template), postgres.create_database(template)
    with psycopg.connect(one) as connection:
        connection.execute("INSERT INTO things VALUES (2)")

    assert [count(url) for url in (template, one, other)] == [1, 2, 1]
    postgres.drop_database(one)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        count(one)


def test_what_was_committed_is_there_after_an_immediate_restart(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE things AS SELECT 1")

    postgres.restart("immediate")

    assert count(url) == 1


def test_over_the_network_a_password_is_asked_for(postgres: PostgresServer) -> None:
    url = postgres.url("postgres", with_password=True)

    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url.replace("only", "not"))


def test_a_server_ends_with_the_process_that_started_it(postgres: PostgresServer, tmp_path: Path) -> None:
    programs, said = find_programs(), tmp_path / "said"
    assert programs is not None
    child = os.fork()
    if child == 0:
        with suppress(BaseException), running_server(programs) as server:
            said.write_text(f"{server.url('postgres')}\n")
            signal.pause()
        os._exit(1)
    while not said.exists() or not said.read_text().endswith("\n"):
        time.sleep(0.05)
    url = said.read_text().strip()
    folder = Path(url.partition("host=")[2].partition("&")[0])
    psycopg.connect(url).close()

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
