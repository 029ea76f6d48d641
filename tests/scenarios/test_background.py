"""Commands that go on in the background, through the real command."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.cases.processes import running_with
from tests.fakes.openai_server import DELAY, TCS, TXT, FakeOpenAI, Reply
from tests.scenarios.command import NO_SANDBOX, Command, scripted, until

_KEEP = 'background_shells = "keep"\n'


def _start(call_id: str, command: str) -> tuple[str, str, dict[str, Any]]:
    return call_id, "bash", {"command": command, "background": True}


def _told(server: FakeOpenAI) -> dict[str, str]:
    messages = server.bodies[-1]["messages"]
    return {one["tool_call_id"]: one["content"] for one in messages if one["role"] == "tool"}


def _run(command: Command, *arguments: str) -> list[dict[str, Any]]:
    """The events of a run."""
    flags = ("--mode", "bypassPermissions", "--output", "stream-json")
    done = command("run", *(arguments or ("go", "--thread", "t1")), *flags)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _killed_at(mark: str, *more: Reply) -> list[Reply]:
    """The replies of a run that is to be killed while a command runs, one in the background beside it."""
    waits = ("c2", "bash", {"command": "touch now; sleep 30"})
    return [TCS(_start("c1", f"echo begun; sleep {mark}")), TCS(waits), *more]


def test_shells_end_with_the_run_which_says_so_before_its_result(tmp_path: Path) -> None:
    mark = "61.9101"
    replies = [TCS(_start("c1", f"sleep {mark}")), TCS(("c2", "bash_list", {})), TXT("done")]
    with FakeOpenAI(replies, strict=True) as server:
        events = _run(Command(tmp_path, server.base_url))

    told = _told(server)
    ended, result = events[-2:]
    assert (told["c1"].split(".")[0], told["c2"][:15]) == ("Started in the background as sh1", "sh1  running fo")
    assert (ended["type"], ended["shell_id"], ended["reason"]) == ("shell_ended", "sh1", "session")
    assert (result["type"], result["seq"], ended["seq"] + 1) == ("result", ended["seq"] + 1, result["seq"])
    assert (running_with(mark), server.faults) == ([], [])


def test_a_background_command_is_asked_about_as_any_other_and_shown_as_one(tmp_path: Path) -> None:
    with FakeOpenAI([TCS(_start("c1", "touch ran")), TXT("done")]) as server:
        command = Command(tmp_path, server.base_url, settings='[policy]\ndeny = ["bash(rm *)"]\n')
        code, report = command.run_json("go", "--thread", "t1")
        [asked] = report["pending_approvals"]
        listed = command("approvals", "list").stdout
        ran_unasked = (command.workspace / "ran").exists()
        command.run_json("--resume", "t1", "--approve", "c1")

    assert (code, asked["risk_reason"].startswith("writes ran"), ran_unasked) == (3, True, False)
    assert "in the background $ touch ran" in listed
    assert (command.workspace / "ran").exists()


def test_the_one_object_of_json_output_stays_alone_and_stderr_tells_which_ended(tmp_path: Path) -> None:
    with FakeOpenAI([TCS(_start("c1", "sleep 61.9109")), TXT("done")]) as server:
        done = Command(tmp_path, server.base_url)("run", "go", "--output", "json", "--mode", "bypassPermissions")

    state = "ended with the session that started it"
    assert json.loads(done.stdout)["answer"] == "done"
    assert done.stderr == f"note: background shell sh1: {state}  $ sleep 61.9109\n"


def test_what_is_refused_in_the_foreground_is_refused_in_the_background(tmp_path: Path) -> None:
    with FakeOpenAI([TCS(_start("c1", "rm -rf /"), _start("c2", "rm -r build")), TXT("done")]) as server:
        command = Command(tmp_path, server.base_url, settings='[policy]\ndeny = ["bash(rm *)"]\n')
        _run(command)

    assert [call["status"] for call in command.json("calls")["calls"]] == ["cancelled", "cancelled"]


def test_after_a_kill_the_next_run_ends_what_still_runs_and_tells_user_and_model(tmp_path: Path) -> None:
    mark = "61.9102"
    after = [TCS(("c3", "bash_output", {"id": "sh1"})), TXT("done")]
    with FakeOpenAI(_killed_at(mark, *after)) as server:
        command = Command(tmp_path, server.base_url, settings=NO_SANDBOX)
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until((command.workspace / "now").exists)
        command.kill(process)
        left = running_with(mark)
        events = _run(command, "--resume", "t1", "--recover", "cancel")

    [ended] = [event for event in events if event["type"] == "shell_ended"]
    state = "ended because the program that started it ended unexpectedly"
    assert (len(left) > 0, running_with(mark)) == (True, [])
    assert (ended["shell_id"], ended["state"], ended["reason"]) == ("sh1", state, "found_dead")
    assert _told(server)["c3"] == f"begun\n[{state}]"


@pytest.mark.parametrize(("settings", "mark"), [(_KEEP, "61.9103"), (_KEEP + NO_SANDBOX, "61.9104")])
def test_kept_shells_survive_a_kill_and_can_still_be_read_and_ended(
    tmp_path: Path, settings: str, mark: str
) -> None:
    reads = [TCS(("c3", "bash_output", {"id": "sh1"})), TCS(("c4", "bash_kill", {"id": "sh1"})), TXT("done")]
    with FakeOpenAI(_killed_at(mark, *reads)) as server:
        command = Command(tmp_path, server.base_url, settings=settings)
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until((command.workspace / "now").exists)
        command.kill(process)
        events = _run(command, "--resume", "t1", "--recover", "cancel")

    told = _told(server)
    assert [event["shell_id"] for event in events if event["type"] == "shell_continued"] == ["sh1"]
    assert (told["c3"].startswith("begun\n[running for"), told["c4"]) == (True, "sh1: ended by bash_kill.")
    until(lambda: not running_with(mark), seconds=5)


@pytest.mark.slow
def test_a_person_sees_what_runs_and_waits_and_stops_it_during_a_turn(tmp_path: Path) -> None:
    mark, task = "61.9107", ("c2", "new_task", {"description": "look around", "prompt": "Look."})
    replies: list[Reply] = [
        TCS(("w1", "bash", {"command": "touch x"})),
        TCS(_start("c1", f"echo begun; sleep {mark}"), task),
        DELAY(60, TXT("too late")),
        TXT("all stopped"),
    ]
    with scripted(tmp_path, replies) as command:
        command.run_json("wait for me", "--thread", "t0")
        chat = command.chat("chat", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until(lambda: len(command.server.bodies) == 3)
        chat.types("/tasks\r")
        chat.shows("› command", "sub-agent  look around", "wait for me", "1 approval")
        chat.types("s")
        chat.shows("ended by the user", "› sub-agent")
        chat.types("s")
        chat.shows("✗ new_task", "› thread")
        chat.types("\r")
        chat.shows("all stopped", "after this turn: /resume t0", "touch x")
        chat.types("\x04")
        code = chat.ends()
        told = _told(command.server)

    assert (code, running_with(mark)) == (3, [])
    assert "ended by the user" in command.server.bodies[-1]["messages"][-1]["content"] or "stopped" in told["c2"]


def test_a_deleted_thread_leaves_no_shell_behind(tmp_path: Path) -> None:
    mark = "61.9107"
    with FakeOpenAI([TCS(_start("c1", f"sleep {mark}")), TXT("done")]) as server:
        command = Command(tmp_path, server.base_url, settings=_KEEP)
        _run(command)
        left = running_with(mark)
        shown = command("inspect", "t1").stdout
        deleted = command("threads", "delete", "t1", "--yes")

    assert (len(left) > 0, deleted.returncode, running_with(mark)) == (True, 0, [])
    assert f"background shells\n  sh1  pid {min(left)}  $ sleep {mark}\n" in shown


@pytest.mark.sweep
def test_a_terminated_run_takes_its_shells_with_it(tmp_path: Path) -> None:
    mark = "61.9108"
    with FakeOpenAI(_killed_at(mark)) as server:
        command = Command(tmp_path, server.base_url, settings=NO_SANDBOX)
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until((command.workspace / "now").exists)
        os.kill(process.pid, 15)
        code = process.wait(timeout=60)

    assert (code, running_with(mark)) == (143, [])


def test_the_model_is_told_once_of_a_shell_that_ended_while_it_looked_elsewhere(tmp_path: Path) -> None:
    waits = ("c2", "bash", {"command": "touch go; until test -e ended; do sleep 0.05; done; sleep 0.3"})
    replies = [
        TCS(
            _start("c1", "until test -e go; do sleep 0.05; done; touch ended; exit 3"),
            _start("c3", "sleep 61.9110"),
        ),
        TCS(waits),
        TCS(("c4", "todo_read", {})),
        TXT("done"),
        TXT("well"),
        TXT("again"),
    ]
    with scripted(tmp_path, replies) as command:
        for prompt in ("go", "and now?", "and then?"):
            _run(command, prompt, "--thread", "t1")

    newest = [str(body["messages"][-1]["content"]) for body in command.server.bodies]
    told = [[line for line in text.splitlines() if line.startswith("- sh")] for text in newest]
    assert [[line.split(";")[0] for line in lines] for lines in told] == [
        [],
        [],
        ["- sh1: exit code 3 $ until test -e go"],
        [],
        ["- sh2: ended with the session that started it $ sleep 61.9110"],
        [],
    ]
    assert newest[4].startswith("and now?\n\n[From the program")
    assert "From the program" not in str(command.server.bodies[5]["messages"])
