import asyncio
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import create_pipe_input
from rich.console import Console

from graph_agent.cli.chat.chat import show_recent
from graph_agent.cli.chat.turn_runner import Announcer, TurnRunner, format_result, format_status, has_fresh_budget
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.prompts.terminal_output import Notifier
from graph_agent.cli.render.console import make_console
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import EventBus, SessionOpened, StepStarted, TextDelta, TurnEnded, TurnStarted, TurnStatus
from graph_agent.session.turn_result import TurnResult
from tests.fakes.database_rows import Rows
from tests.fakes.pty_chat import PtyChat
from tests.fakes.scripted_session import ScriptedSession, rest

_UP, _BACKSPACE = "\x1b[A", "\x7f"


@pytest.mark.slow
def test_a_command_typed_while_a_turn_runs_is_said_and_run_after_it(tmp_path: Path) -> None:
    chat = PtyChat("short", tmp_path)
    chat.sees("> ")

    chat.plays("<go", "sleep 60", "</mode plan", "after this turn: /mode plan", "exit code 3", "mode: plan")
    chat.plays("^\x04")

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"]])


@pytest.mark.slow
def test_up_on_an_empty_line_takes_the_newest_message_back_and_what_became_of_it_is_sent(tmp_path: Path) -> None:
    chat = PtyChat("slow", tmp_path)
    chat.sees("> ")

    chat.plays("<go", "tick [bold]", "<first", "<second", "queued: second", f"^{_UP}")
    chat.plays("no longer queued: second", "< thought", "queued: second thought", f"^{_UP}")
    chat.plays("no longer queued: second thought")
    chat.types(_BACKSPACE * len("second thought"))
    chat.plays("^\x1b", "1 message queued: Enter to send, Up to edit the last", f"^{_UP}")
    chat.plays("no longer queued: first", "< of all", "hello", "^\x04")

    assert (chat.ends(), chat.log()[-2:]) == (0, [["take back", "first"], ["send", "first of all"]])


@pytest.mark.slow
def test_a_stop_lets_what_is_queued_wait_until_enter_is_pressed(tmp_path: Path) -> None:
    chat = PtyChat("slow", tmp_path)
    chat.sees("> ")

    chat.plays("<go", "tick [bold]", "<instead", "queued: instead", "^\x1b", "1 message queued", "^\r")
    chat.plays("> instead", "hello", "^\x04")

    assert (chat.ends(), chat.log()[-2:]) == (0, [["stop"], ["send", "instead"]])


