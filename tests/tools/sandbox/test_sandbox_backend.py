from pathlib import Path

import pytest

from tests.fakes.walls import needs
from tools.sandbox.sandbox import detect_backend


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _program(folder: Path, text: str) -> None:
    (folder / "bwrap").write_text(text)
    (folder / "bwrap").chmod(0o755)


def test_bubblewrap_is_used_if_it_starts(programs: Path) -> None:
    _program(programs, "#!/bin/sh\nexit 0\n")

    found = detect_backend()

    assert (found.kind, found.program, found.why) == ("bubblewrap", str(programs / "bwrap"), "")


def test_without_bubblewrap_landlock_is_used_with_the_reason(programs: Path) -> None:
    needs("landlock")

    found = detect_backend()

    assert (found.kind, found.why) == ("landlock", "bubblewrap (bwrap) is not installed")


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("bwrap: Unknown option --disable-userns", "it is too old: version 0.8 or newer is needed"),
        ("bwrap: setting up uid map: Permission denied", "the system restricts user namespaces"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "the system restricts user namespaces"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "namespaces are not permitted here"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "/proc cannot be mounted here"),
        ("something new", "something new"),
        ("", "exit code 1"),
    ],
)
def test_the_reason_of_a_failure_is_given(programs: Path, message: str, why: str) -> None:
    _program(programs, f'#!/bin/sh\necho "{message}" >&2\nexit 1\n')

    found = detect_backend()

    assert found.kind != "bubblewrap"
    assert f"{programs / 'bwrap'} does not work here: {why}" in found.why


def test_a_file_that_is_not_a_program_is_not_used(programs: Path) -> None:
    _program(programs, "not a program")

    assert "does not work here: OSError" in detect_backend().why


def test_a_program_of_the_current_folder_is_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "#!/bin/sh\ntouch started\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:bin:{tmp_path / 'none'}")

    detect_backend()

    assert not (tmp_path / "started").exists()
