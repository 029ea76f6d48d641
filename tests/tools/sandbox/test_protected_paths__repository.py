from pathlib import Path

import pytest

from tools.sandbox.mounts import Mount
from tools.sandbox.protected_paths import repository_mounts


def _repository(folder: Path) -> Path:
    (folder / "hooks").mkdir(parents=True)
    (folder / "config").touch()
    return folder


def test_a_repository_stays_writable_but_for_what_runs_programs(tmp_path: Path) -> None:
    git = _repository(tmp_path / ".git")
    sub = _repository(git / "modules" / "sub")

    assert set(repository_mounts(git)) == {
        Mount(git, "write"),
        Mount(git / "config", "read"),
        Mount(git / "hooks", "read"),
        Mount(sub / "config", "read"),
        Mount(sub / "hooks", "read"),
    }


def test_of_a_worktree_the_repository_behind_it_is_opened_and_guarded_alike(tmp_path: Path) -> None:
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


def test_of_a_submodule_the_folder_in_the_repository_above_is_opened(tmp_path: Path) -> None:
    module = _repository(tmp_path / ".git" / "modules" / "sub")
    (module / "config").write_text("[core]\n\tbare = false\n\tworktree = ../../../sub\n")
    pointer = tmp_path / "sub" / ".git"
    pointer.parent.mkdir()
    pointer.write_text("gitdir: ../.git/modules/sub\n")

    assert Mount(module, "write") in set(repository_mounts(pointer))


@pytest.mark.parametrize("text", ["gitdir: {}/other/.git", "gitdir: /nowhere", "something else", ""])
def test_a_file_whose_claim_nobody_confirms_is_closed_and_opens_nothing(tmp_path: Path, text: str) -> None:
    _repository(tmp_path / "other" / ".git")
    pointer = tmp_path / ".git"
    pointer.write_text(text.format(tmp_path))

    assert list(repository_mounts(pointer)) == [Mount(pointer, "read")]
