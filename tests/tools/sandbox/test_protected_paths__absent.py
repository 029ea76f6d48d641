import os
import stat
from pathlib import Path

from tools.sandbox.mounts import ProtectedNames
from tools.sandbox.protected_paths import WatchedPath, closed, put_back, remove_stale_placeholders, watched_paths

NAMES = ProtectedNames(folders=(".vscode", ".git"), files=(".envrc", ".gitattributes"), others=(".bashrc",))


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_placeholders_stand_for_what_is_absent_and_are_gone_afterwards(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()

    with closed((tmp_path, tmp_path / "gone"), NAMES) as placed:
        kinds = {path.name: path.is_socket() for path in placed}

    assert kinds == {".vscode": False, ".envrc": True, ".gitattributes": False}
    assert _names(tmp_path) == [".git"]


def test_the_last_one_in_a_folder_tidies_up_and_nobody_else(tmp_path: Path) -> None:
    with closed((tmp_path,), NAMES):
        with closed((tmp_path,), NAMES) as inner:
            both = len(inner)
        left = _names(tmp_path)

    assert (both, left, _names(tmp_path)) == (4, [".envrc", ".git", ".gitattributes", ".vscode"], [])


def test_what_a_dead_process_left_is_swept_and_what_only_looks_like_it_is_not(tmp_path: Path) -> None:
    os.mknod(tmp_path / ".envrc", stat.S_IFSOCK)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git").chmod(0o555)
    (tmp_path / ".vscode").mkdir()
    (tmp_path / ".gitattributes").write_text("")

    remove_stale_placeholders(tmp_path, NAMES)
    remove_stale_placeholders(tmp_path / "gone", NAMES)

    assert _names(tmp_path) == [".gitattributes", ".vscode"]


def test_what_came_to_be_or_changed_is_put_back_and_named(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    git.mkdir()
    (git / "config").touch()
    (tmp_path / ".vscode").symlink_to("settings")
    wires = watched_paths((tmp_path,), NAMES, [git])
    (git / "commondir").write_text("evil")
    (tmp_path / ".bashrc").touch()
    (git / "hooks").mkdir()
    (git / "hooks" / "pre-commit").touch()
    (tmp_path / ".vscode").unlink()
    (tmp_path / ".vscode").mkdir()

    torn = put_back(wires)

    assert WatchedPath(git / "config", None) not in wires
    assert set(torn) == {git / "commondir", git / "hooks", tmp_path / ".vscode", tmp_path / ".bashrc"}
    assert (_names(tmp_path), _names(git)) == ([".git", ".vscode"], ["config"])
    assert (tmp_path / ".vscode").readlink() == Path("settings")


def test_nothing_is_named_where_nothing_changed(tmp_path: Path) -> None:
    assert put_back(watched_paths((tmp_path,), NAMES, [tmp_path])) == ()
