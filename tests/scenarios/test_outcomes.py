"""How a call ended is said in the same word by every surface: each way of ending, through the real command."""

import io
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import pytest
from rich.console import Console

from graph_agent.calls import OUTCOMES
from graph_agent.cli.headless.report import ProgressReporter
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import Subscriber, event_from_json
from tests.fakes.forked_command import ForkedProcess, start_forked
from tests.fakes.openai_server import TC, TCS, TXT, Reply
from tests.scenarios.command import NO_SANDBOX, Scripted, scripted, until

_BYPASS = ("--mode", "bypassPermissions")
_SLEEP = TC("c1", "bash", {"command": "touch begun; sleep 61"})


def _bash(command: str) -> Reply:
    return TC("c1", "bash", {"command": command})


_Events = list[dict[str, Any]]


def _run(command: Scripted, *arguments: str) -> _Events:
    done = command("run", *arguments, "--output", "stream-json")
    return [json.loads(line) for line in done.stdout.splitlines()]


def _answered(*answer: str) -> Callable[[Scripted], _Events]:
    def end(command: Scripted) -> _Events:
        command("run", "go", "--thread", "t1")
        command("approvals", *answer)
        return _run(command, "--resume", "t1")

    return end


def _asked(*options: str) -> Callable[[Scripted], _Events]:
    return lambda command: _run(command, "go", "--thread", "t1", *options)


@contextmanager
def _running(command: Scripted) -> Iterator[tuple[ForkedProcess, TextIO]]:
    """A headless run whose command runs, and what it prints."""
    arguments = ("run", "go", "--thread", "t1", *_BYPASS, "--output", "stream-json")
    process = start_forked(arguments, command.workspace, command.env, command.folder / "stderr")
    os.close(process.stdin)
    with os.fdopen(process.stdout) as printed:
        until((command.workspace / "begun").exists)
        yield process, printed
        process.wait()


def _interrupted(command: Scripted) -> _Events:
    with _running(command) as (process, printed):
        process.send_signal(signal.SIGINT)
        return [json.loads(line) for line in printed]


def _recovered(*decision: str) -> Callable[[Scripted], _Events]:
    def end(command: Scripted) -> _Events:
        with _running(command) as (process, _):
            process.kill()
        command("recover", *decision)
        return _run(command, "--resume", "t1")

    return end


def _stopped_at_its_question(command: Scripted) -> _Events:
    chat = command.chat("chat", "--thread", "t1", "go")
    chat.plays("? help", "<s", "stopped by you", "> ", "^\x04")
    chat.ends()
    return []


@dataclass(frozen=True)
class _Way:
    """One way in which call c1 ends."""

    name: str
    script: tuple[Reply, ...]
    end: Callable[[Scripted], _Events]
    status: str
    outcome: str | None
    by: str
    """Who or what decided, as a pattern; empty where no decision ended it."""
    why: str
    """In the words that people read."""
    told: str
    """What the model gets."""
    settings: str = ""

    @property
    def is_recovered(self) -> bool:
        """Whether it was interrupted before, by an end of the process."""
        return "recovery" in self.name


_TOUCH = _bash("touch made")
_WAYS = (
    _Way("approved", (_TOUCH,), _answered("approve", "c1"), "success", None, "", "", "exit code 0"),
    _Way("failed", (_bash("exit 3"),), _asked(*_BYPASS), "error", None, "", "exit code 3", "exit code 3"),
    _Way(
        "rejected",
        (_TOUCH,),
        _answered("reject", "c1"),
        "cancelled",
        "rejected",
        r"cli pid \d+",
        "",
        "Not run: the user rejected this call. Do not repeat it.",
    ),
    _Way(
        "rejected with a reason",
        (_TOUCH,),
        _answered("reject", "c1", "--reason", "not today"),
        "cancelled",
        "rejected",
        r"cli pid \d+",
        "not today",
        "Not run: the user rejected this call. Do not repeat it. The user said: not today",
    ),
    _Way(
        "denied by a rule",
        (_TOUCH,),
        _asked(),
        "cancelled",
        "denied",
        "policy",
        "touch",
        "Not run: denied by policy. Do not repeat it.",
        '[policy]\ndeny = ["bash(touch *)"]\n',
    ),
    _Way(
        "denied by dontAsk",
        (_TOUCH,),
        _asked("--mode", "dontAsk"),
        "cancelled",
        "denied",
        "policy",
        "never asks",
        "Not run: denied by policy. Do not repeat it.",
    ),
    _Way(
        "denied by plan mode",
        (_TOUCH,),
        _asked("--mode", "plan"),
        "cancelled",
        "denied",
        "policy",
        "plan",
        "Not run: denied by policy. Do not repeat it.",
    ),
    _Way(
        "stopped while it ran",
        (_SLEEP,),
        _interrupted,
        "cancelled",
        "stopped",
        "user",
        "may have partly run",
        "Cancelled: stopped by user, may have partly run. Its outcome is unknown",
    ),
    _Way(
        "stopped while it waited",
        (_TOUCH,),
        _stopped_at_its_question,
        "cancelled",
        "stopped",
        "user",
        "",
        "Cancelled: stopped by user. It never started.",
    ),
    _Way(
        "stopped behind another that ran",
        (TCS(("c0", "bash", {"command": "touch begun; sleep 61"}), ("c1", "bash", {"command": "touch made"})),),
        _interrupted,
        "cancelled",
        "stopped",
        "user",
        "",
        "Cancelled: stopped by user. It never started.",
    ),
    _Way(
        "stopped by a limit",
        tuple(TC(f"c{number}", "bash", {"command": "exit 3"}) for number in (9, 8, 7, 1)),
        _asked(*_BYPASS),
        "cancelled",
        "stopped",
        "a limit",
        "in a row",
        "It never started.",
    ),
    _Way(
        "cancelled by a recovery decision",
        (_SLEEP,),
        _recovered("--cancel", "c1"),
        "cancelled",
        "cancelled",
        r"cli pid \d+",
        "outcome unknown",
        "Cancelled by the user. Its outcome is unknown",
        NO_SANDBOX,
    ),
    _Way(
        "done by a recovery decision",
        (_SLEEP,),
        _recovered("--done", "c1", "--result", "I made it"),
        "success",
        None,
        "",
        "",
        "I made it",
        NO_SANDBOX,
    ),
)


