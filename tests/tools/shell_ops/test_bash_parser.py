"""Commands are read by shfmt, within limits; what it cannot read is refused with the reason."""

import sysconfig
from pathlib import Path

import pytest

from policy import Unparsable
from tools.shell_ops.bash_parser import find_shfmt, parse_bash


def test_the_tree_of_a_text_is_read() -> None:
    assert parse_bash("a; b")["Type"] == "File"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a '", "no valid bash"),
        ("a" * 9000, "longer than 8192 bytes"),
        ("é" * 5000, "longer than 8192 bytes"),
        ("(" * 500, "opens more than 400"),
        ("\ud800", "cannot read it"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(Unparsable, match=why):
        parse_bash(text)


def test_without_the_package_s_own_the_program_on_path_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_stub(tmp_path, "exit 0", monkeypatch)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "/nonexistent")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_shfmt() == str(tmp_path / "shfmt")


def _install_stub(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = folder / "shfmt"
    stub.write_text(f"#!/bin/sh\n{script}\n")
    stub.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(folder))


@pytest.mark.parametrize(("script", "why"), [("sleep 5", "too long"), ("echo nonsense", "cannot read it")])
def test_a_slow_or_broken_parser_reads_nothing(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _install_stub(tmp_path, f"exec {script}", monkeypatch)
    monkeypatch.setattr("tools.shell_ops.bash_parser._TIMEOUT_S", 0.3)

    with pytest.raises(Unparsable, match=why):
        parse_bash(f"a {script}")


def test_a_text_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install_stub(tmp_path, f"echo x >> {tmp_path}/runs\necho '{{}}'", monkeypatch)

    trees = [parse_bash("a parsed again") for _ in range(3)]

    assert (trees, (tmp_path / "runs").read_text()) == ([{}, {}, {}], "x\n")


def test_a_missing_parser_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda _: "/nonexistent")
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(Unparsable, match="not installed"):
        parse_bash("a missing")
