import hashlib
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph_agent.errors import UsageError
from graph_agent.model.local.gguf import Header, file_sha256, read_header
from tests.fakes.gguf import CHAT, write_gguf


def test_the_header_says_what_the_model_is(tmp_path: Path) -> None:
    whole = read_header(write_gguf(tmp_path / "a.gguf"))
    base = read_header(write_gguf(tmp_path / "b.gguf", {"general.architecture": "tiny"}, version=2))

    assert whole == Header(3, "tiny", "Tiny Instruct", "mit", 512, has_chat_template=True)
    assert base == Header(2, "tiny", "", "", 0, has_chat_template=False)


def test_what_is_no_whole_file_of_the_format_is_refused_by_its_fault(tmp_path: Path) -> None:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "begun").write_bytes(whole[:40])
    (tmp_path / "big").write_bytes(b"GGUF" + b"\x03\0\0\0" + b"\xff" * 32)
    write_gguf(tmp_path / "cut", weights=32)
    write_gguf(tmp_path / "new", version=9)

    told = {}
    os.mkfifo(tmp_path / "pipe")
    write_gguf(tmp_path / "odd", {"general.alignment": "wide"})
    for name in ("text", "begun", "big", "cut", "new", "none", ".", "pipe", "odd"):
        with pytest.raises(UsageError) as refused:
            read_header(tmp_path / name)
        told[name] = str(refused.value).removeprefix(repr(str(tmp_path / name)))

    assert {name: text[:24] for name, text in told.items()} == {
        "text": " is no GGUF file: it doe",
        "begun": " is damaged or not whole",
        "big": " is damaged or not whole",
        "odd": " is damaged or not whole",
        "cut": " is not whole: weights t",
        "new": " is GGUF of version 9; v",
        "none": " cannot be read: No such",
        ".": " is a folder, no GGUF fi",
        "pipe": " is a pipe, no GGUF file",
    }


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