def _in_the_chat(events: list[dict[str, Any]]) -> str:
    """What the display of a turn says of the end of c1."""
    stream = io.StringIO()
    display = TurnDisplay(Console(file=stream, width=400, markup=False, highlight=False, emoji=False))
    _replay(events, display)
    display.finish()
    return "".join(line for line in stream.getvalue().splitlines(keepends=True) if line[:1] in "✓✗⊘■-")


def _in_the_progress(events: list[dict[str, Any]]) -> str:
    """The same of the progress of a headless run."""
    stream = io.StringIO()
    _replay(events, ProgressReporter(stream))
    return "".join(line for line in stream.getvalue().splitlines(keepends=True) if " - interrupted" not in line)


def _replay(events: list[dict[str, Any]], subscriber: Subscriber) -> None:
    for number, event in enumerate(events, 1):
        if event["type"] != "result" and "c1" in (event.get("call_id"), event.get("call", {}).get("call_id")):
            subscriber(number, event_from_json(event))


def _row(text: str) -> str:
    """The row of c1 in a table of calls."""
    return next(line for line in text.splitlines() if re.match(r"(t1)? +c1 ", line))


def _is_recorded(way: _Way, calls: list[dict[str, Any]]) -> None:
    [call] = [call for call in calls if call["call_id"] == "c1"]
    assert (call["status"], call.get("outcome")) == (way.status, way.outcome)


@pytest.mark.parametrize("way", _WAYS, ids=lambda way: way.name)
def test_every_surface_says_how_a_call_ended(way: _Way, tmp_path: Path) -> None:
    word = way.outcome or way.status
    by = rf"\bby {way.by}" if way.by else ""
    with scripted(tmp_path, [*way.script, TXT("done")], settings=way.settings) as command:
        events = way.end(command)
        calls, filtered = command.json("calls")["calls"], command.json("calls", "--status", word)["calls"]
        state, thread = command.json("inspect", "t1"), command.json("threads", "show", "t1")
        exported = json.loads(command("threads", "export", "t1").stdout)
        rows = [_row(command(*name).stdout) for name in (("calls",), ("inspect", "t1"))]
        counts = re.search(r"^calls +(.*)$", command("threads", "show", "t1").stdout, re.MULTILINE)
        pages = [command("threads", "export", "t1", "--format", kind).stdout for kind in ("md", "html")]

    for listed in (calls, filtered, state["calls"], list(state["values"]["calls"].values()), thread["calls"]):
        _is_recorded(way, listed)
    logged = [row["record"] for row in exported["rows"] if row["table"] == "call_log" and row["call_id"] == "c1"]
    _is_recorded(way, [json.loads(record) if isinstance(record, str) else record for record in logged])
    for row in rows:
        assert re.search(rf" c1 +{word} .*{by}.*{way.why}", row), row
    assert counts is not None
    assert re.search(rf"\d {word}\b", counts[1]), counts[1]
    assert re.search(rf"\*\*{word}\*\*.*{by}.*`c1`", pages[0])
    assert re.search(rf'<span class="status">{word}</span>.*{by}.* c1<', pages[1])
    told = [message["body"]["content"] for message in thread["transcript"] if message["role"] == "tool"]
    assert way.told in str(told[-1])
    if events:  # A chat in a terminal writes none.
        ends = [event for event in events if event["type"] == "tool_result" and event["call_id"] == "c1"]
        assert (ends[-1]["status"], ends[-1]["outcome"]) == (way.status, way.outcome)
        assert [event["status"] for event in ends[:-1]] == (["interrupted"] if way.is_recovered else [])
        for shown in (_in_the_chat(events), _in_the_progress(events)):
            # To the person in front of the process.
            here = by.replace("user", "you").replace(r"cli pid \d+", "you, in another terminal")
            assert re.search(rf"\A.*\b{word}\b ?{here}.*{way.why}.*\n\Z", shown), shown


def test_the_table_has_every_outcome() -> None:
    assert {way.outcome for way in _WAYS} == {None, *OUTCOMES.values()}
    assert len(_WAYS) == 13
