import asyncio
import sqlite3
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.inspect import Reader
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from tests.fakes.database_rows import START, Rows
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text

_DIGEST = "f1" * 32


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("search") / "agent.db"
    replies = (
        calls(("c1", "read_a", {"path": "src/compaction.py"})),
        text('He said "NOT now": 100% of *.py'),
        text(f"部署已经完成 🚀 deploy完成 {_DIGEST}"),
    )
    play(path, "please compact the Naïve log", "second", replies=replies)
    return path


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def found(database: Path, query: str) -> list[tuple[str, str]]:
    with read_database(database) as reader:
        return [(hit.role, "|".join(hit.snippet[a:b] for a, b in hit.marks)) for hit in reader.search(query)]


@pytest.mark.parametrize(
    ("query", "hits"),
    [
        ("COMPACT", [("assistant", "compact"), ("user", "compact")]),
        ("compact log", [("user", "compact|log")]),
        ("paction", [("assistant", "paction")]),
        ("src/compaction.py", [("assistant", "src/compaction.py")]),
        ('"NOT', [("assistant", '"NOT')]),
        ("*.py", [("assistant", "*.py")]),
        ("100%", [("assistant", "100%")]),
        ("naïve", [("user", "Naïve")]),
        ("NAÏVE", [("user", "Naïve")]),
        ("已经", [("assistant", "已经")]),
        ("署", [("assistant", "署")]),
        ("🚀", [("assistant", "🚀")]),
        ("deploy", [("assistant", "deploy")]),
        ("deploy 部署", [("assistant", "部署|deploy")]),
        ("second", [("user", "second")]),
        (_DIGEST, [("assistant", _DIGEST)]),
        (f"{_DIGEST[:40]}0", []),
        ("compact OR second", []),
        ("'; DROP TABLE", []),
        ("words:compact NEAR(", []),
        ("system", []),
        ("", []),
        ("x" * 100_000, []),
    ],
)
def test_every_word_must_occur_and_none_is_an_operator(
    database: Path, query: str, hits: list[tuple[str, str]]
) -> None:
    assert found(database, query) == hits


def test_a_hit_shows_where_to_resume_the_thread(database: Path) -> None:
    with read_database(database) as reader:
        [hit] = reader.search("second")
        state = reader.inspection(hit.thread_id, hit.checkpoint_id).state

    assert (hit.thread_id, hit.title, hit.snippet) == ("thread-1", "please compact the Naïve log", "second")
    assert state.values["messages"][-1]["content"] == "second"


def test_what_is_not_in_the_index_yet_is_found_beside_what_is(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    play(path, "alpha one", "alpha two")

    _execute(path, "DELETE FROM search_entries WHERE seq = 2")

    assert found(path, "alpha") == [("user", "alpha"), ("user", "alpha")]


def test_without_an_index_everything_is_scanned(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.message("user", {"content": "scanned all the same"})

    [hit] = reader.search("SAME scanned")

    assert (hit.snippet, hit.marks, hit.at, hit.checkpoint_id) == (
        "scanned all the same",
        ((0, 7), (16, 20)),
        START,
        None,
    )


def test_a_word_that_a_stored_message_holds_escaped_is_found_by_a_scan_too(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.message("user", {"content": 'it said "no"'})

    hits = [list(reader.search(words)) for words in ('"no"', 'said "no"', '"yes"')]

    assert [len(found) for found in hits] == [1, 1, 0]


def test_with_an_index_that_is_damaged_everything_is_scanned(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    play(path, "alpha one")

    _execute(path, "UPDATE search_index_data SET block = x'00'")

    assert found(path, "alpha") == [("user", "alpha")]


async def test_a_pruned_hit_names_the_next_checkpoint_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    ends = await asyncio.to_thread(play, path, "alpha", "beta", "gamma")
    async with await Database.open(path) as opened:
        await CheckpointSaver(opened).prune_thread("thread-1", 1)

    with read_database(path) as reader:
        [hit] = reader.search("alpha")
        assert hit.checkpoint_id == ends[1]


def test_a_long_message_is_shown_around_its_hit_on_one_line(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.message("tool", {"content": "x " * 500 + "the\nneedle\t" + "y " * 500})

    [hit] = islice(reader.search("needle"), 5)

    assert "the needle y" in hit.snippet
    assert (hit.snippet[0], hit.snippet[-1], len(hit.snippet) < 170) == ("…", "…", True)


def test_a_summary_is_found_by_the_messages_it_stands_for_alone(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.message("user", {"content": "needle"})
    rows.message("summary", {"content": "the user asked for a needle"})

    assert [hit.role for hit in reader.search("needle")] == ["user"]
