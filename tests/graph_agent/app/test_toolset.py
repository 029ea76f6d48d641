from collections.abc import Callable
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
from graph_agent.errors import ConfigError, UsageError
from graph_agent.ports import SandboxInfo
from tests.fakes.walls import needs
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules
from tools.web_ops.web_search import SearchProvider


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    for name in ("home/data", "work/inner", "lib", "other"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path.resolve()


def _settings_with_folders(place: Path, *add_dirs: Path) -> Settings:
    return Settings(database=place / "home" / "data" / "graph-agent.db", add_dirs=add_dirs)


def test_the_folders_of_settings_and_thread_come_together_once_and_what_is_gone_is_named(place: Path) -> None:
    (place / "link").symlink_to("lib")
    stored = (str(place / "lib"), str(place / "gone"), str(place / "link"), str(place / "work" / "inner"))

    found = roots_of(place / "work", stored, _settings_with_folders(place, place / "other"))

    assert found == Roots((place / "other", place / "lib"), (str(place / "gone"),))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/", "is the whole disk"),
        ("root", "is the whole disk"),
        ("home", "belongs to the agent itself"),
        ("home/data", "belongs to the agent itself"),
        ("none", "is not a folder"),
        ("file", "is not a folder"),
    ],
)
def test_no_folder_is_added_that_is_none_or_would_give_everything_away(place: Path, name: str, why: str) -> None:
    (place / "root").symlink_to("/")
    (place / "file").touch()

    with pytest.raises(UsageError, match=why):
        requested_roots((str(place / name),), _settings_with_folders(place))


def test_a_link_is_added_as_the_folder_it_leads_to(place: Path) -> None:
    (place / "link").symlink_to("lib")

    assert requested_roots((str(place / "link"),), _settings_with_folders(place)) == (str(place / "lib"),)


URL = "http://localhost:8080"


