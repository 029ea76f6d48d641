import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from graph_agent.app.doctor import Check, Mount, check_disk, mount_of, own_folders, run_checks
from graph_agent.app.mcp_servers import configured_servers
from graph_agent.config.paths import capabilities_file
from graph_agent.config.settings import McpServer
from graph_agent.mcp.settings import record_refused_tools
from graph_agent.model.openai.capabilities import CapabilityStore
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.sqlite.database import Database
from tests.fakes.openai_server import FakeOpenAI
from tests.scenarios.stage import THREAD

_NAMES = (
    *("versions", "settings", "trust", "plug-ins", "model", "search", "parser", "git", "sandbox", "web search"),
    *(
        "mcp servers",
        "database",
        "schema",
        "rows",
        "projections",
        "shells",
        "requests",
        "size",
        "privacy",
        "space",
        "filesystem",
    ),
    "terminal",
)


def _checked(home: Path, **more: str) -> dict[str, Check]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GRAPH_AGENT_HOME": str(home), **more}
    checks = run_checks(home / "a.db", environment)
    assert tuple(check.name for check in checks) == _NAMES
    return {check.name: check for check in checks}


def test_on_a_fresh_machine_everything_that_matters_works(tmp_path: Path) -> None:
    checks = _checked(tmp_path)

    assert [check.name for check in checks.values() if check.matters and not check.ok] == []


