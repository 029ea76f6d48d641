from pathlib import Path

from graph_agent.storage.private_files import exposed_files, files_of_other_users, restrict_permissions
from graph_agent.storage.sqlite.database import Database


async def test_what_others_may_read_is_named_with_all_that_lies_beside_and_closed_on_request(
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


async def test_where_a_link_leads_to_is_left_alone(database_path: Path, tmp_path: Path) -> None:
    await (await Database.open(database_path)).close()
    (tmp_path / "theirs").touch(mode=0o644)
    database_path.with_name("agent.db.blobs").mkdir(mode=0o700)
    (database_path.with_name("agent.db.blobs") / "link").symlink_to(tmp_path / "theirs")

    assert (exposed_files(database_path), files_of_other_users(database_path)) == ([], [])


def test_what_is_not_there_is_private(tmp_path: Path) -> None:
    assert exposed_files(tmp_path / "none.db", [tmp_path / "none"]) == []


def test_what_stands_in_place_of_a_database_is_somebody_elses(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database")
    notes.chmod(0o644)
    tmp_path.chmod(0o755)

    assert (exposed_files(notes), exposed_files(tmp_path)) == ([], [])
