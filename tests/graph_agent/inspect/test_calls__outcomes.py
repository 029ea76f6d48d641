from dataclasses import asdict
from pathlib import Path

import pytest

from graph_agent.config.paths import blob_dir
from graph_agent.ports import Outcome, SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from graph_agent.storage.sqlite.read_store import SqliteReadStore


async def _record(path: Path, output: str) -> Outcome:
    outcome = Outcome("success", output, metadata={"exit_code": 0})
    async with await Database.open(path) as database:
        journal = SqliteJournal(database, FileBlobs(blob_dir(path)), SystemClock())
        await journal.claim("t1", "call_a", 1, "run", None)
        await journal.finish("t1", "call_a", 1, "run", outcome)
    return outcome


def _read(path: Path) -> object:
    store = SqliteReadStore.open(path)
    [call] = store.evidence("t1", {"call_a": {"status": "executing"}})
    store.close()
    return call.attempts[0].outcome


@pytest.mark.parametrize("output", ["ok", "x" * (INLINE_BYTES + 1)])
async def test_small_and_large_outcomes_are_read_as_the_journal_recorded_them(tmp_path: Path, output: str) -> None:
    outcome = await _record(tmp_path / "db", output)

    assert _read(tmp_path / "db") == asdict(outcome)


async def test_an_outcome_whose_file_is_gone_damaged_or_swapped_is_empty(tmp_path: Path) -> None:
    await _record(tmp_path / "db", "x" * (INLINE_BYTES + 1))
    [file] = [path for path in (blob_dir(tmp_path / "db") / "objects").rglob("*") if path.is_file()]
    file.chmod(0o600)

    for content in (b"torn", FileBlobs(tmp_path).put(b"{}").encode(), None):
        file.unlink() if content is None else file.write_bytes(content)
        assert _read(tmp_path / "db") == {}


async def test_a_reference_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    await _record(tmp_path / "db", "ok")
    async with await Database.open(tmp_path / "db") as database:
        statement = """UPDATE journal SET outcome = '{"blob": "blob:sha256:../../etc/passwd"}'"""
        await database.write(lambda connection: connection.execute(statement))

    assert _read(tmp_path / "db") == {}
