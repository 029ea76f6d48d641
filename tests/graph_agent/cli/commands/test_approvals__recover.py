import json
import os
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import UsageError
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_commands import json_of, run, text_of


def _broken_off(rows: Rows, thread_id: str = "t1", **fields: Any) -> None:
    rows.thread(thread_id, next_nodes=("tool_execution",), checkpoint_id="c1")
    rows.call(record_of("executing", **fields), thread_id)


def test_the_list_holds_each_call_with_what_is_known_of_it(rows: Rows) -> None:
    _broken_off(rows, approved_at=START)

    assert json_of(rows, "recover") == {
        "calls": [
            {
                **record_of("interrupted", approved_at=START),
                "thread_id": "t1",
                "stored_status": "executing",
                "reason": "never_started",
                "begun": False,
                "partial_output": "",
                "finding": "",
                "finding_verdict": "",
                "processes": [],
                "answer": None,
            }
        ]
    }


def test_a_decision_is_recorded_once_and_the_second_exits_with_1(rows: Rows) -> None:
    _broken_off(rows)

    [given] = json_of(rows, "recover", "--cancel", "call_a")["calls"]
    late = run("recover", "t1", "--retry", "call_a", "--json", "--db", str(rows.path))

    by = f"cli pid {os.getpid()}"
    assert (given["kind"], given["accepted"], given["by"]) == ("cancel", True, by)
    assert (late.exit_code, json.loads(late.stdout)) == (1, {"calls": [{**given, "accepted": False}]})
    told = text_of(rows, "recover")
    assert f"decided: cancel by {by}; its thread has not taken it in" in told
    assert "Decide with" not in told
    assert told.endswith("\ngo on with: graph-agent resume t1\n")


def test_a_call_id_of_several_threads_is_printed_as_it_is_accepted(rows: Rows) -> None:
    _broken_off(rows)
    _broken_off(rows, "t2")

    names = [call["call_id"] for call in json_of(rows, "recover")["calls"]]
    text_of(rows, "recover", "--retry", names[0], "--cancel", names[1])

    assert sorted(names) == ["t1:call_a", "t2:call_a"]
    assert {call["answer"]["kind"] for call in json_of(rows, "recover")["calls"]} == {"retry", "cancel"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--all", "stop"), "'stop' is no decision; use one of: retry, done, cancel"),
        (("--result", "x"), "--done CALL"),
    ],
)
def test_options_that_make_no_sense_are_refused(rows: Rows, options: tuple[str, ...], words: str) -> None:
    _broken_off(rows)

    refused = run("recover", *options, "--db", str(rows.path)).exception

    assert isinstance(refused, UsageError)
    assert words in str(refused)


def test_without_a_database_nothing_was_broken_off(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.db")

    assert run("recover", "--db", missing).stdout == "Nothing was broken off.\n"
    assert json.loads(run("recover", "--json", "--db", missing).stdout) == {"calls": []}
    assert list(tmp_path.iterdir()) == []
