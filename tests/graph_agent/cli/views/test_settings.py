import json
from pathlib import Path

import pytest

from graph_agent.cli.views.settings import change_setting, explain_setting, show_paths, show_settings


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
        f"{path}: mode is set",
        f"{path}: mode is set",
        "but GRAPH_AGENT_MODE goes before it: mode is acceptEdits",
    ]


def test_an_explanation_shows_all_layers_and_marks_the_one_that_won(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_setting("max_steps", "7", as_json=False)
    capsys.readouterr()

    explain_setting("max_steps", as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        "max_steps = 7",
        "  Model requests per turn; reaching it pauses the turn, resumable.",
        "  takes: integer, at least 1",
        "  layers, strongest first:",
        "    flag     nothing; --max-steps would",
        "    env      cannot be set here",
        f"    project  nothing; {Path.cwd()}/.graph-agent/config.toml would",
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
