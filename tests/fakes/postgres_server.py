"""A real PostgreSQL server for tests, with a database of its own for each of them.

In a test, with the fixture `postgres` of `tests/conftest.py`:

    url = postgres.create_database()
    postgres.restart("immediate")

A test process that asks for one starts one server, which listens on a socket in its own folder and on 127.0.0.1. It
ends with that process, however that ends: a shell that waits at a pipe from it then stops the server and removes
the folder.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict

__all__ = ["PASSWORD", "PostgresServer", "find_programs", "running_server", "running_standby"]

PASSWORD = "only of these tests"  # noqa: S105 - of a server that lives as long as a test run
"""What the server asks for on 127.0.0.1; on its socket it asks for none."""
_USER = "postgres"
_UNPRIVILEGED = ("postgres", "nobody")
"""Who runs the server where the tests run as root: it refuses to."""
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",
}
_SEGMENT_BYTES = 16 * 1024 * 1024
"""Of a file of the server's log."""
_WATCH = """
"$0"/pg_ctl -s -w -t 60 -D data -l log start || cat log >&2
echo started
cat > /dev/null
"$0"/pg_ctl -s -m fast -t 10 -D data stop || "$0"/pg_ctl -s -m immediate -D data stop
cd / && rm -rf "$1"
"""
"""Starts the server; at the end of its input stops it, and removes everything."""


def find_programs() -> Path | None:
    """The folder of the newest PostgreSQL of this machine; None where there is none."""
    installed = Path("/usr/lib/postgresql").glob("*/bin")
    folders = sorted(installed, key=lambda folder: float(folder.parent.name), reverse=True)
    if on_path := shutil.which("initdb"):
        folders.append(Path(on_path).resolve().parent)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@contextmanager
def running_server(
    programs: Path, addresses: Sequence[str] = (), settings: Mapping[str, str] | None = None
) -> Iterator["PostgresServer"]:
    """A new server; it and its folder are gone after the block, and after the death of this process.

    It also listens on these addresses, which all that is in their networks may reach.
    """
    server = PostgresServer(_new_folder(), programs)
    server.create(addresses, settings or {})
    with _started(server):
        yield server


@contextmanager
def running_standby(primary: "PostgresServer") -> Iterator["PostgresServer"]:
    """A standby that follows this server; it is gone after the block, likewise."""
    server = primary.copied_to(_new_folder())
    with _started(server):
        yield server


def _new_folder() -> Path:
    # Not below the folder of pytest, which its user alone may enter; short, as the path of a socket has to be.
    return Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))


