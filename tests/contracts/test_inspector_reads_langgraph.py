"""What LangGraph's own SQLite saver wrote, the inspector shows as LangGraph itself would, and changes nothing."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import StateSnapshot
from typer.testing import CliRunner

from graph_agent.app.reader import read_database
from graph_agent.cli.main import app
from graph_agent.errors import DamagedDatabase, StorageError
from graph_agent.inspect import END, START, Inspection
from graph_agent.storage.sqlite.schema import open_connection
from tests.fakes.foreign_graphs import ASKED, GRAPHS, asking, config_of, play_all


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("foreign") / "graphs.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        play_all(saver)
    return path


@pytest.fixture
def path(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(played, tmp_path / "graphs.db"))


def state_by_langgraph(path: Path, thread_id: str) -> StateSnapshot:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        return GRAPHS[thread_id](saver).get_state(config_of(thread_id))


def inspected(path: Path, thread_id: str) -> Inspection:
    with read_database(path) as reader:
        return reader.inspection(thread_id)


def insert(path: Path, thread_id: str, kind: str, blob: bytes) -> None:
    row = (thread_id, "x", kind, blob, b"{}")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata) VALUES (?, ?, ?, ?, ?)",
            row,
        )
    connection.close()


def texts(messages: list[Any]) -> list[tuple[str, Any]]:
    return [
        (item.type, item.content) if isinstance(item, BaseMessage) else (item["type"], item["content"])
        for item in messages
    ]


@pytest.mark.parametrize("thread_id", GRAPHS)
def test_next_nodes_tasks_questions_and_values_are_those_of_langgraph(path: Path, thread_id: str) -> None:
    snapshot = state_by_langgraph(path, thread_id)

    found = inspected(path, thread_id)

    state = found.state
    assert sorted(state.next) == sorted(snapshot.next)
    assert [item["id"] for item in state.interrupts] == [item.id for item in snapshot.interrupts]
    assert sorted((task.node, task.id) for task in state.tasks if task.id) == sorted(
        (task.name, task.id) for task in snapshot.tasks
    )
    assert state.values.keys() == snapshot.values.keys()
    # LangGraph shows the values as if what the finished ones of several tasks wrote had been applied already.
    waiting = [write.value[0] for write in state.pending_writes if write.channel == "parts"]
    assert sorted(map(str, [*state.values.get("parts", []), *waiting])) == sorted(
        map(str, snapshot.values.get("parts", []))
    )
    assert [state.values.get(name) for name in ("log", "usage", "calls")] == [
        snapshot.values.get(name) for name in ("log", "usage", "calls")
    ]
    assert texts(state.values.get("messages", [])) == texts(snapshot.values.get("messages", []))


@pytest.mark.parametrize("thread_id", GRAPHS)
def test_every_older_checkpoint_is_there_with_its_values(path: Path, thread_id: str) -> None:
    with SqliteSaver.from_conn_string(str(path)) as saver:
        snapshots = list(GRAPHS[thread_id](saver).get_state_history(config_of(thread_id)))

    with read_database(path) as reader:
        history = reader.history(thread_id)
        states = [reader.inspection(thread_id, entry.checkpoint_id).state for entry in history]

    assert [entry.checkpoint_id for entry in history] == [
        snapshot.config["configurable"]["checkpoint_id"] for snapshot in snapshots
    ]
    assert [state.values.get("parts", state.values.get("log")) or [] for state in states] == [
        snapshot.values.get("parts", snapshot.values.get("log")) or [] for snapshot in snapshots
    ]
    assert [sorted(state.next) for state in states[1:]] == [sorted(snapshot.next) for snapshot in snapshots[1:]]


def test_a_file_from_before_writes_named_their_tasks_is_read_the_same(path: Path) -> None:
    tasks = {thread_id: inspected(path, thread_id).state.tasks for thread_id in GRAPHS}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    connection.close()

    assert {thread_id: inspected(path, thread_id).state.tasks for thread_id in GRAPHS} == tasks


def test_values_of_any_type_are_shown_as_what_they_are(path: Path) -> None:
    values = inspected(path, ASKED).state.values

    assert {name: values[name] for name in ("blob", "point", "order", "mood", "ids", "price")} == {
        "blob": {"__type__": "bytes", "size": 2},
        "point": {"__type__": "tests.fakes.foreign_graphs.Point", "x": 1, "y": 2},
        "order": {
            "__type__": "tests.fakes.foreign_graphs.Order",
            "name": "o",
            "at": {"__type__": "datetime.datetime", "value": "2026-01-02T00:00:00"},
        },
        "mood": {"__type__": "tests.fakes.foreign_graphs.Mood", "value": "good"},
        "ids": {"__type__": "builtins.set", "value": [7]},
        "price": {"__type__": "decimal.Decimal", "value": "1.5"},
    }


def test_threads_are_listed_with_what_they_wait_for_and_subgraphs_as_threads_within(path: Path) -> None:
    with read_database(path) as reader:
        threads = {thread.thread_id: thread for thread in reader.threads()}
        within = reader.inspection("nested").threads_within
        inner = reader.inspection(within[0])
        newest = reader.resolve("", "/some/folder").thread_id

    assert {name: (one.status, one.turns, one.title) for name, one in threads.items() if "/child" not in name} == {
        ASKED: ("waiting", 1, "find it"),
        "done": ("idle", 1, "find it"),
        "logged": ("idle", 0, ""),
        "nested": ("waiting", 0, ""),
        "failed": ("resumable", 0, ""),
    }
    assert [name for name in threads if "/child" in name] == list(within)
    assert (threads[within[0]].parent_thread, inner.state.next, inner.state.values["parts"]) == (
        "nested",
        ("check",),
        ["in", "dug"],
    )
    assert newest == "failed"
    assert all(one.created_at <= one.updated_at and one.updated_at.endswith("Z") for one in threads.values())


def test_the_way_through_the_graph_is_what_was_seen_of_it(path: Path) -> None:
    with read_database(path) as reader:
        head = reader.thread("done").checkpoint_id or ""
        edges = reader.visits("done", head).edges

    joined = {(start, end): 1 for start in ("side", "tool") for end in ("ask", "ask2")}
    ends = {("ask", "last"): 1, ("ask2", "last"): 1, ("last", END): 1}
    assert edges == {(START, "plan"): 1, ("plan", "side"): 1, ("plan", "tool"): 1, **joined, **ends}


async def test_what_the_asynchronous_saver_wrote_is_read_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "aio.db"
    async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
        await asking(saver).ainvoke({"messages": [HumanMessage("find it", id="h1")]}, config_of("aio"))

        found = inspected(path, "aio")

    assert (found.status, sorted(found.state.next)) == ("waiting", ["ask", "ask2"])


def test_everything_a_reader_is_asked_has_an_answer(path: Path) -> None:
    with read_database(path) as reader:
        answers = [
            reader.calls(),
            reader.calls("done"),
            reader.approvals(),
            reader.interrupted(),
            reader.grants(),
            reader.statistics(),
            reader.done("done"),
            reader.attempts("done", "c1"),
            reader.approval_answer("done", "c1"),
            reader.shared_call_ids(),
        ]
        transcript = [(entry.role, entry.body["content"]) for entry in reader.transcript("done")]

    assert [bool(answer) for answer in answers] == [False] * len(answers)
    assert transcript == [("user", "find it"), ("assistant", "looking"), ("tool", "found")]


def test_reading_changes_nothing_and_leaves_nothing_behind(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    with read_database(path) as reader:
        for thread in reader.threads():
            reader.inspection(thread.thread_id)

    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_what_nobody_else_can_read_is_shown_as_its_kind_and_size_and_never_loaded(path: Path) -> None:
    trap = b"cposix\nsystem\n(S'touch /tmp/trapped'\ntR."
    odd = ormsgpack.packb({"v": 4, "id": "x", "channel_values": {"odd": ormsgpack.Ext(99, b"\xc1?")}})
    rows = [("pickled", "pickle", trap), ("secret", "msgpack+aes", b"\x00" * 32), ("odd", "msgpack", odd)]
    for row in rows:
        insert(path, *row)

    assert [dict(inspected(path, thread_id).state.values) for thread_id, _, _ in rows] == [
        {"checkpoint": {"__type__": "pickle", "size": len(trap)}},
        {"checkpoint": {"__type__": "msgpack+aes", "size": 32}},
        {"odd": {"__type__": "extension 99", "size": 2}},
    ]


def test_messages_in_the_older_json_form_are_messages(path: Path) -> None:
    fields = {"content": "hello", "type": "human", "id": "m1"}
    kind = ["langchain", "schema", "messages", "HumanMessage"]
    stored = {"lc": 1, "type": "constructor", "id": kind, "kwargs": fields}
    blob = json.dumps({"v": 1, "id": "x", "channel_values": {"messages": [stored]}}).encode()
    insert(path, "old", "json", blob)

    assert inspected(path, "old").state.values == {"messages": [fields]}


@contextmanager
def write_protected(path: Path) -> Iterator[Path]:
    """The file, and a log beside it, in a folder that this process may not write, even where tests run as root."""
    uid = os.geteuid()
    with TemporaryDirectory() as name:
        folder = Path(name)
        for item in path.parent.glob("graphs.db*"):
            Path(shutil.copy(item, folder)).chmod(0o444)
        folder.chmod(0o555)
        if uid == 0:
            os.seteuid(65534)
        try:
            yield folder / path.name
        finally:
            os.seteuid(uid)
            folder.chmod(0o755)


def test_a_file_in_a_folder_that_may_not_be_written_is_read(path: Path) -> None:
    with write_protected(path) as protected, read_database(protected) as reader:
        assert (len(reader.threads()), reader.note) == (6, "")


def test_a_log_that_cannot_be_read_is_named(path: Path) -> None:
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("DELETE FROM checkpoints WHERE thread_id = 'done'")
    writer.commit()
    shutil.copy(f"{path}-wal", path.parent / "kept")
    writer.close()
    (path.parent / "kept").rename(f"{path}-wal")

    with write_protected(path) as protected, read_database(protected) as reader:
        note = reader.note

    assert "graphs.db-wal" in note
    assert "what that log holds is missing" in note


def test_it_is_refused_where_it_would_be_written(path: Path) -> None:
    with pytest.raises(DamagedDatabase, match="another program"):
        open_connection(path, ())


def test_a_file_of_neither_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE checkpoints (id)")
        connection.execute("CREATE VIEW writes AS SELECT 1 AS channel")
    connection.close()

    with pytest.raises(StorageError, match="nor LangGraph's SQLite saver"):
        read_database(path)


def test_the_reading_commands_take_such_a_file(path: Path) -> None:
    def json_of(*arguments: str) -> Any:
        result = CliRunner().invoke(app, [*arguments, "--db", str(path), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    listed, shown, history = json_of("threads", "list"), json_of("inspect", ASKED), json_of("history", ASKED)
    changes, graph = json_of("diff", ASKED, "done")["changes"], json_of("graph", "done")

    assert len(listed["threads"]) == 6
    assert (shown["status"], sorted(shown["next"]), shown["usage"]) == ("waiting", ["ask", "ask2"], {})
    assert [entry["node"] for entry in history["checkpoints"]] == ["side, tool", "plan", "", ""]
    assert [(change["path"], change["op"]) for change in changes] == [(f"parts.{n}", "added") for n in (2, 3, 4)]
    names = {"START", "plan", "side", "tool", "ask", "ask2", "last", "END"}
    assert {node["name"] for node in graph["nodes"]} == names


def test_values_of_any_shape_under_the_names_of_ours_can_be_shown(path: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", "done", "--db", str(path)], env={"COLUMNS": "80"})

    assert result.exit_code == 0
    assert ['usage = "heavy"' in result.stdout, 'calls = ["mine"]' in result.stdout] == [True, True]
