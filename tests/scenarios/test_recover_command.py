"""Interrupted calls decided from another process, before or while the next life asks; with real kills."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.app.recovery import Decision, decide_calls
from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Outcome, Scope
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.fakes.scripted_model import ScriptedModel, calls
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.fakes.waiting import is_running
from tests.scenarios.command import NO_SANDBOX, Command, until
from tests.scenarios.stage import THREAD, Stage

_SLEEPER = "echo $$ > pid; echo half; echo x >> log; exec sleep 60"


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI([TC("c1", "bash", {"command": _SLEEPER}), TXT("done")], strict=True) as opened:
        yield opened


def _killed_in_a_command(folder: Path, server: FakeOpenAI, *, ends_orphans: bool = True) -> Command:
    command = Command(folder, server.base_url, settings=NO_SANDBOX)
    process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
    until((command.workspace / "log").exists)
    command.kill(process)
    if ends_orphans:
        os.kill(_pid(command), signal.SIGKILL)
    return command


def _pid(command: Command) -> int:
    return int((command.workspace / "pid").read_text())


def _told(server: FakeOpenAI) -> str:
    return str(server.bodies[-1]["messages"][-1]["content"])


def test_a_call_given_up_from_outside_is_never_asked_about_and_the_model_sees_its_output(
    tmp_path: Path, server: FakeOpenAI
) -> None:
    command = _killed_in_a_command(tmp_path, server)

    [shown] = command.json("recover")["calls"]
    decided = command("recover", "--cancel", "c1")
    code, result = command.run_json("--resume", "t1")

    assert (shown["status"], shown["stored_status"]) == ("interrupted", "executing")
    assert shown["partial_output"] == "half"
    assert decided.returncode == 0
    assert decided.stdout == ("Cancelled c1 of thread t1.\nResume with: graph-agent resume t1\n")
    assert (code, result["answer"], (command.workspace / "log").read_text()) == (0, "done", "x\n")
    assert server.faults == []
    assert _told(server).endswith("Output so far:\nhalf")
    assert command.json("recover") == {"calls": []}


def test_a_call_taken_as_done_from_outside_gives_the_model_that_result(tmp_path: Path, server: FakeOpenAI) -> None:
    command = _killed_in_a_command(tmp_path, server)

    command("recover", "t1", "--done", "c1", "--result", "it wrote one x")
    code, _ = command.run_json("--resume", "t1")

    assert (code, _told(server), (command.workspace / "log").read_text()) == (0, "it wrote one x", "x\n")


def test_nothing_is_retried_while_an_earlier_attempt_still_runs(tmp_path: Path, server: FakeOpenAI) -> None:
    command = _killed_in_a_command(tmp_path, server, ends_orphans=False)
    orphan = _pid(command)

    [shown] = command.json("recover")["calls"]
    refused = command("recover", "--retry", "c1")
    code, result = command.run_json("--resume", "t1", "--recover", "retry-safe")
    still_runs = is_running(orphan)
    accepted = command("recover", "--retry", "c1", "--end-processes")
    runs_after = is_running(orphan)
    again = command.start("run", "--resume", "t1", "--mode", "bypassPermissions")
    until(lambda: (command.workspace / "log").read_text() == "x\nx\n")
    os.kill(_pid(command), signal.SIGKILL)
    again.wait()

    assert orphan in shown["processes"]
    assert (refused.returncode, f"pid {orphan}" in refused.stderr) == (1, True)
    assert (code, result["interrupted_calls"][0]["processes"], still_runs) == (4, shown["processes"], True)
    assert (accepted.returncode, runs_after, again.returncode) == (0, False, 0)
    assert [(call["status"], call["attempt"]) for call in command.json("calls")["calls"]] == [("error", 2)]


def test_the_chat_offers_to_end_what_still_runs_before_a_retry(tmp_path: Path, server: FakeOpenAI) -> None:
    command = _killed_in_a_command(tmp_path, server, ends_orphans=False)
    orphan = _pid(command)

    arguments = ["resume", "t1", "--mode", "bypassPermissions"]
    chat = command.chat(*arguments)
    chat.plays("still running", "e end processes", "<e", "All processes of the call have ended.")
    runs_after = is_running(orphan)
    chat.plays("c cancel", "<r")
    until(lambda: (command.workspace / "log").read_text() == "x\nx\n")
    os.kill(_pid(command), signal.SIGKILL)
    chat.plays("done", "^\x04")

    assert (chat.ends(), runs_after, server.faults) == (0, False, [])


_HIDDEN = "env -i setsid -f sh -c 'echo $$ > p; mv p pid; exec sleep 60' > /dev/null 2>&1; sleep 60"
_DAEMON = (
    "setsid -f sh -c 'echo $$ > p; mv p pid; exec sleep 60' > /dev/null 2>&1 3>&- 4>&- 5>&- 6>&- 7>&-; sleep 60"
)


@pytest.mark.parametrize("left", [_HIDDEN, _DAEMON])
def test_what_left_its_session_before_the_kill_is_found_and_ended_before_a_retry(tmp_path: Path, left: str) -> None:
    with FakeOpenAI([TC("c1", "bash", {"command": left}), TXT("done")], strict=True) as opened:
        command = Command(tmp_path, opened.base_url, settings=NO_SANDBOX)
        process = command.start("run", "go", "--thread", "t1", "--mode", "bypassPermissions")
        until(lambda: (command.workspace / "pid").is_file() and _pid(command) > 1)
        pid = _pid(command)
        command.kill(process)
        [found] = command.json("recover")["calls"]
        ended = command("recover", "--retry", "c1", "--end-processes")

    assert (pid in found["processes"], ended.returncode, is_running(pid)) == (True, 0, False)


class _HangingReads(ScriptedToolbox):
    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        outcome = await super().run(call, scope)
        await asyncio.sleep(0 if len(self.ran) > 1 else 3600)
        return outcome


async def test_a_decision_from_outside_goes_before_the_retry_that_nobody_is_asked_about(tmp_path: Path) -> None:
    stage = Stage(tmp_path / "a.db", ScriptedModel(calls(("r", "read_a"))), _HangingReads())
    async with stage.open_session() as session:
        turn = asyncio.create_task(session.send("go"))
        await stage.toolbox.entered.wait()
        turn.cancel()
        await asyncio.wait({turn})

    [given] = await decide_calls(stage.database, THREAD, [Decision("cancel", "all")], by="cli pid 1")
    async with stage.open_session() as session:
        rest = await session.start()

    assert (given.accepted, rest.status, len(stage.toolbox.ran)) == (True, "done", 1)
    assert stage.model.sent()[-1] == (
        "tool",
        "Cancelled by the user. Its outcome is unknown: check its effect before you repeat it.",
    )


def test_recover_is_a_light_command(tmp_path: Path) -> None:
    command = Command(tmp_path)
    program = (
        "import sys, graph_agent.cli.main as m; m.app(['recover'], standalone_mode=False); print(*sys.modules)"
    )
    loaded = subprocess.run(
        [command.argv()[0], "-c", program], env=command.env, capture_output=True, text=True, check=True
    ).stdout.split()

    assert not {"langgraph", "langchain_core", "langchain_openai", "openai"} & set(loaded)
