from dataclasses import asdict
from pathlib import Path

from graph_agent.config.paths import blob_dir
from graph_agent.inspect.calls import read_outcome
from graph_agent.ports import Outcome, SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal


async def _recorded(path: Path, outcome: Outcome) -> str:
    async with await Database.open(path) as database:
        journal = SqliteJournal(database, FileBlobs(blob_dir(path)), SystemClock())
        await journal.claim("t1", "call_a", 1, "life", None)
        await journal.finish("t1", "call_a", 1, "life", outcome)
        text = await database.run(
            lambda connection: connection.execute("SELECT outcome FROM journal").fetchone()[0]
        )
    return str(text)


async def test_outcomes_small_and_big_are_read_as_the_journal_recorded_them(tmp_path: Path) -> None:
    for name, output in (("small", "ok"), ("big", "x" * (INLINE_BYTES + 1))):
        outcome = Outcome("success", output, metadata={"exit_code": 0})

        text = await _recorded(tmp_path / name, outcome)

        assert read_outcome(text, tmp_path / name) == asdict(outcome)


async def test_an_outcome_whose_file_is_gone_torn_or_swapped_is_empty(tmp_path: Path) -> None:
    text = await _recorded(tmp_path / "db", Outcome("success", "x" * (INLINE_BYTES + 1)))
    [file] = [path for path in (blob_dir(tmp_path / "db") / "objects").rglob("*") if path.is_file()]
    file.chmod(0o600)

    for content in (b"torn", FileBlobs(tmp_path).put(b"{}").encode(), None):
        file.unlink() if content is None else file.write_bytes(content)
        assert read_outcome(text, tmp_path / "db") == {}


def test_a_reference_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    assert read_outcome('{"blob": "blob:sha256:../../etc/passwd"}', tmp_path / "db") == {}
