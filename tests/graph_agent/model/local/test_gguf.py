import hashlib
import os
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import KNOWN_MODELS, Header, file_sha256, find_known_model, read_header
from tests.fakes.gguf import CHAT, write_gguf


def test_the_header_describes_the_model(tmp_path: Path) -> None:
    whole = read_header(write_gguf(tmp_path / "a.gguf"))
    base = read_header(write_gguf(tmp_path / "b.gguf", {"general.architecture": "tiny"}, version=2))

    assert whole == Header(3, "tiny", "Tiny Instruct", "mit", 512, has_chat_template=True)
    assert base == Header(2, "tiny", "", "", 0, has_chat_template=False)


BAD_FILES = {
    "text": " is not a GGUF file",
    "begun": " is damaged or incomplete",
    "big": " is damaged or incomplete",
    "odd": " is damaged or incomplete",
    "cut": " is incomplete",
    "new": " has GGUF version 9",
    "none": " cannot be read",
    ".": " is a folder",
    "pipe": " is a pipe",
}


@pytest.mark.parametrize(("name", "reason"), BAD_FILES.items())
def test_a_damaged_or_foreign_file_is_rejected_with_the_reason(name: str, reason: str, tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "begun").write_bytes(whole[:40])
    (tmp_path / "big").write_bytes(b"GGUF" + b"\x03\0\0\0" + b"\xff" * 32)
    write_gguf(tmp_path / "cut", weights=32)
    write_gguf(tmp_path / "new", version=9)
    write_gguf(tmp_path / "odd", {"general.alignment": "wide"})
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(UsageError, match=f"^{re.escape(repr(str(tmp_path / name)) + reason)}"):
        read_header(tmp_path / name)


@given(st.data())
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_damage_of_the_header_crashes_the_reader(tmp_path: Path, data: st.DataObject) -> None:
    path = write_gguf(tmp_path / "a.gguf", CHAT)
    damaged = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        damaged[data.draw(st.integers(4, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(damaged[: data.draw(st.integers(4, len(damaged)))])

    with suppress(UsageError):
        assert read_header(path).version in (2, 3)


def test_the_digest_is_that_of_the_whole_file(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "a.gguf")

    assert file_sha256(path) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_known_models_are_found_by_their_size() -> None:
    assert [find_known_model(known.bytes) for known in KNOWN_MODELS] == list(KNOWN_MODELS)
    assert find_known_model(1) is None
    assert [(len(known.sha256), bool(known.licence)) for known in KNOWN_MODELS] == [(64, True)] * len(KNOWN_MODELS)
