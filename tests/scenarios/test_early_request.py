"""The first request leaves while the program loads; started, changed and killed as it happens for real."""

import contextlib
import json
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.fakes.openai_server import DELAY, ERR, TC, TXT
from tests.fakes.pty_program import PtyProgram
from tests.scenarios.command import Command, scripted, until

_LIBRARIES = ("langgraph", "langchain_core", "langchain_openai", "openai", "langsmith")
_PRICE = "[prices.fake]\ninput = 1\noutput = 0\n"
_HANGS = "import time\ntime.sleep(600)\n"
_ON_IMPORT = """
import os, sys

class Notice:
    def find_spec(self, name, path=None, target=None):
        if name == "langgraph.graph":
            {done}

sys.meta_path.insert(0, Notice())
"""


def early_tokens(command: Command) -> list[int | None]:
    with closing(sqlite3.connect(next((command.folder / "home").rglob("*.db")))) as database:
        return [tokens for (tokens,) in database.execute("SELECT early_tokens FROM inbox ORDER BY id")]


def of_doctor(command: Command) -> str:
    [check] = [one for one in json.loads(command("doctor", "--json").stdout)["checks"] if one["name"] == "requests"]
    return str(check["detail"])


def on_import(folder: Path, statement: str) -> dict[str, str]:
    """The environment of a process in which this happens when the graph framework is imported."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_ON_IMPORT.format(done=statement))
    return {"PYTHONPATH": str(folder)}


def loading_forever(folder: Path, *libraries: str) -> dict[str, str]:
    """The environment of a process that never finishes importing these libraries."""
    for name in libraries:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(_HANGS)
    return {"PYTHONPATH": str(folder)}


def test_the_request_leaves_before_the_graph_and_the_model_library_are_loaded(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("too early")]) as command:
        command.extra_env = loading_forever(tmp_path / "path", *_LIBRARIES)
        process = command.start("run", "hello", "--thread", "t1")
        until(lambda: len(command.server.bodies) == 1)
        command.kill(process)

    assert command.said() == ["hello"]
    assert early_tokens(command) != [None]


@pytest.mark.parametrize(
    ("arguments", "typed"), [((), "hello"), (("chat", "hello"), "")], ids=["typed", "on the command line"]
)
def test_the_first_message_of_a_chat_is_stored_and_sent_while_it_loads_and_is_answered_after_a_kill(
    tmp_path: Path, arguments: tuple[str, ...], typed: str
) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("too early")), TXT("done")]) as command:
        command.extra_env = loading_forever(tmp_path / "path", *_LIBRARIES)
        chat = command.chat(*arguments, "--thread", "t1")
        if typed:
            chat.plays("> ", f"<{typed}")
        until(lambda: len(command.server.bodies) == 1)
        chat.signals(signal.SIGKILL)
        chat.ends()
        command.extra_env = {}
        [thread] = command.json("threads", "list")["threads"]
        code, result = command.run_json("--resume", "t1")

    assert (thread["status"], thread["queued_messages"], command.said()) == ("resumable", 1, ["hello"])
    assert (code, result["answer"], result["usage"]["requests"]) == (0, "done", 2)


def end_by_signal(chat: PtyProgram, number: signal.Signals) -> None:
    chat.signals(number)
    chat.ends()


def leave(chat: PtyProgram) -> None:
    chat.plays("^\x03", "to leave", "^\x03", "3 queued messages are kept", "resume t1")
    chat.ends()


_ENDS: dict[str, Callable[[PtyProgram], None]] = {
    "SIGKILL": lambda chat: end_by_signal(chat, signal.SIGKILL),
    "SIGHUP": lambda chat: end_by_signal(chat, signal.SIGHUP),
    "a closed terminal": PtyProgram.hangs_up,
    "Ctrl-C twice": leave,
}
_INSTANTS = {
    "a new chat loads": ("--thread", "t1"),
    "a resumed chat loads": ("resume", "t1"),
    "a resumed chat begins to load": ("resume", "t1"),
    "the first turn runs": ("chat", "--thread", "t1"),
}
"""When, and how the chat is started."""
_UNTESTED = {
    ("a resumed chat begins to load", "SIGKILL"),  # What is not stored yet is not shown as queued.
    ("a resumed chat begins to load", "Ctrl-C twice"),  # The next prompt may begin between the two.
    ("the first turn runs", "Ctrl-C twice"),  # The first one stops the turn.
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("instant", "end"),
    [(instant, end) for instant in _INSTANTS for end in _ENDS if (instant, end) not in _UNTESTED],
)
def test_every_line_that_was_entered_is_sent_once_and_in_order_however_the_chat_ends(
    tmp_path: Path, instant: str, end: str
) -> None:
    is_new, said = "resume" not in instant, ["one", "two", "three"]
    with scripted(tmp_path, [DELAY(60, TXT("too late")) if is_new else TXT("before")]) as command:
        if not is_new:
            command("run", "before", "--thread", "t1")
        if "load" in instant:
            command.extra_env = loading_forever(tmp_path / "path", *_LIBRARIES)
        chat = command.chat(*_INSTANTS[instant])
        chat.plays("> ", *(f"<{line}" for line in said))
        chat.shows(": three" if "begins" in instant else "queued: three")
        until(lambda: len(command.server.bodies) == 1)
        _ENDS[end](chat)
        command.extra_env = {}
        code, _ = command.run_json("--resume", "t1")
        [thread] = command.json("threads", "list")["threads"]

    assert (code, command.said()) == (0, said if is_new else ["before", *said])
    assert (thread["queued_messages"], thread["turns"]) == (0, 3 + (not is_new))


_EMPTY: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "left at once": (("^\x04",), []),
    "another one began": (("</clear", "mode default", "^\x04"), []),
    "a thread without a message after one with a message": (
        ("<list", "ls", "mode default", "</clear", "mode default", "^\x04"),
        ["t1"],
    ),
    "killed": ((), []),
}
"""What is done in a new chat, and which threads are listed afterwards."""


@pytest.mark.parametrize("name", _EMPTY)
def test_a_thread_without_a_message_is_listed_only_while_it_is_open(tmp_path: Path, name: str) -> None:
    steps, listed = _EMPTY[name]
    command = Command(tmp_path)
    chat = command.chat("--thread", "t1")
    chat.plays("mode default")
    while_open = command.json("threads", "list")["threads"]
    chat.plays(*steps)
    if not steps:
        chat.signals(signal.SIGKILL)
    chat.ends()
    threads = [one["thread_id"] for one in command.json("threads", "list")["threads"]]
    pruned = command("threads", "prune").stdout

    with closing(sqlite3.connect(next((tmp_path / "home").rglob("*.db")))) as database:
        rows = [row for (row,) in database.execute("SELECT thread_id FROM threads")]
    assert ([one["thread_id"] for one in while_open], threads, rows) == (["t1"], listed, listed)
    assert ("Deleted 1 thread without a message" in pruned) == (not steps)
    assert ("Resume with" in chat.output, "/resume t1" in chat.output) == (False, bool(listed))


@pytest.mark.parametrize(
    ("arguments", "why"),
    [(("-c",), "is open in another process"), (("-r", "nothing"), "nothing"), (("--thread", "t2"), "base_url")],
    ids=["held", "unknown", "wrong settings"],
)
def test_a_message_of_a_chat_that_cannot_begin_is_shown_and_not_kept(
    tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    with scripted(tmp_path, [DELAY(60, TXT("too late"))]) as command:
        holder = command.chat("chat", "--thread", "t1", "first")
        until(lambda: len(command.server.bodies) == 1)
        if why == "base_url":
            command.extra_env = {"GRAPH_AGENT_BASE_URL": "no address"}
        chat = command.chat("chat", *arguments, "two\nlines")
        chat.plays("Not sent: two", "lines", why)
        code = chat.ends()
        holder.signals(signal.SIGKILL)
        holder.ends()

    with closing(sqlite3.connect(next((command.folder / "home").rglob("*.db")))) as database:
        kept = [
            database.execute(f"SELECT {name}").fetchall() for name in ("thread_id FROM threads", "text FROM inbox")
        ]
    assert (code != 0, kept) == (True, [[("t1",)], [("first",)]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "settings", "early", "said"),
    [
        ("hello", "", [None], ["graph-agent", "AsyncOpenAI"]),
        ("what is in @notes.txt here", "", [None], ["AsyncOpenAI", "AsyncOpenAI"]),
        ("hello", 'early_request = "off"', [None], ["AsyncOpenAI", "AsyncOpenAI"]),
        ("hello", '[[hooks.user_prompt]]\ncommand = "true"', [None], ["AsyncOpenAI", "AsyncOpenAI"]),
        ("!true", "", [], ["AsyncOpenAI"]),
        ("   ", "", [], ["AsyncOpenAI"]),
    ],
    ids=["message", "file", "off", "hook", "command", "blank"],
)
def test_what_is_entered_first_in_a_chat_is_on_the_screen_and_sent_once(
    tmp_path: Path, line: str, settings: str, early: list[None], said: list[str]
) -> None:
    with scripted(tmp_path, [TXT("first answer"), TXT("last answer")][-len(said) :], settings=settings) as command:
        (command.workspace / "notes.txt").write_text("x")
        chat = command.chat("chat", "--thread", "t1")
        chat.plays("> ", f"<{line}", *["first answer"] * bool(early))
        chat.shows("mode default")
        shown = [one for one in chat.screen.lines if line.strip() and one.rstrip() == f"> {line}"]
        chat.plays("<and more", "last answer", "^\x04")
        ended = chat.ends()
        [thread] = command.json("threads", "list")["threads"]

    agents = [request.headers["user-agent"].partition("/")[0] for request in command.server.requests]
    assert (ended, agents, early_tokens(command)[:1]) == (0, said, early)
    assert (thread["turns"], command.said()[-1]) == (len(said), "and more")
    assert len(shown) == bool(line.strip()), chat.screen.lines
    assert of_doctor(command) == "no early request was left unused"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_the_program_loads_ends_it_at_once_and_the_message_waits(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "path" / "langgraph").mkdir(parents=True)
    (tmp_path / "path" / "langgraph" / "__init__.py").write_text(_HANGS)

    with scripted(tmp_path, [DELAY(30, TXT("too early")), TXT("done")]) as command:
        command.extra_env = {"PYTHONPATH": str(tmp_path / "path")}
        process = command.start("run", "hello", "--thread", "t1")
        until(lambda: len(command.server.bodies) == 1)
        process.send_signal(number)
        ended = process.wait(timeout=30)
        command.extra_env = {}
        [thread] = command.json("threads", "list")["threads"]
        resumed, result = command.run_json("--resume", "t1")

    assert (ended, thread["status"], thread["queued_messages"]) == (code, "resumable", 1)
    assert (resumed, result["answer"], result["usage"]["requests"]) == (0, "done", 2)


@pytest.mark.parametrize(
    "arguments",
    [
        ("hello",),
        ("用中文 😀 \\ \" '\n  end  ", "--mode", "plan"),
        ("hello", "--effort", "high", "--add-dir", "/usr", "--max-steps", "5"),
        ("hello", "--dangerously-skip-permissions", "--model", "other"),
    ],
    ids=["plain", "text", "options", "mode"],
)
def test_the_turn_takes_its_answer_over_and_asks_nothing_itself(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    settings = (
        '[model]\nheaders = {"X-Team" = "a"}\nextra_body = {seed = 1}\n[policy]\ndeny = ["bash", "web_fetch"]\n'
    )
    with scripted(tmp_path, [TC("c1", "ls", {"path": "."}), TXT("done")], settings=settings) as command:
        (command.workspace / "AGENTS.md").write_text("Be brief.\n")
        (command.folder / "home" / "agents").mkdir()
        (command.folder / "home" / "agents" / "reviewer.md").write_text("---\ndescription: reviews\n---\nReview.\n")
        code, result = command.run_json(*arguments, "--trust")

    agents = [request.headers["user-agent"].partition("/")[0] for request in command.server.requests]
    assert (code, result["answer"], agents) == (0, "done", ["graph-agent", "AsyncOpenAI"])
    assert (early_tokens(command), result["usage"]["requests"]) == ([None], 2)
    assert of_doctor(command) == "no early request was left unused"
    assert [body["seed"] for body in command.server.bodies] == [1, 1]
    first, second = (body["messages"] for body in command.server.bodies)
    assert second[: len(first)] == first


def test_a_turn_that_needs_another_request_sends_it_and_counts_both(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("first"), TXT("second")], settings=_PRICE) as command:
        notes = tmp_path / "home" / "CONTEXT.md"
        command.extra_env = on_import(tmp_path / "path", f"open({str(notes)!r}, 'w').write('Be brief.')")
        result = json.loads(command("run", "hello", "--output", "json").stdout)
        command.extra_env = {}
        found = of_doctor(command)

    first, second = command.server.bodies
    assert (first["messages"][1:], first == second) == (second["messages"][1:], False)
    usage, [tokens] = result["usage"], early_tokens(command)
    assert (result["answer"], usage["requests"], usage["estimated"]) == ("second", 2, True)
    assert (usage["input_tokens"], usage["cost"]) == (10 + (tokens or 0), pytest.approx((10 + (tokens or 0)) / 1e6))
    assert found == f"1 early request sent and not used, about {tokens:,} tokens"


@pytest.mark.slow
@pytest.mark.parametrize("is_chat", [False, True])
def test_a_request_that_was_sent_stays_recorded_with_its_message_if_the_session_cannot_be_opened(
    tmp_path: Path, is_chat: bool
) -> None:
    with scripted(tmp_path, [TXT("unused"), TXT("done")]) as command:
        error = "raise __import__('graph_agent.errors').errors.UsageError('no graph')"
        command.extra_env = on_import(tmp_path / "path", error)
        if is_chat:
            chat = command.chat("chat", "hello")
            chat.plays("1 queued message is kept", "resume", "no graph")
            chat.ends()
        else:
            assert "no graph" in command("run", "hello").stderr
        command.extra_env = {}
        [tokens], found = early_tokens(command), of_doctor(command)
        [thread] = command.json("threads", "list")["threads"]
        code, result = command.run_json("--continue")

    assert (found, thread["queued_messages"]) == (f"1 early request sent and not used, about {tokens:,} tokens", 1)
    assert (code, result["answer"], result["usage"]["requests"], command.said()) == (0, "done", 2, ["hello"])


def test_an_error_of_the_endpoint_ends_the_turn_after_one_request(tmp_path: Path) -> None:
    with scripted(tmp_path, [ERR(401, "no such key"), TXT("done")]) as command:
        code, result = command.run_json("hello")

    assert (code, "no such key" in result["error"], len(command.server.bodies)) == (6, True, 1)
    assert early_tokens(command) == [None]


def test_without_it_every_request_waits_for_its_turn(tmp_path: Path) -> None:
    with scripted(tmp_path, [TXT("done")], settings='early_request = "off"\n') as command:
        code, _ = command.run_json("hello")

    [request] = command.server.requests
    assert (code, request.headers["user-agent"].partition("/")[0]) == (0, "AsyncOpenAI")


def kill_run(command: Command, seconds: float) -> None:
    process = command.start("run", "do it", "--thread", "t1")
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.1 + seconds)
    command.kill(process)


def kill_chat(command: Command, seconds: float) -> None:
    chat = command.chat("chat", "--thread", "t1")
    chat.plays("> ", "<do it")
    time.sleep(seconds)
    chat.signals(signal.SIGKILL)
    chat.ends()


def killed_and_resumed(folder: Path, kill: Callable[[Command, float], None], seconds: float) -> str:
    """Kill it after this time and resume its thread; returns how far it had come."""
    with scripted(folder, [DELAY(0.1, TXT("hello"))] * 2) as command:
        kill(command, seconds)
        sent, stored = len(command.server.bodies), [*(folder / "home").rglob("*.db")] and waiting(command)
        code, result = command.run_json("--resume", "t1")
        if not stored:
            assert (code, sent, command.server.bodies) == (2, 0, [])
            return "nothing stored"
        unused = [tokens for tokens in early_tokens(command) if tokens is not None]
        # Not what the inbox says: a message that is in the transcript counts as taken, whatever its mark.
        [thread] = command.json("threads", "list")["threads"]
        assert (code, result["answer"], command.said()) == (0, "hello", ["do it"])
        assert thread["queued_messages"] == 0
        assert result["usage"]["requests"] == 1 + len(unused)
        assert of_doctor(command).startswith("1 early request" if unused else "no early request")
    return "sent" if sent else "stored"


def waiting(command: Command) -> list[str]:
    """For each message in the inbox whether it waits."""
    with closing(sqlite3.connect(next((command.folder / "home").rglob("*.db")))) as database:
        try:
            rows = database.execute("SELECT taken_at FROM inbox").fetchall()
        except sqlite3.OperationalError:  # Its tables are not there yet.
            return []
    return ["taken" if at else "waits" for (at,) in rows]


@pytest.mark.sweep
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kill", "step_s"), [(kill_run, 0.015), (kill_chat, 0.05)])
def test_killed_at_any_instant_of_its_start_no_message_is_lost_or_sent_twice(
    tmp_path: Path, kill: Callable[[Command, float], None], step_s: float
) -> None:
    ends = Counter(killed_and_resumed(tmp_path / str(number), kill, step_s * number) for number in range(60))

    assert {"nothing stored", "sent"} <= {*ends}, ends


@pytest.mark.slow
def test_killed_while_the_program_loads_the_message_is_sent_again_and_both_requests_are_counted(
    tmp_path: Path,
) -> None:
    with scripted(tmp_path, [DELAY(30, TXT("too late")), TXT("hello")]) as command:
        process = command.start("run", "do it", "--thread", "t1")
        until(lambda: len(command.server.bodies) == 1)
        command.kill(process)
        code, result = command.run_json("--resume", "t1")
        again = command.run_json("--resume", "t1")[1]
        later = command.run_json("and more", "--thread", "t1")[1]
        [thread] = command.json("threads", "list")["threads"]

    assert (code, result["answer"], command.said(1)) == (0, "hello", ["do it"])
    assert (result["usage"]["requests"], again["usage"]["requests"], later["usage"]["requests"]) == (2, 2, 1)
    assert (len(early_tokens(command)), thread["usage"]["requests"]) == (2, 3)
