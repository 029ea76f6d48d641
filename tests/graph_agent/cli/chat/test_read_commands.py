import asyncio
import re
import sys
from pathlib import Path

import pytest
from prompt_toolkit.input import DummyInput

from graph_agent.app.reader import read_database
from graph_agent.app.rewind import RewindRequest
from graph_agent.cli.chat.command_table import COMMANDS
from graph_agent.cli.chat.read_commands import ReadCommands, parse_rewind, rewind_from_chat
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.chat.slash_commands import SlashCommands
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.console import make_console
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.views.table import text_width
from graph_agent.errors import UsageError
from tests.fakes.played_thread import play
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.stage import THREAD, Stage


async def test_each_look_shows_the_thread_it_was_made_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(text("hello")))
    async with stage.open_session() as session:
        await session.start()
        await session.send("hi")
    look = ReadCommands(stage.database, THREAD, "default")

    shown = {}
    for name in ("threads", "calls", "inspect", "todo"):
        look.show(name, "")
        shown[name] = capsys.readouterr().out

    assert THREAD in shown["threads"]
    assert THREAD in shown["inspect"]
    assert shown["todo"] == "No todo list yet.\n"
    look.show("inspect", "messages.2.content")
    assert "hello" in capsys.readouterr().out


async def test_a_call_of_this_thread_is_shown_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(calls(("call_1", "look")), text("hello")))
    async with stage.open_session() as session:
        await session.start()
        await session.send("hi")

    ReadCommands(stage.database, THREAD, "default").show("calls", "call_1")

    assert capsys.readouterr().out.splitlines()[2:] == ["  error: there is no tool 'look'"]


async def test_a_thread_is_exported_while_it_is_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(text("hello")))
    async with stage.open_session() as session:
        await session.start()
        await session.send("hi")
        look = ReadCommands(stage.database, THREAD, "default")
        look.show("export", str(tmp_path / "page.html"))
        look.show("export", "")

    assert capsys.readouterr().out.splitlines() == [
        f"Wrote {tmp_path / 'page.html'}.",
        "Name a file, for example /export thread.html (.html and .md to read, .json to import).",
    ]
    assert "<title>hi</title>" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("wish", "order"),
    [
        ("abcd", RewindRequest("t:abcd")),
        ("abcd --files-only --force", RewindRequest("t:abcd", scope="files", is_forced=True)),
        ("--chat-only --dry-run abcd", RewindRequest("t:abcd", scope="chat", is_dry=True)),
        ("--undo", RewindRequest("t", is_undo=True)),
    ],
)
def test_what_is_typed_is_an_order_about_this_thread_alone(wish: str, order: RewindRequest) -> None:
    assert parse_rewind(wish, "t") == order


@pytest.mark.parametrize(
    "wish", ["a b", "abcd --undo", "--files-only", "abcd --odd", "abcd --files-only --chat-only"]
)
def test_what_is_not_understood_is_refused(wish: str) -> None:
    with pytest.raises(UsageError, match="Usage: /rewind NUMBER"):
        parse_rewind(wish, "t")


@pytest.mark.parametrize("agrees", [True, False])
def test_nothing_changes_before_the_person_has_seen_it_and_agreed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, agrees: bool
) -> None:
    path = tmp_path / "a.db"
    first, second = play(path, "one", "two", replies=(text("a"), text("b")))
    with read_database(path) as reader:
        [thread] = reader.threads()
    shown = []

    async def answered() -> bool:
        shown.append(capsys.readouterr().out)
        return agrees

    asyncio.run(rewind_from_chat(path, parse_rewind(first, thread.thread_id), answered))

    with read_database(path) as reader:
        messages = [entry.body["content"] for entry in reader.transcript(thread.thread_id) if entry.role == "user"]
    assert messages == (["one"] if agrees else ["one", "two"])
    assert f"Rewind to checkpoint {first}" in shown[0]
    assert ("Done. The thread is at" in capsys.readouterr().out) == agrees
    assert first != second


_WORDS = "Explain why the totals of the cart are wrong when shipping is added to them, " * 3
_LINES = (
    *(f"/{name}" for name in COMMANDS if name not in ("edit", "quit", "model", "fork", "doctor")),
    *(
        "/mode odd",
        "/modle",
        "/calls zzzzzz",
        "/inspect no.such.path",
        "/diff a b c",
        "/diff zzzzzz",
        "/tools bash",
    ),
    *("/policy revoke zzzzzz", "/resume zzzzzz", "/nothing", "/calls call_1", "/inspect messages.1.content"),
)


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_what_a_slash_command_shows_is_folded_between_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    stage = Stage(tmp_path / "graph-agent.db", ScriptedModel(calls(("call_1", "look")), text(_WORDS)))
    async with stage.open_session() as session:
        await session.start()
        await session.send(_WORDS)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("NO_COLOR", "1")

        async def shown(columns: int) -> list[str]:
            monkeypatch.setenv("COLUMNS", str(columns))
            console = make_console()
            programs = UserPrograms(Terminal(None, source=DummyInput()), TurnDisplay(console))
            for line in _LINES:
                await SlashCommands(session, console, stage.database, programs).run(line)
            plain = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)
            return re.sub(r"(?s)^… shortened; in full: `.*?`$", "", plain, flags=re.MULTILINE).splitlines()

        narrow, wide = await shown(width), await shown(100_000)

    too_long = [line for line in narrow if text_width(line) > width and " " in line.strip()]
    words = {word for line in wide for word in line.split()}
    # Time passes between the two: an age may be "just now" in one and "1 min ago" in the other.
    passed = re.compile(r"just|now|\d\d?|s|min|ago")
    cut = {word for line in narrow for word in line.split() if not re.search("…|[─│]", word)} - words
    cut = {word for word in cut if not passed.fullmatch(word)}
    # A path that is wider than a line is folded after a slash.
    parts = {word for word in cut if any(re.search(rf"(^|/){re.escape(word)}((?<=/)|$)", one) for one in words)}
    assert (too_long, cut - parts) == ([], set())
    assert len(_LINES) > 30
