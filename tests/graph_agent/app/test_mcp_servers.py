from pathlib import Path

import pytest

from graph_agent.app.mcp_servers import (
    add_servers,
    configured_servers,
    remove_server,
    trust_added_servers,
    trust_server,
    try_server,
)
from graph_agent.app.project_trust import project_at, record_trust
from graph_agent.errors import ConfigError, UsageError
from tests.fakes.mcp_servers import demo
from tests.graph_agent.cli.servers_scene import settle

TABLE = {"command": "sleep", "args": ["9"]}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return settle(tmp_path, monkeypatch)


def _states() -> list[tuple[str, str, str]]:
    return [(server.name, server.scope, server.state) for server in configured_servers()]


def test_a_server_of_ones_own_is_started_once_it_is_trusted_and_removed_with_its_trust(home: Path) -> None:
    added = add_servers({"a": TABLE}, "user", Path.cwd())
    before = _states()
    trust_added_servers(added, Path.cwd())
    after = _states()
    remove_server("a", "user", Path.cwd())
    add_servers({"a": TABLE}, "user", Path.cwd())

    untrusted, ready = [("a", "user", "untrusted")], [("a", "user", "will_start")]
    assert (added.path, before, after, _states()) == (home / "config.toml", untrusted, ready, untrusted)


@pytest.mark.parametrize("replaces", [False, True])
def test_a_mistake_elsewhere_in_the_file_is_named_before_anything_is_written(home: Path, *, replaces: bool) -> None:
    faulty = 'max_steps = "many"\n[mcp_servers.b]\ncommand = "x"\n'
    (home / "config.toml").write_text(faulty, encoding="utf-8")

    with pytest.raises(ConfigError, match="max_steps"):
        add_servers({"b" if replaces else "a": TABLE}, "user", Path.cwd(), replaces=replaces)

    assert (home / "config.toml").read_text(encoding="utf-8") == faulty


def test_replacing_a_server_removes_the_mistake_in_it(home: Path) -> None:
    (home / "config.toml").write_text('[mcp_servers.a]\ncommand = "x"\nargs = 3\n', encoding="utf-8")

    add_servers({"a": TABLE}, "user", Path.cwd(), replaces=True)

    assert _states() == [("a", "user", "untrusted")]


def test_a_server_of_the_project_is_trusted_with_its_folder_and_leaves_the_rest_of_it_trusted() -> None:
    for name in ("a", "b"):
        trust_added_servers(add_servers({name: TABLE}, "project", Path.cwd()), Path.cwd())
    both = _states()
    remove_server("a", "project", Path.cwd())
    one = _states()
    remove_server("b", "project", Path.cwd())

    assert both == [("a", "project", "will_start"), ("b", "project", "will_start")]
    assert one == [("b", "project", "will_start")]
    assert (_states(), project_at(Path.cwd()).trust) == ([], "none")


@pytest.mark.parametrize("was_declined", [False, True])
def test_adding_to_a_folder_that_nobody_trusted_does_not_trust_what_else_it_brings(was_declined: bool) -> None:
    Path("AGENTS.md").write_text("Do as I say.\n")
    if was_declined:
        record_trust(project_at(Path.cwd()), trusted=False)
    added = add_servers({"a": TABLE}, "project", Path.cwd())

    with pytest.raises(UsageError, match="graph-agent config trust"):
        trust_added_servers(added, Path.cwd())

    assert (_states(), project_at(Path.cwd()).is_trusted) == ([], False)


def test_nothing_is_written_if_a_server_a_name_or_the_folder_is_wrong(tmp_path: Path, home: Path) -> None:
    with pytest.raises(UsageError, match="b: should have either"):
        add_servers({"a": TABLE, "b": {}}, "user", Path.cwd())
    assert not (home / "config.toml").exists()
    add_servers({"a": TABLE}, "user", Path.cwd())
    with pytest.raises(UsageError, match="a server 'a' of your own"):
        add_servers({"a": TABLE}, "project", Path.cwd())
    (tmp_path / "elsewhere").mkdir()
    Path(".graph-agent").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="outside the folder"):
        add_servers({"c": TABLE}, "project", Path.cwd())

    assert list((tmp_path / "elsewhere").iterdir()) == []


def _add(*command: str) -> None:
    table = {"command": command[0], "args": list(command[1:]), "sandbox": False}
    trust_added_servers(add_servers({"a": table}, "user", Path.cwd()), Path.cwd())


@pytest.mark.slow
async def test_a_server_that_works_lists_its_tools_with_their_risk_and_how_long_it_took() -> None:
    server = demo()
    _add(str(server.command), *server.args)

    tried = await try_server("a", Path.cwd())

    described = "Answers. Its argument is named like something that clients of ours inject."
    assert tried.tools[0] == ("mcp__a__ping", "medium", described)
    assert (tried.warnings, 0 < tried.seconds < 15) == ((), True)


@pytest.mark.slow
async def test_a_server_that_ends_at_once_shows_its_last_output() -> None:
    _add(str(demo().command), "-c", "import sys; print('first', file=sys.stderr); sys.exit('no such database')")

    tried = await try_server("a", Path.cwd())

    assert (tried.tools, tried.said) == ((), ("first", "no such database"))
    assert "last line: no such database" in tried.warnings[0]


CONFIG = """
[mcp_servers.new]
command = "sleep"

[mcp_servers.off]
command = "sleep"
enabled = false

[mcp_servers.missing]
command = "no-such-program"

[mcp_servers.unset]
url = "http://user:pw@x/mcp"
headers = { A = "${NO_SUCH_VARIABLE}" }
"""


def test_each_server_says_whether_it_would_be_started_and_why_not(home: Path) -> None:
    (home / "config.toml").write_text(CONFIG)
    for name in ("missing", "unset"):
        trust_server(name)

    missing = "program 'no-such-program' not found; correct `command`, or install it"
    unset = "its settings use ${NO_SUCH_VARIABLE}, which is not set in the environment"
    assert [(server.name, server.state, server.problem, server.reached_by) for server in configured_servers()] == [
        ("new", "untrusted", "", "sleep"),
        ("off", "disabled", "", "sleep"),
        ("missing", "unusable", missing, "no-such-program"),
        ("unset", "unusable", unset, "http://x/mcp"),
    ]
    with pytest.raises(UsageError, match="No MCP server is named 'other'"):
        trust_server("other")
