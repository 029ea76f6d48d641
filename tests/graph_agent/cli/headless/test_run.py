import asyncio
import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from graph_agent.cli.headless.pending_answers import PendingAnswers
from graph_agent.cli.headless.run import RunRequest, run_headless
from graph_agent.cli.main import app
from graph_agent.errors import ThreadHeld
from graph_agent.events import EventBus, ModelMessage, StepStarted, TextDelta, ToolCallFinished
from graph_agent.session.session import Session
from tests.fakes.played_thread import play
from tests.fakes.scripted_session import Pause, ScriptedSession, Turn, approval, recovery, rest

if TYPE_CHECKING:
    from graph_agent.cli.session_target import Opener

_ASKS = Turn(rest("awaiting_approval", questions=(approval("call-a", "bash", {"command": "ls"}),)))
_BROKEN = Turn(rest("interrupted", questions=(recovery("call-b", "bash", {"command": "x"}),)))
_SAYS = (StepStarted(1), TextDelta("**hi**"), ModelMessage("**hi**"))


class _Opened:
    """Opens a scripted session and keeps it for a look afterwards."""

    def __init__(
        self, folder: Path, turns: Sequence[Turn] = (), opening: Turn | None = None, *, prompt: str | None = "go"
    ) -> None:
        self._made = (folder, turns, opening)
        self._prompt = prompt
        self.sessions: list[ScriptedSession] = []

    async def __call__(self, bus: EventBus) -> Session:
        folder, turns, opening = self._made
        self.sessions.append(ScriptedSession(bus, folder, turns, opening=opening))
        if self._prompt is not None:
            self.sessions[-1].hold(self._prompt)
        return self.sessions[-1]

    @property
    def log(self) -> list[tuple[str, ...]]:
        return self.sessions[0].log


def _json(text: str) -> Any:
    return json.loads(text)


def test_the_answer_goes_to_stdout_and_news_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ended = ToolCallFinished("c1", "bash", "success", "bash ls")
    opened = _Opened(tmp_path, [Turn(rest(answer="**hi** [/x]\nbye"), (*_SAYS, ended))])

    code = run_headless(RunRequest("go"), opened)

    assert (code, *capsys.readouterr()) == (0, "**hi** [/x]\nbye\n", "bash ls - success\n")
    assert opened.log == [("start",), ("send", "go"), ("close",)]


