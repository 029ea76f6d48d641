from pathlib import Path

import pytest

from graph_agent.config.model_choice import ModelChoice, choose_model, display_url
from graph_agent.config.sources import load_settings
from tests.graph_agent.config.test_model_choice__local_model import LIBRARY


def choose(tmp_path: Path, **env: str) -> ModelChoice:
    return choose_model(load_settings({"GRAPH_AGENT_HOME": str(tmp_path), **env}))


def test_without_base_url_and_key_the_offline_mode_says_so_and_how_to_connect(tmp_path: Path) -> None:
    choice = choose(tmp_path)

    assert (choice.kind, choice.reason) == (
        "offline",
        "Model: offline command mode, no model, because neither a base URL nor a key is set.",
    )
    assert "OPENAI_API_KEY" in choice.connect


def test_a_model_name_alone_does_not_make_an_endpoint(tmp_path: Path) -> None:
    choice = choose(tmp_path, GRAPH_AGENT_MODEL="qwen3")

    assert (choice.kind, "'qwen3' alone" in choice.reason) == ("offline", True)


def test_a_base_url_chooses_the_endpoint_and_names_the_setting(tmp_path: Path) -> None:
    choice = choose(tmp_path, OPENAI_BASE_URL="http://me:pw@localhost:1/v1", GRAPH_AGENT_MODEL="m")

    assert (choice.kind, choice.reason) == (
        "endpoint",
        "Model: m at http://localhost:1/v1, because of OPENAI_BASE_URL.",
    )


def test_a_key_alone_chooses_openai(tmp_path: Path) -> None:
    choice = choose(tmp_path, OPENAI_API_KEY="sk-SECRET")

    assert choice.reason == (
        "Model: not named (the only one, or your choice) at https://api.openai.com/v1, because of OPENAI_API_KEY."
    )


def test_a_local_model_answers_where_it_can_be_used_and_no_endpoint_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LIBRARY)
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")

    local = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file))
    gone = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(tmp_path / "gone"))
    endpoint = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file), OPENAI_API_KEY="sk-SECRET")

    assert (local.kind, local.reason) == (
        "local",
        "Model: tiny (local, limited), because of GRAPH_AGENT_LOCAL_MODEL.",
    )
    assert (gone.kind, gone.obstacle in gone.reason, "cannot be read" in gone.obstacle) == ("offline", True, True)
    named = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file), GRAPH_AGENT_MODEL="qwen3")

    assert (endpoint.kind, named.kind, "'qwen3' alone" in named.reason) == ("endpoint", "local", True)


def test_a_profile_is_named_as_the_cause(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[models.fast]\nname = "m"\nbase_url = "http://h/v1"\n', encoding="utf-8")

    choice = choose(tmp_path, GRAPH_AGENT_MODEL="fast")

    assert choice.reason == "Model: m at http://h/v1, because of the profile 'fast' (GRAPH_AGENT_MODEL)."


def test_credentials_in_an_address_are_not_shown() -> None:
    assert display_url("https://user:secret@host:8/v1?x=1") == "https://host:8/v1?x=1"
