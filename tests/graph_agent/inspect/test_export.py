import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from docs._generate.thread_schema import schema
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase, StorageError, UsageError
from graph_agent.inspect import Reader
from graph_agent.storage.blobs import FileBlobs
from tests.fakes.database_rows import START, Rows
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import calls, text
from tests.fakes.thread_files import export

_KEY = "sk-0123456789abcdef"


def rows_of(document: dict[str, Any], table: str) -> list[dict[str, Any]]:
    return [row for row in document["rows"] if row["table"] == table]


def test_a_file_has_the_documented_form_and_one_row_a_line(tmp_path: Path) -> None:
    play(tmp_path / "agent.db", "go", replies=(calls(("c1", "read_a")), text("done")))

    exported = export(tmp_path / "agent.db", "thread-1")

    document = json.loads(exported)
    jsonschema.Draft202012Validator(json.loads(schema())).validate(document)
    assert len(exported.splitlines()) == len(document["rows"]) + len(document["blobs"]) + 3
    assert exported.isascii()
    assert [row["body"]["content"] for row in rows_of(document, "transcript")] == [
        "system",
        "go",
        "",
        "result of c1",
        "done",
    ]


def test_no_permission_and_nothing_of_the_machine_goes_out(rows: Rows) -> None:
    rows.thread(mode="acceptEdits")
    rows.journal("executing", process_group=7, process_started="1", boot_id="here")
    rows.decision("approve")
    rows.grant("bash(make)")
    rows.lease()

    document = json.loads(export(rows.path, "t1"))

    [answer], [line], [attempt] = (rows_of(document, table) for table in ("decisions", "threads", "journal"))
    assert (answer["superseded_at"], line["mode"]) == (START, "default")
    assert "here" not in json.dumps(attempt)
    assert "bash(make)" not in json.dumps(document)


def test_a_queued_message_that_is_in_the_conversation_counts_as_taken(rows: Rows) -> None:
    rows.thread()
    rows.message("user", {"content": "hello"})
    rows.execute("UPDATE transcript SET message_id = 'inbox-1'")
    for number in (1, 2):
        rows.execute("INSERT INTO inbox VALUES (?, 't1', 'hello', 'me', ?, NULL, 0, NULL)", number, START)

    assert [row["taken_at"] for row in rows_of(json.loads(export(rows.path, "t1")), "inbox")] == [START, None]


def test_secrets_go_out_as_stars_wherever_they_stand_and_nothing_around_them_moves(rows: Rows) -> None:
    blobs = FileBlobs(blob_dir(rows.path))
    inner = blobs.put(f"key = {_KEY}".encode())
    outer = blobs.put(json.dumps({"status": "success", "output": "", "metadata": {"file": inner}}).encode())
    rows.thread(title=f"use {_KEY}!")
    rows.message("tool", {"content": f"{_KEY}\n{_KEY}2"})
    rows.journal("success", {"blob": outer})

    exported = export(rows.path, "t1", _KEY, "no such secret")

    document = json.loads(exported)
    stars = "*" * len(_KEY)
    contents = {one["blob"]: base64.b64decode(one["data"]) for one in document["blobs"]}
    assert _KEY not in exported
    assert base64.b64encode(_KEY.encode())[:20].decode() not in exported
    assert rows_of(document, "threads")[0]["title"] == f"use {stars}!"
    assert rows_of(document, "transcript")[0]["body"]["content"] == f"{stars}\n{stars}2"
    assert {f"blob:sha256:{hashlib.sha256(data).hexdigest()}" for data in contents.values()} == contents.keys()
    named = rows_of(document, "journal")[0]["outcome"]["blob"]
    assert contents[json.loads(contents[named])["metadata"]["file"]] == f"key = {stars}".encode()


def test_contents_that_are_gone_are_named_and_the_rest_goes_out(rows: Rows) -> None:
    gone = f"blob:sha256:{'0' * 64}"
    rows.thread()
    rows.journal("success", {"blob": gone})

    assert json.loads(export(rows.path, "t1"))["blobs"] == [{"blob": gone, "data": None}]


def test_a_thread_whose_rewind_was_broken_off_is_finished_first(rows: Rows) -> None:
    rows.thread()
    rows.execute("INSERT INTO rewinds VALUES (1, 't1', 'c', 'h', 'both', '{}', 'planned', '', NULL)")

    with pytest.raises(UsageError, match="rewind of thread 't1' was interrupted"):
        export(rows.path, "t1")


def test_a_row_that_cannot_be_read_is_named(rows: Rows) -> None:
    rows.thread()
    rows.message("user", {})
    rows.execute("UPDATE transcript SET body = '{'")

    with pytest.raises(DamagedDatabase, match="A row of transcript of thread t1 in"):
        export(rows.path, "t1")


def test_what_is_written_meanwhile_is_not_in_the_file(rows: Rows, reader: Reader) -> None:
    def none(_: str) -> bytes:
        raise StorageError("none")

    rows.thread()
    rows.message("user", {"content": "one"})
    lines = reader.export("t1", none)
    first = [next(lines), next(lines)]
    rows.message("user", {"content": "two"})
    document = json.loads("".join([*first, *lines]))

    assert [row["body"]["content"] for row in rows_of(document, "transcript")] == ["one"]
