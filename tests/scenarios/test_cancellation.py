"""The real program, cut short in every phase: exit code, what is left running, and the next life."""

import signal
import time
from pathlib import Path

import pytest

from tests.fakes.forked_command import ForkedProcess
from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.fakes.waiting import is_running
from tests.scenarios.command import NO_SANDBOX, Command, scripted, until

_CODES = [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
_STUBBORN = "trap '' TERM; bash -c 'trap \"\" TERM; echo $$ > child; exec sleep 61' & echo half; wait; echo whole"


def _run(command: Command, *arguments: str) -> ForkedProcess:
    return command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions", *arguments)


def _cut(process: ForkedProcess, number: signal.Signals) -> int:
    process.send_signal(number)
    return process.wait(timeout=30)


def _child_of(command: Command) -> int:
    child = command.workspace / "child"
    until(lambda: child.exists() and child.read_text() != "")
    return int(child.read_text())


@pytest.mark.parametrize(("number", "code"), _CODES)
def test_a_run_stopped_while_a_reply_streams_asks_the_model_again_when_resumed(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with scripted(tmp_path, [TXT("too slow to arrive", pace_s=3), TXT("here I am")]) as command:
        process = _run(command)
        until(lambda: len(command.server.bodies) == 1)
        time.sleep(0.3)
        ended = _cut(process, number)
        end, result = command.run_json("--resume", "t1")

    assert (ended, end, result["answer"]) == (code, 0, "here I am")


def test_a_stopped_turn_is_restarted_only_by_a_command_that_asks_for_it(tmp_path: Path) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "touch begun; sleep 61"}), TXT("here I am")]) as command:
        process = _run(command)
        until((command.workspace / "begun").exists)
        _cut(process, signal.SIGINT)
        kept = command("run", "-r", "t1", "--keep-stopped")  # What `graph-agent -r t1` is without a terminal.
        requests = len(command.server.bodies)
        restarted = command("run", "-r", "t1")

    assert (kept.returncode, kept.stdout, requests) == (130, "", 1)
    assert "not continued" in kept.stderr
    assert "run --resume t1`" in kept.stderr
    assert (restarted.returncode, restarted.stdout) == (0, "here I am\n")


@pytest.mark.parametrize(("number", "code"), _CODES)
def test_a_stubborn_command_leaves_nothing_running_when_its_run_stops_and_its_output_is_kept(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    script = [TCS(("c1", "bash", {"command": _STUBBORN}), ("c2", "bash", {"command": "touch never"})), TXT("done")]
    with scripted(tmp_path, script, settings=NO_SANDBOX) as command:
        process = _run(command)
        child = _child_of(command)
        ended = _cut(process, number)
        is_left = is_running(child)
        statuses = [call["status"] for call in command.json("calls")["calls"]]
        command("run", "--resume", "t1", "--recover", "cancel", "--mode", "bypassPermissions")
        command("run", "and now?", "--thread", "t1")

    assert (ended, is_left) == (code, False)
    assert statuses == (["cancelled", "cancelled"] if number is signal.SIGINT else ["interrupted", "pending"])
    assert command.results()[0].endswith("check its effect before you repeat it.\nOutput so far:\nhalf")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143)])
