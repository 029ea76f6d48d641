"""The real command, really killed: in the model request, at the approval, inside a tool."""

import re
from pathlib import Path

import pytest

from tests.fakes.openai_server import DELAY, TC, TXT
from tests.scenarios.command import NO_SANDBOX, Command, scripted, until


def statuses(command: Command) -> dict[str, str]:
    return {call["call_id"]: call["status"] for call in command.json("calls")["calls"]}


def test_killed_in_the_model_request_the_message_is_kept_and_asked_again(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("too late")), TXT("here I am")]) as command:
        process = command.start("run", "hello", "--thread", "t1")
        until(lambda: len(command.server.bodies) == 1)
        command.kill(process)
        [thread] = command.json("threads", "list")["threads"]
        code, result = command.run_json("--resume", "t1")

    assert (thread["status"], code, result["answer"]) == ("resumable", 0, "here I am")
    assert [m["content"] for m in command.server.bodies[1]["messages"] if m["role"] == "user"] == ["hello"]


def test_killed_while_a_hook_runs_before_the_turn_the_message_is_kept(tmp_path: Path) -> None:
    began = tmp_path / "began"
    settings = f'[[hooks.session_start]]\ncommand = "touch {began}; sleep 60"\n'
    with scripted(tmp_path, [TXT("here I am")], settings=settings) as command:
        process = command.start("run", "hello", "--thread", "t1")
        until(began.exists)
        command.kill(process)
        (command.folder / "home" / "config.toml").unlink()
        code, result = command.run_json("--resume", "t1")

    assert (code, result["answer"], command.said()) == (0, "here I am", ["hello"])


@pytest.mark.parametrize("option", [("--agent", "nobody"), ("--max-cost", "1")])
def test_a_run_that_cannot_be_opened_leaves_no_thread_and_no_message(
    tmp_path: Path, option: tuple[str, str]
) -> None:
    with scripted(tmp_path, []) as command:
        refused = command("run", "hello", "--thread", "t1", *option)
        resumed = command("run", "--resume", "t1")
        threads = command.json("threads", "list")["threads"]

    assert (refused.returncode, resumed.returncode, threads) == (2, 2, [])


def test_killed_at_the_approval_prompt_the_question_is_asked_again_and_the_call_runs_once(tmp_path: Path) -> None:
    script = [TC("c1", "bash", {"command": "echo x >> log"}), TXT("done")]
    with scripted(tmp_path, script) as command:
        chat = command.chat("chat", "go", "--thread", "t1")
        chat.sees("y run")
        chat.signals(9)
        chat.ends()
        [waiting] = command.json("approvals", "list")["approvals"]
        paused = command.run_json("--resume", "t1")
        code, result = command.run_json("--resume", "t1", "--approve", "c1")

    assert (waiting["call_id"], waiting["arguments"]) == ("c1", {"command": "echo x >> log"})
    assert (paused[0], [call["call_id"] for call in paused[1]["pending_approvals"]]) == (3, ["c1"])
    assert (code, result["answer"], (command.workspace / "log").read_text()) == (0, "done", "x\n")
    assert (len(command.server.bodies)) == (2)


def test_killed_inside_a_command_it_is_never_run_again_unasked(tmp_path: Path) -> None:
    script = [TC("c1", "bash", {"command": "echo start >> log; sleep 30"}), TXT("done")]
    with scripted(tmp_path, script, settings=NO_SANDBOX) as command:
        log = command.workspace / "log"
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until(log.exists)
        command.kill(process)
        shown = statuses(command)
        code, result = command.run_json("--resume", "t1")
        before_a_decision = log.read_text()
        end = command("run", "--resume", "t1", "--recover", "cancel")
        [call] = command.json("calls", "c1")["calls"]

    [attempt] = call["attempts"]
    assert (attempt["attempt"], attempt["status"], attempt["approval"], attempt["ended_at"]) == (
        1,
        "outcome_unknown",
        None,
        None,
    )
    assert (attempt["recovery"]["kind"], attempt["recovery"]["by"][:4]) == ("cancel", "pid ")
    assert re.search(r"Processes of call c1 are still running \(pid \d+.*\). End them with: kill \d+", end.stderr)
    assert (shown, code) == ({"c1": "interrupted"}, 4)
    assert [call["call_id"] for call in result["interrupted_calls"]] == ["c1"]
    assert (before_a_decision, end.returncode, log.read_text()) == ("start\n", 0, "start\n")


def test_an_approval_given_in_another_process_is_enough_to_go_on(tmp_path: Path) -> None:
    script = [TC("c1", "write_file", {"file_path": "a.txt", "content": "hi\n"}), TXT("written")]
    with scripted(tmp_path, script) as command:
        code, paused = command.run_json("write it")
        answered = command.json("approvals", "approve", "c1")
        late = command("approvals", "reject", "c1", "--json")
        end, result = command.run_json("--resume", paused["thread_id"])

    assert (code, [call["tool_name"] for call in paused["pending_approvals"]]) == (3, ["write_file"])
    assert (answered["accepted"], late.returncode, end, result["answer"]) == (True, 1, 0, "written")
    assert ((command.workspace / "a.txt").read_text(), len(command.server.bodies)) == ("hi\n", 2)


def test_a_second_process_is_told_who_holds_the_thread_and_can_still_look(tmp_path: Path) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("late"))]) as command:
        process = command.start("run", "hello", "--thread", "t1")
        until(lambda: len(command.server.bodies) == 1)
        code, refused = command.run_json("--resume", "t1")
        [thread] = command.json("threads", "list")["threads"]
        command.kill(process)

    assert (code, refused["status"], thread["status"]) == (7, "held", "running")
    assert f"pid {process.pid}" in refused["error"]
