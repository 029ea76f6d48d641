import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.app import local_model
from graph_agent.app.local_model import current_choice, inspect_model_file, remove_local_model, use_local_model
from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import KNOWN_MODELS, KnownModel, file_sha256
from tests.fakes.gguf import write_gguf
from tests.graph_agent.config.test_model_choice__local_model import LIBRARY


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(LIBRARY)
    return write_gguf(tmp_path / "tiny.gguf")


def known_as(model: Path, digest: str) -> KnownModel:
    return replace(KNOWN_MODELS[0], bytes=model.stat().st_size, sha256=digest)


def test_a_known_file_is_told_by_its_content(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = known_as(model, file_sha256(model))
    monkeypatch.setattr(local_model, "find_known_model", lambda size: known if size == known.bytes else None)

    assert (inspect_model_file(str(model)).known, inspect_model_file(str(model)).label) == (
        known,
        "tiny (local, limited)",
    )


def test_a_file_with_the_size_of_a_known_one_and_another_content_is_refused(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_model, "find_known_model", lambda _: known_as(model, "0" * 64))

    with pytest.raises(UsageError, match="damaged or altered"):
        inspect_model_file(str(model))


def test_without_the_runtime_nothing_is_taken(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pip install '\.\[local\]' in the checkout"):
        inspect_model_file(str(write_gguf(tmp_path / "tiny.gguf")))


def test_a_file_is_adopted_and_given_up_and_all_else_stays(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "home" / "config.toml"
    config.parent.mkdir()
    config.write_text("# mine\n[model]\nstream = 'on'\n")
    env = {"GRAPH_AGENT_HOME": str(config.parent)}
    monkeypatch.chdir(tmp_path)

    use_local_model(inspect_model_file("tiny.gguf"), env)
    adopted, written = current_choice(env), tomllib.loads(config.read_text())
    endpoint = current_choice({**env, "OPENAI_API_KEY": "sk-1", "GRAPH_AGENT_MODEL": "m"})
    remove_local_model(env)
    remove_local_model(env)

    assert (adopted.kind, endpoint.kind, current_choice(env).kind) == ("local", "endpoint", "offline")
    assert written == {"model": {"stream": "on", "local": str(model)}}
    assert config.read_text() == "# mine\n[model]\nstream = 'on'\n"
