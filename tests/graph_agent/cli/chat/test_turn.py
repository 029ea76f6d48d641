import asyncio
import io
from pathlib import Path

from prompt_toolkit.input import create_pipe_input
from rich.console import Console

from graph_agent.cli.chat.turn_runner import TurnRunner
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import EventBus
from graph_agent.session.turn_result import TurnResult
from tests.fakes.pty_chat import PtyChat
from tests.fakes.scripted_session import ScriptedSession, rest

_UP, _BACKSPACE = "\x1b[A", "\x7f"


def test_a_command_typed_while_a_turn_runs_is_said_and_run_after_it(tmp_path: Path) -> None:
    chat = PtyChat("short", tmp_path)
    chat.sees("> ")

    chat.enters("go")
    chat.sees("sleep 60")
    chat.enters("/mode plan")
    chat.sees("after this turn: /mode plan")
    chat.sees("exit code 3")
    chat.sees("mode: plan")
    chat.types("\x04")

    assert (chat.ends(), chat.log()) == (0, [["start"], ["send", "go"]])


def test_up_on_an_empty_line_takes_the_newest_message_back_and_what_became_of_it_is_sent(tmp_path: Path) -> None:
    chat = PtyChat("slow", tmp_path)
    chat.sees("> ")

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.enters("first")
    chat.enters("second")
    chat.sees("queued: second")
    chat.types(_UP)
    chat.sees("no longer queued: second")
    chat.enters(" thought")
    chat.sees("queued: second thought")
    chat.types(_UP)
    chat.sees("no longer queued: second thought")
    chat.types(_BACKSPACE * len("second thought"))
    chat.types("\x1b")
    chat.sees("1 message queued: Enter to send, Up to edit the last")
    chat.types(_UP)
    chat.sees("no longer queued: first")
    chat.enters(" of all")
    chat.sees("hello")
    chat.types("\x04")

    assert (chat.ends(), chat.log()[-2:]) == (0, [["take back", "first"], ["send", "first of all"]])


def test_a_stop_lets_what_is_queued_wait_until_enter_is_pressed(tmp_path: Path) -> None:
    chat = PtyChat("slow", tmp_path)
    chat.sees("> ")

    chat.enters("go")
    chat.sees("tick [bold]")
    chat.enters("instead")
    chat.sees("queued: instead")
    chat.types("\x1b")
    chat.sees("1 message queued")
    chat.types("\r")
    chat.sees("> instead")
    chat.sees("hello")
    chat.types("\x04")

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
