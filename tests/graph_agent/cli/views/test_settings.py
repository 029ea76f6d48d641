import io
import json
import sys
from pathlib import Path

import pytest

from graph_agent.cli.views.settings import (
    change_setting,
    current_project,
    explain_setting,
    list_trusted,
    print_ignored_files,
    revoke_trust,
    show_paths,
    show_settings,
    trust_folder,
)
from graph_agent.errors import UsageError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    return tmp_path


def test_every_setting_is_shown_with_its_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    show_settings(as_json=False)
    text = capsys.readouterr().out
    show_settings(as_json=True)
    settings = {item["key"]: item for item in json.loads(capsys.readouterr().out)["settings"]}

    assert "model.api_key            env OPENAI_API_KEY  set (env OPENAI_API_KEY)" in text.splitlines()
    assert "sk-secret" not in text + str(settings)
    assert (settings["mode"]["value"], settings["mode"]["layer"]) == ("default", "default")


def test_setting_a_key_says_when_something_stronger_hides_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change_setting("mode", "plan", as_json=False)
    monkeypatch.setenv("GRAPH_AGENT_MODE", "acceptEdits")
    change_setting("mode", "default", as_json=False)

    path = home / "config.toml"
    assert capsys.readouterr().out.splitlines() == [
        f"Set mode in {path}.",
        f"Set mode in {path}.",
        "GRAPH_AGENT_MODE overrides it: mode is acceptEdits.",
    ]


def test_an_explanation_shows_all_layers_and_marks_the_one_that_won(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_setting("max_steps", "7", as_json=False)
    capsys.readouterr()

    explain_setting("max_steps", as_json=False)

    assert capsys.readouterr().out.splitlines() == [
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


def test_the_json_of_an_explanation_names_the_winner(capsys: pytest.CaptureFixture[str]) -> None:
    explain_setting("mode", as_json=True)

    shown = json.loads(capsys.readouterr().out)
    assert {one["layer"]: one["wins"] for one in shown["layers"]} == {
        "flag": False,
        "env": False,
        "project": False,
        "user": False,
        "default": True,
    }


def test_the_places_of_the_files_are_told(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_paths(as_json=True)

    assert json.loads(capsys.readouterr().out) == {
        "config": str(home / "config.toml"),
        "memory": str(home / "CONTEXT.md"),
        "database": str(home / "data" / "graph-agent.db"),
    }


def test_a_database_of_the_flag_goes_before_that_of_the_environment_and_both_are_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_DB", str(home / "env.db"))
    explain_setting("database", str(home / "flag.db"), as_json=True)
    told = json.loads(capsys.readouterr().out)

    said = {one["layer"]: one["value"] for one in told["layers"]}
    assert (told["value"], told["layer"], told["origin"]) == (str(home / "flag.db"), "flag", "--db")
    assert said == {
        "flag": str(home / "flag.db"),
        "env": str(home / "env.db"),
        "default": str(home / "data" / "graph-agent.db"),
    }


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    made = tmp_path / "project"
    (made / ".graph-agent").mkdir(parents=True)
    (made / ".graph-agent" / "config.toml").write_text(
        '[policy]\nallow = ["bash(make *)"]\ndeny = ["bash(rm *)"]\n'
    )
    monkeypatch.chdir(made)
    return made.resolve()


def _types(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_folder_is_trusted_after_showing_what_that_turns_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _types(monkeypatch, "y\n")

    trust_folder(None, is_confirmed=False, as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        f"{folder} contains files that change how the agent works here:",
        "  .graph-agent/config.toml",
        "If you trust the folder, they enable:",
        "    policy.allow: bash(make *)",
        "    policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: trusted",
    ]


def test_after_a_change_it_is_shown_what_is_new_and_what_is_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trust_folder(None, is_confirmed=True, as_json=False)
    config = folder / ".graph-agent" / "config.toml"
    config.write_text('[policy]\nallow = ["bash(make *)", "bash(\\u001b[2J)"]\n')
    capsys.readouterr()
    _types(monkeypatch, "\n")

    trust_folder(str(folder), is_confirmed=False, as_json=False)

    assert capsys.readouterr().out.splitlines()[1:] == [
        "  .graph-agent/config.toml (changed since you trusted it)",
        "If you trust the folder, they enable:",
        "    policy.allow: bash(make *)",
        "  + policy.allow: bash(\\x1b[2J)",
        "  - policy.deny: bash(rm *)",
        f"Trust this folder? [y/N] {folder}: not trusted: you rejected it",
    ]


def test_json_asks_nobody_and_says_what_there_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trust_folder(None, is_confirmed=False, as_json=True)
    before = json.loads(capsys.readouterr().out)
    trust_folder(None, is_confirmed=True, as_json=True)
    after = json.loads(capsys.readouterr().out)

    files = [{"name": ".graph-agent/config.toml", "sha256": current_project().files[0].sha256, "news": ""}]
    lines = ["policy.allow: bash(make *)", "policy.deny: bash(rm *)"]
    shown = {"folder": str(folder), "files": files, "refused": {}, "turns_on": lines}
    assert before == {**shown, "trust": "untrusted", "counts": False}
    assert after == {**shown, "trust": "trusted", "counts": True}


def test_trust_is_listed_and_revoked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    list_trusted(as_json=False)
    trust_folder(None, is_confirmed=True, as_json=False)
    list_trusted(as_json=True)
    listed = json.loads(capsys.readouterr().out.split("trusted\n")[-1])["folders"]
    revoke_trust(None, as_json=False)
    revoke_trust(str(folder), as_json=True)

    told, _, last = capsys.readouterr().out.partition("\n")
    assert [(one["folder"], one["trusted"], [*one["files"]]) for one in listed] == [
        (str(folder), True, [".graph-agent/config.toml"])
    ]
    assert told == f"Trust revoked; the next chat there asks again: {folder}"
    assert json.loads(last) == {"folder": str(folder), "revoked": False}


def test_what_is_ignored_goes_to_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_ignored_files(current_project())

    shown = capsys.readouterr()
    assert (shown.out, shown.err.startswith("note: .graph-agent/config.toml of")) == ("", True)


def test_a_folder_that_is_none_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match="'none' is not a folder"):
        trust_folder("none", is_confirmed=True, as_json=False)
