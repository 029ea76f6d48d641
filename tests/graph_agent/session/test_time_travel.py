from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.ports import Outcome, SystemClock
from graph_agent.session.time_travel import JournalFacts, load_journal_facts
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    async with await Database.open(tmp_path / "a.db") as database:
        yield SqliteJournal(database, FileBlobs(tmp_path / "blobs"), SystemClock())


def state(records: Mapping[str, str], *asked: str) -> dict[str, Any]:
    calls: list[Any] = [{"id": call_id, "name": "bash", "args": {}} for call_id in asked]
    return {
        "calls": {call_id: {"call_id": call_id, "status": status} for call_id, status in records.items()},
        "messages": [AIMessage("", tool_calls=calls)],
    }


async def test_of_open_calls_is_told_which_have_a_result_and_which_may_have_had_an_effect(
    journal: SqliteJournal,
) -> None:
    for call_id in ("finished", "broken", "spared", "over"):
        await journal.claim("t", call_id, 1, "life", None)
    await journal.finish("t", "finished", 1, "life", Outcome("error", "out"))
    await journal.finish("t", "over", 1, "life", Outcome("success", "out"))
    await journal.record_interruption("t", "spared", 1, "life", "not_started")
    records = {"over": "success", "broken": "awaiting_approval", "spared": "pending", "new": "pending"}

    found = await load_journal_facts("t", state(records, "over", "broken", "spared", "new", "finished"), journal)

    assert found == JournalFacts(frozenset({"finished"}), frozenset({"finished", "broken"}))


async def test_a_thread_without_a_state_has_nothing_earlier(journal: SqliteJournal) -> None:
    assert await load_journal_facts("t", {}, journal) == JournalFacts()
