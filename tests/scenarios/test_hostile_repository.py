import json
import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.hostile_repository import HostileRepository
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command

_AUDITED = Path(__file__).parents[1] / "fakes" / "audited"
_LOOKING = (
    ("config", "show"),
    ("config", "trust", "--json"),
    ("mcp", "list"),
    ("tools", "list"),
    ("threads", "list"),
    ("policy", "show"),
)


@dataclass
class _Audited:
    """The command in a hostile repository, with a log of what its processes start, reach and run."""

    command: Command
    repository: HostileRepository
    log: Path

    def events(self) -> list[Any]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def is_of_the_machine(self, event: Any) -> bool:
        """Whether an event starts a program that is named in full and lies outside the repository."""
        kind, what = event
        program = Path(str(what[0]))
        is_start = kind in ("subprocess.Popen", "os.posix_spawn")
        return is_start and program.is_absolute() and not program.is_relative_to(self.log.parent)

    @property
    def got_through(self) -> tuple[list[Any], list[str]]:
        return self.events(), self.repository.caught()


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[_Audited]:
    log = tmp_path / "audit.log"
    workspace = tmp_path / "workspace"
    path = f".:{os.environ['PATH']}"
    environment = {
        "PYTHONPATH": str(_AUDITED),
        "AUDIT_LOG": str(log),
        "AUDIT_FOLDER": str(workspace),
        "PATH": path,
        "HOME": str(tmp_path),
    }
    with closing(HostileRepository(workspace, tmp_path / "markers")) as repository:
        yield _Audited(Command(tmp_path, extra_env=environment), repository, log)


def test_looking_at_things_in_a_hostile_repository_starts_and_reaches_nothing(audited: _Audited) -> None:
    audited.repository.plant()

    codes = [audited.command(*arguments).returncode for arguments in _LOOKING]

    assert (codes, audited.got_through) == ([0] * len(_LOOKING), ([], []))


def test_a_turn_in_a_hostile_repository_starts_and_reaches_nothing_but_what_it_is_told_to(
    audited: _Audited,
) -> None:
    audited.repository.plant()

    ran = audited.command("run", "list", "--thread", "t")
    asked = audited.command("run", "read out/markers", "--thread", "u")
    inspected = audited.command("inspect", "t")
    settings = {one["key"]: one for one in audited.command.json("config", "show")["settings"]}

    assert (ran.returncode, asked.returncode, inspected.returncode, audited.got_through) == (0, 3, 0, ([], []))
    assert ran.stderr.count("folder not trusted") == 1
    assert {one["layer"] for one in settings.values() if one["key"] != "database"} == {"default"}


def test_the_chat_in_a_hostile_repository_asks_first_and_a_no_leaves_it_without_effect(audited: _Audited) -> None:
    audited.repository.plant()
    chat = PtyProgram(["-m", "graph_agent", "chat"], audited.repository.folder, audited.command.env)

    chat.plays("mcp_servers.started", "not model.base_url: a project may not set this", "Trust this folder?")
    chat.plays("<n", "> ", "<list", "evil.sh", "^\x04")

    code, (events, caught) = chat.ends(), audited.got_through
    # The status line tells which sandbox there is, which takes a try.
    others = [event for event in events if not audited.is_of_the_machine(event)]
    assert (code, others, caught) == (0, [], [])


def test_doctor_in_a_hostile_repository_starts_programs_of_the_machine_only(audited: _Audited) -> None:
    audited.repository.plant()

    told = audited.command.json("doctor")["checks"]

    events, caught = audited.got_through
    assert ([event for event in events if not audited.is_of_the_machine(event)], caught) == ([], [])
    assert next(check["detail"] for check in told if check["name"] == "trust").endswith("graph-agent config trust")


def test_whoever_trusts_it_gets_what_was_listed_and_no_more_and_the_audit_sees_it(audited: _Audited) -> None:
    audited.repository.plant_settings()

    ran = audited.command("run", "list", "--trust")

    events, caught = audited.got_through
    assert ran.returncode == 0
    assert {"subprocess.Popen", "socket.connect"} <= {event for event, _ in events}
    assert any("markers" in str(words) for kind, words in events if kind == "subprocess.Popen")
    # What was started as a server works behind walls: its mark stayed in there. Hooks work outside, as was said.
    assert caught == ["asked-for-hook", "connection"]
    assert "mode (a project may only make this stricter)" in ran.stderr
    assert "model.base_url (a project may not set this)" in ran.stderr
    assert "add_dirs (a project may not set this)" in ran.stderr


@pytest.mark.parametrize(("shape", "ignored"), [("links out", 6), ("no files", 3)])
def test_files_that_are_none_are_neither_followed_nor_waited_for(
    audited: _Audited, shape: str, ignored: int
) -> None:
    folder = audited.repository.folder
    elsewhere = HostileRepository(folder.parent / "elsewhere", folder.parent / "markers")
    with closing(elsewhere):
        elsewhere.plant_settings()
        if shape == "links out":
            (folder / ".graph-agent").symlink_to(elsewhere.folder / ".graph-agent")
            (folder / "AGENTS.md").symlink_to("/dev/zero")
            (folder / "CONTEXT.md").symlink_to(elsewhere.folder / ".graph-agent" / "config.toml")
        else:
            (folder / ".graph-agent").mkdir()
            os.mkfifo(folder / ".graph-agent" / "config.toml")
            with (folder / "AGENTS.md").open("wb") as file:
                file.truncate(1 << 30)
            (folder / "CONTEXT.md").mkdir()

        ran = audited.command("run", "list")

        assert (ran.returncode, audited.got_through, elsewhere.caught()) == (0, ([], []), [])
        assert ran.stderr.count("is ignored: ") == ignored