@pytest.mark.parametrize(
    ("settings", "environment", "provider", "detail"),
    [
        (SearchSettings(), {"BRAVE_API_KEY": "k"}, None, "not set up, so it is not offered"),
        (SearchSettings(provider="searxng"), {}, None, "searxng lacks its address: setting web_search.url"),
        (
            SearchSettings(provider="searxng", url=f"{URL}/"),
            {},
            SearchProvider("searxng", URL),
            f"searxng at {URL}",
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
def test_who_is_asked_follows_from_settings_and_environment_and_what_lacks_is_said(
    settings: SearchSettings, environment: dict[str, str], provider: SearchProvider | None, detail: str
) -> None:
    assert search_provider(settings, environment) == provider
    assert check_web_search(settings, environment).detail.startswith(detail)


def _settings(**values: object) -> Settings:
    return Settings.model_validate({"database": Path.home() / "data" / "agent.db", **values})


def test_the_sandbox_lets_through_what_the_settings_say(tmp_path: Path) -> None:
    settings = _settings(sandbox_network=True, sandbox_write=["~/cache"], sandbox="required")

    sandbox = sandbox_of(settings, tmp_path, (tmp_path / "more",))

    assert sandbox is not None
    assert (sandbox.is_required, sandbox.rules.network) == (True, True)
    assert sandbox.rules.writable == (tmp_path, tmp_path / "more", Path.home() / "cache")


def test_keys_and_the_agent_s_own_places_are_hidden(tmp_path: Path) -> None:
    (Path.home() / ".ssh").mkdir()

    sandbox = sandbox_of(_settings(), tmp_path)

    assert sandbox is not None
    own = Path.home() / "data" / "agent.db"
    assert {Path.home() / ".ssh", Path.home() / ".config" / "graph-agent", own} <= set(sandbox.rules.hidden)


def test_shell_start_files_have_a_placeholder_in_the_home_folder_only(tmp_path: Path) -> None:
    elsewhere, at_home = sandbox_of(_settings(), tmp_path), sandbox_of(_settings(), Path.home())

    assert elsewhere is not None
    assert at_home is not None
    assert (".bashrc" in elsewhere.rules.names.removed, ".bashrc" in at_home.rules.names.files) == (True, True)
    assert ".vscode" in elsewhere.rules.names.folders
    placed = [*elsewhere.rules.names.files, *at_home.rules.names.files, *at_home.rules.names.folders]
    assert [name for name in placed if not name.startswith(".")] == []


def test_of_a_virtual_environment_on_the_path_all_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    monkeypatch.setenv("PATH", f"relative:{tmp_path}/venv/bin:{tmp_path}/bin")

    sandbox = sandbox_of(_settings(), tmp_path)

    assert sandbox is not None
    assert sandbox.rules.visible == (Path.home(), tmp_path / "venv", tmp_path / "bin")


def test_it_is_said_what_stands_and_what_it_lets_through(tmp_path: Path) -> None:
    needs("bubblewrap")

    assert sandbox_status(sandbox_of(_settings(), tmp_path)) == SandboxInfo(
        "bubblewrap",
        "files can be written in the workspace and the temporary folder only, there is no network",
        is_active=True,
    )


@pytest.mark.parametrize(
    ("is_required", "then"), [(False, "commands run with all your rights"), (True, "no command is run")]
)
def test_where_nothing_stands_it_is_said_why(tmp_path: Path, *, is_required: bool, then: str) -> None:
    nothing = Sandbox(
        SandboxRules((tmp_path,)), is_required=is_required, look=lambda: SandboxBackend("none", why="no means")
    )

    walls = sandbox_status(nothing)

    assert (walls, walls.label) == (SandboxInfo("none", f"no means; {then}"), "no sandbox")


def test_a_sandbox_that_nobody_wants_is_none(tmp_path: Path) -> None:
    walls = sandbox_status(sandbox_of(_settings(sandbox="off"), tmp_path))

    assert (walls.label, walls.is_active) == ("sandbox off", False)


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

WorkFolders = Callable[..., Path]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "tools").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".graph-agent" / "tools").mkdir(parents=True)
    return made.resolve()


def _tool(path: Path, tool: str, about: str = "Says it.") -> Path:
    path.write_text(_TOOL.format(name=tool.title().replace("_", ""), tool=tool, about=about))
    return path


def _package(folder: Path, name: str, tool: str) -> None:
    """A package as an installer leaves it."""
    (folder / name).mkdir(parents=True)
    _tool(folder / name / "__init__.py", tool)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[graph_agent.tools]\n{tool} = {name}:{tool.title()}\n")


def _plugins(workspace: Path, settings: Settings) -> tuple[list[str], tuple[str, ...]]:
    registry, problems = full_registry(workspace, settings)
    return [name for name in registry.names() if registry.origin(name) == "plugin"], problems


def _plugin_settings(home: Path, **values: object) -> Settings:
    return Settings(database=home / "x.db", **values)  # type: ignore[arg-type]  # pydantic checks the values


def test_tools_come_from_packages_lines_and_the_users_folder_in_this_order(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path / "site", "shouting", "shout")
    _tool(tmp_path / "site" / "lines.py", "line")
    monkeypatch.syspath_prepend(tmp_path / "site")
    _tool(home / "tools" / "b.py", "second")
    _tool(home / "tools" / "a.py", "first")
    _tool(home / "tools" / "_helper.py", "hidden")

    found = _plugins(workspace, _plugin_settings(home, tools=("lines:Line",)))

    assert found == (["shout", "line", "first", "second"], ())


def test_what_cannot_be_used_is_named_and_keeps_nothing_from_starting(home: Path, workspace: Path) -> None:
    bash, broken = _tool(home / "tools" / "a.py", "bash"), home / "tools" / "b.py"
    broken.write_text("import nowhere")
    bytes_only = home / "tools" / "c.py"
    bytes_only.write_bytes(b"\xff")
    _tool(home / "tools" / "d.py", "fine")
    unreadable = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"

    names, problems = _plugins(workspace, _plugin_settings(home, tools=("nowhere:make",)))

    assert names == ["fine"]
    assert sorted(problems) == sorted(
        [
            f"{bytes_only}: it cannot be read: {unreadable}",
            "tools = 'nowhere:make': ModuleNotFoundError: No module named 'nowhere'",
            f"{bash}: A tool 'bash' is already registered (builtin); give the plugin tool another name",
            f"{broken}: ModuleNotFoundError: No module named 'nowhere'",
        ]
    )


def test_a_plug_in_may_end_the_work_in_its_own_way(home: Path, workspace: Path) -> None:
    _tool(home / "tools" / "end.py", "attempt_completion", "Ends it my way.")

    registry, problems = full_registry(workspace, _plugin_settings(home))

    declared = {item["function"]["name"]: item["function"]["description"] for item in registry.declarations()}
    assert (declared["attempt_completion"], problems) == ("Ends it my way.", ())


def test_a_projects_tools_run_only_once_each_file_is_trusted_as_it_is(home: Path, workspace: Path) -> None:
    marker = workspace / "ran"
    file = _tool(workspace / ".graph-agent" / "tools" / "own.py", "own")
    file.write_text(file.read_text() + f"\nopen({str(marker)!r}, 'w').close()\n")
    untrusted = _plugins(workspace, settings_at(workspace)), marker.exists()

    project = project_at(workspace)
    shown = trust_effects(project)
    record_trust(project, trusted=True)
    trusted = _plugins(workspace, settings_at(workspace)), marker.exists()
    marker.unlink()
    file.write_text(file.read_text() + "\n# changed\n")
    changed = _plugins(workspace, settings_at(workspace)), marker.exists()

    lines, digest = file.read_text().count("\n") - 2, project.files[0].sha256[:12]
    assert shown == (
        f".graph-agent/tools/own.py: {lines} lines of code that is run when a chat begins: tools, sha256 {digest}",
    )
    assert (untrusted, trusted, changed) == ((([], ()), False), ((["own"], ()), True), (([], ()), False))


def test_a_projects_line_counts_once_trusted_and_joins_the_users(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('tools = ["a:b"]\n')
    (workspace / ".graph-agent" / "config.toml").write_text('tools = ["c:d"]\ntool_risk = {x = "low"}\n')
    before = settings_at(workspace)

    project = project_at(workspace)
    shown = trust_effects(project)
    record_trust(project, trusted=True)
    after = settings_at(workspace)

    assert shown == ("tools: c:d", "not tool_risk: a project may not set this")
    assert (before.tools, after.tools, after.tool_risk) == (("a:b",), ("a:b", "c:d"), {})


@pytest.mark.parametrize(
    ("setting", "risk"), [({}, "medium"), ({"first": "low"}, "low"), ({"first": "high"}, "high")]
)
async def test_the_risk_of_a_plug_in_is_at_least_medium_unless_the_user_says_otherwise(
    home: Path, workspace: Path, setting: dict[str, str], risk: str
) -> None:
    _tool(home / "tools" / "a.py", "first")

    known = await load_tool_catalog(workspace, _plugin_settings(home, tool_risk=setting), "default")

    assert [tool.risk for tool in known.tools if tool.origin == "plugin"] == [risk]


def test_the_risk_of_a_built_in_tool_is_fixed(home: Path) -> None:
    with pytest.raises(ConfigError, match="tool_risk: 'bash' is built in and has a fixed risk; a rule"):
        policy_of(_plugin_settings(home, tool_risk={"bash": "low"}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: it says no more"),
        ("class Mute(Exception):\n    __str__ = None\nraise Mute", "Mute: it cannot say why"),
        ("raise ValueError('two\\nlines')", "ValueError: two lines"),
        ("raise ValueError", "ValueError: it says no more"),
        ("import time\ntime.sleep(2)", "it did not give its tools within 0.05 s"),
    ],
)
def test_what_goes_wrong_is_one_line_with_its_place(
    home: Path, workspace: Path, text: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.app.toolset._LOAD_TIMEOUT_S", 0.05 if "sleep" in text else 10)
    place = home / "tools" / "a.py"
    place.write_text(text)

    assert _plugins(workspace, _plugin_settings(home)) == ([], (f"{place}: {problem}",))


def test_what_a_plug_in_prints_stays_off_the_output(
    home: Path, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "tools" / "a.py").write_text("print('noise')")

    full_registry(workspace, _plugin_settings(home))

    assert capsys.readouterr() == ("", "noise\n")


async def test_policy_check_judges_a_tool_of_the_users_own_by_its_schema_and_names_one_that_is_left_out(
    home: Path, workspace: Path
) -> None:
    _tool(home / "tools" / "shout.py", "shout")
    (home / "tools" / "torn.py").write_text("raise OSError('gone')\n")

    report = await check_policy("shout", {"text": "a"}, _plugin_settings(home), workspace)

    assert (report.decision, report.rule) == ("ask", "risk medium")
    assert report.problems == (f"{home / 'tools' / 'torn.py'}: OSError: gone",)
    with pytest.raises(UsageError, match="unknown argument txt"):
        await check_policy("shout", {"txt": "a"}, _plugin_settings(home), workspace)
