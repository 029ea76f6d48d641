import os
from pathlib import Path

import pytest

from graph_agent.config.model_choice import (
    ModelChoice,
    choose_model,
    display_url,
    local_label,
    local_model_problem,
)
from graph_agent.config.sources import load_settings
from tests.fakes.gguf import LIBRARY

_NOT_CONNECTED = (
    "No model connected. Set OPENAI_API_KEY, or GRAPH_AGENT_BASE_URL for a local server, then start again. "
    "Until then only a few commands work: type `help`."
)
_UNSET = "neither a base URL nor a key is set"


def choose(tmp_path: Path, **env: str) -> ModelChoice:
    return choose_model(load_settings({"GRAPH_AGENT_HOME": str(tmp_path), **env}))


@pytest.mark.parametrize(
    ("env", "kind", "reason"),
    [
        (
            {},
            "offline",
            "No model is connected: neither a base URL nor a key is set. Offline mode runs simple commands.",
        ),
        (
            {"GRAPH_AGENT_MODEL": "qwen3"},
            "offline",
            (
                f"No model is connected: {_UNSET} "
                "(the model name 'qwen3' alone does not say where it is). Offline mode runs simple commands."
            ),
        ),
        (
            {"OPENAI_BASE_URL": "http://me:pw@localhost:1/v1", "GRAPH_AGENT_MODEL": "m"},
            "endpoint",
            "Model: m at http://localhost:1/v1, set by OPENAI_BASE_URL.",
        ),
        (
            {"OPENAI_API_KEY": "sk-SECRET"},
            "endpoint",
            "Model: not named (the only one, or your choice) at https://api.openai.com/v1, set by OPENAI_API_KEY.",
        ),
        (
            {"GRAPH_AGENT_MODEL": "fast"},
            "endpoint",
            "Model: m at http://h/v1, set by the profile 'fast' (GRAPH_AGENT_MODEL).",
        ),
    ],
)
def test_the_reason_names_the_model_and_the_setting(
    tmp_path: Path, env: dict[str, str], kind: str, reason: str
) -> None:
    (tmp_path / "config.toml").write_text('[models.fast]\nname = "m"\nbase_url = "http://h/v1"\n', encoding="utf-8")

    choice = choose(tmp_path, **env)

    assert (choice.kind, choice.reason) == (kind, reason)
    assert "OPENAI_API_KEY" in choice.connect
    assert choice.headline == (_NOT_CONNECTED if kind == "offline" else reason)


def test_a_local_model_answers_if_it_is_usable_and_no_endpoint_is_configured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(LIBRARY)
    file = tmp_path / "tiny.gguf"
    file.write_bytes(b"GGUF")

    local = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file))
    named = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file), GRAPH_AGENT_MODEL="qwen3")
    gone = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(tmp_path / "gone"))
    endpoint = choose(tmp_path, GRAPH_AGENT_LOCAL_MODEL=str(file), OPENAI_API_KEY="sk-SECRET")

    assert (local.kind, local.reason) == (
        "local",
        "Model: tiny (local, limited), set by GRAPH_AGENT_LOCAL_MODEL.",
    )
    assert (named.kind, "'qwen3' alone" in named.reason, endpoint.kind) == ("local", True, "endpoint")
    assert (gone.kind, gone.obstacle in gone.reason, "cannot be read" in gone.obstacle) == ("offline", True, True)


def test_a_file_of_the_format_is_usable_with_the_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "qwen-0.5b.gguf"
    model.write_bytes(b"GGUF...")

    without = local_model_problem(model)
    monkeypatch.syspath_prepend(LIBRARY)

    assert without == "its runtime is not installed: pip install '.[local]' in the checkout"
    assert (local_model_problem(model), local_label(model)) == ("", "qwen-0.5b (local, limited)")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a.txt", "is not a GGUF file"),
        ("none", "cannot be read (No such file or directory)"),
        (".", "is a folder, not a file"),
        ("pipe", "is a pipe, not a file"),
    ],
)
def test_a_file_that_is_missing_or_of_another_kind_is_named(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "a.txt").write_text("hello")
    os.mkfifo(tmp_path / "pipe")

    assert local_model_problem(tmp_path / name) == (
        f"{str(tmp_path / name)!r} {problem}; choose another with `graph-agent model local FILE`"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host:8/v1", "https://host:8/v1"),
        ("http://[::1]:11434/v1", "http://[::1]:11434/v1"),
        ("https://x.openai.azure.com/openai/deployments/gpt-4o-mini-2024-07-18/", None),
        ("https://mcp.example.com/api/model-context-protocol/v1/mcp", None),
        ("https://user:secret@host:8/v1?x=1", "https://host:8/v1?…"),
        ("http://secret@host", "http://host"),
        ("http://user:sec/ret@host/v1", "http://…"),
        ("http://user:1/ret@host/v1", "http://…"),
        ("http://[::1/secret", "http://…"),
        ("https://host/s/NDk3YjY1ZGItZTQ4Ny00/mcp#secret", "https://host/s/…/mcp"),
        ("https://host/services/T0/a1b2c3d4e5f6a7b8", "https://host/services/T0/…"),
        ("https://host/6f9619ff-8b86-d011-b42d-00cf4fc964ff", "https://host/…"),
        ("https://host/sEcr3t_in-the_path-0", "https://host/…"),
        ("secret@host", ""),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(url: str, shown: str | None) -> None:
    assert display_url(url) == (url if shown is None else shown)
