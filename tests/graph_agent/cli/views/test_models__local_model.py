import json
from pathlib import Path

import pytest

from graph_agent.cli.views.models import set_local_model, show_local_model, unset_local_model
from tests.fakes.gguf import write_gguf
from tests.graph_agent.config.test_model_choice__local_model import LIBRARY


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
    assert ("no chat template" in told, "It does not answer yet. Model: big at" in told) == (True, True)
    assert "the file names none" in told


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
    assert third.startswith("No local model stands in")
