"""Plan mode ends in a decision: a plan waits like any question, and what the user answers sets the mode."""

from pathlib import Path

import pytest

from tests.fakes.openai_server import TC, TXT
from tests.scenarios.command import Scripted, scripted, until

_PLAN = TC("c1", "present_plan", {"plan": "1. write a.txt\n2. run the tests"})
_WRITE = TC("c2", "write_file", {"file_path": "a.txt", "content": "new\n"})


def _offered(command: Scripted) -> list[set[str]]:
    """The names of the tools that each request offered."""
    return [{tool["function"]["name"] for tool in body["tools"]} for body in command.server.bodies]


def _mode(command: Scripted) -> str:
    [thread] = command.json("threads", "list")["threads"]
    return str(thread["mode"])


@pytest.mark.parametrize(
    ("answer", "mode", "code"),
    [
        ("start, accept edits", "acceptEdits", 0),
        ("2", "acceptEdits", 0),
        ("Accept edits.", "acceptEdits", 0),
        ("start, ask before changes", "default", 3),
        ("yes", "default", 3),
        ("1", "default", 3),
    ],
)
def test_an_accepted_plan_ends_plan_mode_for_this_and_every_later_process(
    tmp_path: Path, answer: str, mode: str, code: int
) -> None:
    with scripted(tmp_path, [_PLAN, _WRITE, TXT("done")]) as command:
        asked, result = command.run_json("go", "--thread", "t1", "--mode", "plan")
        listed = command("approvals", "list").stdout
        command("approvals", "answer", "c1", answer)
        waiting = _mode(command)
        ended, _ = command.run_json("--resume", "t1")

        first, second, *_ = _offered(command)
        assert (asked, [one["call_id"] for one in result["pending_approvals"]]) == (3, ["c1"])
        assert "1. write a.txt" in listed
        assert "1. start, ask before changes" in listed
        assert ("write_file" in first, "present_plan" in first) == (False, True)
        assert ("write_file" in second, "present_plan" in second) == (True, False)
        assert (waiting, _mode(command), ended) == ("plan", mode, code)
        assert (command.workspace / "a.txt").exists() == (code == 0)


@pytest.mark.parametrize("decision", [("answer", "c1", "first the tests"), ("reject", "c1")])
def test_any_other_answer_keeps_planning(tmp_path: Path, decision: tuple[str, ...]) -> None:
    with scripted(tmp_path, [_PLAN, _WRITE, TXT("another plan")]) as command:
        command.run_json("go", "--thread", "t1", "--mode", "plan")
        command("approvals", *decision)
        ended, _ = command.run_json("--resume", "t1")

        assert (ended, _mode(command), list(command.workspace.iterdir())) == (0, "plan", [])
        assert all("present_plan" in names and "write_file" not in names for names in _offered(command))
        assert ("first the tests" in command.results()[0]) == (decision[0] == "answer")


def test_a_plan_survives_a_kill_at_the_question_and_right_after_the_decision(tmp_path: Path) -> None:
    with scripted(tmp_path, [_PLAN, _WRITE, TXT("done")]) as command:
        first = command.chat("chat", "go", "--thread", "t1", "--mode", "plan")
        first.sees("? help")
        first.signals(9)
        first.ends()
        chat = command.chat("resume", "t1")
        chat.plays("write a.txt", "n not yet", "<a", "done")
        until(lambda: command.json("threads", "list")["threads"][0]["status"] == "idle")
        chat.signals(9)
        chat.ends()
        again = command.chat("resume", "t1")
        again.plays("loading …", "</mode", "mode: acceptEdits")
        again.signals(9)
        again.ends()

    assert (command.workspace / "a.txt").read_text() == "new\n"


@pytest.mark.parametrize("typed", ["/mode plan\r", "\x1b[Z\x1b[Z"], ids=["/mode", "Shift-Tab"])
def test_a_mode_that_the_chat_chose_holds_in_the_next_process(tmp_path: Path, typed: str) -> None:
    with scripted(tmp_path, [TXT("hello"), TXT("again")]) as command:
        chat = command.chat("chat", "go", "--thread", "t1")
        chat.plays("hello", "default", f"^{typed}")
        until(lambda: _mode(command) == "plan")
        chat.signals(9)
        chat.ends()
        command.run_json("more", "--thread", "t1")

        assert _mode(command) == "plan"
        assert "write_file" not in _offered(command)[-1]


def test_a_run_that_names_plan_mode_is_not_led_out_of_it_by_the_stored_mode(tmp_path: Path) -> None:
    with scripted(tmp_path, [_WRITE, TXT("done")]) as command:
        command.run_json("go", "--thread", "t1")
        command("approvals", "approve", "c2")
        command.run_json("--resume", "t1", "--mode", "plan")

        assert list(command.workspace.iterdir()) == []