def test_a_server_that_answers_is_told_from_one_that_is_down_and_the_key_is_never_shown(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        url = server.base_url
        up = _checked(tmp_path, OPENAI_BASE_URL=url, OPENAI_API_KEY="sk-hidden", GRAPH_AGENT_MODEL="m")["model"]
    down = _checked(tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1", OPENAI_API_KEY="sk-hidden")["model"]

    assert (up.ok, up.detail, down.ok) == (
        True,
        f"m at {url}, answered 200; `graph-agent model test` tests the rest",
        False,
    )
    assert down.detail == "http://127.0.0.1:9/v1 cannot be reached: [Errno 111] Connection refused"
    assert "sk-hidden" not in f"{up}{down}"


def test_settings_that_cannot_be_read_are_named_and_the_rest_is_checked_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("mode = 'no such mode'\n")

    checks = _checked(tmp_path)

    assert (checks["settings"].ok, checks["database"].ok) == (False, True)
    assert "no such mode" in checks["settings"].detail


@pytest.mark.parametrize(("rule", "is_held"), [("read(a)", True), ("read(src)", False), ("read(", False)])
def test_deny_rules_that_do_not_hold_completely_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rule: str, *, is_held: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "config.toml").write_text(f'[policy]\ndeny = ["{rule}"]\n')
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GRAPH_AGENT_HOME": str(tmp_path)}

    checks = run_checks(tmp_path / "a.db", environment)

    assert (rule in " ".join(check.detail for check in checks if not check.ok)) is not is_held


@pytest.mark.parametrize(
    ("bwrap", "sandbox"),
    [(None, "bubblewrap (bwrap) is not installed"), ("not a program", "does not work here: OSError")],
)
def test_without_its_programs_or_with_broken_ones_the_agent_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bwrap: str | None, sandbox: str
) -> None:
    if bwrap is not None:
        (tmp_path / "bwrap").write_text(bwrap)
        (tmp_path / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    checks = _checked(tmp_path)

    assert (checks["git"].ok, checks["git"].matters, checks["git"].detail) == (False, False, "not found")
    assert sandbox in checks["sandbox"].detail


async def test_what_others_can_read_is_named_but_not_files_that_are_not_the_agents(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    (tmp_path / "elsewhere.txt").touch(mode=0o644)
    async with await Database.open(path):
        pass
    path.chmod(0o644)

    privacy = _checked(tmp_path)["privacy"]

    assert not privacy.ok
    assert privacy.hint.startswith(f"chmod go= {path}")
    assert "elsewhere" not in privacy.hint


def test_servers_that_would_not_be_started_are_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    tables = "[mcp_servers.new]\ncommand = 'sleep'\n[mcp_servers.off]\ncommand = 'x'\nenabled = false\n"
    (tmp_path / "config.toml").write_text(tables)

    found = _checked(tmp_path)["mcp servers"]

    assert (found.ok, found.matters, found.detail) == (False, False, "0 of 2 can start; new: not trusted")


def test_tools_that_a_server_listed_with_an_invalid_schema_are_named_until_the_server_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    (tmp_path / "config.toml").write_text("[mcp_servers.odd]\ncommand = 'sleep'\n")
    logs = tmp_path / "data" / "logs"
    logs.mkdir(parents=True)
    record_refused_tools(logs, "odd", McpServer(command="sleep"), {"bad": "no type"})
    said = "MCP server 'odd' lists 1 tool with an invalid schema, left out: bad (no type)"

    assert said in _checked(tmp_path)["mcp servers"].detail
    assert said in {server.refusal for server in configured_servers()}
    record_refused_tools(logs, "odd", McpServer(command="another"), {"bad": "no type"})
    assert said not in _checked(tmp_path)["mcp servers"].detail


def test_a_server_that_drops_the_beginning_of_requests_is_named_for_a_day(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        known = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk", "GRAPH_AGENT_MODEL": "m"}
        store = CapabilityStore(capabilities_file(tmp_path / "data" / "graph-agent.db"))
        (tmp_path / "data").mkdir()
        store.save(server.base_url, "m", {"whole_requests": False})
        found = _checked(tmp_path, **known)["model"]
        store.forget_truncation(server.base_url, "m")
        later = _checked(tmp_path, **known)["model"]

    assert (found.ok, "drops the beginning of long requests" in found.detail, later.ok) == (False, True, True)


def test_a_model_that_failed_its_test_is_named_until_it_passes(tmp_path: Path) -> None:
    with FakeOpenAI() as server:
        known = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk", "GRAPH_AGENT_MODEL": "m"}
        store = CapabilityStore(capabilities_file(tmp_path / "data" / "graph-agent.db"))
        (tmp_path / "data").mkdir()
        found = []
        for calls_tools in (False, True):
            store.note_test(server.base_url, "m", calls_tools=calls_tools)
            found.append(_checked(tmp_path, **known)["model"])

    assert [(one.ok, one.matters, bool(one.hint)) for one in found] == [(False, True, True), (True, False, False)]


def _checks(path: Path) -> dict[str, Check]:
    return {check.name: check for check in check_disk(path, {"GRAPH_AGENT_HOME": str(path.parent)})}


def _failed(checks: dict[str, Check]) -> list[str]:
    return [name for name, check in checks.items() if not check.ok]


async def test_a_database_that_was_worked_with_passes_every_check(path: Path) -> None:
    checks = _checks(path)

    assert _failed(checks) == []
    assert "agree with the checkpoints (1 thread)" in checks["projections"].detail


async def test_each_problem_is_named_by_its_own_check_with_what_to_do(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM transcript")
        database.execute("CREATE TABLE theirs (a)")
    path.chmod(0o644)

    checks = _checks(path)

    assert _failed(checks) == ["schema", "projections", "privacy"]
    assert "theirs" in checks["schema"].detail
    assert "the list of threads has a different number of turns" in checks["projections"].detail
    assert (checks["projections"].matters, "doctor --repair" in checks["projections"].hint) == (True, True)
    assert checks["privacy"].hint.startswith(f"chmod go= {path}")


async def test_a_background_shell_without_a_session_is_named_with_how_to_reattach_it(path: Path) -> None:
    process = (os.getpid(), process_started(os.getpid()), boot_id())
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(
            "INSERT INTO journal (thread_id, call_id, attempt, owner, status, started_at, process_group, "
            "process_started, boot_id) VALUES (?, 'c', 1, 'life', 'success', '', ?, ?, ?)",
            (THREAD, *process),
        )
        database.execute(
            "INSERT INTO background_shells (thread_id, call_id, attempt, command, folder, started_at) "
            "VALUES (?, 'c', 1, 'x', '', '')",
            (THREAD,),
        )

    check = _checks(path)["shells"]

    assert (check.ok, check.matters) == (False, False)
    assert check.detail == f"in the background: sh1 (pid {os.getpid()}, thread {THREAD})"
    assert check.hint == f"graph-agent resume {THREAD} reattaches its shells"


async def test_the_folder_that_the_agent_made_is_its_own_and_one_that_was_there_is_not(path: Path) -> None:
    home = path.parent.parent
    environment = {"GRAPH_AGENT_HOME": str(home)}

    assert own_folders(path, environment) == [home / "data", home / "data" / "logs"]
    assert own_folders(home / "elsewhere.db", environment) == [home / "data" / "logs"]


async def test_a_large_log_is_named_with_its_size(path: Path) -> None:
    async with await Database.open(path):
        os.truncate(path.with_name("a.db-wal"), 100_000_000)
        check = _checks(path)["size"]

    assert (check.ok, check.matters, "log 100.0 MB" in check.detail) == (False, False, True)


@pytest.mark.parametrize("content", [b"no database " * 1000, b"SQLite format 3\0" + bytes(5000)])
def test_with_a_broken_file_every_check_still_says_something(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    path.chmod(0o600)

    checks = _checks(path)

    assert (_failed(checks), len(checks)) == (["database"], 10)
    assert "doctor --repair" in checks["database"].hint


_LIST = """\
21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
35 21 0:31 / /mnt/a\\040b rw,nosuid shared:7 - nfs4 server:/a rw
36 35 0:32 / /mnt/a\\040b/deep rw - tmpfs tmpfs rw
37 21 0:33 / /mnt/over rw - ext4 /dev/sdb rw
38 21 0:34 / /mnt/over rw - fuse.sshfs me@there rw
not a line of a mount list
"""


@pytest.mark.parametrize(
    ("folder", "place", "kind", "is_network"),
    [
        ("/home/me", "/", "ext4", False),
        ("/mnt/a b/data", "/mnt/a b", "nfs4", True),
        ("/mnt/a b/deep/er", "/mnt/a b/deep", "tmpfs", False),
        ("/mnt/over", "/mnt/over", "fuse.sshfs", True),
    ],
)
def test_the_innermost_and_latest_mount_is_the_one_a_folder_is_on(
    tmp_path: Path, folder: str, place: str, kind: str, *, is_network: bool
) -> None:
    listed = tmp_path / "mountinfo"
    listed.write_text(_LIST)

    found = mount_of(Path(folder), listed)

    assert (found, found is not None and found.is_network) == (Mount(Path(place), kind), is_network)


def test_without_a_mount_list_nothing_is_known(tmp_path: Path) -> None:
    assert mount_of(tmp_path, tmp_path / "none") is None
