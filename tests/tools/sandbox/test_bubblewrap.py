from pathlib import Path

from tools.sandbox.bubblewrap import NAMESPACE_OPTIONS, bubblewrap_arguments
from tools.sandbox.mounts import Mount, SandboxRules


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


def test_an_open_network_is_shared(tmp_path: Path) -> None:
    assert "--share-net" in bubblewrap_arguments("bwrap", SandboxRules((tmp_path,), network=True), tmp_path, ())


def test_the_workspace_is_mounted_over_the_private_folder_and_closed_paths_over_both(tmp_path: Path) -> None:
    private, workspace = tmp_path / "private", tmp_path / "ws"
    workspace.mkdir()
    closed = workspace / ".vscode"

    mounts = _mounts(SandboxRules((workspace,)), private, Mount(closed, "read"))

    assert mounts[0] == ("--bind", str(private), "/tmp")
    assert mounts[-2:] == [("--bind", str(workspace), str(workspace)), ("--ro-bind", str(closed), str(closed))]


def test_a_workspace_that_is_the_temporary_folder_is_not_replaced(tmp_path: Path) -> None:
    assert ("--bind", "/tmp", "/tmp") in _mounts(SandboxRules((Path("/tmp"),)), tmp_path)


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

    emptied = [words[at + 1] for at, word in enumerate(words) if word == "--tmpfs" and words[at + 1] != "/run"]
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
