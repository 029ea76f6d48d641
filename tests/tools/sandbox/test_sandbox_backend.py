import os
from pathlib import Path

import pytest

from tests.fakes.sandboxes import needs
from tools.sandbox import sandbox
from tools.sandbox.protected_paths import Mount, SandboxRules, is_folder, ordered_mounts, path_exists
from tools.sandbox.sandbox import NAMESPACE_OPTIONS, bubblewrap_arguments, detect_backend


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def _program(folder: Path, text: str) -> None:
    (folder / "bwrap").write_text(text)
    (folder / "bwrap").chmod(0o755)


def test_bubblewrap_is_used_if_it_starts_and_landlock_otherwise_with_the_reason(programs: Path) -> None:
    needs("landlock")

    without = detect_backend()
    _program(programs, "#!/bin/sh\nexit 0\n")
    detect_backend_again = sandbox.detect_backend()

    assert (without.kind, without.why) == ("landlock", "bubblewrap (bwrap) is not installed")
    assert (detect_backend_again.kind, detect_backend_again.program) == ("bubblewrap", str(programs / "bwrap"))


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
        (None, "OSError"),
    ],
)
def test_the_reason_of_a_failure_is_given(programs: Path, message: str | None, why: str) -> None:
    script = f'#!/bin/sh\necho "{message}" >&2\nexit 1\n'
    _program(programs, "not a program" if message is None else script)

    found = detect_backend()

    assert found.kind != "bubblewrap"
    assert f"{programs / 'bwrap'} does not work here: {why}" in found.why


def test_a_program_of_the_current_folder_is_never_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _program(tmp_path, "#!/bin/sh\ntouch started\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:bin:{tmp_path / 'none'}")

    detect_backend()

    assert not (tmp_path / "started").exists()


def _mounts(rules: SandboxRules, private: Path, *more: Mount) -> list[tuple[str, ...]]:
    words = bubblewrap_arguments("/usr/bin/bwrap", rules, private, more)
    start = words.index("--bind")
    return [
        tuple(words[at : at + 3])
        for at, word in enumerate(words)
        if word in ("--bind", "--ro-bind") and at >= start
    ]


def test_bubblewrap_comes_first_and_the_caller_appends_the_command(tmp_path: Path) -> None:
    words = bubblewrap_arguments("/usr/bin/bwrap", SandboxRules((tmp_path,)), tmp_path, ())

    assert (tuple(words[: len(NAMESPACE_OPTIONS) + 1]), words[-1]) == (("/usr/bin/bwrap", *NAMESPACE_OPTIONS), "--")
    assert "--share-net" not in words
    assert "--share-net" in bubblewrap_arguments("bwrap", SandboxRules((tmp_path,), network=True), tmp_path, ())
    # A workspace that is the temporary folder itself is not replaced.
    assert ("--bind", "/tmp", "/tmp") in _mounts(SandboxRules((Path("/tmp"),)), tmp_path)


def test_the_workspace_is_mounted_over_the_private_folder_and_closed_paths_over_both(tmp_path: Path) -> None:
    private, workspace = tmp_path / "private", tmp_path / "ws"
    workspace.mkdir()
    closed = workspace / ".vscode"

    mounts = _mounts(SandboxRules((workspace,)), private, Mount(closed, "read"))

    assert mounts[0] == ("--bind", str(private), "/tmp")
    assert mounts[-2:] == [("--bind", str(workspace), str(workspace)), ("--ro-bind", str(closed), str(closed))]


def test_hidden_folders_and_files_appear_empty(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".netrc").write_text("secret")
    hidden = (tmp_path / ".ssh", tmp_path / ".netrc", tmp_path / "gone")

    words = " ".join(bubblewrap_arguments("bwrap", SandboxRules((tmp_path,), hidden=hidden), tmp_path, ()))

    assert f"--tmpfs {tmp_path}/.ssh --remount-ro {tmp_path}/.ssh" in words
    assert f".empty {tmp_path}/.netrc" in words
    assert "gone" not in words


def test_a_hidden_folder_hides_its_content_except_below_an_opened_folder(tmp_path: Path) -> None:
    for name in ("data/blobs", "data/ws/.ssh"):
        (tmp_path / name).mkdir(parents=True)
    hidden = (tmp_path / "data", tmp_path / "data/blobs", tmp_path / "data/ws/.ssh")
    rules = SandboxRules((tmp_path / "data/ws",), hidden=hidden, visible=(tmp_path,))

    words = bubblewrap_arguments("bwrap", rules, tmp_path, ())

    emptied = [
        words[at + 1]
        for at, word in enumerate(words)
        if word == "--tmpfs" and words[at + 1].startswith(str(tmp_path))
    ]
    assert emptied == [str(tmp_path / "data"), str(tmp_path / "data/ws/.ssh")]


def test_only_needed_temporary_files_are_visible(tmp_path: Path) -> None:
    workspace, programs = tmp_path / "ws", tmp_path / "bin"
    workspace.mkdir()
    programs.mkdir()

    visible = (programs, Path("/usr/bin"), workspace)

    mounts = _mounts(SandboxRules((workspace,), visible=visible), tmp_path)

    assert ("--ro-bind", str(programs), str(programs)) in mounts
    assert ("--ro-bind", "/usr/bin", "/usr/bin") not in mounts
    assert ("--ro-bind", str(workspace), str(workspace)) not in mounts


def test_outer_folders_come_first_and_the_strictest_mount_of_a_path_wins() -> None:
    home, inner, key = Path("/home"), Path("/home/work"), Path("/home/work/key")
    mounts = [Mount(key, "read"), Mount(inner, "write"), Mount(key, "empty"), Mount(home, "empty")]

    assert list(ordered_mounts(mounts)) == [Mount(home, "empty"), Mount(inner, "write"), Mount(key, "empty")]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: another user's view, which root alone can take")
def test_a_path_in_a_folder_that_may_not_be_entered_counts_as_absent(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").touch()
    os.seteuid(65534)
    try:
        found = (path_exists(closed / "file"), is_folder(closed / "file"))
    finally:
        os.seteuid(0)

    here, gone = closed / "file", closed / "gone"
    assert found == (False, False)
    assert [(path_exists(path), is_folder(path)) for path in (closed, here, gone)] == [
        (True, True),
        (True, False),
        (False, False),
    ]
