"""The real chat on a scripted session, as a program for a pseudo-terminal: `python -m tests.fakes.chat_program`.

Arguments: the scenario, and a file for the session's log.
"""

import asyncio
import json
import sys
from pathlib import Path

from graph_agent.cli.chat.chat import Chat, ChatOptions
from graph_agent.cli.exit_codes import run_guarded
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.console import make_console
from graph_agent.cli.session_target import Target
from graph_agent.events import (
    EventBus,
    ModelMessage,
    TextDelta,
    ToolCallCreated,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
)
from graph_agent.ports.background import BackgroundTask
from graph_agent.session.session import Session
from tests.fakes.scripted_session import Pause, ScriptedSession, Turn, approval, rest

__all__ = ["SCENARIOS"]

_ECHO_A = approval("call-a", "bash", {"command": "echo a >> log.txt"}, reason="bash asks")
_ECHO_B = approval("call-b", "bash", {"command": "echo b >> log.txt"})
_SPOOF = approval(
    "call-a", "bash", {"command": "touch pwn #\r\x1b[2K   command: ls -la", "path": "a\x1b[1A.txt"}, risk="high"
)
_SAYS = (TextDelta("hel"), TextDelta("lo [red]x[/]"), ModelMessage("hello [red]x[/]"))
_DONE = Turn(rest(answer="hello [red]x[/]"), _SAYS)
_RUNS = (
    ToolCallCreated({"call_id": "c1", "tool_name": "bash", "summary": "sleep 60"}),
    ToolCallStarted("c1", "bash", "sleep 60"),
    ToolCallProgress("c1", "shell_output", "tick [bold]\n"),
)
_SLOW = Turn(rest(answer="late"), (*_RUNS, Pause(60)))
_SHORT = Turn(
    rest(answer="ok"),
    (
        *_RUNS,
        Pause(0.6),
        ToolCallFinished("c1", "bash", "error", "sleep 60", "[/'A', 1] [red]x[/]\n", "exit code 3"),
    ),
)
_STREAM = Turn(rest(answer="late"), (TextDelta("streamed words\n\nand "), Pause(60)))
_ASKS = Turn(rest("awaiting_approval", questions=(_ECHO_A, _ECHO_B)))
_ASKS_ONE = Turn(rest("awaiting_approval", questions=(_ECHO_A,)))
_THINKS_THEN_ASKS = Turn(_ASKS_ONE.rest, (Pause(1.0),))

_TASKS = (
    BackgroundTask("sh1", "command", "npm start", "running for 12 s"),
    BackgroundTask("c7", "sub-agent", "find the callers of total() and of everything that uses it", "step 3"),
)

SCENARIOS: dict[str, tuple[Turn, ...]] = {
    "talk": (_DONE, _DONE),
    "ask": (_ASKS, _DONE),
    "ask one": (_ASKS_ONE, _DONE),
    "think then ask": (_THINKS_THEN_ASKS, _DONE),
    "spoof": (Turn(rest("awaiting_approval", questions=(_SPOOF,))), _DONE),
    "slow": (_SLOW, _DONE),
    "stream": (_STREAM, _DONE),
    "short": (_SHORT,),
    "short twice": (_SHORT, _DONE),
    "model error": (Turn(rest("model_error", error="bad [/tag]")), _DONE),
}
"""The turns of each."""


def main(scenario: str, log: Path) -> int:
    """Chat in this terminal; writes what the session was asked to the log."""
    sessions: list[ScriptedSession] = []

    async def open_scripted(_: Target, bus: EventBus) -> Session:
        sessions.append(ScriptedSession(bus, Path.cwd(), SCENARIOS[scenario]))
        sessions[-1].background = list(_TASKS)
        return sessions[-1]

    async def run() -> int:
        return await chat.run(asyncio.create_task(terminal.message()))

    terminal = Terminal(None)
    options = ChatOptions(
        Target(Path.cwd()), open_scripted, log.with_name("none.db"), introduction=lambda: ["scripted"]
    )
    chat = Chat(terminal, make_console(), options)
    try:
        with terminal.held():
            return asyncio.run(run())
    finally:
        log.write_text(json.dumps([entry for session in sessions for entry in session.log]))


if __name__ == "__main__":
    sys.exit(run_guarded(lambda: sys.exit(main(sys.argv[1], Path(sys.argv[2])))))
