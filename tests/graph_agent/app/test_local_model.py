from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.app import local_model
from graph_agent.app.local_model import inspect_model_file
from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import KNOWN_MODELS, KnownModel, file_sha256
from tests.fakes.gguf import LIBRARY, write_gguf


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
