from pathlib import Path

import pytest

from graph_agent.app.toolset import sandbox_of, sandbox_status
from graph_agent.config.settings import Settings
from graph_agent.ports import SandboxInfo
from tests.fakes.walls import needs
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules


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
