import os
import threading
from pathlib import Path

from graph_agent.storage.private_files import (
    create_private_file,
    exclusive_lock,
    make_private_folder,
    open_private_file,
    sync_folder,
)


def test_missing_folders_are_made_private_all_the_way(tmp_path: Path) -> None:
    make_private_folder(tmp_path / "a" / "b")
    make_private_folder(tmp_path / "a" / "b")

    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("a", "a/b")] == ["0o700", "0o700"]


def test_a_file_that_stands_keeps_its_content_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    path.chmod(0o640)

    create_private_file(path)

    assert (path.read_text(), oct(path.stat().st_mode & 0o777)) == ("kept", "0o640")


def test_descriptors_are_not_inherited(tmp_path: Path) -> None:
    descriptor = open_private_file(tmp_path / "file")

    inheritable = os.get_inheritable(descriptor)

    os.close(descriptor)
    assert not inheritable


def test_a_second_taker_waits_for_the_first(tmp_path: Path) -> None:
    path, order, taken = tmp_path / "lock", list[str](), threading.Event()

    def take() -> None:
        taken.set()
        with exclusive_lock(path):
            order.append("second")

    with exclusive_lock(path):
        other = threading.Thread(target=take)
        other.start()
        taken.wait(10)
        other.join(0.05)
        order.append("first")
    other.join(10)

    assert order == ["first", "second"]


def test_syncing_a_folder_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(list(Path("/dev/fd").iterdir()))

    sync_folder(tmp_path)

    assert len(list(Path("/dev/fd").iterdir())) == before
