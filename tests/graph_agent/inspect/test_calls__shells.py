import os
from typing import Any

from graph_agent.app.reader import read_database
from graph_agent.ports.background import boot_id, process_started
from tests.fakes.database_rows import START, Rows

_ADD = """
INSERT INTO background_shells (thread_id, call_id, attempt, command, folder, started_at) VALUES (?, ?, 1, ?, '/', ?)
"""


def _shell(rows: Rows, call: str, thread: str = "t1", **journal: Any) -> None:
    here: dict[str, Any] = {"process_started": process_started(os.getpid()), "boot_id": boot_id()}
    rows.journal("success", thread_id=thread, call_id=call, process_group=os.getpid(), **(here | journal))
    rows.execute(_ADD, thread, call, f"run {call}", START)


def test_what_runs_is_told_and_what_has_ended_or_only_has_its_number_is_not(rows: Rows) -> None:
    for thread in ("t1", "t2"):
        rows.thread(thread)
    _shell(rows, "a")
    _shell(rows, "b", process_started="1")
    _shell(rows, "c", boot_id="before")
    _shell(rows, "d", "t2")
    _shell(rows, "e")
    rows.execute("UPDATE background_shells SET ended_at = started_at WHERE call_id = 'e'")

    with read_database(rows.path) as reader:
        of_one, of_all = reader.shells("t1"), reader.shells()

    told = [(shell.shell_id, shell.command, shell.pid) for shell in of_one]
    assert told == [("sh1", "run a", os.getpid())]
    assert [(shell.thread_id, shell.shell_id) for shell in of_all] == [("t1", "sh1"), ("t2", "sh4")]
