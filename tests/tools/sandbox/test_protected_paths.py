from pathlib import Path

from tests.fakes.walls import NAMES
from tools.sandbox.mounts import Mount
from tools.sandbox.protected_paths import protected_mounts


def test_protected_names_are_found_some_levels_down_and_their_insides_are_not_looked_at(tmp_path: Path) -> None:
    for name in (".vscode/.env", "a/b/.envrc", "node_modules/p/.env", "a/b/c/d/e/.env", "src/main.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    found = set(protected_mounts(tmp_path, NAMES))

    assert found == {Mount(tmp_path / ".vscode", "read"), Mount(tmp_path / "a/b/.envrc", "read")}


def test_of_a_link_under_a_protected_name_the_target_in_the_folder_is_meant(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / ".idea").symlink_to("real")
    (tmp_path / ".vscode").symlink_to("/etc")

    assert list(protected_mounts(tmp_path, NAMES)) == [Mount(tmp_path / "real", "read")]


def test_a_folder_that_cannot_be_read_holds_nothing(tmp_path: Path) -> None:
    assert list(protected_mounts(tmp_path / "gone", NAMES)) == []