def test_neither_stream_gets_an_escape_or_a_carriage_return(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = ToolCallFinished("c1", "bash", "error", "bash \x1b[1m\r", error="bad\x1b[0m")
    opened = _Opened(tmp_path, [Turn(rest(answer="a\r\x1b[2Jb"), (ended,))])

    run_headless(RunRequest("go"), opened)

    out, err = capsys.readouterr()
    assert not {"\x1b", "\r"} & {*out, *err}
    assert out == "a\\r\\x1b[2Jb\n"


def test_json_is_one_object_and_says_which_approvals_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = _Opened(tmp_path, [_ASKS])

    code = run_headless(RunRequest("go", "json"), opened)

    out, _ = capsys.readouterr()
    report = _json(out)
    assert (code, report["status"]) == (3, "awaiting_approval")
    assert [item["call_id"] for item in report["pending_approvals"]] == ["call-a"]


def test_text_output_says_what_waits_and_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_headless(RunRequest("go"), _Opened(tmp_path, [_ASKS]))

    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert "waiting for approval: call-a bash" in err
    assert err.endswith("thread: thread-1\nResume with: graph-agent resume thread-1\n")


def test_stream_json_numbers_its_events_and_ends_with_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run_headless(RunRequest("go", "stream-json"), _Opened(tmp_path, [Turn(rest(answer="**hi**"), _SAYS)]))

    lines = [_json(line) for line in capsys.readouterr().out.splitlines()]
    assert code == 0
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert [line["type"] for line in lines] == [
        "started",
        "turn_started",
        "step_started",
        "text_delta",
        "message",
        "turn_ended",
        "result",
    ]
    assert (lines[0]["thread_id"], lines[-1]["status"], lines[-1]["answer"]) == ("thread-1", "done", "**hi**")


def test_what_is_open_is_settled_before_the_prompt_is_sent(tmp_path: Path) -> None:
    opened = _Opened(tmp_path, [Turn(rest(answer="done")), Turn(rest(answer="sent"))], _ASKS)

    code = run_headless(RunRequest("go", answers=PendingAnswers(approve=("all",))), opened)

    assert code == 0
    assert opened.log == [("start",), ("decide", "call-a", "approve", ""), ("proceed",), ("send", "go"), ("close",)]


def test_the_prompt_is_not_sent_while_something_stays_open(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened = _Opened(tmp_path, [], _BROKEN)

    assert run_headless(RunRequest("go"), opened) == 4
    assert ("send", "go") not in opened.log
    assert asyncio.run(opened.sessions[0].queued()) == [(1, "go")]
    assert "prompt is queued" in capsys.readouterr().err


def test_without_a_prompt_a_turn_that_ended_early_goes_on(tmp_path: Path) -> None:
    opened = _Opened(tmp_path, [Turn(rest(answer="more"))], Turn(rest("resumable")), prompt=None)

    assert (run_headless(RunRequest(None), opened), opened.log) == (0, [("start",), ("continue",), ("close",)])


def test_without_a_prompt_a_turn_that_ran_in_this_life_is_not_continued(tmp_path: Path) -> None:
    opened = _Opened(tmp_path, [], Turn(rest("limit"), _SAYS), prompt=None)

    assert (run_headless(RunRequest(None), opened), opened.log) == (5, [("start",), ("close",)])


def test_a_model_error_ends_with_6_and_its_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failing = Turn(rest("model_error", error="401 from the endpoint: bad [/tag]"))

    assert run_headless(RunRequest("go"), _Opened(tmp_path, [failing])) == 6
    assert "graph-agent: 401 from the endpoint: bad [/tag]\n" in capsys.readouterr().err


def test_a_held_thread_ends_with_7_and_says_so_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    async def held(_bus: EventBus) -> Session:
        raise ThreadHeld("pid 4711 has it")

    opener: Opener = held
    code = run_headless(RunRequest("go", "json", thread_id="t1"), opener)

    report = _json(capsys.readouterr().out)
    told = (code, report["status"], report["thread_id"], report["error"])
    assert told == (7, "held", "t1", "pid 4711 has it")


@pytest.mark.parametrize(
    ("number", "code", "status", "end"),
    [(signal.SIGINT, 130, "stopped", "stop"), (signal.SIGTERM, 143, "stopped", "suspend")],
)
def test_a_signal_ends_the_run_with_its_code_and_the_way_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int, status: str, end: str
) -> None:
    opened = _Opened(tmp_path, [Turn(rest(), (Pause(30),))])
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()

    ended = run_headless(RunRequest("go", "json"), opened)

    out, err = capsys.readouterr()
    assert (ended, _json(out)["status"], opened.log[-2:]) == (code, status, [(end,), ("close",)])
    assert "Resume with: graph-agent resume thread-1" in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_the_thread_is_being_opened_is_told_like_a_later_one(
    capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int
) -> None:
    async def opens_slowly(_: EventBus) -> Session:
        threading.Timer(0.1, os.kill, (os.getpid(), number)).start()
        await asyncio.sleep(30)
        raise AssertionError("nothing ended it")

    ended = run_headless(RunRequest("go", "json", thread_id="t1"), opens_slowly)

    report = _json(capsys.readouterr().out)
    assert (ended, report["status"], report["thread_id"]) == (code, "stopped", "t1")


def test_the_time_limit_suspends_and_ends_with_5(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    opened = _Opened(tmp_path, [Turn(rest(), (Pause(30),))])

    code = run_headless(RunRequest("go", "json", timeout_seconds=0.2), opened)

    report = _json(capsys.readouterr().out)
    assert (code, report["status"], report["error"]) == (5, "limit", "the time limit of 0.2 s was reached")


LONG = "some words that are said " * 200


def test_a_thread_is_compacted_by_command_and_a_short_one_is_left_as_it_is(tmp_path: Path) -> None:
    database = tmp_path / "agent.db"
    play(database, f"{LONG} one", f"{LONG} two", f"{LONG} three")
    listed = CliRunner().invoke(app, ["threads", "list", "--json", "--db", str(database)])
    [thread] = json.loads(listed.stdout)["threads"]

    first, second = (
        CliRunner().invoke(app, ["compact", thread["thread_id"], "--json", "--db", str(database)]) for _ in range(2)
    )

    told = json.loads(first.stdout)["compacted"]
    assert (first.exit_code, second.exit_code, told["method"]) == (0, 0, "outline")
    assert told["tokens_after"] < told["tokens_before"]
    assert json.loads(second.stdout) == {"thread_id": thread["thread_id"], "compacted": None}
