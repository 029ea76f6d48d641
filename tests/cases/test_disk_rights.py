"""What may not be written, met as another user: said clearly, read where that goes, kept as it is."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.bench import SetUp, bash
from tests.fakes.forked_command import run_forked
from tests.fakes.openai_server import TCS, TXT

_SOMEBODY = 65534
_CANNOT = "it cannot be written; check the owner and permissions of the file and its folder"
_NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: another user, whom root alone can become")


class Somebody:
    """Another user of this machine with a home, a workspace and a thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace, self.home = self.owned("ws"), self.owned("home")
        self.data = self.home / ".local" / "share" / "graph-agent"
        self.database = self.data / "graph-agent.db"

    def owned(self, name: str, mode: int = 0o700) -> Path:
        path = self.folder / name
        path.mkdir()
        os.chown(path, _SOMEBODY, _SOMEBODY)
        path.chmod(mode)
        return path

    def types(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        known = {"PATH": os.environ["PATH"], "HOME": str(self.home), "LANG": "C.UTF-8", **environment}
        done = run_forked(arguments, self.workspace, known, "", uid=_SOMEBODY)
        assert "Traceback" not in done.stdout + done.stderr
        return done


@pytest.fixture
def somebody() -> Iterator[Somebody]:
    # Not below pytest's own folder, which nobody else may enter.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        person = Somebody(folder)
        assert person.types("run", "list files", "--thread", "t").returncode == 0
        yield person


@_NEEDS_ROOT
def test_what_may_not_be_written_is_still_read_and_no_turn_begins(somebody: Somebody) -> None:
    before = somebody.database.read_bytes()
    for path, mode in ((somebody.data, 0o555), (somebody.database, 0o444)):
        kept = path.stat().st_mode
        path.chmod(mode)
        listed, seen = somebody.types("threads", "list"), somebody.types("inspect", "t")
        run = somebody.types("run", "list files", "--resume", "t")
        path.chmod(kept)

        assert (listed.returncode, "t  " in listed.stdout, seen.returncode) == (0, True, 0)
        assert (run.returncode, _CANNOT in run.stderr, str(somebody.database) in run.stderr) == (1, True, True)
        assert somebody.database.read_bytes() == before
        assert somebody.types("run", "list files", "--resume", "t").returncode == 0
        before = somebody.database.read_bytes()


@_NEEDS_ROOT
def test_what_belongs_to_somebody_else_is_named_and_not_touched(somebody: Somebody) -> None:
    for path in (somebody.data, *somebody.data.rglob("*")):
        os.chown(path, 0, 0)
    somebody.data.chmod(0o700)

    told = [somebody.types(*words) for words in (("threads", "list"), ("run", "list files"), ("doctor",))]

    assert [ended.returncode for ended in told] == [1, 1, 1]
    assert [str(somebody.database) in f"{ended.stdout}{ended.stderr}" for ended in told] == [True] * 3
    assert "Permission denied" in told[0].stderr


@_NEEDS_ROOT
@pytest.mark.parametrize("home", ["closed", "none"])
def test_without_a_home_to_write_in_it_is_said_what_cannot_be_made(somebody: Somebody, home: str) -> None:
    closed = somebody.owned("closed", 0o555) if home == "closed" else Path("/nonexistent")

    orders = (("threads", "list"), ("run", "list files"), ("doctor",))
    listed, run, doctor = (somebody.types(*words, HOME=str(closed)) for words in orders)

    assert (listed.returncode, run.returncode, doctor.returncode) == (0, 1, 1)
    assert (str(closed) in run.stderr, _CANNOT in run.stderr) == (True, True)


@pytest.mark.sweep
@_NEEDS_ROOT
@pytest.mark.parametrize("kilobytes", range(64, 1400, 56))
def test_wherever_a_small_file_system_gets_full_nothing_runs_twice(
    set_up: SetUp, tmp_path: Path, kilobytes: int
) -> None:
    bench = set_up(TCS(bash("c1", "echo once >> log")), TXT("ok"), TXT("again"), TXT("more"), by_history=True)
    data = bench.home / "data"
    data.mkdir(parents=True, mode=0o700)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=0700", "tmpfs", str(data)], check=False
    )
    if mounted.returncode:
        pytest.skip("NOT TESTED: no file system may be mounted here")
    try:
        failed = bench.run("go", "--thread", "full")
        ran = bench.read("log")
        # What was written moves to where there is room, as a person would move it.
        shutil.copytree(data, tmp_path / "moved")
    finally:
        subprocess.run(["umount", str(data)], check=True)
    shutil.rmtree(data)
    (tmp_path / "moved").rename(data)
    known = (data / "graph-agent.db").exists() and bench.command.json("threads", "list")["threads"]
    gone_on = (
        bench.run("--resume", "full", "--recover", "retry-safe") if known else bench.run("go", "--thread", "full")
    )

    assert failed.code == 0 or "the disk is full" in failed.err
    if gone_on.code == 2:  # There was room for the thread and none for its message.
        assert ("no message of it was stored" in gone_on.err, ran, bench.server.bodies) == (True, None, [])
        return
    assert gone_on.code in (0, 4)
    assert bench.read("log") in ((ran,) if gone_on.code == 4 else (ran, b"once\n"))
