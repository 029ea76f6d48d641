import json
import tomllib
from pathlib import Path

import pytest

from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.views.models import (
    list_models,
    set_local_model,
    show_local_model,
    show_model,
    unset_local_model,
    use_model,
)
from graph_agent.cli.views.models import test_model as try_it
from tests.fakes.gguf import LIBRARY, write_gguf
from tests.fakes.openai_server import TXT, FakeOpenAI


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL", "OPENAI_API_KEY", "GRAPH_AGENT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def configure(home: Path, url: str) -> None:
    (home / "config.toml").write_text(
        f'# mine\n[model]\nname = "a" # big\nbase_url = "{url}"\napi_key = "sk-SECRET-9"\n'
        '[models.fast]\nname = "b"\n[prices."b"]\ninput = 1\noutput = 2\n',
        encoding="utf-8",
    )


def test_profiles_and_models_are_listed_with_the_one_in_use(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI(models=("a", "b")) as server:
        configure(home, server.base_url)
        list_models(as_json=True)
        told = json.loads(capsys.readouterr().out)
        list_models(as_json=False)

    assert told == {
        "profiles": [{"name": "fast", "model": "b", "base_url": server.base_url, "in_use": False}],
        "models": [{"name": "a", "in_use": True}, {"name": "b", "in_use": False}],
        "error": None,
    }
    assert "SECRET" not in capsys.readouterr().out


def test_an_endpoint_that_refuses_the_key_ends_the_list_with_6_and_what_is_known_all_the_same(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure(home, "http://127.0.0.1:9/v1")
    code = list_models(as_json=True)
    told = json.loads(capsys.readouterr().out)
    (home / "config.toml").unlink()
    unconfigured = list_models(as_json=False)

    assert (code, [one["name"] for one in told["profiles"]], told["models"]) == (ExitCode.MODEL, ["fast"], [])
    assert (unconfigured, "no endpoint is configured" in capsys.readouterr().out) == (ExitCode.DONE, True)


def test_a_model_is_taken_for_good_and_comments_stay(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, "http://127.0.0.1:9/v1")

    use_model("fast", as_json=True)

    told = json.loads(capsys.readouterr().out)
    written = (home / "config.toml").read_text(encoding="utf-8")
    assert (told["name"], told["profile"]) == ("fast", "fast")
    assert ("# mine" in written, 'name = "fast" # big' in written) == (True, True)


def test_how_a_model_is_asked_is_shown_without_its_key(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(home, "http://127.0.0.1:9/v1")

    show_model("fast", as_json=True)
    told = json.loads(capsys.readouterr().out)
    show_model(None, as_json=False)
    text = capsys.readouterr().out

    assert (told["name"], told["profile"], told["key"], told["price"]["output"]) == ("b", "fast", "set", 2.0)
    assert ("unknown" in text, "SECRET" in text) == (True, False)


def test_a_model_that_does_not_do_ends_with_6(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FakeOpenAI([TXT("ready"), TXT("no tools here")]) as server:
        configure(home, server.base_url)
        code = try_it(None, as_json=False, yes=False)

    shown = capsys.readouterr().out
    assert (code, "FAILS" in shown, "cannot use this model" in shown) == (ExitCode.MODEL, True, True)


def test_what_a_model_lacks_is_written_into_its_table_once_that_is_agreed_to(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [TXT("ready"), TXT("none"), TXT("none"), TXT("no idea")]
    with FakeOpenAI(script * 3) as server:
        configure(home, server.base_url)
        before = (home / "config.toml").read_text(encoding="utf-8")
        try_it("fast", as_json=False, yes=False)
        offered, untouched = capsys.readouterr().out, (home / "config.toml").read_text(encoding="utf-8")
        try_it("fast", as_json=False, yes=True)
        try_it("new:1", as_json=True, yes=True)

    written = (home / "config.toml").read_text(encoding="utf-8")
    assert (untouched, '  images = "off"' in offered, "Use --yes" in offered) == (before, True, True)
    assert "# mine" in written
    assert '[models.fast]\nname = "b"\nimages = "off"\n' in written
    assert tomllib.loads(written)["models"]["new:1"] == {"name": "new:1", "images": "off"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(LIBRARY)
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL", "GRAPH_AGENT_LOCAL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_file_is_told_with_its_licence_and_how_to_go_back(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_local_model(str(write_gguf(folder / "tiny.gguf")), as_json=False)

    told = capsys.readouterr().out
    for part in ("GGUF 3, tiny", "Tiny Instruct", "licence  mit", "tiny (local, limited)", "--off", "config.toml"):
        assert part in told
    assert "warning" not in told


def test_a_base_model_and_an_endpoint_that_goes_first_are_pointed_out(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("GRAPH_AGENT_MODEL", "big")

    set_local_model(str(write_gguf(folder / "base.gguf", {"general.architecture": "tiny"})), as_json=False)

    told = capsys.readouterr().out
    assert ("no chat template" in told, "It is not used yet." in told) == (True, True)
    assert "not named in the file" in told


def test_the_same_as_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = write_gguf(folder / "tiny.gguf")

    set_local_model(str(model), as_json=True)
    used = json.loads(capsys.readouterr().out)
    show_local_model(as_json=True)
    told = json.loads(capsys.readouterr().out)
    unset_local_model(as_json=True)
    gone = json.loads(capsys.readouterr().out)

    assert (used["file"], used["known"], used["header"]["licence"], used["answers"]) == (
        str(model),
        None,
        "mit",
        "local",
    )
    assert (told["answers"], gone["answers"]) == ("local", "offline")


def test_without_a_file_it_says_which_model_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_local_model(as_json=False)
    unset_local_model(as_json=False)

    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith("Model: offline command mode, no model")
    assert "model local FILE" in second
    assert third.startswith("Removed the local model")
