import os
from pathlib import Path

from graph_agent.config.paths import make_private_folder


def test_every_folder_it_makes_is_closed_to_others_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_private_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)

    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "c"]
    assert [oct(folder.stat().st_mode & 0o777) for folder in made] == ["0o700"] * 3


def test_a_folder_that_stands_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)

    make_private_folder(tmp_path)

    assert tmp_path.stat().st_mode & 0o777 == 0o755