def test_a_run_stopped_between_two_commands_keeps_the_first_and_resumes_with_the_second(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    first = "touch begun; sleep 1; echo one >> log"
    script = [TCS(("c1", "bash", {"command": first}), ("c2", "bash", {"command": "echo two >> log"})), TXT("done")]
    with scripted(tmp_path, script) as command:
        process = _run(command)
        until((command.workspace / "begun").exists)
        ended = _cut(process, number)
        log = (command.workspace / "log").read_text()
        statuses = [call["status"] for call in command.json("calls")["calls"]]
        end, result = command.run_json("--resume", "t1", "--mode", "bypassPermissions")

    assert (ended, log, statuses) == (code, "one\n", ["success", "pending"])
    assert (end, result["answer"], (command.workspace / "log").read_text()) == (0, "done", "one\ntwo\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 3)])
def test_cut_at_an_approval_the_question_stays_open(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "echo x >> log"}), TXT("done")]) as command:
        chat = command.chat("chat", "--thread", "t1", "go")
        chat.sees("? help")
        chat.signals(number)
        if number is signal.SIGINT:  # As Ctrl-C: the second one leaves.
            chat.sees("Press Ctrl-C again to leave")
            chat.sees("mode default")
            chat.signals(number)
        ended = chat.ends()
        waiting = [call["call_id"] for call in command.json("approvals", "list")["approvals"]]
        end, _ = command.run_json("--resume", "t1", "--approve", "all")

    assert (ended, waiting, end, (command.workspace / "log").read_text()) == (code, ["c1"], 0, "x\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129)])
def test_cut_at_the_prompt_the_chat_leaves_with_the_code_of_the_signal(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    with scripted(tmp_path, [TXT("hello you"), TXT("again")]) as command:
        chat = command.chat("chat", "--thread", "t1", "go")
        chat.plays("hello you", "> ")
        chat.signals(number)
        ended = chat.ends()
        end, result = command.run_json("more", "--thread", "t1")

    assert (ended, end, result["answer"]) == (code, 0, "again")


def test_a_chat_ended_inside_a_command_leaves_nothing_running_and_the_next_run_asks(tmp_path: Path) -> None:
    with scripted(
        tmp_path, [TC("c1", "bash", {"command": _STUBBORN}), TXT("done")], settings=NO_SANDBOX
    ) as command:
        chat = command.chat("chat", "--thread", "t1", "go", "--mode", "bypassPermissions")
        child = _child_of(command)
        chat.signals(signal.SIGHUP)
        ended = chat.ends()
        is_left = is_running(child)
        [resumable] = command.json("recover")["calls"]

    assert (ended, is_left, resumable["partial_output"], resumable["processes"]) == (129, False, "half", [])


def test_a_run_over_its_time_names_the_interrupted_call_and_a_bare_resume_finds_it(tmp_path: Path) -> None:
    with scripted(tmp_path, [TC("c1", "bash", {"command": "sleep 60"}), TXT("done")]) as command:
        code, cut = command.run_json("go", "--mode", "bypassPermissions", "--timeout", "2")
        shown = command.json("calls")["calls"]
        end, result = command.run_json("--resume", "--recover", "cancel")

    assert (code, cut["status"], cut["interrupted_calls"]) == (5, "limit", shown)
    assert [(call["call_id"], call["status"]) for call in shown] == [("c1", "interrupted")]
    assert (end, result["answer"], result["thread_id"]) == (0, "done", cut["thread_id"])


def test_calls_that_share_an_id_are_named_with_their_thread_by_every_command(tmp_path: Path) -> None:
    with FakeOpenAI(after=TC("c1", "bash", {"command": "touch made"})) as server:
        command = Command(tmp_path, server.base_url)
        command("run", "go", "--thread", "t1")
        code, paused = command.run_json("go", "--thread", "t2")
        told = command("run", "--resume", "t2").stderr
        shown = command("inspect", "t2").stdout
        approved = command.json("approvals", "approve", paused["pending_approvals"][0]["call_id"])

    assert (code, [call["call_id"] for call in paused["pending_approvals"]]) == (3, ["t2:c1"])
    assert ("waiting for approval: t2:c1 bash" in told, "t2:c1" in shown) == (True, True)
    assert (approved["thread_id"], approved["accepted"]) == ("t2", True)


_KILLS_ITS_AGENT = "echo x >> log; kill -9 $PPID"


@pytest.mark.parametrize(("cut", "code"), [("\x04", 4), (signal.SIGHUP, 129)])
def test_cut_in_the_recovery_dialogue_the_call_stays_undecided(
    tmp_path: Path, cut: str | signal.Signals, code: int
) -> None:
    with scripted(
        tmp_path, [TC("c1", "bash", {"command": _KILLS_ITS_AGENT}), TXT("done")], settings=NO_SANDBOX
    ) as command:
        _run(command).wait(timeout=30)
        chat = command.chat("resume", "t1")
        chat.sees("c cancel")
        if isinstance(cut, signal.Signals):
            chat.signals(cut)
        else:
            chat.types(cut)
        ended = chat.ends()
        [undecided] = command.json("recover")["calls"]
        end, result = command.run_json("--resume", "t1", "--recover", "cancel")

    assert (ended, undecided["call_id"], undecided["answer"]) == (code, "c1", None)
    assert (end, result["answer"], (command.workspace / "log").read_text()) == (0, "done", "x\n")
