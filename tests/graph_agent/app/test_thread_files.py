import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.thread_import import import_thread
from graph_agent.app.threads import open_export
from graph_agent.config.paths import blob_dir
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.storage.blobs import FileBlobs
from tests.architecture.checkout import ROOT
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.thread_files import as_history, export, reseal
from tests.scenarios.stage import THREAD, Stage


def test_the_named_thread_is_exported_without_the_keys_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(tmp_path / "agent.db", "my key is sk-of-this-shell")
    monkeypatch.setenv("SOME_API_KEY", "sk-of-this-shell")

    with open_export(tmp_path / "agent.db", "read-1", None) as lines:
        document = json.loads("".join(lines))

    assert (document["thread_id"], document["rows"][0]["title"]) == ("thread-1", f"my key is {'*' * 16}")
    with pytest.raises(UnknownId), open_export(tmp_path / "agent.db", "nowhere", None):
        pass


@pytest.fixture
async def source(tmp_path: Path) -> Stage:
    (tmp_path / "a").mkdir()
    replies = (calls(("c1", "read_a"), ("c2", "write_b")), calls(("c3", "fail_a")), text("部署 " + "y" * 50_000))
    stage = Stage(tmp_path / "a" / "agent.db", ScriptedModel(*replies))
    async with stage.open_session() as session:
        await session.start()
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
        await session.proceed()
        await session.queue("later")
    return stage


def written(stage: Stage) -> Path:
    file = stage.database.with_name("thread.json")
    file.write_text(export(stage.database, THREAD))
    return file


async def test_an_imported_thread_is_the_same_but_for_what_would_act_and_continues(
    source: Stage, tmp_path: Path
) -> None:
    file = written(source)
    target = Stage(tmp_path / "b" / "agent.db", ScriptedModel(text("more")))

    done = await import_thread(target.database, str(file), workspace=tmp_path)

    assert (done.thread.thread_id, done.exported_as, done.missing) == (THREAD, THREAD, 0)
    assert (done.thread.workspace, done.exported_workspace, done.unsent) == (str(tmp_path), "", ("later",))
    assert as_history(export(target.database, THREAD)) == as_history(file.read_text())
    again = tmp_path / "again.json"
    again.write_text(export(target.database, THREAD))
    await import_thread(tmp_path / "c.db", str(again), workspace=tmp_path)
    assert export(tmp_path / "c.db", THREAD) == again.read_text()
    async with target.open_session() as session:
        await session.start()
        queued = await session.send_queued()
        rest = await session.send("later")
    assert queued is None
    assert (rest.answer, target.toolbox.ran) == ("more", [])
    types = [message.type for message in target.model.requests[0].messages]
    assert types[:5] == ["system", "human", "ai", "tool", "tool"]


async def test_an_id_that_is_taken_is_refused_and_another_may_be_given_also_from_stdin(
    source: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(source)
    monkeypatch.setattr(sys, "stdin", io.StringIO(file.read_text()))

    with pytest.raises(UsageError, match="Choose another id with --as"):
        await import_thread(source.database, str(file))
    done = await import_thread(source.database, "-", as_id="mine")

    first, second = (as_history(export(source.database, thread_id)) for thread_id in (THREAD, "mine"))
    assert (done.thread.thread_id, done.thread.title, done.exported_as) == ("mine", "go", THREAD)
    tables = [[row for row in one["rows"] if row["table"] != "inbox"] for one in (first, second)]
    assert tables[0] == tables[1]


async def test_a_refused_file_leaves_not_even_a_database(source: Stage, tmp_path: Path) -> None:
    target = tmp_path / "b" / "agent.db"
    whole = export(source.database, THREAD)
    wrong = json.loads(whole)
    wrong["blobs"].append({"blob": f"blob:sha256:{'0' * 64}", "data": "AAAA"})
    files = {"cut": whole[:-200], "binary": "\x00", "wrong": reseal(wrong)}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(UsageError, match="Nothing was changed"):
            await import_thread(target, str(tmp_path / name))
    (tmp_path / "latin").write_bytes(b'{"a": "\xe9"}')
    for name in ("latin", "nowhere", "."):
        with pytest.raises(UsageError):
            await import_thread(target, str(tmp_path / name))
    with pytest.raises(UsageError, match="not blank"):
        await import_thread(target, str(tmp_path / "cut"), as_id=" ")

    assert not target.parent.exists()
    with pytest.raises(NothingYet):
        read_database(target)


async def test_contents_are_imported_and_missing_ones_counted(source: Stage, tmp_path: Path) -> None:
    reference = FileBlobs(blob_dir(source.database)).put(b"before")
    document = json.loads(export(source.database, THREAD))
    attempt = next(row for row in document["rows"] if row["table"] == "journal")
    attempt["outcome"]["metadata"] = {"kept": reference}
    document["blobs"] = [
        {"blob": reference, "data": "YmVmb3Jl"},
        {"blob": f"blob:sha256:{'0' * 64}", "data": None},
    ]
    (tmp_path / "file").write_text(reseal(document))

    done = await import_thread(tmp_path / "b.db", str(tmp_path / "file"))

    assert (done.missing, FileBlobs(blob_dir(tmp_path / "b.db")).get(reference)) == (1, b"before")


@pytest.mark.slow
def test_killed_before_any_statement_an_import_and_a_deletion_leave_all_or_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.graph_agent.app.sweep", str(tmp_path)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=55).stdout

    lives = [json.loads(line) for line in output.splitlines()]

    assert [
        open_session
        for open_session in lives
        if not open_session["sound"] or open_session["there"] not in ("whole", "gone")
    ] == []
    ends = {(open_session["work"], open_session["survived"]): open_session["there"] for open_session in lives}
    assert (ends["import", True], ends["delete", True]) == ("whole", "gone")
    assert min(sum(open_session["work"] == work for open_session in lives) for work in ("import", "delete")) > 12
    assert {
        open_session["there"]
        for open_session in lives
        if open_session["work"] == "delete" and not open_session["survived"]
    } >= {"whole"}
