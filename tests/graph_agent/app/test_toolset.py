import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from graph_agent.app.doctor import check_web_search
from graph_agent.app.policy import check_policy
from graph_agent.app.project_trust import project_at, record_trust, settings_at, trust_effects
from graph_agent.app.tool_catalog import load_tool_catalog
from graph_agent.app.toolset import (
    Roots,
    full_registry,
    policy_of,
    requested_roots,
    roots_of,
    sandbox_of,
    sandbox_status,
    search_provider,
)
from graph_agent.config.settings import SearchSettings, Settings
from graph_agent.config.trust import trust_file
from graph_agent.errors import ConfigError, UsageError
from graph_agent.mcp.settings import fingerprint
from graph_agent.ports import SandboxInfo
from tests.fakes.mcp_servers import odd
from tests.fakes.sandboxes import needs
from tools import create_default_tools
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules
from tools.web_ops.web_search import SearchProvider

_URL = "http://localhost:8080"
_TOOL = """
from pydantic import BaseModel, Field
from tools.base import BaseTool, ToolResult, ToolRiskLevel

class {name}Args(BaseModel):
    text: str = Field(description="what to say")

class {name}(BaseTool):
    name = "{tool}"
    description = "{about}"
    risk_level = ToolRiskLevel.LOW
    args_schema = {name}Args

    async def execute(self, *, text: str) -> ToolResult:
        return ToolResult(text.upper())
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "tools").mkdir(parents=True)
    return (tmp_path / "home").resolve()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".graph-agent" / "tools").mkdir(parents=True)
    return made.resolve()


def _settings(home: Path, **values: object) -> Settings:
    return Settings.model_validate({"database": home / "data" / "agent.db", **values})


def test_the_folders_of_settings_and_thread_are_joined_once_and_missing_ones_named(
    home: Path, workspace: Path
) -> None:
    place = home.parent
    for name in ("lib", "other", "project/inner"):
        (place / name).mkdir()
    (place / "link").symlink_to("lib")
    stored = tuple(str(place / name) for name in ("lib", "gone", "link", "project/inner"))

    found = roots_of(workspace, stored, _settings(home, add_dirs=[place / "other"]))

    assert found == Roots((place / "other", place / "lib"), (str(place / "gone"),))
    assert requested_roots((str(place / "link"),), _settings(home)) == (str(place / "lib"),)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/", "is the root of the disk"),
        ("root", "is the root of the disk"),
        ("home", "one of the agent's own folders"),
        ("home/tools", "one of the agent's own folders"),
        ("none", "is not a folder"),
        ("file", "is not a folder"),
    ],
)
def test_a_folder_that_is_none_or_gives_everything_away_is_refused(home: Path, name: str, reason: str) -> None:
    (home.parent / "root").symlink_to("/")
    (home.parent / "file").touch()

    with pytest.raises(UsageError, match=reason):
        requested_roots((str(home.parent / name),), _settings(home))


@pytest.mark.parametrize(
    ("settings", "environment", "provider", "detail"),
    [
        (SearchSettings(), {"BRAVE_API_KEY": "k"}, None, "not configured"),
        (SearchSettings(provider="searxng"), {}, None, "searxng lacks its address: setting web_search.url"),
        (
            SearchSettings(provider="searxng", url=f"{_URL}/"),
            {},
            SearchProvider("searxng", _URL, shown=_URL),
            f"searxng at {_URL}",
        ),
        (
            SearchSettings(provider="brave"),
            {"TAVILY_API_KEY": "k"},
            None,
            "brave lacks its key: setting web_search",
        ),
        (
            SearchSettings(provider="brave"),
            {"BRAVE_API_KEY": " k "},
            SearchProvider("brave", api_key="k"),
            "brave at https://api.search.brave.com",
        ),
        (
            SearchSettings(provider="tavily", api_key=SecretStr("own")),
            {"TAVILY_API_KEY": "k"},
            SearchProvider("tavily", api_key="own"),
            "tavily at https://api.tavily.com",
        ),
    ],
)
def test_the_search_provider_follows_from_settings_and_environment_and_what_it_lacks_is_named(
    settings: SearchSettings, environment: dict[str, str], provider: SearchProvider | None, detail: str
) -> None:
    assert search_provider(settings, environment) == provider
    assert check_web_search(settings, environment).detail.startswith(detail)


def _sandbox(workspace: Path, *roots: Path, **values: object) -> Sandbox:
    sandbox = sandbox_of(_settings(Path.home(), **values), workspace, roots)
    assert sandbox is not None
    return sandbox


def test_the_sandbox_permits_what_the_settings_say_and_hides_keys_and_the_agents_own_files(tmp_path: Path) -> None:
    (Path.home() / ".ssh").mkdir()

    sandbox = _sandbox(
        tmp_path, tmp_path / "more", sandbox_network=True, sandbox_write=["~/cache"], sandbox="required"
    )

    assert (sandbox.is_required, sandbox.rules.network) == (True, True)
    assert sandbox.rules.writable == (tmp_path, tmp_path / "more", Path.home() / "cache")
    own = (".ssh", ".config/graph-agent", "data/agent.db")
    assert {Path.home() / name for name in own} <= set(sandbox.rules.hidden)


def test_shell_start_files_have_a_placeholder_in_the_home_folder_only(tmp_path: Path) -> None:
    elsewhere, at_home = _sandbox(tmp_path).rules.names, _sandbox(Path.home()).rules.names

    assert (".bashrc" in elsewhere.removed, ".bashrc" in at_home.files) == (True, True)
    assert ".vscode" in elsewhere.folders
    placed = [*elsewhere.files, *at_home.files, *at_home.folders]
    assert [name for name in placed if not name.startswith(".")] == []


def test_of_a_virtual_environment_on_the_path_all_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    monkeypatch.setenv("PATH", f"relative:{tmp_path}/venv/bin:{tmp_path}/bin")

    assert _sandbox(tmp_path).rules.visible == (Path.home(), tmp_path / "venv", tmp_path / "bin")


def test_the_status_names_the_sandbox_and_what_it_permits(tmp_path: Path) -> None:
    needs("bubblewrap")

    assert sandbox_status(_sandbox(tmp_path)) == SandboxInfo(
        "bubblewrap",
        "files can be written in the workspace and the temporary folder only, there is no network",
        is_active=True,
    )


@pytest.mark.parametrize(
    ("is_required", "then"), [(False, "commands run with all your rights"), (True, "no command is run")]
)
def test_the_status_says_why_there_is_no_sandbox(tmp_path: Path, *, is_required: bool, then: str) -> None:
    missing = Sandbox(
        SandboxRules((tmp_path,)), is_required=is_required, look=lambda: SandboxBackend("none", why="no means")
    )

    status = sandbox_status(missing)
    off = sandbox_status(sandbox_of(_settings(Path.home(), sandbox="off"), tmp_path))

    assert (status, status.label) == (SandboxInfo("none", f"no means; {then}"), "no sandbox")
    assert (off.label, off.is_active) == ("sandbox off", False)


def _write_tool(path: Path, tool: str, about: str = "Says it.") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_TOOL.format(name=tool.title().replace("_", ""), tool=tool, about=about))
    return path


def _install_package(folder: Path, name: str, tool: str) -> None:
    """A package as an installer leaves it."""
    _write_tool(folder / name / "__init__.py", tool)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[graph_agent.tools]\n{tool} = {name}:{tool.title()}\n")


def _plugins(workspace: Path, settings: Settings) -> tuple[list[str], tuple[str, ...]]:
    registry, problems = full_registry(workspace, settings)
    return [name for name in registry.names() if registry.origin(name) == "plugin"], problems


def test_tools_come_from_packages_lines_and_the_users_folder_in_this_order(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_package(tmp_path / "site", "shouting", "shout")
    _write_tool(tmp_path / "site" / "lines.py", "line")
    monkeypatch.syspath_prepend(tmp_path / "site")
    for name, tool in (("b.py", "second"), ("a.py", "first"), ("_helper.py", "hidden")):
        _write_tool(home / "tools" / name, tool)

    found = _plugins(workspace, _settings(home, tools=("lines:Line",)))

    assert found == (["shout", "line", "first", "second"], ())


def test_what_cannot_be_used_is_named_and_keeps_nothing_from_starting(home: Path, workspace: Path) -> None:
    bash, broken, binary = (home / "tools" / name for name in ("a.py", "b.py", "c.py"))
    _write_tool(bash, "bash")
    broken.write_text("import nowhere")
    binary.write_bytes(b"\xff")
    _write_tool(home / "tools" / "d.py", "fine")

    names, problems = _plugins(workspace, _settings(home, tools=("nowhere:make",)))

    assert names == ["fine"]
    assert set(problems) == {
        f"{binary}: it cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
        "tools = 'nowhere:make': ModuleNotFoundError: No module named 'nowhere'",
        f"{bash}: A tool 'bash' is already registered (builtin); give the plugin tool another name",
        f"{broken}: ModuleNotFoundError: No module named 'nowhere'",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: no reason given"),
        ("class Mute(Exception):\n    __str__ = None\nraise Mute", "Mute: its message cannot be read"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("raise ValueError", "ValueError: no reason given"),
        ("import time\ntime.sleep(2)", "it did not return its tools within 0.05 s"),
    ],
)
def test_a_failure_of_a_plug_in_is_one_line_with_its_place(
    home: Path, workspace: Path, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.app.toolset._LOAD_TIMEOUT_S", 0.05 if "sleep" in text else 10)
    place = home / "tools" / "a.py"
    place.write_text(text)

    assert _plugins(workspace, _settings(home)) == ([], (f"{place}: {problem}",))


def test_a_plug_in_prints_to_stderr_and_may_replace_the_tool_that_ends_the_work(
    home: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_tool(home / "tools" / "end.py", "attempt_completion", "Ends it my way.")
    (home / "tools" / "noise.py").write_text("print('noise')")

    registry, _ = full_registry(workspace, _settings(home))

    declared = {item["function"]["name"]: item["function"]["description"] for item in registry.declarations()}
    assert declared["attempt_completion"] == "Ends it my way."
    assert capsys.readouterr() == ("", "noise\n")


def test_a_projects_tools_run_only_once_each_file_is_trusted_as_it_is(home: Path, workspace: Path) -> None:
    marker = workspace / "ran"
    file = _write_tool(workspace / ".graph-agent" / "tools" / "own.py", "own")
    file.write_text(file.read_text() + f"\nopen({str(marker)!r}, 'w').close()\n")

    def loaded() -> tuple[list[str], bool]:
        marker.unlink(missing_ok=True)
        names, problems = _plugins(workspace, settings_at(workspace))
        assert problems == ()
        return names, marker.exists()

    untrusted, project = loaded(), project_at(workspace)
    effects, lines = trust_effects(project), file.read_text().count("\n")
    record_trust(project, trusted=True)
    trusted = loaded()
    file.write_text(file.read_text() + "\n# changed\n")

    digest = project.files[0].sha256[:12]
    assert effects == (
        f".graph-agent/tools/own.py: {lines} lines of code that is run when a chat begins: tools, sha256 {digest}",
    )
    assert (untrusted, trusted, loaded()) == (([], False), (["own"], True), ([], False))


def test_a_projects_line_counts_once_trusted_and_joins_the_users(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('tools = ["a:b"]\n')
    (workspace / ".graph-agent" / "config.toml").write_text('tools = ["c:d"]\ntool_risk = {x = "low"}\n')
    before, project = settings_at(workspace), project_at(workspace)

    effects = trust_effects(project)
    record_trust(project, trusted=True)
    after = settings_at(workspace)

    assert effects == ("tools: c:d", "not tool_risk: a project may not set this")
    assert (before.tools, after.tools, after.tool_risk) == (("a:b",), ("a:b", "c:d"), {})


@pytest.mark.parametrize(
    ("setting", "risk"), [({}, "medium"), ({"first": "low"}, "low"), ({"first": "high"}, "high")]
)
async def test_the_risk_of_a_plug_in_is_at_least_medium_unless_the_user_says_otherwise(
    home: Path, workspace: Path, setting: dict[str, str], risk: str
) -> None:
    _write_tool(home / "tools" / "a.py", "first")

    known = await load_tool_catalog(workspace, _settings(home, tool_risk=setting), "default")

    assert [tool.risk for tool in known.tools if tool.origin == "plugin"] == [risk]
    with pytest.raises(ConfigError, match="tool_risk: 'bash' is a built-in tool with a fixed risk"):
        policy_of(_settings(home, tool_risk={"bash": "low"}))


async def test_policy_check_uses_the_schema_of_a_plug_in_and_names_one_that_is_left_out(
    home: Path, workspace: Path
) -> None:
    _write_tool(home / "tools" / "shout.py", "shout")
    (home / "tools" / "torn.py").write_text("raise OSError('gone')\n")

    report = await check_policy("shout", {"text": "a"}, _settings(home), workspace)

    assert (report.decision, report.rule) == ("ask", "risk medium")
    assert report.problems == (f"{home / 'tools' / 'torn.py'}: OSError: gone",)
    with pytest.raises(UsageError, match="unknown argument txt"):
        await check_policy("shout", {"txt": "a"}, _settings(home), workspace)


async def test_every_default_tool_is_known_in_order(tmp_path: Path) -> None:
    known = (await load_tool_catalog(tmp_path, _settings(tmp_path), "default")).tools

    built_in = [tool.name for tool in create_default_tools(workspace=tmp_path)]
    assert [tool.name for tool in known] == [*built_in, "tool_search"]
    [bash] = [tool for tool in known if tool.name == "bash"]
    assert (bash.risk, bash.kind, bash.origin, bash.offered) == ("high", "execute", "builtin", True)
    assert bash.parameters["required"] == ["command"]


async def test_plan_mode_and_a_bare_deny_rule_withdraw_tools_but_keep_them_known(tmp_path: Path) -> None:
    settings = _settings(tmp_path, policy={"deny": ["ls"]})

    available = {tool.name: tool.offered for tool in (await load_tool_catalog(tmp_path, settings, "plan")).tools}

    wanted = {"read_file": True, "ls": False, "bash": False, "todo_write": True}
    assert {name: available[name] for name in wanted} == wanted


async def test_rules_may_name_a_servers_tool_as_its_server_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    denied = {"deny": ["mcp__my data__a b"]}
    settings = _settings(tmp_path, policy=denied, mcp_servers={"my data": odd(sandbox=False)})
    trust_file(os.environ).add_server("my data", fingerprint(settings.mcp_servers["my data"]), "now")

    known = await load_tool_catalog(tmp_path, settings, "default", about="mcp__my_data__a_b")

    found = {tool.original_name: (tool.name, tool.offered) for tool in known.tools if tool.origin == "mcp"}
    assert (found["a b"], found["now"]) == (("mcp__my_data__a_b", False), ("mcp__my_data__now", True))
