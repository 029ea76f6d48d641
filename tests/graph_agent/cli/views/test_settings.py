import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from graph_agent.cli.views.settings import current_project
from graph_agent.errors import AgentError, ConfigError, StorageError, UsageError
from tests.graph_agent.cli.commands import json_of, text_of, type_command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def test_every_setting_is_shown_with_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    text = text_of("config", "show")
    settings = {item["key"]: item for item in json_of("config", "show")["settings"]}

    assert "model.api_key            env OPENAI_API_KEY  set (env OPENAI_API_KEY)" in text.splitlines()
    assert "sk-secret" not in text + str(settings)
    assert (settings["mode"]["value"], settings["mode"]["layer"]) == ("default", "default")


@pytest.mark.parametrize(
    ("environment", "is_noted"), [({}, True), ({"GRAPH_AGENT_MODEL": "m"}, True), ({"OPENAI_API_KEY": "k"}, False)]
)
def test_the_settings_without_a_model_end_with_how_to_connect_one(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_noted: bool
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    told = type_command("config", "show").stderr

    assert ("note: No model is connected" in told, "set OPENAI_API_KEY, or" in told) == (is_noted, is_noted)


def test_setting_a_key_warns_if_another_layer_overrides_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = text_of("config", "set", "mode", "plan")
    monkeypatch.setenv("GRAPH_AGENT_MODE", "acceptEdits")
    text += text_of("config", "set", "mode", "default")

    assert text.splitlines() == [
        f"Set mode in {home}/config.toml.",
        f"Set mode in {home}/config.toml.",
        "GRAPH_AGENT_MODE overrides it: mode is acceptEdits.",
    ]


def test_an_explanation_shows_all_layers_and_marks_the_winner(home: Path) -> None:
    text_of("config", "set", "max_steps", "7")
    refused = type_command("config", "set", "max_steps", "many").exception

    assert (isinstance(refused, ConfigError), "max_steps = 'many'" in str(refused)) == (True, True)
    assert text_of("config", "explain", "max_steps").splitlines() == [
        "max_steps = 7",
        "  Model requests per turn; reaching it pauses the turn, which can be resumed.",
        "  allowed: integer, at least 1",
        "  layers, strongest first:",
        "    flag     not set; --max-steps would set it",
        "    env      cannot be set here",
        f"    project  not set; {Path.cwd()}/.graph-agent/config.toml would set it",
        f"  → user     7  ({home / 'config.toml'})",
        "    default  200",
    ]
    layers = json_of("config", "explain", "mode")["layers"]
    assert {one["layer"]: one["wins"] for one in layers} == {
        **dict.fromkeys(("flag", "env", "project", "user"), False),
        "default": True,
    }


def test_the_database_flag_overrides_the_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", str(home / "env.db"))

    shown = json_of("config", "explain", "database", "--db", str(home / "flag.db"))

    assert (shown["value"], shown["layer"], shown["origin"]) == (str(home / "flag.db"), "flag", "--db")
    assert {one["layer"]: one["value"] for one in shown["layers"]} == {
        "flag": str(home / "flag.db"),
        "env": str(home / "env.db"),
        "project": None,
        "user": None,
        "default": str(home / "data" / "graph-agent.db"),
    }


def test_the_paths_of_the_files_are_printed(home: Path) -> None:
    assert json_of("config", "path") == {
        "config": str(home / "config.toml"),
        "memory": str(home / "CONTEXT.md"),
        "database": str(home / "data" / "graph-agent.db"),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "project"
    (made / ".graph-agent").mkdir(parents=True)
    config = '[policy]\nallow = ["bash(make *)"]\ndeny = ["bash(rm *)"]\n'
    (made / ".graph-agent" / "config.toml").write_text(config)
    monkeypatch.chdir(made)
    return made.resolve()


def test_a_folder_is_trusted_after_its_effects_are_shown(folder: Path) -> None:
    assert text_of("config", "trust", stdin="y\n").splitlines() == [
        f"{folder} contains files that change how the agent works here.",
        "  .graph-agent/config.toml",
        "If you trust the folder, they enable:",
        "    policy.allow: bash(make *)",
        "    policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: trusted",
    ]


def test_after_a_change_added_and_removed_effects_are_marked(folder: Path) -> None:
    text_of("config", "trust", "--yes")
    config = folder / ".graph-agent" / "config.toml"
    config.write_text('[policy]\nallow = ["bash(make *)", "bash(\\u001b[2J)"]\n')

    assert text_of("config", "trust", str(folder), stdin="\n").splitlines()[1:] == [
        "  .graph-agent/config.toml (changed since you trusted it)",
        "If you trust the folder, they enable:",
        "    policy.allow: bash(make *)",
        "  + policy.allow: bash(\\x1b[2J)",
        "  - policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: not trusted: you rejected it",
    ]


def test_json_does_not_ask_and_shows_the_effects(folder: Path) -> None:
    before, after = json_of("config", "trust"), json_of("config", "trust", "--yes")

    files = [{"name": ".graph-agent/config.toml", "sha256": current_project().files[0].sha256, "news": ""}]
    lines = ["policy.allow: bash(make *)", "policy.deny: bash(rm *)"]
    shown = {"folder": str(folder), "files": files, "refused": {}, "turns_on": lines}
    assert before == {**shown, "trust": "untrusted", "counts": False}
    assert after == {**shown, "trust": "trusted", "counts": True}


def test_trust_is_listed_and_revoked(folder: Path) -> None:
    assert text_of("config", "trust", "--list") == "No trusted folders.\n"
    text_of("config", "trust", "--yes")

    [listed] = json_of("config", "trust", "--list")["folders"]
    table = text_of("config", "trust", "--list").splitlines()
    revoked = text_of("config", "trust", "--revoke")

    assert (listed["folder"], listed["trusted"], [*listed["files"]]) == (
        str(folder),
        True,
        [".graph-agent/config.toml"],
    )
    assert (table[0].split(), table[1].split()[:2]) == (
        ["FOLDER", "TRUSTED", "SINCE", "FILES"],
        [str(folder), "yes"],
    )
    assert revoked == f"Trust revoked; the next chat there asks again: {folder}\n"
    assert json_of("config", "trust", "--revoke", str(folder)) == {"folder": str(folder), "revoked": False}


def test_ignored_files_are_reported_on_stderr(folder: Path) -> None:
    shown = type_command("config", "show")

    assert ("note:" in shown.stdout, "note: .graph-agent/config.toml of" in shown.stderr) == (False, True)


def test_a_missing_folder_cannot_be_trusted() -> None:
    refused = type_command("config", "trust", "none", "--yes").exception

    assert (isinstance(refused, UsageError), "'none' is not a folder" in str(refused)) == (True, True)


def _set_editor(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    program = folder / "an editor.py"
    program.write_text(f"import sys\npath = sys.argv[1]\n{body}\n", encoding="utf-8")
    monkeypatch.setenv("EDITOR", f"{sys.executable} '{program}'")


def test_editing_memory_creates_a_private_file_that_is_shown_afterwards(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set_editor(monkeypatch, tmp_path, "open(path, 'a').write('I like tabs\\x1b.\\n')")

    text_of("memory", "edit")
    shown = type_command("memory", "show")

    file = home / "CONTEXT.md"
    assert (shown.stdout, shown.stderr) == ("I like tabs\\x1b.\n", f"{file}\n")
    assert [S_IMODE(path.stat().st_mode) for path in (file, home)] == [0o600, 0o700]


def test_an_empty_memory_says_how_to_edit_it(home: Path) -> None:
    path = str(home / "CONTEXT.md")

    assert text_of("memory", "show") == f"Memory is empty. Edit {path} with: graph-agent memory edit\n"
    assert json_of("memory", "show") == {
        "path": path,
        "exists": False,
        "text": "",
        "user": "",
        "notes": [],
    }


@pytest.mark.parametrize(
    ("editor", "error", "message"),
    [
        (f"{sys.executable} -c 'raise SystemExit(3)'", StorageError, "exited with code 3"),
        ("/no/such/editor", UsageError, "Set EDITOR to another"),
        (None, UsageError, "No terminal for an editor"),
    ],
)
def test_memory_needs_a_working_editor(
    monkeypatch: pytest.MonkeyPatch, editor: str | None, error: type[AgentError], message: str
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    if editor is not None:
        monkeypatch.setenv("EDITOR", editor)

    refused = type_command("memory", "edit").exception

    assert (isinstance(refused, error), message in str(refused)) == (True, True)


def test_a_folder_in_place_of_the_memory_file_is_an_error(home: Path) -> None:
    (home / "CONTEXT.md").mkdir(parents=True)

    errors = [str(type_command("memory", name).exception) for name in ("show", "edit")]

    assert [error.partition(" /")[0] for error in errors] == ["Cannot read", "Cannot write"]
