import os
import threading
from pathlib import Path

import pytest

from graph_agent.storage.private_files import (
    create_private_file,
    draft_file,
    exclusive_lock,
    exposed_files,
    files_of_other_users,
    make_private_folder,
    open_private_file,
    restrict_permissions,
    sync_folder,
)
from graph_agent.storage.sqlite.database import Database


def test_what_is_created_is_private_and_what_exists_keeps_its_content_and_permissions(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("kept")
    path.chmod(0o640)

    for _ in range(2):
        make_private_folder(tmp_path / "a" / "b")
    create_private_file(path)

    modes = [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("a", "a/b", "file")]
    assert (modes, path.read_text()) == (["0o700", "0o700", "0o640"], "kept")


def test_descriptors_are_not_inherited_and_syncing_leaves_none_open(tmp_path: Path) -> None:
    descriptor = open_private_file(tmp_path / "file")
    inheritable = os.get_inheritable(descriptor)
    os.close(descriptor)
    before = len(list(Path("/dev/fd").iterdir()))

    sync_folder(tmp_path)

    assert (inheritable, len(list(Path("/dev/fd").iterdir()))) == (False, before)


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


def test_a_copy_that_fails_halfway_leaves_the_existing_file_unchanged(tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.write_text("the one before")

    def fill_up(draft: Path) -> None:
        draft.write_text("half")
        draft.with_name(f"{draft.name}-journal").touch()
        raise OSError("full")

    with pytest.raises(OSError, match="full"), draft_file(target) as draft:
        fill_up(draft)

    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("copy", "the one before")]


async def test_files_that_others_can_read_are_named_and_made_private_on_request(
    database_path: Path, tmp_path: Path
) -> None:
    await (await Database.open(database_path)).close()
    fresh = exposed_files(database_path, [database_path.parent])
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o755)
    (logs / "agent.log").touch(mode=0o644)
    lock = next((tmp_path / "data").glob("*.locks"))
    opened = [database_path, lock, logs, logs / "agent.log"]
    for one in opened:
        one.chmod(0o755)

    named = exposed_files(database_path, [logs])
    left = restrict_permissions(named)

    assert (fresh, set(named), left, exposed_files(database_path, [logs])) == ([], set(opened), [], [])
    assert database_path.stat().st_mode & 0o777 == 0o700


async def test_the_target_of_a_link_is_left_alone(database_path: Path, tmp_path: Path) -> None:
    await (await Database.open(database_path)).close()
    (tmp_path / "theirs").touch(mode=0o644)
    database_path.with_name("agent.db.blobs").mkdir(mode=0o700)
    (database_path.with_name("agent.db.blobs") / "link").symlink_to(tmp_path / "theirs")

    assert (exposed_files(database_path), files_of_other_users(database_path)) == ([], [])


def test_a_missing_or_replaced_database_is_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database")
    notes.chmod(0o644)
    tmp_path.chmod(0o755)

    assert (exposed_files(notes), exposed_files(tmp_path)) == ([], [])
    assert exposed_files(tmp_path / "none.db", [tmp_path / "none"]) == []