@contextmanager
def _started(server: "PostgresServer") -> Iterator[None]:
    watch = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, str(server.programs), str(server.process["cwd"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C ends the tests first, and then the server.
        **server.process,
    )
    assert watch.stdout is not None
    try:
        assert watch.stdout.readline() == "started\n"
        yield
    finally:
        watch.communicate()


class PostgresServer:
    """One server; see the module."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.port = _unused_port()
        self._folder = folder
        self.programs = programs
        self._count = 0
        self._account = _account()
        as_account = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        self.process: dict[str, Any] = {"cwd": folder, **(as_account if os.geteuid() == 0 else {})}
        """How its programs are started."""

    def create(self, addresses: Sequence[str], settings: Mapping[str, str]) -> None:
        """Create its files."""
        password = self._folder / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        for path in (self._folder, password):
            os.chown(path, self._account.pw_uid, self._account.pw_gid)
        access = ("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}")
        self._run("initdb", "-D", "data", "-U", _USER, "-E", "UTF8", "--locale=C", "--no-sync", *access)
        place = {"port": self.port, "unix_socket_directories": self._folder}
        listening = {"listen_addresses": ",".join((_SETTINGS["listen_addresses"], *addresses))}
        with (self._folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            for name, value in {**_SETTINGS, **place, **listening, **settings}.items():
                file.write(f"{name} = '{value}'\n")
        if addresses:
            with (self._folder / "data" / "pg_hba.conf").open("a", encoding="utf-8") as file:
                file.write("host all all samenet scram-sha-256\n")

    def copied_to(self, folder: Path) -> "PostgresServer":
        """A standby, not started yet."""
        standby = PostgresServer(folder, self.programs)
        os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        source = ("-h", str(self._folder), "-p", str(self.port), "-U", _USER)
        standby._run("pg_basebackup", "-D", "data", "-R", "-c", "fast", "--no-sync", *source)
        with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"port = {standby.port}\nunix_socket_directories = '{folder}'\n")
        return standby

    def create_database(self, template: str = "template1") -> str:
        """The URL of a new database: a copy of the template (name or URL), to which nobody may be connected."""
        self._count += 1
        name = f"test_{self._count}"
        source = conninfo_to_dict(template)["dbname"] if "/" in template else template
        self.execute(f'CREATE DATABASE {name} TEMPLATE "{source}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database and whoever is connected to it."""
        self.execute(f'DROP DATABASE IF EXISTS "{conninfo_to_dict(url)["dbname"]}" WITH (FORCE)')

    def url(self, database: str, *, with_password: bool = False, address: str = "127.0.0.1") -> str:
        """Where a database is: at the socket, or at an address with a password."""
        if with_password:
            secret = PASSWORD.replace(" ", "%20")
            return f"postgresql://{_USER}:{secret}@{address}:{self.port}/{database}"
        return f"postgresql://{_USER}@/{database}?host={self._folder}&port={self.port}"

    def execute(self, statement: str) -> None:
        """Run a statement as the superuser, outside of a transaction."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def restart(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server in this way, start it again, and wait until it answers."""
        self._run("pg_ctl", "-s", "-w", "-t", "60", "-D", "data", "-l", "log", "-m", mode, "restart")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server in this way, until `restart`."""
        self._run("pg_ctl", "-s", "-w", "-D", "data", "-m", mode, "stop")

    def crash(self) -> None:
        """Kill the server with SIGKILL, until `start`: its other processes notice and end."""
        os.kill(self._first_process(), signal.SIGKILL)

    @contextmanager
    def full_disk(self, url: str, fill: str) -> Iterator[None]:
        """While the block runs, no file of the server can grow beyond a limit, which the filler reaches.

        A write at the limit ends in the middle, as on a full disk; unlike a small file system, it needs no rights.

        Args:
            fill: a statement for this database that adds rows of 20 MB to one table; it fails, and adds none.
        """
        # Less than a segment of the log would end the server; a whole number of pages would be another error.
        self._limit_files(_SEGMENT_BYTES + 100)
        try:
            with psycopg.connect(url) as connection:
                try:
                    connection.execute(fill.encode())
                    raise RuntimeError("the statement did not fill the disk")
                except psycopg.errors.DiskFull:
                    connection.rollback()
            yield
        finally:
            self._limit_files(None)

    def _limit_files(self, most_bytes: int | None) -> None:
        first = self._first_process()
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (str(first), *children):
            # As the user of the server: root may lack the right to do it for others.
            limit = f"--fsize={'unlimited' if most_bytes is None else most_bytes}:"
            done = subprocess.run(["prlimit", "--pid", pid, limit], check=False, **self.process)
            if done.returncode and Path(f"/proc/{pid}").exists():  # A connection may have ended since.
                raise RuntimeError(f"the files of process {pid} cannot be limited")

    def _first_process(self) -> int:
        first, *_ = (self._folder / "data" / "postmaster.pid").read_text().split()
        return int(first)

    def start(self) -> None:
        """Start it again after `stop` or `crash`, and wait until it answers."""
        for attempt in range(20):
            try:
                return self._run("pg_ctl", "-s", "-w", "-t", "60", "-D", "data", "-l", "log", "start")
            except RuntimeError:  # The processes of the one that was killed have not all ended.
                if attempt == 19:
                    raise
                time.sleep(0.2)
        return None

    def _run(self, program: str, *arguments: str) -> None:
        # Not captured: a server that is started would hold the pipes.
        output = self._folder / "output"
        with output.open("wb") as file:
            code = subprocess.run(
                [self.programs / program, *arguments], stdout=file, stderr=file, check=False, **self.process
            ).returncode
        if code:
            raise RuntimeError(f"{program} failed: {output.read_text(errors='replace')}")


def _account() -> pwd.struct_passwd:
    """Whoever the server is to run as."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    there = {account.pw_name: account for account in pwd.getpwall()}
    return next(there[name] for name in _UNPRIVILEGED if name in there)


def _unused_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])
