from pathlib import Path

import pytest

from tools.files import FileVersion, restore_file, sha256_hex, snapshot_at
from tools.paths import PathRefused


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    folder.mkdir()
    return folder


def test_content_and_mode_come_back_and_a_second_time_changes_nothing(workspace: Path) -> None:
    file = workspace / "a.sh"
    file.write_bytes(b"new")
    former = FileVersion(b"old", 0o755)

    for _ in range(2):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"old", 0o755)
    assert [path.name for path in workspace.iterdir()] == ["a.sh"]


def test_a_created_file_goes_with_the_folders_made_for_it_as_far_as_they_are_empty(workspace: Path) -> None:
    file = workspace / "kept" / "made" / "deep" / "a.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"new")
    former = FileVersion(None, new_folder=str(workspace / "kept" / "made"))

    for _ in range(2):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert [path.name for path in workspace.rglob("*")] == ["kept"]


def test_a_folder_that_somebody_else_uses_stays(workspace: Path) -> None:
    file = workspace / "made" / "a.txt"
    file.parent.mkdir()
    file.write_bytes(b"new")
    (file.parent / "theirs").touch()

    restore_file(file, workspace, FileVersion(None, new_folder=str(file.parent)), expected=sha256_hex(b"new"))

    assert [path.name for path in workspace.rglob("*")] == ["made", "theirs"]


def test_a_removed_file_comes_back_with_its_folders(workspace: Path) -> None:
    restore_file(workspace / "d" / "a.txt", workspace, FileVersion(b"old", 0o600), expected=None)

    assert ((workspace / "d" / "a.txt").read_bytes(), (workspace / "d" / "a.txt").stat().st_mode & 0o777) == (
        b"old",
        0o600,
    )


@pytest.mark.parametrize("former", [FileVersion(b"old"), FileVersion(None)])
def test_a_file_that_is_not_what_was_expected_is_left_alone(workspace: Path, former: FileVersion) -> None:
    file = workspace / "a.txt"
    file.write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert file.read_bytes() == b"theirs"


def test_nothing_is_reached_through_a_link_or_outside_the_workspace(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_bytes(b"new")
    (workspace / "d").symlink_to(outside)

    for path in (workspace / "d" / "a.txt", outside / "a.txt"):
        with pytest.raises(PathRefused, match="outside the workspace"):
            restore_file(path, workspace, FileVersion(None), expected=sha256_hex(b"new"))
    (workspace / "real").mkdir()
    (workspace / "inner").symlink_to(workspace / "real")
    with pytest.raises(PathRefused, match="a link on the way"):
        snapshot_at(workspace / "inner" / "a.txt", workspace)

    assert (outside / "a.txt").read_bytes() == b"new"