class _Deaf(ScriptedSession):
    """Its first stop comes before there is anything to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__(EventBus(), folder)
        self.stops = 0
        self.ended = asyncio.Event()

    async def start(self) -> TurnResult:
        await self.ended.wait()
        return rest("stopped")

    async def stop(self) -> TurnResult:
        self.stops += 1
        if self.stops > 1:
            self.ended.set()
        return rest("stopped")


async def test_where_a_stop_came_too_early_the_next_one_stops(tmp_path: Path) -> None:
    session, shown = _Deaf(tmp_path), io.StringIO()
    with create_pipe_input() as keys:
        turning = TurnRunner(Terminal(None, source=keys), TurnDisplay(Console(file=shown)))
        running = asyncio.create_task(turning.run(session, session.start()))
        for _ in range(2):
            keys.send_text("\x03")
            await asyncio.sleep(0.2)
        ended = await asyncio.wait_for(running, 5)

    assert (ended.status, session.stops, shown.getvalue()) == ("stopped", 2, "stopping …\n")


class _Streaming(ScriptedSession):
    """Streams a thousand pieces in half a second."""

    def __init__(self, folder: Path, display: TurnDisplay) -> None:
        super().__init__(EventBus(), folder)
        self._display = display

    async def start(self) -> TurnResult:
        for number in range(1, 1001):
            self._display(number, TextDelta("word "))
            await asyncio.sleep(0.0005)
        return rest()


class _Counting(TurnDisplay):
    """Counts its frames."""

    frames = 0

    def tick(self) -> None:
        self.frames += 1
        super().tick()


async def test_a_turn_draws_ten_frames_a_second_at_most(tmp_path: Path) -> None:
    display = _Counting(Console(file=io.StringIO(), force_terminal=True))
    session = _Streaming(tmp_path, display)
    with create_pipe_input() as keys:
        began = time.monotonic()
        await TurnRunner(Terminal(None, source=keys), display).run(session, session.start())
        took = time.monotonic() - began

    assert 3 <= display.frames <= 10 * took + 1


def test_an_error_and_what_to_do_about_it_are_told_once() -> None:
    failed = rest("model_error", error="down")
    paused = rest("limit", error="the turn was paused", budget="max_tokens")

    assert [text for text, _ in format_result(failed)] == ["down", "No answer from the model. /retry to try again."]
    assert [text for text, _ in format_result(paused, was_asked=True)] == [
        "Send new instructions, or continue with /retry."
    ]


def test_only_a_budget_of_the_turn_is_fresh_when_one_goes_on() -> None:
    budgets = ("max_steps", "max_tokens", "max_cost", "max_thread_tokens", "")

    assert [has_fresh_budget(rest("limit", budget=name)) for name in budgets] == [True, True, True, False, False]


def test_the_context_in_use_is_known_until_another_conversation_is_opened() -> None:
    shown = []
    with create_pipe_input() as keys:
        turns = TurnRunner(Terminal(None, source=keys), TurnDisplay(Console(file=io.StringIO())))
        for event in (
            SessionOpened("t", "", "/w", "model", "default"),
            StepStarted(1, 12),
            TurnEnded("done", checkpoint_id="c2"),
            SessionOpened("t", "c2", "/w", "model", "default"),  # As after a declined rewind.
            SessionOpened("t", "c1", "/w", "model", "default"),
        ):
            turns.show_event(1, event)
            shown.append(turns.load().get("context", ""))

    assert shown == ["", "12% context", "12% context", "12% context", ""]


_LOAD = {"context": "12% context", "cost": "$0.04"}


def test_the_status_line_says_how_full_the_context_is_and_what_it_cost(tmp_path: Path) -> None:
    session = ScriptedSession(EventBus(), tmp_path)

    assert format_status(session, "no sandbox", {}) == (
        "scripted model · mode default · no sandbox · thread thread-1"
    )
    assert format_status(session, "no sandbox", _LOAD) == (
        "scripted model · mode default · no sandbox · 12% context · $0.04 · thread thread-1"
    )


def test_the_status_line_shows_the_chosen_items_in_their_order_and_loses_the_last_ones(tmp_path: Path) -> None:
    session, items = ScriptedSession(EventBus(), tmp_path / "shop"), ("folder", "cost", "mode", "context")

    lines = [format_status(session, "no sandbox", _LOAD, width, items) for width in (80, 25, 12, 5)]

    assert lines == ["shop · $0.04 · default · 12% context", "shop · $0.04 · default", "shop · $0.04", "shop"]
    assert format_status(session, "no sandbox", {}, items=("cost", "sandbox")) == "no sandbox"


def test_a_narrow_status_line_loses_what_matters_least_and_never_the_thread(tmp_path: Path) -> None:
    session = ScriptedSession(EventBus(), tmp_path)

    assert [format_status(session, "no sandbox", _LOAD, width) for width in (80, 70, 60, 40, 30, 5)] == [
        "scripted model · mode default · no sandbox · 12% context · $0.04 · thread-1",
        "scripted model · default · no sandbox · 12% context · thread-1",
        "scripted model · default · 12% context · thread-1",
        "default · 12% context · thread-1",
        "default · thread-1",
        "thre…",
    ]


@pytest.mark.parametrize(("typed", "agrees"), [("y\r", True), ("YES\r", True), ("\r", False), ("\x03", False)])
async def test_whoever_does_not_say_yes_once_asked_does_not_agree_and_what_was_typed_before_is_kept(
    typed: str, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", "1")
    console = make_console(io.StringIO())
    with create_pipe_input() as keys:
        terminal = Terminal(None, source=keys)
        story = TurnDisplay(console)
        keys.send_text("yes\r")
        asyncio.get_running_loop().call_later(0.02, keys.send_text, typed)

        agreed = await TurnRunner(terminal, story).confirm()
        keys.send_text("and more\r")

        assert (agreed, await terminal.message()) == (agrees, "yes\nand more")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    written = Rows(tmp_path / "graph-agent.db")
    written.thread()
    written.message("system", {"content": "be good"})
    yield written
    written.close()


def _recent(rows: Rows) -> list[str]:
    stream = io.StringIO()
    show_recent(rows.path, "t1", TurnDisplay(Console(file=stream, width=80, markup=False, highlight=False)))
    return stream.getvalue().splitlines()


def test_the_last_two_turns_are_shown_as_they_were_when_they_happened(rows: Rows) -> None:
    for number in (1, 2, 3):
        rows.message("user", {"content": f"question {number}"})
        rows.message("assistant", {"content": "", "tool_calls": [{"name": "ls", "id": f"c{number}", "args": {}}]})
        rows.message("tool", {"content": f"result {number} [red]\x1b[2J", "tool_call_id": f"c{number}"})
    rows.message("assistant", {"content": "**all** [red]"})
    result = {"result": "result 3 [red]\x1b[2J", "summary": "exit code 1", "error_msg": "no"}
    rows.call({"call_id": "c3", "tool_name": "bash", "status": "error", "arguments": {"command": "ls"}, **result})

    assert _recent(rows) == [
        "… 3 earlier messages: /inspect or `graph-agent threads show`",
        "> question 2",
        "✓ ls  success",
        "  │ result 2 [red]\\x1b[2J",
        "> question 3",
        "✗ bash $ ls  error  no",
        "  │ result 3 [red]\\x1b[2J",
        "all [red]",
    ]


def test_a_short_conversation_is_shown_whole(rows: Rows) -> None:
    rows.message("user", {"content": "hi"})

    assert _recent(rows) == ["> hi"]


def _rings(capsys: pytest.CaptureFixture[str], *statuses: TurnStatus, is_wanted: bool = True) -> int:
    bus = EventBus()
    bus.subscribe(Announcer(Notifier(lambda: True, lambda: "auto"), lambda: is_wanted))
    for status in statuses:
        bus.publish(TurnStarted("go"))
        bus.publish(TurnEnded(status))
    return capsys.readouterr().out.count("\a")


def test_the_bell_rings_when_a_question_waits_and_not_after_a_short_turn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert _rings(capsys, "done", "awaiting_approval", "stopped", "interrupted", "model_error") == 2


def test_the_bell_rings_when_a_long_turn_has_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph_agent.cli.chat.turn_runner._LONG_TURN_S", 0.0)

    assert _rings(capsys, "done", "model_error") == 2


def test_without_the_setting_the_bell_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert _rings(capsys, "awaiting_approval", is_wanted=False) == 0


def test_the_bell_rings_once_where_it_is_the_notification_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("graph_agent.cli.prompts.terminal_output._may_notify", lambda: True)
    bus = EventBus()
    bus.subscribe(Announcer(Notifier(lambda: False, lambda: "bell"), lambda: True))

    bus.publish(TurnEnded("awaiting_approval"))

    assert re.sub(r"\x1b\][^\a]*\a", "", capsys.readouterr().out).count("\a") == 1
