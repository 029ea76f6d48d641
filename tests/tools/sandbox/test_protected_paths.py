import os
import stat
import tempfile
from pathlib import Path

import pytest

from tests.fakes.sandboxes import NAMES
from tools.sandbox.placeholders import (
    WatchedPath,
    placeholders,
    remove_stale_placeholders,
    restore,
    watched_paths,
)
from tools.sandbox.protected_paths import (
    Mount,
    ProtectedNames,
    SandboxRules,
    find_closed_places,
    key_stores,
    private_folder,
    repository_mounts,
    stand_in_file,
)

_FEW = ProtectedNames(folders=(".vscode", ".git"), files=(".envrc", ".gitattributes"), removed=(".bashrc",))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_protected_names_are_found_some_levels_down_but_not_searched(tmp_path: Path) -> None:
    for name in (".vscode/.env", "a/b/.envrc", "node_modules/p/.env", "a/b/c/d/e/.env", "src/main.py", "real/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    # A link closes what it leads to, if that is in the folder.
    (tmp_path / ".idea").symlink_to("real")
    (tmp_path / ".mcp.json").symlink_to("/etc")

    found = set(find_closed_places(SandboxRules((tmp_path,), names=NAMES)).protected)

    closed = (".vscode", "a/b/.envrc", "real")
    assert found == {Mount(tmp_path / name, "read") for name in closed}
    assert find_closed_places(SandboxRules((tmp_path / "gone",), names=NAMES)) == ((), (), ())


def _repository(folder: Path) -> Path:
    (folder / "hooks").mkdir(parents=True)
    (folder / "config").touch()
    return folder


def test_a_repository_stays_writable_except_for_what_runs_programs(tmp_path: Path) -> None:
    git = _repository(tmp_path / ".git")
    sub = _repository(git / "modules" / "sub")

    assert set(repository_mounts(git)) == {
        Mount(git, "write"),
        Mount(git / "config", "read"),
        Mount(git / "hooks", "read"),
        Mount(sub / "config", "read"),
        Mount(sub / "hooks", "read"),
    }


def test_the_repository_behind_a_worktree_is_treated_alike(tmp_path: Path) -> None:
    git = _repository(tmp_path / "main" / ".git")
    own = git / "worktrees" / "w"
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    pointer = tmp_path / "w" / ".git"
    pointer.parent.mkdir()
    pointer.write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{pointer}\n")

    found = set(repository_mounts(pointer))

    read = [pointer, git / "config", git / "hooks", own / "commondir", own / "gitdir"]
    assert found == {Mount(git, "write"), Mount(own, "write"), *(Mount(path, "read") for path in read)}


def test_the_folder_of_a_submodule_is_writable(tmp_path: Path) -> None:
    module = _repository(tmp_path / ".git" / "modules" / "sub")
    (module / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../../sub\n")
    pointer = tmp_path / "sub" / ".git"
    pointer.parent.mkdir()
    pointer.write_text("gitdir: ../.git/modules/sub\n")

    assert Mount(module, "write") in set(repository_mounts(pointer))


@pytest.mark.parametrize("text", ["gitdir: {}/other/.git", "gitdir: /nowhere", "something else", ""])
def test_an_unconfirmed_git_file_is_closed_and_opens_nothing(tmp_path: Path, text: str) -> None:
    _repository(tmp_path / "other" / ".git")
    pointer = tmp_path / ".git"
    pointer.write_text(text.format(tmp_path))

    assert list(repository_mounts(pointer)) == [Mount(pointer, "read")]


def test_absent_names_have_placeholders_until_the_last_holder_of_the_folder_is_done(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    rules = SandboxRules((tmp_path, tmp_path / "gone"), names=_FEW)
    with placeholders(rules) as placed:
        kinds = {path.name: path.is_socket() for path in placed}
        with placeholders(rules) as inner:
            again = len(inner)
        left = _names(tmp_path)

    assert (kinds, again) == ({".vscode": False, ".envrc": True, ".gitattributes": False}, 3)
    assert (left, _names(tmp_path)) == ([".envrc", ".git", ".gitattributes", ".vscode"], [".git"])


def test_placeholders_of_a_dead_process_are_removed_and_lookalikes_are_not(tmp_path: Path) -> None:
    os.mknod(tmp_path / ".envrc", stat.S_IFSOCK)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git").chmod(0o555)
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".gitattributes").write_text("")

    remove_stale_placeholders(SandboxRules((tmp_path, tmp_path / "gone"), names=_FEW))

    assert _names(tmp_path) == [".gitattributes", ".vscode"]


def test_new_and_changed_paths_are_restored_and_named(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "config").touch()
    (tmp_path / ".vscode").symlink_to("settings")
    watched = watched_paths(SandboxRules((tmp_path,), names=_FEW), [git])
    unchanged = restore(watched)
    (git / "commondir").write_text("evil")
    (tmp_path / ".bashrc").touch()
    (git / "hooks").mkdir()
    (git / "hooks" / "pre-commit").touch()
    (tmp_path / ".vscode").unlink()
    (tmp_path / ".vscode").mkdir()

    restored = restore(watched)

    assert (WatchedPath(git / "config", None) in watched, unchanged) == (False, ())
    assert set(restored) == {git / "commondir", git / "hooks", tmp_path / ".vscode", tmp_path / ".bashrc"}
    assert (_names(tmp_path), _names(git)) == ([".git", ".vscode"], ["config"])
    assert (tmp_path / ".vscode").readlink() == Path("settings")


def test_existing_key_stores_are_found_with_links_resolved(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    (tmp_path / ".ssh").symlink_to("dotfiles")
    (tmp_path / "config" / "gh").mkdir(parents=True)
    (tmp_path / ".gitconfig").touch()

    found = key_stores(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "config")})

    here = [path for path in found if path.is_relative_to(tmp_path)]
    assert here == [tmp_path / "dotfiles", tmp_path / "config" / "gh"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("temporary")
def test_a_name_has_one_folder_that_nobody_else_can_enter_until_it_is_old() -> None:
    folder, old, empty = private_folder("t1"), private_folder("old"), stand_in_file("empty")
    (old / "file").touch()
    os.utime(old, (0, 0))

    assert (private_folder("t1") == folder, private_folder("t2") == folder, old.exists()) == (True, False, False)
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)
    assert (stand_in_file("empty"), empty.read_bytes(), empty.stat().st_mode & 0o733) == (empty, b"", 0o400)


def test_a_link_in_place_of_the_folder_is_not_followed(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir(mode=0o700)
    (temporary / f"graph-agent-{os.geteuid()}").symlink_to("elsewhere")

    with pytest.raises(PermissionError, match="only you can enter"):
        private_folder("t1")
